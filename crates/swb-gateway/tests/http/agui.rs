//! Runs over HTTP, as a client that speaks plain HTTP sees them. `agui_clients` has the real ones.

use std::time::Duration;

use serde_json::{Value, json};
use swb_bus::topics::Retention;
use testkit::wait;

use crate::client::{Answer, Connection, Event, Events};
use crate::house::House;

fn input(thread: &str, prompt: &str) -> Value {
    json!({
        "threadId": thread, "runId": "r1", "protocolVersion": "1.0", "state": {}, "tools": [], "context": [],
        "messages": [{ "id": "m1", "role": "user", "content": prompt }], "forwardedProps": {},
    })
}

fn resume(thread: &str, answers: Value) -> Value {
    let mut input = input(thread, "old");
    input["resume"] = answers;
    input
}

fn answer(id: &str, approved: bool) -> Value {
    json!({ "interruptId": id, "status": "resolved", "payload": { "approved": approved } })
}

fn run(house: &House, input: &Value) -> Vec<Value> {
    let answer = house.post("/agui", input);
    assert_eq!(answer.status, 200, "{answer:?}");
    events(&answer)
}

fn events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    let text = answer.text();
    assert!(!text.contains('\r') && text.ends_with("\n\n"));
    let data = text.split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().expect("a type"))
        .filter(|kind| *kind != "CUSTOM")
        .collect()
}

fn refused(house: &House, input: &Value) -> (u16, String) {
    let answer = house.post("/agui", input);
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
    (answer.status, answer.error().1)
}

fn stream(house: &House, path: &str, headers: &[(&str, &str)]) -> Events {
    let bearer = house.bearer();
    Events::open(house.address(), path, &[&[("Authorization", bearer.as_str())], headers].concat())
}

#[test]
fn a_run_is_a_stream_from_its_beginning_to_its_end() {
    let house = House::new();
    let events = run(&house, &input("t1", "text"));
    let text = ["TEXT_MESSAGE_CONTENT"; 3];
    let whole =
        [&["RUN_STARTED", "TEXT_MESSAGE_START"][..], &text, &["TEXT_MESSAGE_END", "RUN_FINISHED"]].concat();
    assert_eq!(kinds(&events), whole);
    assert_eq!((&events[0]["threadId"], &events[0]["runId"]), (&json!("t1"), &json!("r1")));
    assert_eq!(events[0]["metadata"]["helios.agui.v1"]["session_id"], "sess_1");
    let end = events.last().unwrap();
    assert_eq!((&end["result"], &end["usage"][0]["model"]), (&json!("done"), &json!("script/1")));
}

#[test]
fn a_thread_is_a_session_and_stays_one_after_a_restart() {
    let mut house = House::new();
    run(&house, &input("mine", "text"));
    run(&house, &input("mine", "text"));
    assert_eq!(house.agents.sessions(), 1);
    house.stop(Duration::from_secs(5));
    house.start();
    run(&house, &input("mine", "text"));
    assert_eq!(house.agents.sessions(), 1, "the thread is known");
    let events = run(&house, &input("sess_1", "text"));
    assert_eq!(house.agents.sessions(), 1, "a session is its own thread");
    assert_eq!(events[0]["metadata"]["helios.agui.v1"]["session_id"], "sess_1");
    house.agents.terminate();
    let (status, why) = refused(&house, &input("mine", "text"));
    assert!(status == 409 && why.contains("a new threadId"), "{why}");
}

#[test]
fn a_project_is_named_where_there_are_more_than_one() {
    let house = House::new();
    house.agents.add_project();
    let (status, why) = refused(&house, &input("t", "text"));
    assert!(status == 400 && why.contains("p0, p1"), "{why}");
    assert_eq!(house.post("/agui?project=nowhere", &input("t", "text")).status, 404);
    for path in ["/agui?project=p1", "/agui?project=proj_1", "/agui?project=/p1/"] {
        assert_eq!(house.post(path, &input("t", "text")).status, 200, "{path}");
    }
    let named = [("X-Switchboard-Project", "p1")];
    let body = input("t2", "text").to_string();
    assert_eq!(house.ask("POST", "/agui", &named, Some(body.as_bytes())).status, 200);
    let mut forwarded = input("t3", "text");
    forwarded["forwardedProps"] = json!({ "project_id": "proj_1" });
    assert_eq!(house.post("/agui", &forwarded).status, 200);
}

