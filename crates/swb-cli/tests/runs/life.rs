//! The life of a run: begun, steered, ended.

use serde_json::json;
use testkit::{wait, wait_for};

use crate::house::{House, TOOL_AT_WORK, is_gone};

#[test]
fn a_run_is_told_from_its_beginning_to_its_one_end() {
    let house = House::new();
    let story =
        house.story("!think hm\n!tool read {\"path\":\"notes.txt\"}\n!then\n!say There are two lines.");
    assert_eq!(story.topics(), ["agent.run.started", "agent.run.progress", "agent.run.completed"]);
    story.is_whole();
    assert_eq!(
        story.of_kind("thinking").map(|piece| piece["delta"].as_str().unwrap()).collect::<String>(),
        "hm"
    );
    let tools: Vec<_> = story.of_kind("tool").map(|piece| piece["tool"].clone()).collect();
    assert_eq!(tools.first().unwrap()["status"], "started");
    let called = tools.iter().find(|tool| tool["status"] == "called").unwrap();
    assert_eq!((&called["name"], &called["args"]), (&json!("read"), &json!({ "path": "notes.txt" })));
    assert!(called["args_hash"].as_str().unwrap().len() > 16);
    assert!(tools.last().unwrap()["result"].as_str().unwrap().contains("two"));
    assert_eq!(story.text(), "There are two lines.");
    let end = &story.end()["payload"];
    assert_eq!(end["result"], "There are two lines.");
    assert!(end["usage"]["output_tokens"].as_u64().unwrap() > 0 && end["usage"]["turns"] == 2, "{end}");
    let run = house.call("agent.get", &json!({ "run_id": end["run_id"] }));
    assert_eq!((&run["run"]["state"], &run["run"]["model"]), (&json!("completed"), &json!("demo")));
}

#[test]
fn a_session_goes_on_with_the_next_run_and_after_its_agent_was_let_go() {
    let house = House::with_settings("[runs]\nidle_s = 0\n");
    let (first, session, after) = house.run("!say one");
    house.follow(&first, after);
    let folder = house.world.paths().hosts().join(&session);
    wait("the agent at rest is let go", || !folder.join("host.sock").exists());
    let taken = house.call("agent.run", &json!({ "session_id": session, "prompt": "!say two" }));
    let story = house.follow(taken["run_id"].as_str().unwrap(), after);
    assert_eq!(story.text(), "two");
    let history = house.world.paths().agent_folder(&session).join(format!("{session}.jsonl"));
    let history = std::fs::read_to_string(history).unwrap();
    assert!(history.contains("!say one") && history.contains("!say two"));
}

#[test]
fn runs_of_one_session_come_one_after_the_other() {
    let house = House::new();
    let (first, session, after) = house.run("!say a\n!until go\n!say b");
    let second = house.call("agent.run", &json!({ "session_id": session, "prompt": "!say c" }));
    assert_eq!(second["status"], "queued");
    house.let_go();
    let second = second["run_id"].as_str().unwrap();
    let story = house.follow(second, after);
    assert_eq!(
        story.topics(),
        ["agent.run.queued", "agent.run.started", "agent.run.progress", "agent.run.completed"]
    );
    let first = house.follow(&first, after);
    assert!(first.end()["seq"].as_u64() < story.events[1]["seq"].as_u64());
}

#[test]
fn a_run_is_steered_and_followed_up() {
    let house = House::new();
    let (run, session, after) = house.run(&format!("!say begin\n{TOOL_AT_WORK}\n!then\n!say end"));
    wait_for("it calls its tool", || {
        let view = house.call("agent.get", &json!({ "run_id": run }));
        view["waits"].as_array().unwrap().iter().any(|wait| wait["for"] == "tool").then_some(())
    });
    let told = house.call("agent.follow_up", &json!({ "session_id": session, "text": "!say and more" }));
    assert_eq!((&told["run_id"], &told["status"]), (&json!(run), &json!("delivered")));
    house.let_go();
    let story = house.follow(&run, after);
    story.is_whole();
    assert!(story.text().ends_with("and more"), "{}", story.text());
    let said = story.of_kind("input").next().unwrap();
    assert_eq!((&said["how"], &said["text"]), (&json!("follow_up"), &json!("!say and more")));
    let steer = house.ask("agent.steer", &json!({ "session_id": session, "text": "now" }));
    assert_eq!(steer["error"]["data"]["reason"], "NOTHING_UNDER_WAY");
    let again = house.call("agent.follow_up", &json!({ "session_id": session, "text": "!say anew" }));
    assert_eq!(again["status"], "started");
    assert_eq!(house.follow(again["run_id"].as_str().unwrap(), after).text(), "anew");
}

