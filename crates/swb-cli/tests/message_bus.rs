//! `swb bus`: the real binary, no daemon.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::{Ran, World};

fn world() -> World {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    std::fs::create_dir_all(world.folder().join("root/p/t")).expect("a root with a task");
    world
}

fn root(world: &World) -> String {
    world.folder().join("root").display().to_string()
}

fn output(command: &mut Command) -> Ran {
    let output = command.output().expect("the binary runs");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn post(world: &World, arguments: &[&str]) -> String {
    let root = root(world);
    let all = [&["bus", "post", "--root", &root], arguments].concat();
    let stdout = world.swb(all).ok().stdout;
    stdout.strip_prefix("msg_id: ").expect("the id and nothing else").trim_end().to_owned()
}

fn read(world: &World, arguments: &[&str]) -> Vec<Value> {
    let root = root(world);
    world.swb([&["bus", "read", "--root", &root, "--json"], arguments].concat()).ok().json_lines()
}

#[test]
fn what_is_posted_is_read_back_exactly() {
    let world = world();
    let body = "line\n---\nmsg_id: FORGED\n---\nétc\n\n";
    let id = post(
        &world,
        &[
            "--project",
            "p",
            "--task",
            "t",
            "--type",
            "FACT",
            "--body",
            body,
            "--meta",
            "k=v",
            "--issue",
            "I-1",
            "--link",
            "docs|http://x/y",
        ],
    );
    let messages = read(&world, &["--project", "p", "--task", "t"]);
    assert_eq!(messages.len(), 1);
    let message = &messages[0];
    assert_eq!(
        (&message["msg_id"], &message["type"], &message["body"]),
        (&json!(id), &json!("FACT"), &json!(body))
    );
    assert_eq!(
        (&message["project_id"], &message["task_id"], &message["issue_id"]),
        (&json!("p"), &json!("t"), &json!("I-1"))
    );
    assert_eq!((&message["meta"], &message["links"][0]["url"]), (&json!({"k":"v"}), &json!("http://x/y")));
    assert!(world.folder().join("root/p/t/TASK-MESSAGE-BUS.md").is_file());
}

#[test]
fn a_body_that_was_cut_is_shown_as_what_it_is() {
    let world = world();
    post(&world, &["--project", "p", "--body", "one\ntwo\nthree"]);
    post(&world, &["--project", "p", "--body", "whole"]);
    let bus = world.folder().join("root/p/PROJECT-MESSAGE-BUS.md");
    let text = std::fs::read_to_string(&bus).unwrap();
    std::fs::write(&bus, text.replace("two\nthree\n", "")).unwrap();
    let messages = read(&world, &["--project", "p"]);
    assert_eq!((&messages[0]["body"], &messages[0]["body_cut"]), (&json!("one"), &json!(true)));
    assert_eq!((&messages[1]["body"], messages[1].get("body_cut")), (&json!("whole"), None));
    let root = root(&world);
    let shown = world.swb(["bus", "read", "--root", &root, "--project", "p"]).ok().stdout;
    let said: Vec<_> = shown.lines().map(|line| line.split_once(") ").unwrap().1).collect();
    assert_eq!(said, ["one (cut short)", "whole"]);
}

#[test]
fn json_is_one_line_for_each_message_with_the_keys_of_the_interface() {
    let world = world();
    let first = post(&world, &["--project", "p", "--type", "FACT", "--body", "a\nb"]);
    post(
        &world,
        &[
            "--project",
            "p",
            "--parent",
            &format!("{first}:blocks"),
            "--reply-to",
            &first,
            "--link",
            "u",
            "--body",
            "c",
        ],
    );
    let root = root(&world);
    let printed = world.swb(["bus", "read", "--json", "--root", &root, "--project", "p"]).ok().stdout;
    let time = |line: &str| serde_json::from_str::<Value>(line).unwrap()["timestamp"].take();
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 2, "{printed}");
    assert_eq!(
        lines[0],
        format!(
            r#"{{"msg_id":"{first}","timestamp":{},"type":"FACT","project_id":"p","body":"a\nb"}}"#,
            time(lines[0])
        )
    );
    let second: Value = serde_json::from_str(lines[1]).unwrap();
    let parents = json!([{ "msg_id": first, "kind": "blocks" }, { "msg_id": first, "kind": "reply_to" }]);
    assert_eq!((&second["parents"], &second["links"]), (&parents, &json!([{ "url": "u" }])));
}

