//! `swb call` and `swb events`.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{World, wait_for};

fn world() -> World {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    world.swb(["up"]).ok();
    world
}

const MESSAGE: &str = r#"{"channel_id":"c","content":"x"}"#;

#[test]
fn call_prints_the_result_and_takes_parameters_from_standard_input() {
    let world = world();
    assert_eq!(
        world.swb(["call", "agents.echo.handle", MESSAGE]).ok().json(),
        json!({"channel_id":"c","content":"x"})
    );
    assert_eq!(world.swb(["call", "agents/echo/handle", MESSAGE]).ok().json()["content"], "x");
    let mut child = world
        .command(["call", "llm.complete", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(MESSAGE.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && answer.contains("You said: x"), "{output:?}");
}

#[test]
fn each_way_to_fail_has_its_exit_code_and_a_hint() {
    let world = world();
    let unknown = world.swb(["call", "nobody.home"]);
    assert_eq!(unknown.code, Some(5));
    assert!(unknown.stderr.contains("-32601") && unknown.stderr.contains("hint:"), "{unknown:?}");
    let as_json = world.swb(["call", "nobody.home", "--json"]);
    let error: Value = serde_json::from_str(&as_json.stderr).unwrap();
    assert_eq!((&error["error"]["error"]["code"], &error["error"]["exit_code"]), (&json!(-32601), &json!(5)));
    for bad in [
        vec!["call", "agents", "not json"],
        vec!["call", "agents", "[1]"],
        vec!["call", "a b"],
        vec!["call", "agents", MESSAGE, "--workspace", "a/b"],
    ] {
        assert_eq!(world.swb(&bad).code, Some(2), "{bad:?}");
    }
    world.swb(["down"]).ok();
    let stopped = world.swb(["call", "bus.status"]);
    assert_eq!(stopped.code, Some(3));
    assert!(stopped.stderr.contains("swb up"), "{stopped:?}");
}

#[test]
fn events_shows_what_is_kept_in_order() {
    let world = world();
    for _ in 0..3 {
        world.swb(["call", "agents", MESSAGE, "--correlation", "cor_7"]).ok();
    }
    let events = world.swb(["events", "--json"]).ok().json_lines();
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
    let filtered = world.swb(["events", "--json", "--topic", "agents.*", "--after", "2"]).ok().json_lines();
    let seen: Vec<_> =
        filtered.iter().map(|event| (event["seq"].as_u64(), event["correlation_id"].as_str())).collect();
    assert_eq!(seen, [(Some(3), Some("cor_7")), (Some(4), Some("cor_7"))]);
    assert!(world.swb(["events"]).ok().stdout.contains("agents.replied"));
    assert_eq!(world.swb(["events", "--after", "99"]).code, Some(5), "a cursor from the future is an error");
    assert_eq!(world.swb(["events", "--topic", "UPPER"]).code, Some(2));
}

#[test]
fn following_goes_on_across_a_crash_and_names_the_gap() {
    let world = world();
    let mut follower = world
        .spawn(["events", "--follow", "--after", "0", "--json", "--topic", "bus.*", "--topic", "agents.*"]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    assert_eq!((&first["topic"], &first["seq"]), (&json!("bus.ready"), &json!(1)));
    world.swb(["call", "agents", MESSAGE]).ok();
    assert_eq!(next()["seq"], 2);
    let pid = world.pid();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let gap = next();
    assert_eq!(
        (&gap["topic"], &gap["payload"]["from"], &gap["payload"]["reason"]),
        (&json!("bus.gap"), &json!(3), &json!("crash"))
    );
    let ready = next();
    assert_eq!(
        (&ready["topic"], ready["seq"].as_u64()),
        (&json!("bus.ready"), gap["payload"]["to"].as_u64().map(|to| to + 1))
    );
    wait_for("the new daemon", || world.status("pid").as_i64());
    follower.kill().unwrap();
    follower.wait().unwrap();
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let world = world();
    let mut child = world.spawn(["events", "--json"]);
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
