//! Runs as the real clients see them, today's and the one before it.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::wait;

use crate::agui_client::Client;
use crate::client::Connection;
use crate::house::House;

fn drive(client: &Client, house: &House, thread: &str, steps: Value) -> Vec<Value> {
    let seen = client.drive(&format!("http://{}/agui", house.address()), &house.token(), thread, &steps);
    seen["runs"].as_array().expect("runs").clone()
}

/// The events without `CUSTOM`, and without what differs between the versions by its name alone.
fn kinds(run: &Value) -> Vec<&str> {
    run["kinds"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .filter(|kind| *kind != "CUSTOM")
        .collect()
}

#[test]
fn text_tools_reasoning_and_subagents() {
    for client in Client::both() {
        let house = House::new();
        let url = format!("http://{}/agui", house.address());
        let steps =
            json!([{ "say": "text" }, { "say": "tools" }, { "say": "reason" }, { "say": "subagents" }]);
        let seen = client.drive(&url, &house.token(), "t", &steps);
        let runs = seen["runs"].as_array().unwrap();
        for run in runs {
            assert_eq!(
                (&run["result"], run.get("error")),
                (&json!("done"), None),
                "{}: {run}",
                client.version
            );
            assert_eq!(run["finished"]["usage"][0]["totalTokens"], 10);
        }
        assert_eq!(runs[0]["text"], "Hello, world");
        let progress = ["ui.agent.progress"; 3];
        let customs = [&["ui.agent.started"][..], &progress, &["ui.agent.completed"]].concat();
        assert_eq!(runs[0]["customs"], json!(customs), "in the order of the bus");

        let roles = |run: &Value| {
            let messages = run["newMessages"].as_array().unwrap();
            messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(roles(&runs[1]), ["assistant", "tool", "assistant"], "{}", client.version);
        let call = &runs[1]["newMessages"][0]["toolCalls"][0];
        assert_eq!(
            (&call["id"], &call["function"]["arguments"]),
            (&json!("c1"), &json!("{\"path\":\"README.md\"}"))
        );
        assert_eq!(runs[1]["newMessages"][1]["content"], "# Switchboard");

        assert_eq!(roles(&runs[2]), ["reasoning", "assistant"], "{}", client.version);
        assert_eq!(runs[2]["newMessages"][0]["content"], "Let me think.");

        let subagents = if client.is_one() {
            ["SUBAGENT_STARTED", "SUBAGENT_STARTED", "SUBAGENT_ERROR", "SUBAGENT_FINISHED"]
        } else {
            ["STEP_STARTED", "STEP_STARTED", "STEP_FINISHED", "STEP_FINISHED"]
        };
        assert_eq!(kinds(&runs[3])[1..5], subagents, "{}", client.version);
        assert_eq!(house.agents.sessions(), 1);
    }
}

#[test]
fn a_question_is_asked_and_answered_with_yes_or_no() {
    for client in Client::both() {
        let house = House::new();
        for (thread, answer, came) in [
            ("yes", json!({ "answer": { "approved": true } }), "approved"),
            ("no", json!({ "answer": { "approved": false, "reason": "not today" } }), "denied"),
            ("nobody", json!({ "status": "cancelled" }), "denied"),
        ] {
            let blocked = json!({ "say": "something else" });
            let runs = drive(
                &client,
                &house,
                thread,
                json!([{ "say": "ask 2" }, blocked, answer, { "say": "text" }]),
            );
            let asked = &runs[0];
            assert_eq!(asked["finished"]["outcome"]["type"], "interrupt", "{}: {asked}", client.version);
            assert_eq!(asked["pending"].as_array().unwrap().len(), 2);
            let rejected = runs[1]["rejected"]["message"].as_str().unwrap();
            assert!(rejected.contains("interrupt"), "the client itself holds it back: {rejected}");
            let answered = &runs[2];
            assert_eq!(answered["result"], "done", "{}: {answered}", client.version);
            assert_eq!(
                answered["customs"].as_array().unwrap()[..2],
                ["ui.approval.result"; 2].map(Value::from)
            );
            let results: Vec<_> = answered["newMessages"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|message| message["role"] == "tool")
                .map(|message| &message["content"])
                .collect();
            assert_eq!(results, [came, came], "{}", client.version);
            assert_eq!(runs[3]["result"], "done", "and it goes on");
        }
    }
}

#[test]
fn an_answer_that_comes_too_late() {
    for client in Client::both() {
        let house = House::new();
        let runs = drive(&client, &house, "t", json!([{ "say": "ask" }]));
        let id = runs[0]["pending"][0].as_str().unwrap().to_owned();
        house.agents.resolve(&house.topics, &id, "timed_out", None).unwrap();
        let late = json!({ "interruptId": id, "status": "resolved", "payload": { "approved": true } });
        let runs = drive(&client, &house, "t", json!([{ "resume": [late] }, { "say": "text" }]));
        assert_eq!(runs[0]["error"]["code"], "INTERRUPT_EXPIRED", "{}: {}", client.version, runs[0]);
        assert_eq!(runs[1]["result"], "done");
    }
}

#[test]
fn errors_during_a_run_and_before_it() {
    for client in Client::both() {
        let house = House::new();
        let runs =
            drive(&client, &house, "t", json!([{ "say": "fail" }, { "say": "refused" }, { "say": "text" }]));
        assert_eq!(runs[0]["error"], json!({ "message": "it was failed", "code": "INTERNAL_ERROR" }));
        assert!(runs[0]["customs"].as_array().unwrap().contains(&json!("ui.error")));
        let rejected = &runs[1]["rejected"];
        assert_eq!(
            (&rejected["status"], &rejected["payload"]["error"]["code"]),
            (&json!(403), &json!("FORBIDDEN"))
        );
        assert_eq!(runs[2]["result"], "done");
    }
}

#[test]
fn an_abort_cancels_the_run() {
    for client in Client::both() {
        let house = House::new();
        let runs = drive(&client, &house, "t", json!([{ "say": "hold", "abortOn": "TEXT_MESSAGE_CONTENT" }]));
        assert!(runs[0].get("finished").is_none(), "{}", runs[0]);
        wait("the run to be cancelled", || house.agents.runs() == ["cancelled"]);
    }
}

#[test]
fn a_run_that_somebody_else_cancels() {
    for client in Client::both() {
        let house = House::new();
        let drive = || drive(&client, &house, "t", json!([{ "say": "hold" }]));
        let run = std::thread::scope(|scope| {
            let run = scope.spawn(drive);
            wait("the run to begin", || house.agents.runs() == ["running"]);
            house.agents.cancel(&house.topics);
            run.join().unwrap().remove(0)
        });
        assert!(run["customs"].as_array().unwrap().contains(&json!("ui.system.notice")), "{run}");
        if client.is_one() {
            assert_eq!(run["finished"]["outcome"], json!({ "type": "cancelled" }), "{run}");
        } else {
            assert_eq!(run["error"]["code"], "cancelled", "{run}");
        }
    }
}

#[test]
fn a_quiet_run_is_kept_alive() {
    for client in Client::both() {
        let house = House::with(|options| options.heartbeat = Duration::from_millis(20));
        let drive = || drive(&client, &house, "t", json!([{ "say": "hold" }]));
        let run = std::thread::scope(|scope| {
            let run = scope.spawn(drive);
            wait("the run to begin", || house.agents.runs() == ["running"]);
            // A second one beside it shows when many beats have gone by.
            let mut connection = Connection::open(house.address());
            let body =
                json!({ "threadId": "u", "runId": "r", "messages": [{ "role": "user", "content": "hold" }] });
            let bearer = house.bearer();
            let body = body.to_string();
            connection.request("POST", "/agui", &[("Authorization", &bearer)], Some(body.as_bytes()));
            connection.head();
            let mut beats = 0;
            while beats < 20 {
                beats += usize::from(connection.chunk().expect("it goes on") == b": keep-alive\n\n");
            }
            house.agents.release(&house.topics);
            run.join().unwrap().remove(0)
        });
        assert_eq!(run["result"], "done", "{}: {run}", client.version);
    }
}

#[test]
fn twenty_thousand_events_of_the_bus_in_one_run() {
    for client in Client::both() {
        let house = House::new();
        let runs = drive(&client, &house, "t", json!([{ "say": "many 20000" }]));
        assert_eq!(runs[0]["result"], "done", "{}", client.version);
        assert_eq!(runs[0]["text"].as_str().unwrap().len(), 20_000);
        // Each as CUSTOM and as itself, the two ends, and the message's.
        assert_eq!(runs[0]["count"], 40_006);
    }
}
