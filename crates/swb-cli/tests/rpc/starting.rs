//! Arguments, environment, files: what an agent is started with, and which of them wins.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testkit::World;

use crate::child::{Child, bash, results, spawn_in, world};

fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn config(world: &World) -> std::path::PathBuf {
    world.home().join("config")
}

/// The system prompt that a session has written down.
fn system_of(world: &World, profile: Option<&str>, id: &str) -> Value {
    let file = world.paths().sessions(profile).join(format!("{id}.jsonl"));
    let text = fs::read_to_string(file).unwrap();
    serde_json::from_str::<Value>(text.lines().next().unwrap()).unwrap()["system"].take()
}

fn end(mut child: Child) -> String {
    child.close_stdin();
    child.exit_code();
    child.session_id.clone()
}

#[test]
fn the_model_of_a_new_session_comes_from_argument_environment_or_settings() {
    let world = world();
    assert_eq!(Child::start(&world, &[]).state("model"), "demo");
    write(&config(&world).join("config.toml"), "[agent]\nmodel = \"demo/settings\"\n");
    assert_eq!(Child::start(&world, &[]).state("model"), "demo/settings");
    let variables = [("SWB_MODEL", "demo/variable")];
    assert_eq!(Child::start_in(&world, &[], &variables).state("model"), "demo/variable");
    assert_eq!(Child::start_in(&world, &["-m", "demo"], &variables).state("model"), "demo");
}

#[test]
fn a_session_that_goes_on_keeps_its_model_and_prompt_unless_an_argument_says_otherwise() {
    let world = world();
    write(&config(&world).join("system.md"), "the first");
    let id = end(Child::start(&world, &["--model", "demo/demo"]));
    write(&config(&world).join("system.md"), "the second");
    let mut again = Child::start_in(&world, &["--continue", &id], &[("SWB_MODEL", "demo")]);
    assert_eq!(again.state("model"), "demo/demo");
    end(again);
    assert_eq!(system_of(&world, None, &id), "the first");
    assert_eq!(Child::start(&world, &["--continue", &id, "--model", "demo"]).state("model"), "demo");
}

