//! Programs that are not ours: anything that speaks the protocol is driven, contained and recorded.

use serde_json::json;

use crate::house::House;

/// An agent in a few lines of shell: it answers every prompt with the same words, and aborts when it is told to. What it
/// does not know it refuses, once it was asked to be mute silently.
const MINI: &str = r#"
printf '%s\n' '{"type":"ready","session_id":"mini","model":"mini-1","protocol_version":1}'
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
  case $line in
    *'"type":"prompt"'*deaf*) while :; do sleep 1000; done ;;
    *'"type":"prompt"'*slow*) until [ -e go ]; do sleep 0.02; done; printf '{"type":"response","id":"%s","command":"prompt","ok":true}\n' "$id" ;;
    *'"type":"prompt"'*plans*)
      call='{"type":"message_update","event":{"type":"toolcall_'
      printf '%s\n' "${call}start\",\"tool_id\":\"t\",\"tool_name\":\"plan\"}}"
      printf '%s\n' "${call}input\",\"tool_id\":\"t\",\"input\":{\"steps\":[{\"text\":\"called\",\"status\":\"pending\"}]}}}"
      printf '%s\n' "${call}result\",\"tool_id\":\"t\",\"result\":\"ok\"}}"
      printf '%s\n' '{"type":"plan","tool_id":"t","steps":[{"text":"said","status":"in_progress"}]}'
      printf '%s\n' '{"type":"plan","tool_id":"t","steps":[{"text":" ","status":"pending"}]}' '{"type":"plan","steps":7}'
      printf '{"type":"response","id":"%s","command":"prompt","ok":true}\n' "$id" ;;
    *'"type":"prompt"'*)
      case $line in *mute*) mute=yes ;; esac
      printf '%s\n' 'noise that is no frame' '{"type":"message_update","event":{"type":"text_delta","delta":"from afar"}}'
      printf '%s\n' '{"type":"agent_end","usage":{"input_tokens":3,"output_tokens":2}}'
      printf '{"type":"response","id":"%s","command":"prompt","ok":true}\n' "$id" ;;
    *'"type":"shutdown"'*) exit 0 ;;
    *) [ -n "$mute" ] || printf '{"type":"error","id":"%s","message":"unknown command"}\n' "$id" ;;
  esac
done
"#;

fn house() -> House {
    let command = json!(["bash", "-c", MINI]);
    House::with_settings(&format!("[agents.mini]\ncommand = {command}\n"))
}

#[test]
fn a_program_of_another_make_is_driven_by_configuration() {
    let house = house();
    let taken =
        house.call("agent.run", &json!({ "project_id": house.project, "prompt": "hello", "agent": "mini" }));
    let story = house.follow(taken["run_id"].as_str().unwrap(), taken["after"].as_u64().unwrap());
    assert_eq!((story.text().as_str(), &story.end()["topic"]), ("from afar", &json!("agent.run.completed")));
    let usage = &story.end()["payload"]["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(3), &json!(2)));
    let run = house.call("agent.get", &json!({ "run_id": taken["run_id"] }))["run"].clone();
    assert_eq!((&run["agent"], &run["model"]), (&json!("mini"), &json!("mini-1")));
}

#[test]
fn a_plan_of_another_make_is_what_is_said_as_ours_say_it_and_no_call_of_that_name() {
    let house = house();
    let prompt = "make plans";
    let taken =
        house.call("agent.run", &json!({ "project_id": house.project, "prompt": prompt, "agent": "mini" }));
    let story = house.follow(taken["run_id"].as_str().unwrap(), taken["after"].as_u64().unwrap());
    story.is_whole();
    assert_eq!(story.of_kind("tool").count(), 3, "{:#?}", story.events);
    let plans: Vec<_> = story.of_kind("plan").map(|plan| &plan["steps"]).collect();
    assert_eq!(plans, [&json!([{ "text": "said", "status": "in_progress" }])]);
}

#[test]
fn a_program_that_ignores_a_cancel_is_ended() {
    let house = house();
    let taken = house
        .call("agent.run", &json!({ "project_id": house.project, "prompt": "be deaf", "agent": "mini" }));
    let (run, after) = (taken["run_id"].as_str().unwrap(), taken["after"].as_u64().unwrap());
    testkit::wait("it works", || {
        house.call("agent.get", &json!({ "run_id": run }))["run"]["state"] == "running"
    });
    let (_, child) = house.host(taken["session_id"].as_str().unwrap());
    assert_eq!(house.call("agent.cancel", &json!({ "run_id": run }))["status"], "cancelled");
    assert_eq!(house.follow(run, after).end()["payload"]["cancelled"], true);
    assert!(crate::house::is_gone(child));
}

#[test]
fn a_program_that_knows_no_states_comes_to_its_end_under_the_next_daemon() {
    let house = house();
    let taken = house
        .call("agent.run", &json!({ "project_id": house.project, "prompt": "be slow", "agent": "mini" }));
    let (run, after) = (taken["run_id"].as_str().unwrap(), taken["after"].as_u64().unwrap());
    testkit::wait("it works", || {
        house.call("agent.get", &json!({ "run_id": run }))["run"]["state"] == "running"
    });
    house.kill_daemon();
    house.let_go();
    assert_eq!(house.follow(run, after).end()["topic"], "agent.run.completed");
}

#[test]
fn a_program_that_refuses_to_say_what_it_used_is_not_waited_for() {
    let house = house();
    let took = |prompt: &str| {
        let taken = house
            .call("agent.run", &json!({ "project_id": house.project, "prompt": prompt, "agent": "mini" }));
        let story = house.follow(taken["run_id"].as_str().unwrap(), taken["after"].as_u64().unwrap());
        story.end()["payload"]["duration_ms"].as_u64().unwrap()
    };
    let (refused, mute) = (took("hello"), took("be mute"));
    assert!(refused < mute, "{refused} ms, and {mute} ms with one that does not answer at all");
}
