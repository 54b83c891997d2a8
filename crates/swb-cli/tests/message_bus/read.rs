//! `swb bus read`: which messages, in which form.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::{output, post, read, root, world};

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
fn a_body_is_printed_byte_for_byte_and_the_time_as_its_author_saw_it() {
    let world = world();
    let bus = world.folder().join("B.md");
    let mut file =
        b"---\nmsg_id: a\nts: 2026-11-15T09:50:00.5+02:00\ntype: INFO\nproject_id: p\n---\n".to_vec();
    let body = b"\x1b[31mred\x1b[0m \xff\xfe \xc2\x9b \ttab\nsecond line";
    file.extend_from_slice(body);
    file.push(b'\n');
    std::fs::write(&bus, file).unwrap();
    let bus = bus.display().to_string();
    let printed = world.command(["bus", "read", "--bus", &bus]).output().unwrap().stdout;
    assert_eq!(printed, [b"[2026-11-15 09:50:00] (INFO) ".as_slice(), body, b"\n"].concat());
    let json = &world.swb(["bus", "read", "--bus", &bus, "--json"]).ok().json_lines()[0];
    assert_eq!(json["body"], "\u{1b}[31mred\u{1b}[0m \u{fffd}\u{fffd} \u{9b} \ttab\nsecond line");
    assert_eq!(json["timestamp"], "2026-11-15T09:50:00.5+02:00");
}

#[test]
fn colours_are_there_on_request() {
    let world = world();
    post(&world, &["--project", "p", "--type", "ERROR", "--body", "x"]);
    let root = root(&world);
    let mut command = world.command(["bus", "read", "--root", &root, "--project", "p"]);
    let shown = output(command.env("CLICOLOR_FORCE", "1")).ok().stdout;
    assert!(shown.contains("\u{1b}[31m(ERROR)\u{1b}[0m x"), "{shown:?}");
}
