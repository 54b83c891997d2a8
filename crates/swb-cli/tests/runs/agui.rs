//! Runs over AG-UI: the real clients, the real daemon, the model `demo`.

use serde_json::{Value, json};
use testkit::wait_for;

use crate::agui_client::Client;
use crate::house::House;

/// What a client sees of these steps in a thread.
fn drive(house: &House, client: &Client, thread: &str, steps: Value) -> Vec<Value> {
    let url = house.world.status("http").as_str().expect("the daemon serves HTTP").to_owned();
    let token = house.world.swb(["token"]).ok().stdout.trim().to_owned();
    let seen = client.drive(&format!("{url}/agui"), &token, thread, &steps);
    seen["runs"].as_array().expect("runs").clone()
}

fn roles(run: &Value) -> Vec<&str> {
    let messages = run["newMessages"].as_array().expect("messages");
    messages.iter().filter_map(|message| message["role"].as_str()).collect()
}

fn sees(run: &Value, kind: &str) -> bool {
    run["kinds"].as_array().is_some_and(|kinds| kinds.contains(&json!(kind)))
}

#[test]
fn text_tools_reasoning_subagents_and_errors() {
    let house = House::new();
    for client in Client::both() {
        let steps = json!([
            { "say": "!say Hello, world." },
            { "say": "!think what is here?\n!tool read {\"path\": \"notes.txt\"}\n!say Seen." },
            { "say": "!subagent !say Here.\n!say Found." },
            { "say": "!fail oops" },
            { "say": "!say And on." },
        ]);
        let runs = drive(&house, &client, &format!("t-{}", client.version), steps);
        assert_eq!(
            (&runs[0]["text"], &runs[0]["result"]),
            (&json!("Hello, world."), &json!("Hello, world."))
        );
        assert!(runs[0]["finished"]["usage"][0]["totalTokens"].as_u64().unwrap() > 0);
        assert_eq!(runs[0]["finished"]["usage"][0]["model"], "demo");
        assert_eq!(roles(&runs[1]), ["reasoning", "assistant", "tool", "assistant"], "{}", client.version);
        assert!(runs[1]["newMessages"][2]["content"].as_str().unwrap().contains("two"));
        let (begun, over) = if client.is_one() {
            ("SUBAGENT_STARTED", "SUBAGENT_FINISHED")
        } else {
            ("STEP_STARTED", "STEP_FINISHED")
        };
        assert!(sees(&runs[2], begun) && sees(&runs[2], over), "{}: {}", client.version, runs[2]);
        assert_eq!(runs[3]["error"]["message"], "oops");
        assert_eq!(runs[4]["result"], "And on.");
    }
}

#[test]
fn what_is_asked_is_answered_also_after_the_daemon_was_killed() {
    let house = House::new();
    for client in Client::both() {
        let (yes, no) = (format!("yes-{}", client.version), format!("no-{}", client.version));
        let ask = json!({ "say": "!ask rm notes.txt\n!say Over." });
        let deny = json!({ "answer": { "approved": false, "reason": "keep it" } });
        let runs = drive(&house, &client, &no, json!([ask, deny]));
        assert_eq!(runs[0]["finished"]["outcome"]["type"], "interrupt", "{}", runs[0]);
        assert!(runs[1]["newMessages"][0]["content"].as_str().unwrap().contains("keep it"), "{}", runs[1]);
        assert_eq!(runs[1]["result"], "Over.");
        assert!(house.root.join("notes.txt").exists());

        let runs = drive(&house, &client, &yes, json!([ask]));
        let id = runs[0]["pending"][0].as_str().unwrap().to_owned();
        house.kill_daemon();
        let answer = json!({ "interruptId": id, "status": "resolved", "payload": { "approved": true } });
        let resume = json!([{ "resume": [answer] }]);
        let runs = drive(&house, &client, &yes, resume.clone());
        assert_eq!(runs[0]["result"], "Over.", "{}: {}", client.version, runs[0]);
        assert_eq!(runs[0]["customs"][0], "ui.approval.result");
        assert!(!house.root.join("notes.txt").exists());
        let again = drive(&house, &client, &yes, resume);
        assert_eq!((&again[0]["text"], &again[0]["result"]), (&runs[0]["text"], &runs[0]["result"]));
        std::fs::write(house.root.join("notes.txt"), "one\ntwo\n").unwrap();
    }
}

