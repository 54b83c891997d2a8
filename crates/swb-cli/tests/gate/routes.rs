//! Every route that an agent may try to get more than it was given.

use swb_host::wire::Containment;
use testkit::World;

use crate::agent_place::run;

#[test]
fn an_agent_neither_governs_nor_answers() {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    world.swb(["up"]).ok();
    let tries = [
        "$SWB call approval.request.resolve '{\"approval_id\":\"apr_x\",\"decision\":\"approve\"}'",
        "$SWB call bus.shutdown",
        "$SWB down",
        "$SWB call grant.revoke '{\"grant_id\":\"grant_x\"}'",
    ];
    for attempt in tries {
        let said =
            run(&world, "sess_ada", None, &format!("{attempt} >/dev/null 2>&1 && echo did || echo no"));
        assert_eq!(said.lines, ["no"], "{attempt}");
    }
    // It is still there, and says of each attempt who it was.
    let denied = world.swb(["--json", "audit", "search", "--status", "denied"]).ok().json_lines();
    let methods: Vec<&str> = denied.iter().filter_map(|record| record["method"].as_str()).collect();
    for method in ["approval.request.resolve", "bus.shutdown", "grant.revoke"] {
        assert!(methods.contains(&method), "{method} in {methods:?}");
    }
    assert!(denied.iter().all(|record| record["actor"]["id"] == "sess_ada"), "{denied:?}");
    world.swb(["down"]).ok();
}

#[test]
fn harmless_command_lines_need_nobody_in_a_cell_and_somebody_outside() {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    world.swb(["up"]).ok();
    world.swb(["workspaces", "create", "home"]).ok();
    let project = world.folder().join("project");
    std::fs::create_dir(&project).unwrap();
    world.swb(["projects", "init", project.to_str().unwrap()]).ok();
    let session = world.swb(["--json", "sessions", "create", "project", "--agent"]).ok().json();
    let agent = session["session_id"].as_str().unwrap();
    let ask = |command: &str| {
        let params = serde_json::json!({ "tool": "bash", "args": { "command": command }, "cwd": project });
        format!("$SWB --json call policy.decide '{params}' 2>&1 | grep -o '\"decision\":\"[a-z]*\"';")
    };
    let script = [ask("ls -l"), ask("rm -rf ."), ask("cat ~/.ssh/id_rsa")].concat();
    let answers =
        |asked: &str| [asked, "ask", "deny"].map(|answer| format!("\"decision\":\"{answer}\"")).to_vec();
    assert_eq!(run(&world, agent, None, &script).lines, answers("ask"));
    let walls = swb_daemon::containment::walls(&world.paths(), None);
    let inside = run(&world, agent, Some(walls), &script);
    if !matches!(inside.containment, Containment::Advisory { .. }) {
        assert_eq!(inside.lines, answers("allow"));
    }
    world.swb(["down"]).ok();
}

#[test]
fn in_a_cell_the_house_is_not_there_but_its_socket() {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    world.swb(["up"]).ok();
    world.swb(["token"]).ok();
    let walls = swb_daemon::containment::walls(&world.paths(), None);
    let home = world.home();
    let script = format!(
        "ls {home}/config {home}/state {home}/data 2>/dev/null | grep -c '[a-z]*\\.'; \
         ls {home}/run; \
         $SWB token >/dev/null 2>&1 && echo token || echo no token; \
         mkdir -p {home}/config/policy 2>/dev/null && echo wrote rules || echo no rules; \
         $SWB call workspace.list >/dev/null 2>&1 && echo served || echo not served; \
         [ $(ls -d /proc/[0-9]* | wc -l) -lt 8 ] && echo alone",
        home = home.display()
    );
    let said = run(&world, "sess_ada", Some(walls), &script);
    if matches!(said.containment, Containment::Advisory { .. }) {
        return;
    }
    assert_eq!(said.lines, ["0", "control.sock", "door", "no token", "no rules", "served", "alone"]);
    let records = world.swb(["--json", "audit", "search", "--method", "workspace.list"]).ok().json_lines();
    assert!(records.iter().all(|record| record["actor"]["id"] == "sess_ada"), "{records:?}");
    world.swb(["down"]).ok();
}
