//! The plan of a run: told, kept, shown.

use serde_json::{Value, json};

use crate::agui_client::Client;
use crate::house::{House, Story};
use crate::terminal::Terminal;

fn plans(story: &Story) -> Vec<Value> {
    let shown = |plan: &Value| json!([plan["name"], plan["steps"], plan["percent"]]);
    story.of_kind("plan").map(shown).collect()
}

fn step(text: &str, status: &str) -> Value {
    json!({ "text": text, "status": status })
}

#[test]
fn a_plan_is_told_beside_its_call_and_one_that_is_none_is_not() {
    let house = House::new();
    let story = house.story(
        "!plan >look | test\n!then\n!plan >one | >two\n!then\n!subagent !plan *read\n!then\n!plan\n!then\n!say done",
    );
    story.is_whole();
    let (own, other) = (json!(null), json!("subagent"));
    assert_eq!(
        plans(&story),
        [
            json!([own, [step("look", "in_progress"), step("test", "pending")], 0]),
            json!([other, [step("read", "completed")], 100]),
            json!([own, [], null]),
        ]
    );
    let first = story.of_kind("plan").next().unwrap();
    let calls = story.of_kind("tool").filter(|piece| piece["tool"]["call_id"] == first["call_id"]);
    let statuses: Vec<_> = calls.map(|piece| piece["tool"]["status"].as_str().unwrap()).collect();
    assert_eq!((statuses[0], statuses[statuses.len() - 1]), ("started", "done"), "a call like any other");
    assert_eq!(story.of_kind("plan").nth(1).unwrap()["path"], json!([1]));
    let record = house.world.swb(["audit", "tail", "--json", "-n", "1000"]).ok().json_lines();
    assert!(record.iter().all(|line| line["topic"] != "approval.requested"), "nobody was asked");
}

#[test]
fn a_rule_may_forbid_plans_like_any_other_tool() {
    let forbidden =
        "@id(\"no-plans\")\nforbid (principal is Agent, action == Action::\"tool.plan\", resource);\n";
    let house = House::with_rules("", forbidden);
    let story = house.story("!plan >look\n!then\n!say done");
    let done = story.of_kind("tool").find(|piece| piece["tool"]["status"] == "done").unwrap();
    assert!(done["tool"]["result"].as_str().unwrap().starts_with("Denied"), "{done}");
    assert!(plans(&story).is_empty(), "what was not done is not told");
}

#[test]
fn a_plan_is_told_once_over_any_number_of_daemons() {
    let house = House::new();
    // The question keeps the step open: whoever comes next reads the output again from before the plan.
    let prompt = "!plan >look | test\n!ask_user Go on? | yes\n!then\n!plan *look | >test\n!then\n!say done";
    let (run, session, after) = house.run(prompt);
    let (mut is_told, mut ask_id) = (false, Value::Null);
    let story = house.follow_and(&run, after, |event| {
        let piece = &event["payload"];
        match piece["kind"].as_str() {
            Some("plan") => is_told = true,
            Some("question") => ask_id = piece["question"]["ask_id"].clone(),
            _ => return,
        }
        // Both come in any order.
        if is_told && ask_id.is_string() {
            house.kill_daemon();
            house.kill_daemon();
            let answer = json!({ "session_id": session, "ask_id": ask_id.take(), "option": "yes" });
            assert_eq!(house.call("agent.answer", &answer)["status"], "delivered");
        }
    });
    story.is_whole();
    assert_eq!(
        plans(&story),
        [
            json!([null, [step("look", "in_progress"), step("test", "pending")], 0]),
            json!([null, [step("look", "completed"), step("test", "in_progress")], 50]),
        ]
    );
    assert_eq!(plans(&house.follow(&run, after)), plans(&story), "who comes late hears the same");
}

#[test]
fn a_terminal_shows_what_has_changed_and_a_script_the_events() {
    let house = House::new();
    let prompt =
        "!plan >look around | write it down\n!then\n!plan *look around | >write it down\n!then\n!say Done.";
    let mut terminal = Terminal::open(&house.world, &house.root, &["run", prompt]);
    assert_eq!(terminal.exit_code(), Some(0));
    terminal.until("sess_");
    let count = |text: &str, part: &str| text.matches(part).count();
    let runs = house.call("agent.list", &json!({ "ended": true }));
    let session = runs["runs"][0]["session_id"].as_str().unwrap();
    let logs = house.world.swb(["logs", session]).ok().stdout;
    for text in [terminal.text(), logs] {
        for line in [
            "● plan  0 of 2 done",
            "  ▸ look around",
            "  ○ write it down",
            "● plan  1 of 2 done",
            "  ✔ look around",
            "  ▸ write it down",
        ] {
            assert_eq!(count(&text, line), 1, "{line:?} in {text}");
        }
        assert!(!text.contains("steps are done"), "the list says it: {text}");
    }
    let events = house.world.swb(["logs", session, "--json"]).ok().json_lines();
    let told: Vec<_> = events.iter().filter(|event| event["payload"]["kind"] == "plan").collect();
    assert_eq!((told.len(), &told[1]["payload"]["percent"]), (2, &json!(50)));
}

#[test]
fn the_real_clients_keep_one_list_of_each_agent() {
    let house = House::new();
    let url = house.world.status("http").as_str().expect("the daemon serves HTTP").to_owned();
    let token = house.world.swb(["token"]).ok().stdout.trim().to_owned();
    for client in Client::both() {
        let steps = json!([
            { "say": "!say I have a plan.\n!plan >look | ask\n!then\n!subagent !plan *read\n!then\n!ask rm notes.txt\n!then\n\
                      !plan *look | *ask\n!then\n!say Over." },
            { "answer": { "approved": false } },
        ]);
        let seen = client.drive(&format!("{url}/agui"), &token, &format!("t-{}", client.version), &steps);
        assert_eq!(seen["runs"][0]["finished"]["outcome"]["type"], "interrupt", "{}", seen["runs"][0]);
        assert_eq!(seen["runs"][1]["result"], "Over.", "{}: {}", client.version, seen["runs"][1]);
        let messages = seen["messages"].as_array().unwrap();
        let lists: Vec<_> = messages.iter().filter(|message| message["role"] == "activity").collect();
        let contents: Vec<_> = lists.iter().map(|list| (&list["activityType"], &list["content"])).collect();
        let kind = json!("PLAN");
        let own = json!({ "steps": [step("look", "completed"), step("ask", "completed")], "percent": 100 });
        let below = json!({ "steps": [step("read", "completed")], "name": "subagent", "percent": 100 });
        assert_eq!(contents, [(&kind, &own), (&kind, &below)], "{}", client.version);
        assert_eq!(lists[1].get("subagentRunId").is_some(), client.is_one(), "{}", lists[1]);
    }
}
