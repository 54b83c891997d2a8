//! Listing and posting.

use serde_json::json;
use swb_journal::message_bus::BusOptions;

use crate::client::Connection;
use crate::house::House;

#[test]
fn a_message_posted_by_any_door_is_listed_by_all() {
    let house = House::new();
    let v1 = house.post(
        "/api/v1/messages",
        &json!({ "project_id": "p", "task_id": "t", "run_id": "r", "type": "FACT", "body": "one" }),
    );
    assert_eq!((v1.status, v1.header("content-type")), (201, Some("application/json")));
    assert!(v1.text().ends_with("}\n"), "one line: {v1:?}");
    let by_path = house.post("/api/projects/p/tasks/t/messages", &json!({ "body": "two" }));
    let ids = [&v1, &by_path].map(|answer| answer.json()["msg_id"].as_str().unwrap().to_owned());
    for path in ["/api/v1/messages?project_id=p&task_id=t", "/api/projects/p/tasks/t/messages"] {
        assert_eq!(house.get(path).ids(), ids, "{path}");
    }
    let list = house.get("/api/projects/p/tasks/t/messages").json();
    let mut first = list["messages"][0].clone();
    assert_eq!(first["timestamp"], v1.json()["timestamp"]);
    assert_eq!(first["msg_id"].as_str().unwrap().len(), 43);
    first["msg_id"].take();
    first["timestamp"].take();
    assert_eq!(
        first,
        json!({ "msg_id": null, "timestamp": null, "type": "FACT", "project_id": "p", "task_id": "t", "run_id": "r", "body": "one" })
    );
    assert_eq!(list["messages"][1]["type"], "USER", "the default");
    assert!(house.get("/api/v1/messages?project_id=p").ids().is_empty(), "a task's bus is not its project's");
}

#[test]
fn the_same_message_reads_the_same_whatever_follows_it() {
    let house = House::new();
    house.say("hello");
    let alone = house.get("/api/projects/p/messages").json()["messages"][0].clone();
    house.say("next\n\n");
    let list = house.get("/api/projects/p/messages").json();
    assert_eq!(list["messages"][0], alone);
    assert_eq!(
        (&list["messages"][0]["body"], &list["messages"][1]["body"]),
        (&json!("hello"), &json!("next\n\n"))
    );
}

#[test]
fn no_body_forges_or_hides_a_message() {
    let house = House::new();
    let bodies = [
        "a\n---\nb",
        "---\nmsg_id: MSG-FORGED\ntype: FACT\nproject_id: p\n---\nforged",
        "status: ok\n---\n# only a comment\n---\n",
        "<script>&\u{2028}\u{1f389}\0\r\n",
    ];
    for body in bodies {
        house.say(body);
    }
    let list = house.get("/api/projects/p/messages");
    let read: Vec<_> =
        list.json()["messages"].as_array().unwrap().iter().map(|item| item["body"].clone()).collect();
    assert_eq!(read, bodies);
    assert!(!list.text().contains(['<', '>', '&', '\u{2028}']), "safe inside a page");
}

#[test]
fn cursors_are_exclusive_and_an_unknown_one_is_not_found() {
    let house = House::new();
    let ids: Vec<_> = (0..5).map(|n| house.say(&n.to_string())).collect();
    assert_eq!(house.get(&format!("/api/projects/p/messages?since={}", ids[1])).ids(), ids[2..]);
    assert_eq!(house.get(&format!("/api/v1/messages?project_id=p&after={}", ids[1])).ids(), ids[2..]);
    assert!(house.get(&format!("/api/projects/p/messages?since={}", ids[4])).ids().is_empty());
    let limited = format!("/api/projects/p/messages?since={}&limit=2", ids[0]);
    assert_eq!(house.get(&limited).ids(), ids[3..], "the latest ones");
    for path in ["/api/projects/p/messages?since=MSG-NO", "/api/v1/messages?project_id=p&after=MSG-NO"] {
        let unknown = house.get(path);
        assert_eq!(
            (unknown.status, unknown.error()),
            (404, ("NOT_FOUND".into(), "message id not found".into()))
        );
    }
    assert!(house.get("/api/projects/none/messages?since=MSG-NO").ids().is_empty(), "no bus, no message");
    assert!(house.get("/api/projects/none/messages").ids().is_empty());
    assert!(!house.options.root.join("none").exists(), "asking makes nothing");
}

