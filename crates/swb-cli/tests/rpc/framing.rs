//! Lines in, frames out.

use std::io::Write;

use serde_json::json;

use crate::child::{Child, spawn, text, world};

const LIMIT: usize = 1_048_576;

#[test]
fn ready_is_the_first_frame_and_its_keys_are_in_order() {
    let world = world();
    let output = world.swb(["rpc"]).ok();
    let first = output.stdout.lines().next().unwrap();
    assert!(first.starts_with(r#"{"type":"ready","session_id":"sess_"#), "{first}");
    assert!(first.ends_with(r#"","model":"demo","protocol_version":1}"#), "{first}");
    assert_eq!(output.stderr, "", "stderr is quiet in normal life");
}

#[test]
fn commands_written_before_ready_are_answered_after_it() {
    let world = world();
    let mut process = spawn(&world, &[]);
    let mut stdin = process.stdin.take().unwrap();
    // The last line has no newline.
    stdin
        .write_all(b"{\"type\":\"get_state\",\"id\":\"a\"}\n\n \t\r\n{\"type\":\"abort\",\"id\":\"b\"}")
        .unwrap();
    drop(stdin);
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    let stdout = String::from_utf8(output.stdout).unwrap();
    let kinds: Vec<_> = stdout.lines().map(|line| line.split('"').nth(3).unwrap()).collect();
    assert_eq!(kinds, ["ready", "response", "response"], "blank lines are nothing: {stdout}");
}

#[test]
fn a_frame_of_exactly_the_limit_passes_and_one_byte_more_does_not() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let frame = |length: usize| {
        let frame = json!({ "type": "get_state", "id": "x", "padding": "" }).to_string();
        let padding = "p".repeat(length - frame.len());
        frame.replace(r#""padding":"""#, &format!(r#""padding":"{padding}""#)) + "\n"
    };
    child.send_bytes(frame(LIMIT).as_bytes());
    assert_eq!(child.next()["command"], "get_state");
    child.send_bytes(frame(LIMIT + 1).as_bytes());
    assert_eq!(child.next(), json!({ "type": "error", "message": "frame exceeds 1 MiB limit" }));
    child.state("ok");
}

#[test]
fn a_huge_line_is_dropped_while_it_streams_and_costs_one_error() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    for _ in 0..64 {
        child.send_bytes(&[b'x'; LIMIT]);
    }
    child.send_bytes(b"\n");
    assert_eq!(child.next()["message"], "frame exceeds 1 MiB limit");
    let peak = status_of(&child, "VmHWM");
    assert!(peak < 48_000, "64 MiB were sent, {peak} kB were held at most");
    assert_eq!(child.state("ok"), true);
}

pub(crate) fn status_of(child: &Child, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn invalid_utf8_is_an_error_and_the_child_lives() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.send_bytes(b"{\"type\":\"abort\",\"id\":\"u\",\"x\":\"\xff\"}\n\xff\xfe\n");
    let error = child.next();
    assert_eq!((&error["type"], &error["id"]), (&json!("error"), &json!("u")));
    assert_eq!(child.next()["type"], "error");
    assert_eq!(child.state("ok"), true);
}

#[test]
fn what_is_no_command_is_an_error_with_the_id_that_can_be_read() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    for (line, id) in [
        ("not json", None),
        ("[1,2]", None),
        (r#"["shutdown"]"#, None),
        (r#"{"id":"x"}"#, Some("x")),
        (r#"{"type":"does_not_exist","id":"x"}"#, Some("x")),
        (r#"{"type":"Prompt","id":"x","message":""}"#, Some("x")),
        (r#"{"type":"get_state"}"#, None),
        (r#"{"type":"get_state","id":7}"#, None),
        (r#"{"type":"prompt","id":"x"}"#, Some("x")),
        (r#"{"type":"prompt","id":"x","message":"m","attachments":null}"#, Some("x")),
        (r#"{"type":"abort","type":"abort","id":"x"}"#, Some("x")),
        (r#"{"type":"abort","id":"x"} {"type":"abort","id":"y"}"#, Some("x")),
    ] {
        child.send_bytes(format!("{line}\n").as_bytes());
        let error = child.next();
        assert_eq!(error["type"], "error", "{line}");
        assert_eq!(error.get("id").and_then(|id| id.as_str()), id, "{line}");
    }
    assert_eq!(child.state("message_count"), 0);
}

#[test]
fn unknown_fields_and_odd_ids_are_fine() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.send(json!({ "type": "tools_list", "op": "tools_list" }));
    let tools = child.next();
    assert_eq!((&tools["id"], &tools["ok"]), (&json!(""), &json!(true)));
    assert!(!tools["tools"].as_array().unwrap().is_empty());
    child.send(json!({ "type": "tools_list", "id": null }));
    assert_eq!(child.next()["id"], "");
    for id in ["", "\u{0}", "é\u{2028}"] {
        assert_eq!(child.ask(json!({ "type": "abort", "id": id }))["id"], id);
    }
}

#[test]
fn every_character_comes_through_as_ascii() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let frames = child.turn("p", "!say grüße\u{2028}😀\u{7f}");
    assert_eq!(text(&frames), "grüße\u{2028}😀\u{7f}");
}

#[test]
fn white_space_around_a_frame_means_nothing_and_a_byte_order_mark_is_an_error() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.send_bytes(b" \t{\"type\":\"abort\", \"id\":\"a\"} \r\n");
    assert_eq!(child.next()["id"], "a");
    child.send_bytes(b"\xef\xbb\xbf{\"type\":\"abort\",\"id\":\"b\"}\n");
    let error = child.next();
    assert_eq!((&error["type"], error.get("id")), (&json!("error"), None));
    assert_eq!(child.state("ok"), true);
}

#[test]
fn a_frame_to_the_parent_may_be_longer_than_one_from_it() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    // Four bytes each on the way in, twelve on the way out.
    let long = "😀".repeat(100_000);
    assert_eq!(child.turn("p", &format!("{long}\n!say ok")).pop().unwrap()["ok"], true);
    assert!(12 * long.chars().count() > LIMIT);
    assert!(child.messages()[0]["content"].as_str().unwrap().starts_with(&long));
}

#[test]
fn a_line_nested_beyond_all_measure_is_an_error_with_its_id() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let deep = "[".repeat(500_000);
    child.send_bytes(format!("{{\"type\":\"abort\",\"id\":\"d\",\"x\":{deep}\n").as_bytes());
    let error = child.next();
    assert_eq!((&error["type"], &error["id"]), (&json!("error"), &json!("d")));
    assert_eq!(child.state("ok"), true);
}