#[test]
fn the_plain_line_is_time_type_body() {
    let world = world();
    post(&world, &["--project", "p", "--body", "hello"]);
    let root = root(&world);
    let shown = world.swb(["bus", "read", "--root", &root, "--project", "p"]).ok().stdout;
    let (time, rest) = shown.split_at(22);
    assert!(time.starts_with('[') && time.ends_with("] ") && time.as_bytes()[11] == b' ', "{shown}");
    assert_eq!(rest, "(INFO) hello\n");
}

#[test]
fn posting_prefers_the_flag_then_the_environment_then_the_project() {
    let world = world();
    let file = |name: &str| world.folder().join(name);
    for name in ["flag.md", "env.md"] {
        std::fs::write(file(name), "").unwrap();
    }
    let root = root(&world);
    let command = |flags: &[&str], variable: &str| {
        let mut command = world
            .command([&["bus", "post", "--root", &root, "--project", "p", "--body", "x"], flags].concat());
        output(command.env(variable, file("env.md"))).ok();
    };
    command(&["--bus", file("flag.md").to_str().unwrap()], "MESSAGE_BUS");
    command(&[], "MESSAGE_BUS");
    command(&[], "JRUN_MESSAGE_BUS");
    assert_eq!(std::fs::read_to_string(file("flag.md")).unwrap().matches("msg_id").count(), 1);
    assert_eq!(std::fs::read_to_string(file("env.md")).unwrap().matches("msg_id").count(), 2);
    assert!(!file("root/p/PROJECT-MESSAGE-BUS.md").exists());
}

#[test]
fn reading_prefers_the_project_and_refuses_both() {
    let world = world();
    post(&world, &["--project", "p", "--body", "of the project"]);
    let root = root(&world);
    let mut command = world.command(["bus", "read", "--root", &root, "--project", "p"]);
    let shown = output(command.env("MESSAGE_BUS", world.folder().join("nowhere.md"))).ok().stdout;
    assert!(shown.contains("of the project"), "{shown}");
    let both = world.swb(["bus", "read", "--bus", "x", "--project", "p"]);
    assert_eq!(both.code, Some(1));
    assert!(both.stderr.contains("cannot specify both --bus and --project"), "{both:?}");
}

#[test]
fn fields_come_from_flags_path_folders_and_ids_in_that_order() {
    let world = world();
    let root = root(&world);
    let posted = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut command = world.command([&["bus", "post", "--json", "--body", "x"], flags].concat());
        output(command.envs(variables.iter().copied())).ok();
    };
    let task_bus = format!("{root}/p/t/TASK-MESSAGE-BUS.md");
    let environment = [("JRUN_PROJECT_ID", "ep"), ("JRUN_TASK_ID", "et"), ("JRUN_ID", "er")];
    posted(&["--bus", &task_bus], &environment);
    posted(&["--bus", &task_bus, "--project", "fp", "--run", "fr"], &environment);
    posted(
        &["--bus", &format!("{root}/other.md")],
        &[("RUN_FOLDER", "/x/rp/rt/runs/rr"), ("TASK_FOLDER", "/x/tp/tt")],
    );
    posted(&["--bus", &format!("{root}/other.md")], &[("JRUN_TASK_FOLDER", "/x/tp/tt"), ("JRUN_ID", "er")]);
    let fields = |file: &str| -> Vec<Value> {
        let messages = world.swb(["bus", "read", "--json", "--bus", file]).ok().json_lines();
        messages.into_iter().map(|m| json!([m["project_id"], m["task_id"], m["run_id"]])).collect()
    };
    assert_eq!(fields(&task_bus), [json!(["p", "t", "er"]), json!(["fp", "t", "fr"])]);
    assert_eq!(fields(&format!("{root}/other.md")), [json!(["rp", "rt", "rr"]), json!(["tp", "tt", "er"])]);
    let lost = output(
        world
            .command(["bus", "post", "--body", "x", "--bus", &format!("{root}/other.md")])
            .env_remove("JRUN_ID"),
    );
    assert_eq!(lost.code, Some(1));
    assert!(lost.stderr.contains("project id is empty"), "{lost:?}");
}

#[test]
fn a_project_or_task_in_another_layout_is_posted_to_and_read_where_it_lies() {
    let world = world();
    let bus = |path: &str| world.folder().join("root").join(path);
    std::fs::create_dir_all(bus("runs/q")).unwrap();
    std::fs::create_dir_all(bus("team/p/deep")).unwrap();
    let scopes: [(&[&str], &str); 4] = [
        (&["--project", "q"], "runs/q/PROJECT-MESSAGE-BUS.md"),
        (&["--project", "q", "--task", "new"], "runs/q/new/TASK-MESSAGE-BUS.md"),
        (&["--project", "p", "--task", "deep"], "team/p/deep/TASK-MESSAGE-BUS.md"),
        (&["--project", "p"], "p/PROJECT-MESSAGE-BUS.md"),
    ];
    for (scope, file) in scopes {
        let id = post(&world, &[scope, &["--body", file]].concat());
        assert!(bus(file).is_file(), "{file}");
        let messages = read(&world, scope);
        assert_eq!((&messages[0]["msg_id"], &messages[0]["body"]), (&json!(id), &json!(file)));
    }
}