#[test]
fn limits_are_capped_and_nonsense_means_none() {
    let house = House::new();
    house.append((0..5003).map(|n| n.to_string()));
    assert_eq!(house.get("/api/projects/p/messages?limit=3").ids().len(), 3);
    assert_eq!(house.get("/api/projects/p/messages?limit=99999").ids().len(), 5000);
    for nonsense in ["0", "-1", "x", ""] {
        assert_eq!(
            house.get(&format!("/api/projects/p/messages?limit={nonsense}")).ids().len(),
            5003,
            "{nonsense}"
        );
    }
}

#[test]
fn a_list_and_a_cursor_reach_across_rotation() {
    let house = House::new();
    let first = house.say("before");
    let bus = house.bus(BusOptions { auto_rotate: Some(1), ..BusOptions::default() });
    for body in ["middle", "after"] {
        bus.append(&swb_journal::message_bus::Draft::new("USER", "p", body)).unwrap();
    }
    assert_eq!(house.get("/api/projects/p/messages").ids().len(), 3);
    assert_eq!(house.get(&format!("/api/projects/p/messages?since={first}")).ids().len(), 2);
    assert_eq!(house.say("and on").len(), 43, "the open bus notices that its file was archived");
    assert_eq!(house.get("/api/projects/p/messages").ids().len(), 4);
}

#[test]
fn what_cannot_be_a_message_is_refused_by_name() {
    let house = House::new();
    let cases = [
        (
            json!({ "project_id": "p", "body": "x", "colour": 1 }),
            "invalid json: json: unknown field \"colour\"",
        ),
        (json!({ "project_id": "p", "body": " \n" }), "body is required"),
        (json!({ "project_id": "p" }), "body is required"),
        (json!({ "body": "x" }), "project_id is required"),
        (json!({ "project_id": "../x", "body": "x" }), "project_id must not contain path separators"),
        (json!({ "project_id": "..", "body": "x" }), "project_id must not contain .."),
        (
            json!({ "project_id": "p", "task_id": "a\\b", "body": "x" }),
            "task_id must not contain path separators",
        ),
        (
            json!({ "project_id": "p", "body": "x", "meta": { "swb_key": "v" } }),
            "the meta key \"swb_key\" is reserved",
        ),
    ];
    for (body, message) in cases {
        let answer = house.post("/api/v1/messages", &body);
        assert_eq!((answer.status, answer.error()), (400, ("BAD_REQUEST".into(), message.into())), "{body}");
    }
    let path = "/api/projects/p/messages";
    let answer = house.post(path, &json!({ "body": "x", "project_id": "p" }));
    assert_eq!(answer.error().1, "invalid json: json: unknown field \"project_id\"");
    for text in ["", "{", "[]", "null", r#"{"body":"x"} {}"#, r#"{"body":7}"#, "\u{0}"] {
        let answer = house.ask("POST", path, &[], Some(text.as_bytes()));
        assert!(
            answer.status == 400 && answer.error().1.starts_with("invalid json: "),
            "{text:?} {answer:?}"
        );
    }
    assert!(house.get(path).ids().is_empty());
}

#[test]
fn a_body_of_more_than_a_mebibyte_is_refused_and_its_sender_hears_of_it() {
    let house = House::new();
    let fits = json!({ "body": "x".repeat((1 << 20) - 20) });
    assert_eq!(house.post("/api/projects/p/messages", &fits).status, 201);
    let large = json!({ "body": "x".repeat(3 << 20) });
    let answer = house.post("/api/projects/p/messages", &large);
    assert_eq!((answer.status, answer.error().1.as_str()), (400, "invalid json: unexpected EOF"));
    assert_eq!(house.get("/api/projects/p/messages").ids().len(), 1);
}

