//! Many posts at once: what gathers is written together, in order, and a file that does not move holds up nobody else.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use testkit::wait;

use crate::client::Connection;
use crate::house::House;

const POSTS: &str = "/api/projects/p/messages";

/// A house whose bus has a first message and is held by another writer.
fn held() -> (House, File) {
    let house = House::with(|options| options.max_connections = 1000);
    house.say("first");
    let file = File::open(house.options.root.join("p/PROJECT-MESSAGE-BUS.md")).expect("the bus");
    flock(&file, FlockOperation::LockExclusive).expect("its lock");
    (house, file)
}

fn release(file: &File) {
    flock(file, FlockOperation::Unlock).expect("held");
}

/// A post whose answer is not waited for.
fn send(house: &House, body: &Value, headers: &[(&str, &str)]) -> Connection {
    let bearer = house.bearer();
    let mut all = vec![("Authorization", bearer.as_str())];
    all.extend(headers);
    let mut connection = Connection::open(house.address());
    connection.request("POST", POSTS, &all, Some(body.to_string().as_bytes()));
    connection
}

#[track_caller]
fn wait_for_waiting(house: &House, posts: usize) {
    let count = posts.to_string();
    wait(&format!("{count} posts wait"), || house.metric("swb_messagebus_waiting ").to_string() == count);
}

/// The same, and it has come to its place in the line.
fn line_up(house: &House, place: usize, body: &Value, headers: &[(&str, &str)]) -> Connection {
    let connection = send(house, body, headers);
    wait_for_waiting(house, place + 1);
    connection
}

#[test]
fn posts_that_gather_are_written_together_and_in_the_order_they_came() {
    let (house, file) = held();
    let writes = house.metric("swb_messagebus_writes_total ");
    let mut waiting: Vec<_> =
        (0..40).map(|n| line_up(&house, n, &json!({ "body": n.to_string() }), &[])).collect();
    release(&file);
    let ids: Vec<_> = waiting
        .iter_mut()
        .map(|connection| {
            let answer = connection.answer();
            assert_eq!(answer.status, 201, "{answer:?}");
            answer.json()["msg_id"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(house.get(POSTS).ids()[1..], ids);
    let writes = house.metric("swb_messagebus_writes_total ") - writes;
    assert_eq!(writes.to_string(), "2", "the first was under way when the others came");
    let events = house.topics.read(Vec::new(), None, 100).unwrap().events;
    let announced =
        events.iter().map(|event| serde_json::to_value(event).unwrap()["payload"]["msg_id"].take());
    assert_eq!(announced.skip(1).collect::<Vec<_>>(), ids, "events are in the order of the file");
}

#[test]
fn every_post_of_a_gathering_has_its_own_answer() {
    let (house, file) = held();
    let key = [("Idempotency-Key", "k1")];
    let mut waiting = [
        line_up(&house, 0, &json!({ "body": "under way" }), &[]),
        line_up(&house, 1, &json!({ "body": "keyed" }), &key),
        line_up(&house, 2, &json!({ "body": "wrong", "meta": { "swb_bytes": "1" } }), &[]),
        line_up(&house, 3, &json!({ "body": "keyed again" }), &key),
        line_up(&house, 4, &json!({ "body": "last" }), &[]),
    ];
    release(&file);
    let answers: Vec<_> = waiting.iter_mut().map(Connection::answer).collect();
    assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [201, 201, 400, 201, 201]);
    assert!(answers[2].error().1.contains("swb_bytes"), "{:?}", answers[2]);
    assert_eq!(answers[1].json(), answers[3].json());
    let messages = house.get(POSTS).json()["messages"].take();
    let bodies: Vec<_> = messages.as_array().unwrap().iter().map(|message| &message["body"]).collect();
    assert_eq!(bodies, ["first", "under way", "keyed", "last"]);
    assert_eq!(house.metric("swb_messagebus_appends_total ").to_string(), "4");
}

#[test]
fn a_file_that_does_not_move_holds_up_nobody_else() {
    let (house, file) = held();
    // More than the runtime has threads of any kind.
    let mut waiting: Vec<_> = (0..600).map(|_| send(&house, &json!({ "body": "patient" }), &[])).collect();
    wait_for_waiting(&house, 600);
    assert_eq!(house.get("/api/v1/health").status, 200);
    assert_eq!(house.get(POSTS).ids().len(), 1, "reading takes no lock");
    assert_eq!(house.post("/api/projects/q/messages", &json!({ "body": "elsewhere" })).status, 201);
    assert_eq!(house.get("/api/projects/q/messages").ids().len(), 1);
    release(&file);
    for connection in &mut waiting {
        assert_eq!(connection.answer().status, 201);
    }
    assert_eq!(house.get(POSTS).ids().len(), 601);
}

#[test]
fn what_a_lane_cannot_hold_is_refused_at_once() {
    let (house, file) = held();
    let large = json!({ "body": "x".repeat(1_000_000) });
    // One is under way; 34 of these are more than 32 MiB.
    let mut waiting: Vec<_> = (0..35).map(|n| line_up(&house, n, &large, &[])).collect();
    let refused = send(&house, &large, &[]).answer();
    assert_eq!((refused.status, refused.error().0.as_str()), (429, "TOO_MANY_REQUESTS"));
    release(&file);
    for connection in &mut waiting {
        assert_eq!(connection.answer().status, 201);
    }
    assert_eq!(house.post(POSTS, &json!({ "body": "room again" })).status, 201);
    assert_eq!(house.get(POSTS).ids().len(), 37);
}

#[test]
fn a_poster_that_leaves_before_its_turn_is_not_posted_and_one_under_way_is_announced() {
    let (house, file) = held();
    let connections = |house: &House| house.metric("swb_http_connections ");
    let alone = connections(&house);
    let under_way = line_up(&house, 0, &json!({ "body": "under way" }), &[]);
    let in_line = line_up(&house, 1, &json!({ "body": "in line" }), &[]);
    let mut stays = line_up(&house, 2, &json!({ "body": "stays" }), &[]);
    drop((under_way, in_line));
    wait("the server sees that two have gone", || connections(&house) < alone + 2.0);
    release(&file);
    assert_eq!(stays.answer().status, 201);
    let messages = house.get(POSTS).json()["messages"].take();
    let bodies: Vec<_> = messages.as_array().unwrap().iter().map(|message| &message["body"]).collect();
    assert_eq!(bodies, ["first", "under way", "stays"]);
    assert_eq!(house.topics.read(Vec::new(), None, 100).unwrap().events.len(), 3);
}
