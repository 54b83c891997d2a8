//! Where servers come from, and where they do not.

use serde_json::json;

use super::hostile::config;
use super::{agent, configured, result, tools, until_state};
use crate::child::{Child, world};

#[test]
fn a_server_of_a_project_is_not_started_and_it_is_said_why() {
    let world = world();
    let started = world.folder().join("started");
    let project = world.folder().join(".switchboard");
    std::fs::create_dir_all(&project).unwrap();
    let tempting = format!("{}STARTED = {}\n", config("tempting", "", ""), json!(started.to_str().unwrap()));
    std::fs::write(project.join("config.toml"), &tempting).unwrap();
    let mut child = agent(&world);
    let inert = until_state(&mut child, "tempting", "inert");
    let why = inert["message"].as_str().unwrap();
    assert!(why.contains(".switchboard/config.toml") && why.contains("config/config.toml"), "{why}");
    assert!(!tools(&mut child).iter().any(|tool| tool.contains("__")));
    assert!(!started.exists());
    // The same lines in the user's own file do start it.
    std::fs::create_dir_all(world.paths().config).unwrap();
    std::fs::write(world.paths().config_file(), tempting).unwrap();
    let mut child = agent(&world);
    assert_eq!(result(&mut child, "tempting__good", json!({})), "good did it");
    assert!(started.exists());
}

#[test]
fn what_a_project_names_is_started_once_it_is_trusted_and_until_it_changes() {
    let world = world();
    let started = world.folder().join("started");
    let project = world.folder().join(".switchboard");
    std::fs::create_dir_all(&project).unwrap();
    let tempting = format!("{}STARTED = {}\n", config("tempting", "", ""), json!(started.to_str().unwrap()));
    std::fs::write(project.join("config.toml"), &tempting).unwrap();
    let why = until_state(&mut agent(&world), "tempting", "inert")["message"].as_str().unwrap().to_owned();
    assert!(why.contains("`swb trust ") && !why.contains("has changed"), "{why}");
    let trusted = world.swb(["trust", "--json"]).ok().json();
    assert!(trusted["files"][0]["runs"][0].as_str().unwrap().starts_with("tempting: /"), "{trusted}");
    let mut child = agent(&world);
    assert_eq!(result(&mut child, "tempting__good", json!({})), "good did it");
    assert!(started.exists());
    std::fs::write(project.join("config.toml"), format!("{tempting}# another\n")).unwrap();
    let why = until_state(&mut agent(&world), "tempting", "inert")["message"].as_str().unwrap().to_owned();
    assert!(why.contains("has changed since it was trusted"), "{why}");
}

#[test]
fn the_mcp_json_of_a_project_needs_trust_too() {
    let world = world();
    let args = ["--ignored", "--exact", "mcp::hostile::serve"];
    let good =
        json!({ "command": std::env::current_exe().unwrap(), "args": args, "env": { "MISBEHAVE": "" } });
    let file = json!({ "mcpServers": { "theirs": good } });
    std::fs::write(world.folder().join(".mcp.json"), file.to_string()).unwrap();
    until_state(&mut agent(&world), "theirs", "inert");
    world.swb(["trust"]).ok();
    assert_eq!(result(&mut agent(&world), "theirs__good", json!({})), "good did it");
    world.swb(["trust", "--revoke"]).ok();
    until_state(&mut agent(&world), "theirs", "inert");
}

#[test]
fn the_incumbents_file_is_read_where_it_lies() {
    let world = world();
    let base = world.folder().join("base");
    std::fs::create_dir_all(&base).unwrap();
    let program = std::env::current_exe().unwrap();
    let args = ["--ignored", "--exact", "mcp::hostile::serve"];
    let good = json!({ "command": program, "args": args, "env": { "MISBEHAVE": "" } });
    let file = json!({ "mcpServers": { "theirs": good, "broken": { "args": [] } } });
    std::fs::write(base.join("mcp.json"), file.to_string()).unwrap();
    let mut child =
        Child::start_in(&world, &["--tool-mode", "full"], &[("SYNAPS_BASE_DIR", base.to_str().unwrap())]);
    let broken = until_state(&mut child, "broken", "failed");
    assert!(broken["message"].as_str().unwrap().contains("`command` or a `url`"), "{broken}");
    assert_eq!(result(&mut child, "theirs__good", json!({})), "good did it");

    std::fs::write(base.join("mcp.json"), "{").unwrap();
    let mut child = Child::start_in(&world, &[], &[("SYNAPS_BASE_DIR", base.to_str().unwrap())]);
    assert!(until_state(&mut child, "mcp.json", "failed")["message"].as_str().unwrap().contains("not valid"));
    assert_eq!(child.state("streaming"), false, "the agent itself is well");
}

#[test]
fn keys_of_ours_are_not_handed_to_servers() {
    let world = configured(&format!("{}GIVEN = \"${{SWB_TEST_SECRET}}\"\n", config("bad", "", "")));
    let secret = [("SWB_TEST_SECRET", "x"), ("ANTHROPIC_API_KEY", "y")];
    let mut child = Child::start_in(&world, &["--tool-mode", "full"], &secret);
    let names = result(&mut child, "bad__env", json!({}));
    let names: Vec<_> = names.split(' ').collect();
    assert!(names.contains(&"GIVEN") && names.contains(&"PATH") && names.contains(&"HOME"), "{names:?}");
    assert!(!names.contains(&"ANTHROPIC_API_KEY") && !names.contains(&"SWB_TEST_SECRET"), "{names:?}");
}

#[test]
fn the_list_of_tools_has_them_also_without_a_session() {
    let world = configured(&config("bad", "", ""));
    let tools = world.swb(["tools_list", "--json"]).ok().json();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"bad__good") && names.contains(&"bash"), "{names:?}");
    assert!(names.is_sorted(), "{names:?}");
}

#[test]
fn a_list_that_waits_for_a_server_does_not_wait_for_ever_and_holds_nobody_up() {
    let world = configured(&config("bad", "silent", "start_timeout_s = 60"));
    let mut child = agent(&world);
    child.send(json!({ "type": "tools_list", "id": "l" }));
    child.send(json!({ "type": "get_state", "id": "s" }));
    assert_eq!(child.next()["id"], "s", "others are answered meanwhile");
    child.send(json!({ "type": "shutdown" }));
    assert_eq!(child.next()["command"], "tools_list", "whoever asks for the end gets what there is");
    assert_eq!(child.exit_code(), Some(0));
}