#[test]
fn a_question_names_its_call_which_is_begun_once() {
    let house = House::new();
    for client in Client::both() {
        let ask = json!({ "say": "!ask rm notes.txt\n!say Over." });
        let deny = json!({ "answer": { "approved": false } });
        let runs = drive(&house, &client, &format!("t-{}", client.version), json!([ask, deny]));
        let call = &runs[0]["finished"]["outcome"]["interrupts"][0]["toolCallId"];
        assert!(call.is_string(), "{}: {}", client.version, runs[0]);
        assert_eq!((&runs[0]["calls"], &runs[1]["calls"]), (&json!([call]), &json!([])));
        assert_eq!(&runs[1]["newMessages"][0]["toolCallId"], call, "{}: {}", client.version, runs[1]);
    }
}

#[test]
fn a_question_that_nobody_answered_in_time_was_answered_with_no() {
    let house = House::with_settings("[runs]\nanswer_later_s = 1\n");
    for client in Client::both() {
        let (same, other) = (format!("same-{}", client.version), format!("other-{}", client.version));
        let ask = json!({ "say": "!ask rm notes.txt\n!say Over." });
        // The client itself lets nobody answer any more; today's lets it go on, without an answer.
        let late = json!({ "answer": { "approved": true }, "afterExpiry": true });
        let leave = json!({ "status": "cancelled" });
        let runs = drive(&house, &client, &same, json!([ask, late, leave]));
        assert!(runs[1]["rejected"]["message"].as_str().unwrap().contains("expired"), "{}", runs[1]);
        let is_refused = |run: &Value| {
            let said = run["newMessages"][0]["content"].as_str().unwrap();
            assert!(said.contains("nobody agreed in time"), "{}: {run}", client.version);
            assert_eq!((&run["result"], &run["calls"]), (&json!("Over."), &json!([])));
            assert_eq!(run["pending"], json!([]));
        };
        if client.is_one() {
            is_refused(&runs[2]);
        }
        // One that comes back without its memory: both answers, and then something else.
        let runs = drive(&house, &client, &other, json!([ask]));
        let id = runs[0]["pending"][0].as_str().unwrap().to_owned();
        wait_for("the question to be over", || {
            let asked = house.call("approval.get", &json!({ "approval_id": id }));
            (asked["status"] == "timed_out").then_some(())
        });
        let yes = json!({ "interruptId": id, "status": "resolved", "payload": { "approved": true } });
        let none = json!({ "interruptId": id, "status": "cancelled" });
        let steps = json!([{ "resume": [yes] }, { "resume": [none] }, { "say": "!say And on." }]);
        let runs = drive(&house, &client, &other, steps);
        assert_eq!(runs[0]["error"]["code"], "INTERRUPT_EXPIRED", "{}", runs[0]);
        is_refused(&runs[1]);
        assert_eq!(runs[2]["result"], "And on.");
        assert!(house.root.join("notes.txt").exists(), "a no that came late is a no");
    }
}

#[test]
fn an_abort_cancels_the_run_and_a_quiet_one_is_kept_alive() {
    let house = House::with_settings("[http]\nheartbeat_s = 1\n");
    for client in Client::both() {
        let thread = format!("t-{}", client.version);
        let quiet = json!({ "say": "!pause 2500\n!say Here I am." });
        let abort = json!({ "say": "!say I wait.\n!stall", "abortOn": "TEXT_MESSAGE_CONTENT" });
        let runs = drive(&house, &client, &thread, json!([quiet, abort]));
        assert_eq!(runs[0]["result"], "Here I am.", "{}", client.version);
        assert!(runs[1].get("finished").is_none(), "{}", runs[1]);
        wait_for("the run to be cancelled", || {
            let listed = house.call("agent.list", &json!({ "ended": true }));
            let last = listed["runs"].as_array()?.last()?.clone();
            (last["state"] == "cancelled" && last["title"].as_str()?.contains("I wait")).then_some(())
        });
    }
}

#[test]
fn twenty_thousand_events_in_one_run() {
    let house = House::new();
    for client in Client::both() {
        let runs =
            drive(&house, &client, &format!("t-{}", client.version), json!([{ "say": "!repeat 20000 x " }]));
        assert_eq!(
            runs[0]["text"].as_str().unwrap().trim().len(),
            runs[0]["result"].as_str().unwrap().trim().len()
        );
        assert!(runs[0]["count"].as_u64().unwrap() > 20_000, "{}: {}", client.version, runs[0]["count"]);
        assert_eq!(runs[0]["finished"]["outcome"]["type"], "success");
    }
}