#[test]
fn what_is_wrong_is_told_before_the_stream_and_changes_nothing() {
    let house = House::new();
    assert_eq!(house.bare("POST", "/agui", &[], Some(b"{}")).status, 401);
    assert_eq!(house.bare("GET", "/agui/stream", &[], None).status, 401);
    assert_eq!(house.get("/agui").status, 405);
    let other_page = [("Origin", "https://example.org")];
    assert_eq!(house.ask("POST", "/agui", &other_page, Some(b"{}")).status, 403);
    for body in ["", "[]", "{}", "{\"threadId\":7}", "\u{0}"] {
        assert_eq!(house.ask("POST", "/agui", &[], Some(body.as_bytes())).status, 400, "{body}");
    }
    for (key, value) in [
        ("threadId", json!("a/b")),
        ("threadId", json!("x".repeat(81))),
        ("runId", json!("")),
        ("messages", json!([])),
        ("messages", json!([{ "role": "assistant", "content": "x" }])),
        ("resume", json!([{ "interruptId": "a", "status": "perhaps" }])),
    ] {
        let mut input = input("t", "text");
        input[key] = value.clone();
        assert_eq!(refused(&house, &input).0, 400, "{key} {value}");
    }
    assert_eq!(refused(&house, &input("sess_9", "text")).0, 404, "a session that is not there");
    assert_eq!(house.agents.sessions(), 0);
    let (status, why) = refused(&house, &input("t", "refused"));
    assert_eq!((status, why.as_str()), (403, "a rule forbids it"));
    let large = input("t", &"x".repeat(9 << 20)).to_string();
    assert_eq!(house.ask("POST", "/agui", &[], Some(large.as_bytes())).status, 400);
}

#[test]
fn questions_are_interrupts_and_the_answer_goes_on_with_the_run() {
    let mut house = House::new();
    let asked = run(&house, &input("t", "ask 2"));
    let outcome = &asked.last().unwrap()["outcome"];
    let ids: Vec<_> =
        outcome["interrupts"].as_array().unwrap().iter().map(|i| i["id"].as_str().unwrap()).collect();
    assert_eq!((outcome["type"].as_str(), ids.len()), (Some("interrupt"), 2), "both are in one");
    assert_eq!(house.agents.runs(), ["running"], "to ask is not to go away");

    house.stop(Duration::from_secs(5));
    house.start();
    let (status, why) = refused(&house, &input("t", "text"));
    assert!(status == 409 && why.contains("resume"), "{why}");
    let (status, why) = refused(&house, &resume("t", json!([answer(ids[0], true)])));
    assert!(status == 409 && why.contains("every interrupt"), "{why}");
    let strange = json!([answer(ids[0], true), answer("apr_other", true)]);
    assert_eq!(refused(&house, &resume("t", strange)).0, 409);
    assert_eq!(refused(&house, &resume("u", json!([answer(ids[0], true)]))).0, 409, "another thread");
    assert_eq!(house.agents.pending().len(), 2, "nothing was answered by halves");

    let answers = json!([answer(ids[0], true), answer(ids[1], false)]);
    let first = run(&house, &resume("t", answers.clone()));
    assert_eq!(kinds(&first)[..3], ["RUN_STARTED", "TOOL_CALL_RESULT", "TOOL_CALL_RESULT"]);
    let names: Vec<_> = first.iter().filter_map(|event| event["name"].as_str()).collect();
    assert_eq!(names[..2], ["ui.approval.result"; 2], "before anything else");
    let results: Vec<_> = first.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT").collect();
    let result = |call: &str| &results.iter().find(|event| event["toolCallId"] == call).unwrap()["content"];
    assert_eq!((result("c1"), result("c2")), (&json!("approved"), &json!("denied")));
    assert_eq!(first.last().unwrap()["outcome"], json!({ "type": "success" }));

    let again = run(&house, &resume("t", answers));
    assert_eq!(again, first, "the same answer twice is the same stream");
    assert_eq!(run(&house, &input("t", "text")).last().unwrap()["type"], "RUN_FINISHED");
}

#[test]
fn an_answer_that_comes_too_late_is_an_error_and_what_else_was_answered_counts() {
    let house = House::new();
    run(&house, &input("t", "ask 2"));
    let ids = house.agents.pending();
    house.agents.resolve(&house.topics, &ids[0], "timed_out", None).unwrap();
    let answers = json!([answer(&ids[0], true), answer(&ids[1], true)]);
    let events = run(&house, &resume("t", answers));
    assert_eq!(kinds(&events), ["RUN_STARTED", "RUN_ERROR"]);
    assert_eq!(events.last().unwrap()["code"], "INTERRUPT_EXPIRED");
    assert_eq!((house.agents.pending().len(), house.agents.runs()), (0, vec!["completed"]));
    let cancelled = json!([{ "interruptId": ids[0], "status": "cancelled" }]);
    let events = run(&house, &resume("t", cancelled));
    assert_eq!(kinds(&events).last(), Some(&"RUN_FINISHED"), "who wants no answer hears the rest");
}

#[test]
fn somebody_else_may_answer_first() {
    let house = House::new();
    run(&house, &input("t", "ask"));
    let ids = house.agents.pending();
    house.agents.resolve(&house.topics, &ids[0], "denied", Some("not now")).unwrap();
    let events = run(&house, &resume("t", json!([answer(&ids[0], true)])));
    let result = events.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap();
    assert_eq!(result["content"], "denied", "the first answer counts");
}