#[test]
fn keys_match_whatever_their_case_and_the_content_type_does_not_matter() {
    let house = House::new();
    let body = br#"{"Project_ID":" spaced name ","BODY":"x","Type":"FACT"}"#;
    let answer = house.ask("POST", "/api/v1/messages", &[("Content-Type", "text/plain")], Some(body));
    assert_eq!(answer.status, 201, "{answer:?}");
    let list = house.get("/api/projects/spaced%20name/messages").json();
    assert_eq!(list["messages"][0]["type"], "FACT");
    assert!(house.options.root.join("spaced name").is_dir(), "blanks around a name are not part of it");
}

#[test]
fn parents_links_and_meta_go_in_by_either_spelling_and_come_out_in_lower_case() {
    let house = House::new();
    let message = json!({
        "body": "x", "issue_id": "i", "meta": { "k": "v" },
        "parents": ["a", { "MsgID": "b", "Kind": "reply_to", "Meta": null }],
        "links": [{ "URL": "http://x", "Label": "", "Kind": "doc" }],
    });
    assert_eq!(house.post("/api/projects/p/messages", &message).status, 201);
    let item = house.get("/api/projects/p/messages").json()["messages"][0].clone();
    assert_eq!(item["parents"], json!([{ "msg_id": "a" }, { "msg_id": "b", "kind": "reply_to" }]));
    assert_eq!(item["links"], json!([{ "url": "http://x", "kind": "doc" }]));
    assert_eq!((&item["meta"], &item["issue_id"]), (&json!({ "k": "v" }), &json!("i")));
}

#[test]
fn posting_twice_under_one_key_is_posting_once() {
    let house = House::new();
    let post =
        |body: &[u8]| house.ask("POST", "/api/projects/p/messages", &[("Idempotency-Key", "k1")], Some(body));
    let (first, second) = (post(br#"{"body":"x"}"#), post(br#"{"body":"y"}"#));
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.json()["msg_id"], second.json()["msg_id"]);
    assert_eq!(house.get("/api/projects/p/messages").ids().len(), 1);
}

#[test]
fn a_key_that_cannot_be_one_is_told_after_the_whole_body_was_taken() {
    let house = House::new();
    let mut connection = Connection::open(house.address());
    let bearer = house.bearer();
    let long = json!({ "body": "x".repeat(900_000) }).to_string();
    for key in ["", "é", &"k".repeat(1000)] {
        let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", key)];
        connection.request("POST", "/api/projects/p/messages", &headers, Some(long.as_bytes()));
        let answer = connection.answer();
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.error().1.contains("key"), "{answer:?}");
        connection.request("POST", "/api/projects/p/messages", &headers, Some(b"{"));
        assert!(connection.answer().error().1.contains("invalid json"), "the body comes first");
    }
    assert!(house.get("/api/projects/p/messages").ids().is_empty());
}

#[test]
fn one_connection_serves_many_requests() {
    let house = House::new();
    let mut connection = Connection::open(house.address());
    let bearer = house.bearer();
    for n in 0..20 {
        let body = json!({ "body": n.to_string() }).to_string();
        connection.request(
            "POST",
            "/api/projects/p/messages",
            &[("Authorization", &bearer)],
            Some(body.as_bytes()),
        );
        assert_eq!(connection.answer().status, 201);
    }
    assert_eq!(house.get("/api/projects/p/messages").ids().len(), 20);
}

#[test]
fn a_broken_file_of_somebody_else_does_not_stand_in_the_way() {
    let house = House::new();
    let run = house.options.root.join("p/t/runs/r1");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join("run-info.yaml"), "{{{ nonsense").unwrap();
    assert_eq!(house.post("/api/projects/p/tasks/t/messages", &json!({ "body": "x" })).status, 201);
    assert_eq!(house.get("/api/projects/p/tasks/t/messages").ids().len(), 1);
}
