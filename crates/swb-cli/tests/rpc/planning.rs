//! Plans: the tool `plan`, and the event of that name.

use serde_json::{Value, json};

use crate::child::{Child, kinds, results, world};

fn plans(frames: &[Value]) -> Vec<&Value> {
    frames.iter().filter(|frame| frame["type"] == "plan").collect()
}

#[test]
fn a_plan_is_told_before_the_result_of_the_call_also_by_one_who_may_only_look() {
    let world = world();
    for mode in ["read-only", "workspace", "full"] {
        let mut child = Child::start(&world, &["--tool-mode", mode]);
        let frames = child.turn("p", "!plan *look | >fix it | test");
        assert_eq!(results(&frames), ["1 of 3 steps are done. Now: fix it"]);
        let mut order = kinds(&frames);
        order.retain(|kind| ["toolcall_input", "plan", "toolcall_result"].contains(kind));
        assert_eq!(order, ["toolcall_input", "plan", "toolcall_result"], "{mode}");
        let call = frames.iter().find(|frame| frame["event"]["type"] == "toolcall_result").unwrap();
        let step = |text: &str, status: &str| json!({ "text": text, "status": status });
        let steps = [step("look", "completed"), step("fix it", "in_progress"), step("test", "pending")];
        assert_eq!(
            plans(&frames),
            [&json!({ "type": "plan", "tool_id": call["event"]["tool_id"], "steps": steps })]
        );
    }
}

#[test]
fn what_is_no_plan_is_refused_and_not_told() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let frames =
        child.turn("p", "!plan >one | >two\n!tool plan {\"steps\":[{\"text\":\"x\",\"status\":\"done\"}]}");
    let results = results(&frames);
    assert!(results[0].contains("steps 1 and 2 are both in progress"), "{}", results[0]);
    assert!(results[1].contains("unknown variant `done`"), "{}", results[1]);
    assert!(plans(&frames).is_empty(), "{frames:#?}");
    // One that is there is told, whoever calls the tool.
    child.send(json!({ "type": "tool_call", "id": "t", "name": "plan", "args": { "steps": [], "note": "all is done" } }));
    let frames = child.until_response("t");
    assert_eq!(
        plans(&frames),
        [&json!({ "type": "plan", "tool_id": "t", "steps": [], "note": "all is done" })]
    );
}

#[test]
fn a_tool_of_that_name_that_was_lent_is_no_plan() {
    let world = world();
    let mut child = Child::start_in(&world, &[], &[("SWB_AGENT_DISABLED_TOOLS", "plan")]);
    let tool = json!({ "name": "plan", "description": "", "input_schema": { "type": "object" } });
    assert_eq!(child.ask(json!({ "type": "lend", "id": "l", "tools": [tool] }))["lent"], 1);
    child.prompt("p", "!plan >look");
    let call = child.until("the call", |frame| frame["type"] == "lent_call").pop().unwrap();
    let result = json!({ "type": "lent_result", "id": "r", "call_id": call["call_id"], "result": "lent" });
    child.send(result);
    let frames = child.until_response("p");
    assert_eq!(results(&frames), ["lent"]);
    assert!(plans(&frames).is_empty(), "{frames:#?}");
}

#[test]
fn a_plan_outlasts_a_compaction() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    child.turn("p", "!plan *look | >fix it | test");
    let summary = child.ask(json!({ "type": "compact", "id": "c" }))["summary"].take();
    let summary = summary.as_str().unwrap();
    assert!(summary.contains("## Plan\n- [x] look\n- [>] fix it\n- [ ] test\n"), "{summary}");
}

#[test]
fn the_plan_of_a_subagent_says_whose_it_is() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let inner = json!({ "name": "reader", "task": "!plan >read\n!say read" });
    let outer =
        json!({ "name": "scout", "task": format!("!plan >look\n!then\n!tool subagent {inner}\n!say seen") });
    let frames = child.turn("p", &format!("!tool subagent {outer}\n!say Good."));
    let told: Vec<_> = plans(&frames).into_iter().map(|plan| (&plan["path"], &plan["agents"])).collect();
    let (path, agents) = ([json!([1]), json!([1, 1])], [json!(["scout"]), json!(["scout", "reader"])]);
    assert_eq!(told, [(&path[0], &agents[0]), (&path[1], &agents[1])]);
    let shown =
        frames.iter().any(|frame| frame["type"] == "subagent_update" && frame["status"] == "planned: look");
    assert!(shown, "{frames:#?}");
}