#[test]
fn a_client_that_goes_away_takes_its_run_with_it() {
    let house = House::new();
    let mut connection = Connection::open(house.address());
    let bearer = house.bearer();
    let body = input("t", "hold").to_string();
    connection.request("POST", "/agui", &[("Authorization", &bearer)], Some(body.as_bytes()));
    assert_eq!(connection.head().0, 200);
    connection.chunk().expect("its beginning");
    assert_eq!(house.agents.runs(), ["running"]);
    drop(connection);
    wait("the run to be cancelled", || house.agents.runs() == ["cancelled"]);
}

#[test]
fn a_server_that_stops_says_so_and_leaves_the_run_alone() {
    let mut house = House::new();
    let mut connection = Connection::open(house.address());
    let bearer = house.bearer();
    let body = input("t", "hold").to_string();
    connection.request("POST", "/agui", &[("Authorization", &bearer)], Some(body.as_bytes()));
    connection.head();
    let mut said = connection.chunk().expect("its beginning");
    house.stop(Duration::from_secs(5));
    while let Some(chunk) = connection.chunk() {
        said.extend(chunk);
    }
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("RUN_ERROR") && said.contains("SHUTTING_DOWN"), "{said}");
    assert_eq!(house.agents.runs(), ["running"]);
}

#[test]
fn a_quiet_run_is_kept_alive() {
    let house = House::with(|options| options.heartbeat = Duration::from_millis(20));
    let mut connection = Connection::open(house.address());
    let bearer = house.bearer();
    let body = input("t", "hold").to_string();
    connection.request("POST", "/agui", &[("Authorization", &bearer)], Some(body.as_bytes()));
    connection.head();
    let mut beats = 0;
    while beats < 3 {
        let chunk = connection.chunk().expect("the stream goes on");
        beats += usize::from(chunk == b": keep-alive\n\n");
    }
    house.agents.release(&house.topics);
    let mut rest = Vec::new();
    while let Some(chunk) = connection.chunk() {
        rest.extend(chunk);
    }
    assert!(String::from_utf8(rest).unwrap().contains("RUN_FINISHED"));
}

#[test]
fn the_plain_stream_has_everything_from_any_place_on() {
    let house = House::new();
    let mut live = stream(&house, "/agui/stream", &[]);
    run(&house, &input("t", "ask"));
    let ids = house.agents.pending();
    house.agents.resolve(&house.topics, &ids[0], "approved", None).unwrap();
    let names = [
        "ui.agent.started",
        "ui.agent.progress",
        "ui.agent.progress",
        "ui.approval.required",
        "ui.approval.result",
        "ui.agent.progress",
        "ui.agent.progress",
        "ui.agent.completed",
    ];
    let seen: Vec<Event> = names.iter().map(|_| live.next().unwrap()).collect();
    assert_eq!(seen.iter().map(|event| event.json()["name"].clone()).collect::<Vec<_>>(), names);
    let first = seen[0].json();
    assert_eq!(
        (&first["namespace"], &first["topic"]),
        (&json!("helios.agui.v1"), &json!("agent.run.started"))
    );
    assert_eq!(first["seq"].to_string(), seen[0].id.clone().unwrap());
    let third = seen[2].id.clone().unwrap();
    for (path, headers) in [
        (format!("/agui/stream?after={third}"), vec![]),
        ("/agui/stream?after=0".to_owned(), vec![("Last-Event-ID", third.as_str())]),
    ] {
        assert_eq!(stream(&house, &path, &headers).next().unwrap(), seen[3], "{path}");
    }
    assert_eq!(house.get("/agui/stream?after=x").status, 400);
    assert_eq!(house.get("/agui/stream?after=99999").status, 400, "a place that nobody has come to yet");
}

#[test]
fn a_slow_reader_of_the_plain_stream_is_told_what_it_missed() {
    let house = House::keeping(Retention { events: 1000, bytes: 16 << 20 }, |_| ());
    let mut slow = stream(&house, "/agui/stream?after=0", &[]);
    slow.narrow();
    // More than the ring and the sockets hold together.
    let long = "x".repeat(8000);
    for n in 0..4000 {
        let payload = json!({ "n": n, "text": long });
        house.topics.publish("session.attached", &swb_proto::Meta::default(), None, &payload).unwrap();
    }
    let mut last = 0;
    let gap = loop {
        let event = slow.next().expect("the stream goes on").json();
        if event["topic"] == "bus.gap" {
            break event;
        }
        last = event["seq"].as_u64().unwrap();
    };
    assert_eq!((&gap["name"], &gap["payload"]["reason"]), (&json!("ui.system.notice"), &json!("lagged")));
    assert_eq!(gap["payload"]["from"], last + 1);
    assert_eq!(slow.next().unwrap().json()["seq"].as_u64(), gap["payload"]["to"].as_u64().map(|to| to + 1));
}
