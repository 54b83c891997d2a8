//! Agents without walls: what a killed host leaves behind is found by its mark.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testkit::{World, wait, wait_for};

use crate::house::{House, is_gone, kill};

/// An agent in a few lines of shell that leaves its group and its session behind.
const LEAVER: &str = r#"
printf '%s\n' '{"type":"ready","session_id":"x","model":"m","protocol_version":1}'
while IFS= read -r line; do
  case $line in
    *'"type":"prompt"'*)
      setsid sh -c 'echo $$ > left.pid; exec sleep 1000' < /dev/null > /dev/null 2>&1 &
      env -u SWB_HOST_MARK setsid sh -c 'echo $$ > stranger.pid; exec sleep 1000' < /dev/null > /dev/null 2>&1 & ;;
    *'"type":"shutdown"'*) exit 0 ;;
  esac
done
"#;

fn house() -> House {
    let command = json!(["bash", "-c", LEAVER]);
    House::with_settings(&format!("[agents.leaver]\ncommand = {command}\ncontainment = \"off\"\n"))
}

/// A run that has left a process behind, and one without a mark: the host, and the two.
fn leave(house: &House) -> (String, i32, i32, i32) {
    let params = json!({ "project_id": house.project, "prompt": "go", "agent": "leaver" });
    let taken = house.call("agent.run", &params);
    let pid = |name: &str| {
        wait_for(name, || std::fs::read_to_string(house.root.join(name)).ok()?.trim().parse::<i32>().ok())
    };
    let left = (pid("left.pid"), pid("stranger.pid"));
    let session = taken["session_id"].as_str().unwrap().to_owned();
    let (host, _) = house.host(&session);
    (session, host, left.0, left.1)
}

/// Kills the daemon, its watch and a host, so that none of them sees to what the others leave.
fn kill_all(house: &House, host: i32) {
    let watch = i32::try_from(house.world.status("watch_pid").as_i64().unwrap()).unwrap();
    let daemon = house.world.pid();
    // Held, it does not notice that its watch is gone.
    kill_process(Pid::from_raw(daemon).unwrap(), Signal::STOP).unwrap();
    [watch, daemon, host].into_iter().for_each(kill);
}

#[test]
fn the_next_daemon_ends_what_a_killed_host_has_left_and_nothing_of_others() {
    let (house, other) = (house(), house());
    let (_, host, left, stranger) = leave(&house);
    let (_, others_host, others, others_stranger) = leave(&other);
    kill_all(&house, host);
    kill_all(&other, others_host);
    wait("the hosts are gone", || is_gone(host) && is_gone(others_host));
    house.world.swb(["up"]).ok();
    wait("what was left is gone", || is_gone(left));
    assert!(!is_gone(others), "another home's processes are not ours");
    assert!(!is_gone(stranger), "what has no mark is nobody's");
    other.world.swb(["up"]).ok();
    wait("what was left is gone", || is_gone(others));
    kill(stranger);
    kill(others_stranger);
}

#[test]
fn a_daemon_that_loses_a_host_ends_what_it_has_left() {
    let house = house();
    let (session, host, left, stranger) = leave(&house);
    let runs = house.call("agent.list", &json!({ "session_id": session }));
    let run = runs["runs"][0]["run_id"].as_str().unwrap();
    kill(host);
    let story = house.follow(run, 0);
    assert_eq!(story.end()["payload"]["error"]["details"]["reason"], "AGENT_CRASHED");
    wait("what was left is gone", || is_gone(left));
    kill(stranger);
}

#[test]
fn what_belongs_to_a_host_that_lives_is_left_alone_by_the_next_daemon() {
    let house = house();
    let (_, host, left, stranger) = leave(&house);
    house.kill_daemon();
    assert!(!is_gone(host) && !is_gone(left));
    house.world.swb(["down", "--yes"]).ok();
    assert!(is_gone(host) && is_gone(left) && is_gone(stranger), "a host ends all below it, marked or not");
}

#[test]
fn doctor_says_which_way_holds() {
    let finding = |world: &World, set: &[&str]| {
        let report = world.swb(["doctor", "--json"].iter().chain(set)).json();
        let findings = report["findings"].as_array().unwrap().clone();
        findings.into_iter().find(|finding| finding["what"] == "containment").unwrap()
    };
    let house = House::new();
    let auto = finding(&house.world, &[]);
    // What the agents of this machine really get is what it says.
    let (_, session, after) = house.run("!say hello");
    let run = house.call("agent.list", &json!({ "session_id": session, "ended": true }))["runs"][0].clone();
    house.follow(run["run_id"].as_str().unwrap(), after);
    let run = house.call("agent.get", &json!({ "run_id": run["run_id"] }))["run"].clone();
    let is_contained = run["containment"] == "contained";
    assert_eq!(auto["health"], if is_contained { "good" } else { "warning" }, "{auto} {run}");
    let off = finding(&house.world, &["--set", "runs.containment=off"]);
    assert_eq!(off["health"], "warning");
    assert!(off["detail"].as_str().unwrap().contains("by its mark"), "{off}");
}
