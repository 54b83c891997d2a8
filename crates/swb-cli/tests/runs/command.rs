//! `swb run` through the daemon, as a person at a terminal and as a script sees it.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{Ran, World, wait, wait_for};

use crate::house::kill;
use crate::terminal::Terminal;

/// A machine on which nothing was started yet, and a folder on it.
struct Bare {
    world: World,
    folder: PathBuf,
}

impl Bare {
    fn new() -> Self {
        let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
        let folder = world.folder().join("somewhere");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        std::fs::create_dir(folder.join(".git")).unwrap();
        std::fs::write(folder.join("notes.txt"), "one\ntwo\n").unwrap();
        Bare { world, folder }
    }

    fn swb(&self, arguments: &[&str]) -> Ran {
        self.swb_in("", arguments)
    }

    fn swb_in(&self, below: &str, arguments: &[&str]) -> Ran {
        let mut command = self.world.command(arguments);
        let output = command.current_dir(self.folder.join(below)).stdin(Stdio::null()).output().unwrap();
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn terminal(&self, arguments: &[&str]) -> Terminal {
        Terminal::open(&self.world, &self.folder, arguments)
    }

    fn call(&self, method: &str, params: &Value) -> Value {
        self.world.swb(["call", method, &params.to_string()]).ok().json()
    }

    fn runs(&self) -> Vec<Value> {
        self.call("agent.list", &json!({ "ended": true }))["runs"].as_array().unwrap().clone()
    }

    fn last_state(&self) -> String {
        self.runs().last().unwrap()["state"].as_str().unwrap().to_owned()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.world.swb(["down", "--yes"]);
    }
}

#[test]
fn the_first_run_starts_the_daemon_and_takes_the_folder_in() {
    let bare = Bare::new();
    let ran = bare
        .swb_in("sub", &["run", "!think hm\n!tool read {\"path\":\"notes.txt\"}\n!then\n!say **Two** lines"]);
    assert_eq!(ran.ok().stdout, "**Two** lines\n");
    let again = bare.swb(&["run", "!say again"]).ok();
    assert_eq!((again.stdout.as_str(), again.stderr.as_str()), ("again\n", ""));
    let projects = bare.call("project.list", &json!({}))["projects"].as_array().unwrap().clone();
    let root = bare.folder.canonicalize().unwrap();
    assert_eq!((projects.len(), projects[0]["root_path"].as_str()), (1, root.to_str()));
    assert_eq!(bare.call("workspace.list", &json!({}))["workspaces"].as_array().unwrap().len(), 1);
    assert_eq!(bare.runs().len(), 2);
}

#[test]
fn two_at_once_in_a_new_folder_find_the_same_project() {
    let bare = Bare::new();
    bare.swb(&["up"]).ok();
    let start = || {
        let mut command = bare.world.command(["run", "!say hi"]);
        command.current_dir(&bare.folder).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let both = [start(), start(), start()];
    for process in both {
        let output = process.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "hi\n");
    }
    assert_eq!(bare.call("project.list", &json!({}))["projects"].as_array().unwrap().len(), 1);
}

#[test]
fn a_session_goes_on_by_its_id_or_as_the_latest_of_the_project() {
    let bare = Bare::new();
    let none = bare.swb(&["run", "--continue", "hello"]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("no session of this project"), "{}", none.stderr);
    bare.swb(&["run", "!say one"]).ok();
    let id = bare.runs()[0]["session_id"].as_str().unwrap().to_owned();
    bare.swb_in("sub", &["run", "--continue", "!say two"]).ok();
    bare.swb(&["run", &format!("--continue={}", &id[id.len() - 8..]), "!say three"]).ok();
    let sessions: Vec<String> =
        bare.runs().iter().map(|run| run["session_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(sessions, [id.as_str(); 3]);
    bare.swb(&["run", "--no-daemon", "!say alone"]).ok();
    let alone = bare.swb(&["sessions", "--json"]).ok().json_lines();
    let alone = alone.iter().filter_map(|session| session["id"].as_str()).find(|other| *other != id).unwrap();
    let refused = bare.swb(&["run", &format!("--continue={alone}"), "!say x"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--no-daemon"), "{}", refused.stderr);
}

#[test]
fn without_a_terminal_what_needs_approval_is_denied_and_the_exit_code_says_so() {
    let bare = Bare::new();
    let ran = bare.swb(&["run", "!ask rm -f notes.txt\n!then\n!say went on"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(9), "went on\n"));
    assert!(ran.stderr.contains("nobody was there to ask"), "{}", ran.stderr);
    assert!(bare.folder.join("notes.txt").exists());
    let failed = bare.swb(&["run", "!ask rm -f notes.txt\n!then\n!fail no luck"]);
    assert_eq!(failed.code, Some(7), "a turn that fails says that first");
}

#[test]
fn events_are_printed_as_they_are() {
    let bare = Bare::new();
    let ran = bare.swb(&["run", "--json", "!say hi\n!ask rm -f x"]);
    let events = ran.json_lines();
    let topics: Vec<&str> = events.iter().map(|event| event["topic"].as_str().unwrap()).collect();
    // The agent asks the daemon directly: what it says meanwhile may come before the question or after it.
    let (progress, rest): (Vec<&str>, Vec<&str>) =
        topics.into_iter().partition(|topic| *topic == "agent.run.progress");
    assert_eq!(rest, ["agent.run.started", "approval.requested", "approval.resolved", "agent.run.completed"]);
    let words: String = events.iter().filter_map(|event| event["payload"]["delta"].as_str()).collect();
    assert!(words.starts_with("hi") && progress.len() > 2, "{words:?} in {progress:?}");
    assert_eq!(ran.code, Some(9));
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
}

#[test]
fn detached_it_prints_the_session_and_the_run_waits_for_its_approval() {
    let bare = Bare::new();
    let ran = bare.swb(&["run", "--detach", "!ask rm -f notes.txt"]).ok();
    let session = ran.stdout.trim().to_owned();
    let asked = wait_for("the question", || {
        bare.call("approval.list", &json!({ "status": "pending" }))["approvals"].as_array()?.first().cloned()
    });
    assert_eq!(asked["session_id"], session.as_str());
    bare.world.swb(["approvals", "approve", asked["approval_id"].as_str().unwrap()]).ok();
    wait("the run to end", || bare.last_state() == "completed");
    assert!(!bare.folder.join("notes.txt").exists());
}

#[test]
fn what_only_a_child_of_ours_can_do_is_said() {
    let bare = Bare::new();
    for option in [&["--mode", "full"][..], &["--attach", "notes.txt"], &["--system", "be brief"]] {
        let ran = bare.swb(&[&["run"], option, &["hi"]].concat());
        assert_eq!(ran.code, Some(2), "{option:?}");
        assert!(ran.stderr.contains(option[0]) && ran.stderr.contains("--no-daemon"), "{}", ran.stderr);
    }
    bare.swb(&["up"]).ok();
    let ran = bare.swb(&["run", "--set", "log.level=debug", "hi"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("swb restart"), "{}", ran.stderr);
    let unknown = bare.swb(&["run", "--agent", "nobody", "hi"]);
    assert!(unknown.code == Some(5) && unknown.stderr.contains("[agents.NAME]"), "{}", unknown.stderr);
    assert!(bare.runs().is_empty());
}

#[test]
fn a_permission_is_given_refused_or_given_for_the_session() {
    let bare = Bare::new();
    for (key, made) in [("n", false), ("y", true)] {
        let mut terminal = bare.terminal(&["run", "!ask rm -f x && touch made"]);
        terminal.until("[a] allow for this session");
        terminal.press("d");
        terminal.until("agents-run-when-approved");
        terminal.press(key);
        assert_eq!(terminal.exit_code(), Some(0), "{}", terminal.text());
        assert_eq!(bare.folder.join("made").exists(), made, "{key}");
        assert!(terminal.echoes());
    }
    let script = "!ask rm -f x; touch one\n!then\n!ask rm -f x; touch one";
    let mut terminal = bare.terminal(&["run", script]);
    terminal.until("May bash do this?");
    terminal.press("a");
    assert_eq!(terminal.exit_code(), Some(0), "{}", terminal.text());
    assert!(bare.folder.join("one").exists());
    let asked = bare.call("approval.list", &json!({}))["approvals"].as_array().unwrap().len();
    assert_eq!(asked, 3, "the like was not asked again");
}

#[test]
fn somebody_else_may_answer_and_the_question_goes_away() {
    let bare = Bare::new();
    let mut terminal = bare.terminal(&["run", "!ask rm -f notes.txt\n!then\n!say went on"]);
    terminal.until("May bash do this?");
    let asked = bare.call("approval.list", &json!({ "status": "pending" }));
    let id = asked["approvals"][0]["approval_id"].as_str().unwrap();
    bare.world.swb(["approvals", "approve", id]).ok();
    assert_eq!(terminal.exit_code(), Some(0));
    terminal.until("the question is closed: approved by");
    assert!(!bare.folder.join("notes.txt").exists());
}

#[test]
fn ctrl_c_cancels_and_twice_leaves_the_run_at_work() {
    let bare = Bare::new();
    let mut terminal = bare.terminal(&["run", "!say begun, and more\n!stall"]);
    terminal.until("begun");
    terminal.press("\u{3}");
    assert_eq!(terminal.exit_code(), Some(130));
    terminal.until("■ aborted");
    assert_eq!(bare.last_state(), "cancelled");

    let mut terminal = bare.terminal(&["run", "!say begun, and more\n!stall"]);
    terminal.until("begun");
    terminal.press("\u{3}");
    terminal.until("leaves it at work");
    terminal.press("\u{3}");
    assert_eq!(terminal.exit_code(), Some(130));
    terminal.until("the run goes on");
    assert!(terminal.echoes());
    assert_eq!(bare.last_state(), "running");

    let mut terminal = bare.terminal(&["run", "!say begun, and more\n!stall"]);
    terminal.until("begun");
    terminal.hang_up();
    assert_eq!(terminal.exit_code(), Some(129));
    assert_eq!(bare.last_state(), "running", "as one leaves a window");
}

#[test]
fn a_script_that_goes_takes_its_run_along() {
    let bare = Bare::new();
    let mut command = bare.world.command(["run", "!say one\\n\\n\n!say two \n!stall"]);
    let mut process =
        command.current_dir(&bare.folder).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "one\n");
    let status = wait_for("swb run to end", || process.try_wait().unwrap());
    assert_eq!(status.code(), Some(0), "as with any program in front of `head`");
    wait("the run to end", || bare.last_state() == "cancelled");
}

#[test]
fn a_daemon_that_dies_in_the_middle_costs_nothing_of_the_answer() {
    let bare = Bare::new();
    bare.swb(&["up"]).ok();
    let words: String = (0..40).map(|at| format!("!say word{at};\n!pause 30\n")).collect();
    let mut command = bare.world.command(["run", &words]);
    let mut process =
        command.current_dir(&bare.folder).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = process.stdout.take().unwrap();
    let (mut seen, mut byte) = (String::new(), [0; 1]);
    while !seen.contains("word3;") {
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "{seen}");
        seen.push(char::from(byte[0]));
    }
    kill(bare.world.pid());
    stdout.read_to_string(&mut seen).unwrap();
    let expected: String = (0..40).map(|at| format!("word{at};")).collect();
    assert_eq!(seen.trim_end(), expected.trim_end());
    assert_eq!(wait_for("swb run to end", || process.try_wait().unwrap()).code(), Some(0));
}

#[test]
fn the_tour_shows_everything_with_somebody_there_and_without() {
    let bare = Bare::new();
    let ran = bare.swb(&["run", "show me around"]);
    assert_eq!(ran.code, Some(9), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("That was denied") && ran.stdout.contains("What to try next"),
        "{}",
        ran.stdout
    );
    let mut terminal = bare.terminal(&["run", "show me around"]);
    terminal.until("May bash do this?");
    terminal.press("y");
    assert_eq!(terminal.exit_code(), Some(0), "{}", terminal.text());
    let text = terminal.text();
    for part in [
        "Somebody is new here",
        "● read  notes.txt",
        "hello from an agent",
        "You agreed",
        "● bus_post",
        "◆ ",
        "ANTHROPIC_API_KEY",
        "✓ done",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!bare.folder.join(".swb-tour").exists());
    let session = bare.runs().last().unwrap()["session_id"].as_str().unwrap().to_owned();
    assert!(bare.swb(&["logs", &session]).ok().stdout.contains("approved by"));
}
