//! The gateway inside a daemon.

use swb_proto::comms::Empty;
use swb_proto::control::Status;
use testkit::World;

use crate::client::{Connection, Events};

fn token(world: &World) -> String {
    std::fs::read_to_string(world.paths().tokens().join("user.token")).expect("a token").trim().to_owned()
}

fn status(world: &World) -> swb_proto::control::StatusResponse {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(world.handle().call::<Status>(Empty {})).expect("a status")
}

fn post(world: &World, body: &str) -> u16 {
    let mut connection = Connection::open(world.http());
    let body =
        serde_json::json!({ "project_id": "p", "task_id": "t", "type": "FACT", "body": body }).to_string();
    connection.request("POST", "/api/v1/messages", &[("X-API-Key", &token(world))], Some(body.as_bytes()));
    connection.answer().status
}

#[test]
fn a_daemon_serves_http_and_says_where() {
    let mut world = World::new();
    world.start();
    let url = format!("http://{}", world.http());
    assert_eq!(status(&world).http, Some(url));
    assert_eq!(post(&world, "hello"), 201);
    assert!(world.paths().data.join("projects/p/t/TASK-MESSAGE-BUS.md").is_file());
    let events = world.bus().topics().read(Vec::new(), None, 10).expect("events").events;
    let posted = events.iter().map(|event| serde_json::to_value(event).expect("JSON"));
    let posted: Vec<_> = posted.filter(|event| event["topic"] == "message.posted").collect();
    assert_eq!(posted.len(), 1, "{events:?}");
    let payload = &posted[0]["payload"];
    assert_eq!(
        (&payload["project"], &payload["task"], &payload["type"]),
        (&"p".into(), &"t".into(), &"FACT".into())
    );
    assert_eq!(payload["msg_id"].as_str().map(str::len), Some(43));
}

#[test]
fn a_stream_ends_with_its_daemon_and_goes_on_with_the_next() {
    let mut world = World::new();
    world.start();
    assert_eq!(post(&world, "one"), 201);
    let path = format!("/t/{}/api/projects/p/tasks/t/messages/stream", token(&world));
    let mut events = Events::open(world.http(), &path, &[]);
    let last = events.message().id.expect("an id");
    world.stop();
    assert_eq!(events.next(), None);
    world.start();
    assert_eq!(post(&world, "two"), 201);
    let mut events = Events::open(world.http(), &path, &[("Last-Event-ID", &last)]);
    assert_eq!(events.message().body(), "two");
    world.crash_and_restart();
    let mut events = Events::open(world.http(), &path, &[("Last-Event-ID", &last)]);
    assert_eq!(events.message().body(), "two");
}

#[test]
fn a_daemon_without_http_runs_all_the_same_and_says_why() {
    let mut world = World::new().with_config(|config| config.http.host = "0.0.0.0".to_owned());
    world.start();
    let refused = status(&world);
    assert_eq!(refused.http, None);
    assert!(refused.http_error.expect("a reason").contains("key_file"));
    let mut off = World::new().with_config(|config| config.http.enabled = false);
    off.start();
    let off = status(&off);
    assert_eq!((off.http, off.http_error), (None, None));
}
