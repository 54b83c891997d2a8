//! `swb bus post`: which bus, which fields, which body.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::{output, post, read, root, world};

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
fn a_closed_standard_input_is_an_empty_body() {
    let world = world();
    let root = root(&world);
    let binary = env!("CARGO_BIN_EXE_swb");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" <&-", binary, "bus", "post", "--root", &root, "--project", "p"]);
    shell.env("SWB_HOME", world.home());
    assert!(output(&mut shell).ok().stdout.starts_with("msg_id: MSG-"));
    assert_eq!(read(&world, &["--project", "p"])[0]["body"], "");
}

#[test]
fn what_lies_about_in_the_folder_is_neither_read_nor_made() {
    let world = world();
    let here = world.folder().join("here");
    std::fs::create_dir(&here).unwrap();
    for name in ["config.yaml", "config.yml"] {
        std::fs::write(here.join(name), "{{{ nonsense").unwrap();
    }
    for arguments in
        [&["bus", "post", "--project", "p", "--body", "x"][..], &["bus", "read", "--project", "p"]]
    {
        output(world.command(arguments).current_dir(&here)).ok();
    }
    let names = |folder: &std::path::Path| -> Vec<_> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&here), ["config.yaml", "config.yml"]);
    assert_eq!(names(&world.home()), ["data"], "a post makes its bus and nothing else");
}