#[test]
fn a_project_cannot_lead_out_of_the_root() {
    let world = world();
    let root = root(&world);
    for project in ["../x", "..", "a/b", "."] {
        let refused = world.swb(["bus", "post", "--root", &root, "--project", project, "--body", "x"]);
        assert_eq!(refused.code, Some(1), "{project}: {refused:?}");
    }
    assert!(!world.folder().join("x").exists());
}

#[test]
fn standard_input_is_the_body_unless_there_is_none() {
    let world = world();
    let root = root(&world);
    let mut child = world
        .command(["bus", "post", "--root", &root, "--project", "p"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"from a pipe\n\n").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    // /dev/null, as every command of a World has it.
    post(&world, &["--project", "p"]);
    let bodies: Vec<Value> =
        read(&world, &["--project", "p"]).into_iter().map(|mut message| message["body"].take()).collect();
    assert_eq!(bodies, [json!("from a pipe\n\n"), json!("")]);
    // A pipe that stays open and silent: an error, and nothing posted.
    let mut silent = world
        .command(["bus", "post", "--root", &root, "--project", "p", "--stdin-timeout", "1"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let open = silent.stdin.take();
    assert_eq!(silent.wait().unwrap().code(), Some(1));
    drop(open);
    assert_eq!(read(&world, &["--project", "p"]).len(), 2);
}

#[test]
fn tail_since_limit_type_and_run_choose_messages() {
    let world = world();
    let ids: Vec<String> = (0..30)
        .map(|n| {
            let kind = if n % 2 == 0 { "EVEN" } else { "ODD" };
            post(
                &world,
                &[
                    "--project",
                    "p",
                    "--type",
                    kind,
                    "--run",
                    &format!("r{}", n % 3),
                    "--body",
                    &n.to_string(),
                ],
            )
        })
        .collect();
    let bodies = |arguments: &[&str]| -> Vec<String> {
        let all = [&["--project", "p"], arguments].concat();
        read(&world, &all)
            .iter()
            .map(|message| message["body"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(bodies(&[]).len(), 20, "the last twenty unless told otherwise");
    assert_eq!(bodies(&["--tail", "0"]).len(), 30);
    assert_eq!(bodies(&["--tail", "-1"]).len(), 30);
    assert_eq!(bodies(&["--tail", "2"]), ["28", "29"]);
    assert_eq!(bodies(&["--since", &ids[26]]), ["27", "28", "29"]);
    assert_eq!(bodies(&["--since", &ids[0], "--limit", "2"]), ["28", "29"]);
    assert_eq!(bodies(&["--type", "ODD", "--tail", "3"]), ["25", "27", "29"]);
    assert_eq!(bodies(&["--type", "ODD", "--type", "EVEN", "--run", "r0", "--limit", "2"]), ["24", "27"]);
    let root = root(&world);
    let unknown = world.swb(["bus", "read", "--root", &root, "--project", "p", "--since", "MSG-nowhere"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert_eq!(
        world.swb(["bus", "read", "--root", &root, "--project", "empty"]).ok().stdout,
        "",
        "a bus that is not there is empty"
    );
}

#[test]
fn following_shows_new_messages_across_a_rotation() {
    let world = world();
    post(&world, &["--project", "p", "--body", "before"]);
    let root = root(&world);
    let mut follower = world.spawn(["bus", "read", "--root", &root, "--project", "p", "--follow", "--json"]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || -> Value {
        serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()["body"].take()
    };
    assert_eq!(next(), "before");
    post(&world, &["--project", "p", "--body", "live"]);
    assert_eq!(next(), "live");
    let bus = world.folder().join("root/p/PROJECT-MESSAGE-BUS.md");
    std::fs::rename(&bus, bus.with_file_name("PROJECT-MESSAGE-BUS.md.20200101-000000.archived")).unwrap();
    post(&world, &["--project", "p", "--body", "after"]);
    assert_eq!(next(), "after");
    follower.kill().unwrap();
    follower.wait().unwrap();
}

#[test]
fn a_follower_whose_reader_went_away_ends() {
    let world = world();
    post(&world, &["--project", "p", "--body", "x"]);
    let root = root(&world);
    let mut follower = world.spawn(["bus", "read", "--root", &root, "--project", "p", "--follow"]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().ends_with("(INFO) x"));
    drop(lines);
    assert!(follower.wait().unwrap().success());
}

#[test]
fn wait_returns_the_message_or_gives_up() {
    let world = world();
    let first = post(&world, &["--project", "p", "--type", "GO", "--body", "1"]);
    post(&world, &["--project", "p", "--type", "GO", "--body", "2"]);
    let root = root(&world);
    let place = ["--root", root.as_str(), "--project", "p", "--json"];
    let found =
        world.swb([&["bus", "wait", "--type", "GO", "--since", &first], &place[..]].concat()).ok().json();
    assert_eq!(found["body"], "2");
    let in_vain = world.swb([&["bus", "wait", "--type", "NEVER", "--timeout", "0.05"], &place[..]].concat());
    assert_eq!(in_vain.code, Some(1), "{in_vain:?}");
    let waiting = world.spawn(
        [&["bus", "wait", "--type", "SOON", "--timeout", "30", "--since", &first], &place[..]].concat(),
    );
    post(&world, &["--project", "p", "--type", "SOON", "--body", "3"]);
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("\"3\""));
}

#[test]
fn a_thread_is_a_tree_whichever_message_is_named() {
    let world = world();
    let question = post(&world, &["--project", "p", "--type", "QUESTION", "--body", "q"]);
    let answer =
        post(&world, &["--project", "p", "--type", "ANSWER", "--body", "a", "--reply-to", &question]);
    post(&world, &["--project", "p", "--body", "unrelated"]);
    let follow_up =
        post(&world, &["--project", "p", "--body", "f", "--parent", &format!("{answer}:depends_on")]);
    let root = root(&world);
    for id in [&question, &follow_up] {
        let lines =
            world.swb(["bus", "thread", id, "--root", &root, "--project", "p", "--json"]).ok().json_lines();
        let tree: Vec<_> = lines.iter().map(|line| (line["depth"].as_u64(), line["body"].as_str())).collect();
        assert_eq!(tree, [(Some(0), Some("q")), (Some(1), Some("a")), (Some(2), Some("f"))]);
    }
    assert_eq!(world.swb(["bus", "thread", "MSG-none", "--root", &root, "--project", "p"]).code, Some(1));
}

#[test]
fn a_named_reader_sees_each_message_once_and_repeating_a_post_is_safe() {
    let world = world();
    let first = post(&world, &["--project", "p", "--body", "1", "--key", "k1"]);
    assert_eq!(post(&world, &["--project", "p", "--body", "1", "--key", "k1"]), first);
    let reader = ["--project", "p", "--reader", "ada"];
    assert_eq!(read(&world, &reader).len(), 1);
    assert_eq!(read(&world, &reader).len(), 0);
    let second = post(&world, &["--project", "p", "--body", "2", "--sync"]);
    assert_eq!(read(&world, &reader)[0]["msg_id"], second);
    let root = root(&world);
    let acked = world
        .swb(["bus", "ack", &second, "--reader", "ada", "--root", &root, "--project", "p", "--json"])
        .ok()
        .json();
    assert_eq!(acked["acked"], second);
}

#[test]
fn discover_climbs_from_a_relative_folder_too() {
    let world = world();
    std::fs::write(world.folder().join("MESSAGE-BUS.md"), "").unwrap();
    std::fs::create_dir_all(world.folder().join("a/b")).unwrap();
    let expected = world.folder().join("MESSAGE-BUS.md").canonicalize().unwrap();
    for from in [".", "a/b", "a/../a"] {
        let found = world.swb(["bus", "discover", "--from", from]).ok().stdout;
        assert_eq!(PathBuf::from(found.trim_end()), expected, "{from}");
    }
    let nowhere = world.swb(["bus", "discover", "--from", "/proc/self"]);
    assert_eq!(nowhere.code, Some(1));
    assert!(nowhere.stderr.contains("no message bus file found"), "{nowhere:?}");
}

#[test]
fn under_the_name_run_agent_the_commands_are_the_same() {
    let world = world();
    let alias = world.folder().join("run-agent");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_swb"), &alias).unwrap();
    let root = root(&world);
    let mut command = Command::new(&alias);
    command.env_clear().env("SWB_HOME", world.home()).stdin(Stdio::null());
    let posted =
        output(command.args(["bus", "post", "--root", &root, "--project", "p", "--body", "x", "ignored"]))
            .ok();
    assert!(posted.stdout.starts_with("msg_id: MSG-"), "{posted:?}");
    let mut unknown = Command::new(&alias);
    unknown.env_clear().env("SWB_HOME", world.home()).args(["bus", "psot"]);
    assert_eq!(output(&mut unknown).code, Some(1), "a mistyped command must not look like a posted message");
}