#[test]
fn a_cancelled_run_ends_with_everything_it_started() {
    let house = House::new();
    let (run, session, after) = house.run("!tool bash {\"command\":\"setsid sleep 1000 & sleep 1000\"}");
    wait_for("the command runs", || {
        let view = house.call("agent.get", &json!({ "run_id": run }));
        view["waits"].as_array().unwrap().iter().any(|wait| wait["for"] == "tool").then_some(())
    });
    let cancelled = house.call("agent.cancel", &json!({ "run_id": run, "reason": "enough" }));
    assert_eq!(cancelled["status"], "cancelled");
    let story = house.follow(&run, after);
    assert_eq!(story.end()["topic"], "agent.run.failed");
    let end = &story.end()["payload"];
    assert_eq!((&end["cancelled"], &end["error"]["message"]), (&json!(true), &json!("enough")));
    assert_eq!(house.call("agent.cancel", &json!({ "run_id": run }))["status"], "cancelled");
    let (host, _) = house.host(&session);
    house.call("session.terminate", &json!({ "session_id": session }));
    wait("the host is gone", || is_gone(host));
}

#[test]
fn what_cannot_be_done_is_said_and_nothing_is_left() {
    let house = House::new();
    for (params, reason) in [
        (json!({ "project_id": house.project, "prompt": " \n" }), None),
        (json!({ "project_id": house.project, "prompt": "x", "agent": "nobody" }), Some("AGENT_NOT_FOUND")),
        (json!({ "project_id": "proj_none", "prompt": "x" }), Some("PROJECT_NOT_FOUND")),
        (json!({ "prompt": "x" }), None),
    ] {
        let answer = house.ask("agent.run", &params);
        assert!(answer["error"]["code"].is_i64(), "{answer}");
        if let Some(reason) = reason {
            assert_eq!(answer["error"]["data"]["reason"], reason);
        }
    }
    assert_eq!(house.call("agent.list", &json!({ "ended": true }))["runs"], json!([]));
    let failed = house.story("!fail the model is ill");
    assert_eq!(failed.end()["topic"], "agent.run.failed");
    assert!(failed.end()["payload"]["error"]["message"].as_str().unwrap().contains("the model is ill"));
}

#[test]
fn a_budget_ends_a_run_with_a_reason() {
    let house = House::new();
    for (budget, word) in [
        (json!({ "wall_ms": 300 }), "300 ms"),
        (json!({ "turns": 2 }), "times"),
        (json!({ "tokens": 10 }), "tokens"),
    ] {
        let steps = "!tool ls {}\n!then\n".repeat(6);
        let prompt = format!("{steps}!stall");
        let params = json!({ "project_id": house.project, "prompt": prompt, "budget": budget });
        let taken = house.call("agent.run", &params);
        let story = house.follow(taken["run_id"].as_str().unwrap(), taken["after"].as_u64().unwrap());
        let end = &story.end()["payload"];
        assert_eq!((&story.end()["topic"], &end["cancelled"]), (&json!("agent.run.failed"), &json!(false)));
        assert_eq!(end["error"]["details"]["reason"], "BUDGET_EXCEEDED", "{end}");
        assert!(end["error"]["message"].as_str().unwrap().contains(word), "{end}");
    }
}

#[test]
fn the_message_bus_hears_of_a_run_and_the_agent_knows_where_it_is() {
    let house = House::new();
    let (run, session, after) =
        house.run("!tool bash {\"command\":\"echo $JRUN_ID $JRUN_MESSAGE_BUS\"}\n!then\n!say done");
    let story = house.follow(&run, after);
    let result = story.of_kind("tool").last().unwrap()["tool"]["result"].as_str().unwrap().to_owned();
    assert!(result.contains(&run), "{result}");
    let bus = result.split_whitespace().find(|word| word.ends_with(".md")).unwrap().to_owned();
    assert!(bus.contains(&session), "{bus}");
    let text = wait_for("the end is on the bus", || {
        std::fs::read_to_string(&bus).ok().filter(|text| text.contains("RUN_STOP"))
    });
    assert!(text.contains("RUN_START") && text.contains(&run), "{text}");
}

#[test]
fn a_question_reaches_whoever_looks_on_and_so_does_the_answer() {
    let house = House::new();
    let (run, _, after) = house.run("!ask_user Which one? | red | blue\n!then\n!say thanks");
    let story = house.follow_and(&run, after, |event| {
        let question = &event["payload"]["question"];
        if question.is_object() {
            assert_eq!(question["options"], json!(["red", "blue"]));
            let params = json!({ "run_id": run, "ask_id": question["ask_id"], "option": "blue" });
            assert_eq!(house.call("agent.answer", &params)["status"], "delivered");
        }
    });
    story.is_whole();
    let done = story.of_kind("tool").find(|piece| piece["tool"]["status"] == "done").unwrap();
    assert!(done["tool"]["result"].as_str().unwrap().contains("blue"), "{done}");
}