#[test]
fn the_system_prompt_is_text_or_a_file_that_can_be_read() {
    let world = world();
    let system = |arguments: &[&str]| {
        let id = end(Child::start(&world, arguments));
        system_of(&world, None, &id)
    };
    assert_eq!(system(&[]), Value::Null, "nothing is written down of the built-in one");
    assert_eq!(system(&["--system", "be brief"]), "be brief");
    assert_eq!(system(&["-s", "- a list\n- of wishes"]), "- a list\n- of wishes");
    write(&world.folder().join("prompt.md"), "from a file");
    assert_eq!(system(&["--system", "prompt.md"]), "from a file");
    write(&world.folder().join("bytes"), b"\xff\xfe");
    let refused = world.swb(["rpc", "--system", "bytes"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert!(refused.stderr.contains("bytes cannot be read"), "{}", refused.stderr);
}

#[test]
fn a_profile_has_settings_and_a_prompt_of_its_own_and_falls_back_to_the_common_ones() {
    let world = world();
    let common = config(&world);
    write(&common.join("config.toml"), "[agent]\nmodel = \"demo/common\"\nthinking = \"low\"\n");
    write(&common.join("system.md"), "common");
    write(&common.join("profiles/work/config.toml"), "[agent]\nmodel = \"demo/work\"\n");
    let mut work = Child::start(&world, &["--profile", "work"]);
    assert_eq!((work.state("model"), work.state("thinking_level")), (json!("demo/work"), json!("low")));
    let id = end(work);
    assert_eq!(system_of(&world, Some("work"), &id), "common");
    write(&common.join("profiles/work/system.md"), "work");
    let id = end(Child::start(&world, &["--profile", "work"]));
    assert_eq!(system_of(&world, Some("work"), &id), "work");
}

#[test]
fn a_project_cannot_widen_what_an_agent_may_do() {
    let world = world();
    let project = "[agent]\ntool_mode = \"full\"\nmodel = \"demo/project\"\ndisabled_tools = \"\"\n";
    write(&world.folder().join(".switchboard/config.toml"), project);
    write(&config(&world).join("config.toml"), "[agent]\ndisabled_tools = \"bash\"\n");
    let mut child = Child::start(&world, &[]);
    assert_eq!((child.state("tool_mode"), child.state("model")), (json!("workspace"), json!("demo/project")));
    let tools = child.ask(json!({ "type": "tools_list", "id": "t" }))["tools"].take();
    assert!(!tools.to_string().contains("\"name\":\"bash\""), "{tools}");
    assert!(world.swb(["config"]).ok().stderr.contains("agent.tool_mode"), "and is told so");
    write(&config(&world).join("config.toml"), "[agent]\ntool_mode = \"read-only\"\n");
    assert_eq!(Child::start(&world, &[]).state("tool_mode"), "read-only");
    assert_eq!(Child::start(&world, &["--tool-mode", "full"]).state("tool_mode"), "full");
}

#[test]
fn the_files_of_the_incumbent_are_read_where_ours_say_nothing() {
    let world = world();
    let base = world.folder().join("base");
    let secret = "k-very-secret-1234567890";
    let text = format!(
        "# as it was\nmodel = claude-sonnet-4-6\nthinking = medium\napi_retries = 0\nprovider.anthropic = {secret}\n"
    );
    write(&base.join("config"), text);
    write(&base.join("system.md"), "theirs");
    write(&base.join("work/config"), "model = demo/theirs\n");
    let variables =
        [("SYNAPS_BASE_DIR", base.to_str().unwrap()), ("SYNAPS_ANTHROPIC_BASE_URL", "http://127.0.0.1:9")];
    let mut child = Child::start_in(&world, &[], &variables);
    assert_eq!(child.state("model"), "claude-sonnet-4-6");
    assert_eq!(child.state("thinking_level"), "medium");
    let failed = child.turn("p", "hello").pop().unwrap();
    let error = failed["error"].as_str().unwrap();
    assert!(!error.contains("ANTHROPIC_API_KEY"), "its key was found, and nobody answers there: {error}");
    assert!(!error.contains(secret));
    let id = end(child);
    assert_eq!(system_of(&world, None, &id), "theirs");
    let mut shown = world.command(["config", "--json"]);
    let shown = shown.env("SYNAPS_BASE_DIR", &base).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("claude-sonnet-4-6") && !shown.contains(secret), "{shown}");

    assert_eq!(Child::start_in(&world, &["--profile", "work"], &variables).state("model"), "demo/theirs");
    write(&config(&world).join("config.toml"), "[agent]\nmodel = \"demo/ours\"\n");
    assert_eq!(Child::start_in(&world, &[], &variables).state("model"), "demo/ours");
}

#[test]
fn limits_of_tools_can_be_set() {
    let world = world();
    let variables = [
        ("SWB_AGENT_BASH_TIMEOUT_S", "1"),
        ("SWB_AGENT_MAX_TOOL_OUTPUT", "2000"),
        ("SWB_AGENT_COMPACTION_MODEL", "nobody/nothing"),
    ];
    let mut child = Child::start_in(&world, &["--tool-mode", "full"], &variables);
    let frames = child.turn("p", &bash("seq 1 2000; exec sleep 100"));
    assert!(results(&frames)[0].ends_with("[killed after 1 seconds]"));
    let kept = child.messages()[2]["content"][0]["content"].take();
    assert!(kept.as_str().unwrap().ends_with("showing first 2000]"), "{kept}");
    let compacted = child.ask(json!({ "type": "compact", "id": "c" }));
    assert!(compacted["summary"].is_string(), "a model that cannot be used gives way to the one in use");
}

#[test]
fn a_setting_that_makes_no_sense_ends_it_before_any_frame() {
    let world = world();
    for (name, value) in [("SWB_AGENT_TOOL_MODE", "root"), ("SWB_AGENT_BASH_TIMEOUT_S", "soon")] {
        let output = spawn_in(&world, &[], &[(name, value)]).wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(6), &b""[..]), "{name}");
    }
}
