//! The frames and headers of a stream.

use std::time::Duration;

use serde_json::json;

use crate::client::Event;
use crate::house::House;

#[test]
fn a_stream_replays_the_whole_bus_and_goes_on() {
    let house = House::new();
    let ids = [house.say("one"), house.say("two\nlines")];
    let mut events = house.stream("", &[]);
    let headers: Vec<_> =
        events.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    for header in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("connection", "keep-alive"),
        ("x-accel-buffering", "no"),
        ("transfer-encoding", "chunked"),
    ] {
        assert!(headers.contains(&header), "{header:?} in {headers:?}");
    }
    let frame = events.frame().unwrap();
    let lines: Vec<_> = frame.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[1]), (3, format!("id: {}", ids[0]).as_str(), "event: message"));
    let listed = house.get("/api/projects/p/messages").json()["messages"][0]["timestamp"].clone();
    let data = lines[2].strip_prefix("data: ").unwrap();
    assert_eq!(
        data,
        format!(
            r#"{{"msg_id":"{}","timestamp":{listed},"type":"USER","project_id":"p","body":"one"}}"#,
            ids[0]
        )
    );
    assert_eq!(events.message().body(), "two\nlines");
    let third = house.say("three");
    let live = events.message();
    assert_eq!((live.id.as_deref(), live.body()), (Some(third.as_str()), "three".to_owned()));
}

#[test]
fn every_door_streams_the_bus_that_it_lists() {
    let house = House::new();
    house.post("/api/projects/p/tasks/t/messages", &json!({ "body": "of the task" }));
    let bearer = house.bearer();
    for path in ["/api/v1/messages/stream?project_id=p&task_id=t", "/api/projects/p/tasks/t/messages/stream"]
    {
        let mut events = crate::client::Events::open(house.address(), path, &[("Authorization", &bearer)]);
        assert_eq!(events.message().body(), "of the task", "{path}");
    }
}

#[test]
fn parents_are_ids_in_a_stream_and_empty_fields_are_left_out() {
    let house = House::new();
    let message = json!({ "body": "x", "type": "ISSUE", "parents": [{ "msg_id": "a", "kind": "k" }], "links": [{ "url": "u" }], "meta": { "s": "r" } });
    let id = house.post("/api/projects/p/messages", &message).json()["msg_id"].clone();
    let mut data = house.stream("", &[]).message().json();
    data["timestamp"].take();
    assert_eq!(
        data,
        json!({ "msg_id": id, "timestamp": null, "type": "ISSUE", "project_id": "p", "issue_id": id, "parents": ["a"], "meta": { "s": "r" }, "body": "x" })
    );
}

#[test]
fn the_head_of_the_answer_is_there_before_the_first_event() {
    let house = House::new();
    // Nothing has been posted and the heartbeat is an hour away: `open` returns only because the head was flushed.
    let mut events = house.stream("", &[]);
    house.say("first");
    assert_eq!(events.message().body(), "first");
}

#[test]
fn a_quiet_stream_beats() {
    let house = House::with(|options| options.heartbeat = Duration::from_millis(20));
    let mut events = house.stream("", &[]);
    let beat = Event { id: None, event: "heartbeat".into(), data: "{}".into() };
    assert_eq!([events.next().unwrap(), events.next().unwrap()], [beat.clone(), beat]);
    house.say("x");
    assert_eq!(events.message().body(), "x");
}

#[test]
fn a_tail_begins_near_the_end() {
    let house = House::new();
    house.append((0..50).map(|n| n.to_string()));
    assert_eq!(house.stream("?tail=2", &[]).bodies(2), ["48", "49"]);
    assert_eq!(house.stream("?tail=99", &[]).message().body(), "0", "a bus shorter than its tail");
    let mut from_now = house.stream("?tail=0", &[]);
    house.say("new");
    assert_eq!(from_now.message().body(), "new");
    let bad = house.get("/api/projects/p/messages/stream?tail=x");
    assert_eq!((bad.status, bad.error().0.as_str()), (400, "BAD_REQUEST"));
}

#[test]
fn phantom_records_come_once_without_an_id_and_read_the_same_each_time() {
    let house = House::new();
    house.say("real");
    let file = house.options.root.join("p/PROJECT-MESSAGE-BUS.md");
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str("\n---\n# a comment is a header of a kind\n---\nghost\n");
    std::fs::write(&file, text).unwrap();
    let mut events = house.stream("", &[]);
    let (real, ghost) = (events.message(), events.message());
    assert_eq!((real.body(), ghost.body(), ghost.id.clone()), ("real".into(), "ghost".into(), None));
    assert_eq!(house.stream("", &[]).bodies(1).len() + 1, 2);
    let mut again = house.stream("", &[]);
    again.message();
    assert_eq!(again.message(), ghost, "its time is not the time of its delivery");
    house.say("after");
    assert_eq!(events.message().body(), "after", "nothing is sent again");
}

#[test]
fn a_body_that_was_cut_is_marked_in_lists_and_streams() {
    let house = House::new();
    house.say("one\ntwo\nthree");
    house.say("whole");
    let file = house.options.root.join("p/PROJECT-MESSAGE-BUS.md");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("two\nthree\n", "")).unwrap();
    let mut listed = house.get("/api/projects/p/messages").json()["messages"].take();
    let mut events = house.stream("", &[]);
    for (body, cut) in [("one", json!(true)), ("whole", json!(null))] {
        let (listed, event) = (listed.as_array_mut().unwrap().remove(0), events.message().json());
        assert_eq!((&listed["body"], &listed["body_cut"]), (&json!(body), &cut));
        assert_eq!((&event["body"], &event["body_cut"]), (&json!(body), &cut));
    }
}

#[test]
fn what_cannot_be_read_is_said_and_not_left_silent() {
    let house = House::new();
    std::fs::create_dir_all(house.options.root.join("p")).unwrap();
    let elsewhere = house.folder().join("elsewhere.md");
    std::fs::write(&elsewhere, "").unwrap();
    std::os::unix::fs::symlink(&elsewhere, house.options.root.join("p/PROJECT-MESSAGE-BUS.md")).unwrap();
    for path in ["/api/projects/p/messages/stream", "/api/projects/p/messages"] {
        let answer = house.get(path);
        assert_eq!((answer.status, answer.error().0.as_str()), (403, "FORBIDDEN"), "{path}");
    }
}

#[test]
fn a_bus_that_is_not_there_yet_is_waited_for() {
    let house = House::new();
    let mut events = house.stream("", &[]);
    assert!(!house.options.root.join("p").exists());
    house.append(["made by somebody else".to_owned()]);
    assert_eq!(events.message().body(), "made by somebody else");
}
