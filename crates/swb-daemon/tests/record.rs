//! What the daemon records, and what can be read of it after its end.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use serde_json::{Value, json};
use swb_journal::audit::{AuditReader, Kind, Record, Status, verify};
use swb_proto::{Meta, TopicGlob};
use testkit::World;

fn call(world: &World, method: &str, params: &Value) -> Value {
    let answer = world.wire().ask(&json!({"jsonrpc":"2.0","id":method,"method":method,"params":params}));
    answer.get("result").cloned().unwrap_or_else(|| panic!("{answer}"))
}

fn workspace(world: &World, name: &str) -> String {
    let made = call(world, "workspace.create", &json!({ "name": name, "root_path": world.folder() }));
    made["workspace_id"].as_str().unwrap().to_owned()
}

fn records(world: &World) -> Vec<Record> {
    AuditReader::new(world.paths().audit()).records_after(0).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Topics and ids of all events after a place, over as many pages as it takes.
fn read_all(world: &World, after: u64, topics: &[&str]) -> Vec<Value> {
    let (mut after, mut events) = (after, Vec::new());
    loop {
        let page = call(world, "events.read", &json!({ "after": after, "topics": topics, "limit": 3 }));
        let found = page["events"].as_array().unwrap();
        if found.is_empty() {
            return events;
        }
        events.extend(found.iter().cloned());
        after = page["next"].as_u64().unwrap();
    }
}

#[test]
fn events_of_weight_can_be_read_after_a_restart_and_after_a_crash() {
    let mut world = World::new();
    world.start();
    let first = workspace(&world, "first");
    world.stop();
    world.start();
    let second = workspace(&world, "second");
    world.crash_and_restart();
    let third = workspace(&world, "third");
    let all = read_all(&world, 0, &["workspace.*"]);
    let ids: Vec<&Value> = all
        .iter()
        .filter(|event| event["topic"] == "workspace.created")
        .map(|it| &it["workspace_id"])
        .collect();
    assert_eq!(ids, [&json!(first), &json!(second), &json!(third)], "{all:#?}");
    let seqs: Vec<u64> = all.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
    let gaps: Vec<&Value> = all.iter().filter(|event| event["topic"] == "bus.gap").collect();
    assert!(gaps.iter().any(|gap| gap["payload"]["reason"] == "crash"), "{gaps:?}");
    // Every number is either an event or in a gap.
    let mut next = 1;
    for event in read_all(&world, 0, &["*"]) {
        let seq = event["seq"].as_u64().unwrap();
        let from = if event["topic"] == "bus.gap" { event["payload"]["from"].as_u64().unwrap() } else { seq };
        assert_eq!(from, next, "{event}");
        next = seq + 1;
    }
    let starts =
        read_all(&world, 0, &["bus.ready"]).iter().filter(|event| event["topic"] == "bus.ready").count();
    assert_eq!(starts, 3);
    assert!(verify(&world.paths().audit(), &[]).unwrap().findings.is_empty());
}

#[test]
fn a_subscription_goes_on_over_a_restart() {
    let mut world = World::new();
    world.start();
    let first = workspace(&world, "first");
    world.stop();
    world.start();
    let mut wire = world.wire();
    let subscribed = json!({"jsonrpc":"2.0","id":1,"method":"events.subscribe","params":{"topics":["workspace.*"],"after":0}});
    assert!(wire.ask(&subscribed)["error"].is_null());
    let second = workspace(&world, "second");
    let mut opened = Vec::new();
    while opened.len() < 2 {
        let line = wire.receive().unwrap();
        let event = &line["params"]["event"];
        if event["topic"] == "workspace.created" {
            opened.push(event["workspace_id"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(opened, [first, second]);
}

#[test]
fn no_secret_of_an_event_is_told_or_recorded() {
    let mut world = World::new();
    world.start();
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let bus = world.bus();
    let topics = bus.topics();
    let glob = TopicGlob::try_from("session.*".to_owned()).unwrap();
    let mut live = topics.subscribe(vec![glob], None).unwrap();
    let payload = json!({ "error": format!("push with {key} failed"), "password": "pw-9271", "n": 7 });
    topics.publish("session.failed", &Meta::default(), None, &payload).unwrap();
    let seen = live.take_now().unwrap().to_envelope(topics.now());
    let seen: Value = serde_json::from_str(seen.payload.get()).unwrap();
    assert_eq!(
        seen,
        json!({ "error": "push with [REDACTED:FORGE_TOKEN] failed", "password": "[REDACTED]", "n": 7 })
    );
    let recorded = records(&world).pop().unwrap();
    assert_eq!(recorded.entry.payload, Some(seen.into()));
    drop((live, bus));
}

#[test]
fn what_only_moves_is_not_recorded() {
    let mut world = World::new();
    world.start();
    let before = records(&world).len();
    let bus = world.bus();
    for topic in ["agent.run.progress", "terminal.output", "audit.recorded", "diagnostics.metric"] {
        bus.topics().publish(topic, &Meta::default(), None, &json!({})).unwrap();
    }
    assert_eq!(records(&world).len(), before);
    bus.topics().publish("agent.run.started", &Meta::default(), None, &json!({})).unwrap();
    let last = records(&world).pop().unwrap();
    assert_eq!((last.entry.kind, last.entry.topic.as_deref()), (Kind::Event, Some("agent.run.started")));
    assert_eq!(last.entry.event_seq, Some(bus.topics().head()));
}

#[test]
fn a_damaged_record_stops_the_start_and_says_what_to_do() {
    let mut world = World::new();
    world.start();
    workspace(&world, "w");
    world.stop();
    let segment = std::fs::read_dir(world.paths().audit()).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.into_iter().find(|path| path.extension().is_some_and(|it| it == "jsonl")).unwrap();
    let text = std::fs::read_to_string(&segment).unwrap();
    std::fs::write(&segment, text.replacen("bus.ready", "bus.reedy", 1)).unwrap();
    let error = world.try_start().unwrap_err();
    let said = format!("{}", error.kind);
    assert!(said.contains("damaged at byte") && said.contains("swb audit verify"), "{said}");
    std::fs::write(&segment, text).unwrap();
    world.start();
}

/// What was recorded about one method: starts and ends.
fn about<'a>(records: &'a [Record], method: &str) -> Vec<&'a Record> {
    records.iter().filter(|record| record.entry.method.as_deref() == Some(method)).collect()
}

#[test]
fn a_command_over_the_socket_is_recorded_with_its_decision_before_it_is_answered() {
    let mut world = World::new();
    world.start();
    let mut listener = world.wire();
    let subscribe =
        json!({"jsonrpc":"2.0","id":1,"method":"events.subscribe","params":{"topics":["audit.recorded"]}});
    assert!(listener.ask(&subscribe)["error"].is_null());
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let params = json!({ "name": format!("w {key}"), "root_path": world.folder(), "_meta": { "correlation_id": "cor_7" } });
    let made =
        world.wire().ask(&json!({"jsonrpc":"2.0","id":"cmd_7","method":"workspace.create","params":params}));
    assert!(made["error"].is_null(), "{made}");
    let records = records(&world);
    let [start, end] = about(&records, "workspace.create")[..] else { panic!("{records:?}") };
    assert_eq!(
        (start.entry.kind, end.entry.kind, end.entry.of),
        (Kind::Start, Kind::End, Some(start.number))
    );
    for entry in [&start.entry, &end.entry] {
        assert_eq!(entry.correlation_id.as_deref(), Some("cor_7"));
        assert_eq!(entry.command_id.as_deref(), Some("cmd_7"));
        assert_eq!(entry.actor.as_ref().unwrap().kind, "user");
    }
    let decision = end.entry.decision.as_ref().unwrap();
    assert!(decision.outcome == "allow" && !decision.id.is_empty(), "{decision:?}");
    assert_eq!(start.entry.attributes.as_ref().unwrap().value()["action"], "workspace.create");
    assert_eq!(start.entry.redacted, ["github-token"]);
    assert!(!serde_json::to_string(&records).unwrap().contains(&key));
    let told = std::iter::from_fn(|| listener.receive())
        .map(|line| line["params"]["event"].clone())
        .find(|event| event["payload"]["method_or_topic"] == "workspace.create")
        .unwrap();
    assert_eq!(told["payload"]["audit_id"], end.number.to_string());
    assert_eq!(
        (&told["payload"]["outcome"], &told["payload"]["decision_id"]),
        (&json!("ok"), &json!(decision.id))
    );
}

#[test]
fn a_refused_command_is_recorded_with_what_was_asked() {
    let mut world = World::new();
    world.start();
    // The rules say no to the one; to the other, who poses as the house, the gate does not listen.
    for (kind, id, method, code) in
        [("agent", "sess_x", "grant.revoke", -32011), ("system", "system_daemon", "workspace.list", -32010)]
    {
        let params = json!({ "grant_id": "grt_1", "_meta": { "actor": { "kind": kind, "id": id } } });
        let line = json!({"jsonrpc":"2.0","id":1,"method":method,"params":params});
        assert_eq!(world.wire().ask(&line)["error"]["code"], code);
        let records = records(&world);
        let [start, end] = about(&records, method)[..] else { panic!("{records:?}") };
        assert_eq!(start.entry.attributes.as_ref().unwrap().value()["action"], method);
        assert_eq!(end.entry.status, Some(Status::Denied), "{kind}");
    }
}

#[test]
fn when_nothing_can_be_recorded_no_command_is_carried_out_and_a_ping_is_answered() {
    let mut world = World::new().with_config(|config| config.audit.segment_bytes = 2000);
    world.start();
    workspace(&world, "before");
    let (audit, away) = (world.paths().audit(), world.folder().join("away"));
    std::fs::rename(&audit, &away).unwrap();
    let mut wire = world.wire();
    let mut create = |n: u32| {
        let params = json!({ "name": format!("w{n}"), "root_path": "/" });
        wire.ask(&json!({"jsonrpc":"2.0","id":n,"method":"workspace.create","params":params}))
    };
    let answers: Vec<Value> = (0..12).map(&mut create).collect();
    let refused =
        answers.iter().find(|answer| answer["error"]["data"]["reason"] == "AUDIT_UNAVAILABLE").unwrap();
    assert!(refused["error"]["data"]["next"].as_str().unwrap().contains("swb restart"), "{refused}");
    assert!(!refused.to_string().contains(&*world.folder().to_string_lossy()), "{refused}");
    let last = answers.last().unwrap();
    assert_eq!(last["error"]["data"]["reason"], "AUDIT_UNAVAILABLE", "it stays so: {last}");
    let ping = wire.ask(&json!({"jsonrpc":"2.0","id":"p","method":"$/ping"}));
    assert!(ping["error"].is_null(), "{ping}");
    world.crash();
    std::fs::rename(&away, &audit).unwrap();
    world.start();
    // Whatever was answered with a result is there, and whatever is there was begun in the record.
    let kept = call(&world, "workspace.list", &json!({}))["workspaces"].as_array().unwrap().len();
    let done = answers.iter().filter(|answer| answer["error"].is_null()).count() + 1;
    assert!(kept >= done, "{kept} of {done}");
    let records = records(&world);
    let starts = about(&records, "workspace.create").iter().filter(|it| it.entry.kind == Kind::Start).count();
    let ends = about(&records, "workspace.create").iter().filter(|it| it.entry.kind == Kind::End).count();
    assert!(starts == ends && starts >= done, "{starts} starts, {ends} ends, {done} done");
    assert!(verify(&audit, &[]).unwrap().findings.is_empty());
}
