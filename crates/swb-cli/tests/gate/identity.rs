//! Who somebody is, on every door.

use serde_json::Value;
use testkit::World;

use crate::agent_place::run;

fn world() -> World {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    world.swb(["up"]).ok();
    world
}

/// The last command of a method in the record: its actor and how it ended.
fn last(world: &World, method: &str) -> (String, String) {
    let records = world.swb(["--json", "audit", "search", "--method", method]).ok().json_lines();
    let ends: Vec<&Value> = records.iter().filter(|record| record["kind"] == "end").collect();
    let end = ends.iter().max_by_key(|end| end["n"].as_u64()).unwrap_or_else(|| panic!("{records:?}"));
    (
        format!("{}:{}", end["actor"]["kind"].as_str().unwrap(), end["actor"]["id"].as_str().unwrap()),
        end["status"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn a_shell_behind_a_host_is_that_agent_on_the_socket() {
    let world = world();
    let said = run(&world, "sess_ada", None, "$SWB --json call workspace.list >/dev/null 2>&1; echo $?");
    assert_eq!(said.lines, ["0"]);
    assert_eq!(last(&world, "workspace.list"), ("agent:sess_ada".to_owned(), "ok".to_owned()));
    world.swb(["call", "workspace.list"]).ok();
    assert_eq!(last(&world, "workspace.list"), ("user:user_local".to_owned(), "ok".to_owned()));
    world.swb(["down"]).ok();
}

#[test]
fn nothing_it_claims_changes_that() {
    let world = world();
    let socket = world.paths().control_socket();
    let claim = r#"{"actor":{"kind":"user","id":"user_local"}}"#;
    let line = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
    };
    let in_line = line("workspace.list", &format!(r#"{{"_meta":{claim}}}"#));
    for line in [line("bus.hello", claim), in_line] {
        let script = format!(
            "python3 -c 'import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
             s.sendall((sys.argv[2]+chr(10)).encode()); print(s.makefile().readline().strip())' {} '{line}'",
            socket.display()
        );
        let said = run(&world, "sess_ada", None, &script).lines.concat();
        assert!(said.contains("ACTOR_MISMATCH") && said.contains("agent sess_ada"), "{said}");
    }
    assert_eq!(last(&world, "workspace.list"), ("agent:sess_ada".to_owned(), "denied".to_owned()));
    world.swb(["down"]).ok();
}

#[test]
fn leaving_the_group_the_session_and_the_parent_changes_nothing() {
    let world = world();
    let script = "rm -f done; setsid sh -c '(sh -c \"$SWB call workspace.list >/dev/null 2>&1; echo >done\" &) &'; \
                  while ! [ -e done ]; do read -t 0.02 <> <(:); done; echo left";
    let said = run(&world, "sess_ada", None, script);
    assert_eq!(said.lines, ["left"]);
    assert_eq!(last(&world, "workspace.list").0, "agent:sess_ada");
    // A process that poses as another host is still below the first.
    let fake = r#"exec -a swb bash -c '$SWB call session.list >/dev/null 2>&1; echo $?' host '{"socket":"/x/sess_eve/host.sock","ring":1,"cap":1,"walls":null}'"#;
    let pose = format!("( {fake} )");
    assert_eq!(run(&world, "sess_bob", None, &pose).lines, ["0"]);
    assert_eq!(last(&world, "session.list").0, "agent:sess_bob");
    world.swb(["down"]).ok();
}

#[test]
fn the_users_token_is_worth_nothing_in_its_hands() {
    let world = world();
    let status = world.swb(["--json", "status"]).ok().json();
    let address = status["http"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let (host, port) = address.rsplit_once(':').unwrap();
    let token = world.swb(["token"]).ok().stdout.trim().to_owned();
    let ask = |path: &str, token: &str| {
        format!(
            "exec 3<>/dev/tcp/{host}/{port}; printf 'GET {path} HTTP/1.1\\r\\nHost: {address}\\r\\n\
             Authorization: Bearer {token}\\r\\nConnection: close\\r\\n\\r\\n' >&3; head -1 <&3 | tr -d '\\r'; exec 3>&-;"
        )
    };
    let messages = "/api/v1/messages?project_id=mine";
    let post =
        ask("/agui", &token).replacen("GET", "POST", 1).replacen("Host:", "Content-Length: 2\\r\\nHost:", 1);
    let post = post.replacen("\\r\\n\\r\\n", "\\r\\n\\r\\n{}", 1);
    let script = [ask(messages, &token), ask("/metrics", &token), ask("/agui/stream", &token), post].concat();
    let said = run(&world, "sess_ada", None, &script);
    assert_eq!(said.lines, ["HTTP/1.1 403 Forbidden"; 4]);
    for method in ["message.read", "events.subscribe", "agent.run"] {
        assert_eq!(last(&world, method), ("agent:sess_ada".to_owned(), "denied".to_owned()), "{method}");
    }
    let own = world.swb(["token", "--agent", "sess_ada"]).ok().stdout.trim().to_owned();
    let other = world.swb(["token", "--agent", "sess_eve"]).ok().stdout.trim().to_owned();
    let script = format!("{}{}", ask(messages, &own), ask(messages, &other));
    let said = run(&world, "sess_ada", None, &script);
    assert_eq!(said.lines, ["HTTP/1.1 200 OK", "HTTP/1.1 403 Forbidden"]);
    world.swb(["down"]).ok();
}
