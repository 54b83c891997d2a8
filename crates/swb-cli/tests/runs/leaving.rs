//! Agents that take their time to go: nobody begins in their place meanwhile, and a daemon that ends them waits for them.

use serde_json::{Value, json};
use testkit::wait;

use crate::house::{House, is_gone};

/// An agent in a few lines of shell that answers, and does not go when it is told to.
const STAYER: &str = r#"
printf '%s\n' '{"type":"ready","session_id":"x","model":"m","protocol_version":1}'
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
  case $line in
    *'"type":"prompt"'*stay*) ;;
    *'"type":"prompt"'*) printf '{"type":"response","id":"%s","command":"prompt","ok":true}\n' "$id" ;;
    *'"type":"shutdown"'*) ;;
    *) printf '{"type":"error","id":"%s","message":"unknown command"}\n' "$id" ;;
  esac
done
sleep 1000
"#;

fn house(settings: &str) -> House {
    let command = json!(["bash", "-c", STAYER]);
    House::with_settings(&format!("{settings}\n[agents.stayer]\ncommand = {command}\n"))
}

fn run(house: &House, place: (&str, &str), prompt: &str) -> Value {
    house.call("agent.run", &json!({ place.0: place.1, "prompt": prompt, "agent": "stayer" }))
}

#[test]
fn down_waits_for_an_agent_whose_session_was_just_ended() {
    let house = house("");
    let taken = run(&house, ("project_id", &house.project), "stay");
    let session = taken["session_id"].as_str().unwrap();
    let (host, child) = house.host(session);
    house.call("session.terminate", &json!({ "session_id": session }));
    house.world.swb(["down", "--yes"]).ok();
    assert!(is_gone(host) && is_gone(child));
}

#[test]
fn the_next_agent_of_a_session_begins_when_the_last_one_is_gone_and_keeps_its_name() {
    let house = house("[runs]\nidle_s = 0\n");
    let taken = run(&house, ("project_id", &house.project), "hello");
    let (session, after) = (taken["session_id"].as_str().unwrap(), taken["after"].as_u64().unwrap());
    let (host, _) = house.host(session);
    house.follow(taken["run_id"].as_str().unwrap(), after);
    // The first is being let go, for seconds: it does not listen.
    let again = run(&house, ("session_id", session), "stay");
    let run_id = again["run_id"].as_str().unwrap();
    wait("the run is under way", || {
        house.call("agent.get", &json!({ "run_id": run_id }))["run"]["state"] == "running"
    });
    wait("the first is gone", || is_gone(host));
    let (next, child) = house.host(session);
    // The next daemon finds it by its name.
    house.kill_daemon();
    assert_eq!(house.host(session), (next, child));
    assert_eq!(house.call("agent.cancel", &json!({ "run_id": run_id }))["status"], "cancelled");
    house.world.swb(["down", "--yes"]).ok();
    assert!(is_gone(next) && is_gone(child));
}
