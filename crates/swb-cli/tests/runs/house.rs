//! A daemon with a project in it, and somebody who listens.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::{PATIENCE, Wire, World, wait_for};

/// A call of a tool that ends when the run is let go ([`House::let_go`]).
pub(crate) const TOOL_AT_WORK: &str = r#"!tool bash {"command":"until [ -e go ]; do sleep 0.02; done"}"#;

pub(crate) struct House {
    pub(crate) world: World,
    pub(crate) workspace: String,
    pub(crate) project: String,
    pub(crate) root: PathBuf,
}

/// What was told of one run, from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) events: Vec<Value>,
}

impl House {
    pub(crate) fn new() -> Self {
        Self::with_settings("")
    }

    pub(crate) fn with_settings(settings: &str) -> Self {
        Self::with_rules(settings, "")
    }

    /// The same with rules of the user's own.
    pub(crate) fn with_rules(settings: &str, rules: &str) -> Self {
        let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
        let config = world.paths().config;
        std::fs::create_dir_all(config.join("policy")).unwrap();
        if !rules.is_empty() {
            std::fs::write(config.join("policy/own.cedar"), rules).unwrap();
        }
        std::fs::write(config.join("config.toml"), settings).unwrap();
        world.swb(["up"]).ok();
        let root = world.folder().join("project");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("notes.txt"), "one\ntwo\n").unwrap();
        let mut house = House { world, workspace: String::new(), project: String::new(), root };
        let folder = house.world.folder().display().to_string();
        house.workspace =
            house.text("workspace.create", &json!({ "name": "w", "root_path": folder }), "workspace_id");
        let root = house.root.display().to_string();
        house.project = house.text("project.init", &json!({ "root_path": root }), "project_id");
        house
    }

    /// The result of a command; the test ends if there is none.
    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The whole answer to a command; nothing if the daemon died over it.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> Value {
        let mut params = params.clone();
        if !self.workspace.is_empty() {
            params["_meta"] = json!({ "workspace_id": self.workspace });
        }
        let socket = self.world.paths().control_socket();
        let stream = wait_for("the daemon answers", || UnixStream::connect(&socket).ok());
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut answer = String::new();
        let asked = writeln!(&stream, "{line}").and_then(|()| BufReader::new(&stream).read_line(&mut answer));
        if asked.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock) {
            panic!("{method} was not answered");
        }
        serde_json::from_str(&answer).unwrap_or(Value::Null)
    }

    pub(crate) fn text(&self, method: &str, params: &Value, key: &str) -> String {
        self.call(method, params)[key].as_str().unwrap().to_owned()
    }

    /// A connection; waits for a daemon that is on its way.
    pub(crate) fn wire(&self) -> Wire {
        let socket = self.world.paths().control_socket();
        wait_for("the daemon answers", || Wire::connect(&socket).ok())
    }

    /// Starts a run in a new session: its id, its session, and the place its events begin after.
    pub(crate) fn run(&self, prompt: &str) -> (String, String, u64) {
        let taken = self.call("agent.run", &json!({ "project_id": self.project, "prompt": prompt }));
        let text = |key: &str| taken[key].as_str().unwrap().to_owned();
        (text("run_id"), text("session_id"), taken["after"].as_u64().unwrap())
    }

    /// Follows a run to its end, over as many daemons as it takes.
    pub(crate) fn follow(&self, run: &str, after: u64) -> Story {
        self.follow_and(run, after, |_| {})
    }

    /// The same, and shows each event as it comes.
    pub(crate) fn follow_and(&self, run: &str, after: u64, mut shown: impl FnMut(&Value)) -> Story {
        let (mut events, mut cursor) = (Vec::new(), after);
        loop {
            let mut wire = self.wire();
            let params = json!({ "topics": ["agent.run.*"], "after": cursor });
            wire.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "events.subscribe", "params": params }));
            while let Some(line) = wire.receive() {
                let Some(event) = line.get("params").and_then(|params| params.get("event")) else { continue };
                if event["topic"] == "bus.gap" {
                    // Numbers that a crash has skipped, or events of others.
                    continue;
                }
                cursor = event["seq"].as_u64().unwrap();
                if event["payload"]["run_id"] != run {
                    continue;
                }
                shown(event);
                let topic = event["topic"].as_str().unwrap().to_owned();
                events.push(event.clone());
                if matches!(topic.as_str(), "agent.run.completed" | "agent.run.failed" | "agent.run.dropped")
                {
                    return Story { events };
                }
            }
        }
    }

    /// Lets a run go on that waits with `!until go`.
    pub(crate) fn let_go(&self) {
        std::fs::write(self.root.join("go"), "").unwrap();
    }

    /// Makes the next one wait again.
    pub(crate) fn hold_back(&self) {
        let _there_was_none = std::fs::remove_file(self.root.join("go"));
    }

    /// Runs something to its end.
    pub(crate) fn story(&self, prompt: &str) -> Story {
        let (run, _, after) = self.run(prompt);
        self.follow(&run, after)
    }

    /// The process that is the host of a session, and its child.
    pub(crate) fn host(&self, session: &str) -> (i32, i32) {
        let status = wait_for("the host answers", || self.host_now(session));
        (i32::try_from(status.host_pid).unwrap(), i32::try_from(status.child_pid).unwrap())
    }

    /// What the host of a session says, if there is one just now: one that was killed leaves its socket behind.
    pub(crate) fn host_now(&self, session: &str) -> Option<swb_host::wire::Status> {
        let socket = self.world.paths().hosts().join(session).join("host.sock");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let connected = runtime.block_on(swb_host::HostClient::connect(&socket));
        connected.ok().map(|(_, status)| status)
    }

    /// Kills the daemon and waits for the next.
    pub(crate) fn kill_daemon(&self) {
        let pid = self.world.pid();
        kill(pid);
        wait_for("the next daemon answers", || {
            let status = self.world.swb(["--json", "status"]).json_lines();
            status.first().and_then(|status| status["pid"].as_i64()).filter(|next| *next != i64::from(pid))
        });
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.world.swb(["down", "--yes"]);
    }
}

impl Story {
    pub(crate) fn topics(&self) -> Vec<&str> {
        let mut topics: Vec<&str> =
            self.events.iter().map(|event| event["topic"].as_str().unwrap()).collect();
        topics.dedup();
        topics
    }

    pub(crate) fn progress(&self) -> impl Iterator<Item = &Value> {
        let payloads = self.events.iter().filter(|event| event["topic"] == "agent.run.progress");
        payloads.map(|event| &event["payload"])
    }

    pub(crate) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.progress().filter(move |payload| payload["kind"] == kind)
    }

    /// Everything it has said.
    pub(crate) fn text(&self) -> String {
        self.of_kind("text").map(|payload| payload["delta"].as_str().unwrap()).collect()
    }

    pub(crate) fn end(&self) -> &Value {
        self.events.last().unwrap()
    }

    /// No piece of progress is missing, and none was told twice.
    pub(crate) fn is_whole(&self) {
        let steps: Vec<u64> = self.progress().map(|payload| payload["step"].as_u64().unwrap()).collect();
        let expected: Vec<u64> = (1..=steps.len() as u64).collect();
        assert_eq!(steps, expected);
        let places: Vec<u64> = self.events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
    }
}

pub(crate) fn kill(pid: i32) {
    assert!(kill_if_there(pid), "{pid} is gone already");
}

/// True if there was something to kill.
pub(crate) fn kill_if_there(pid: i32) -> bool {
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).is_ok()
}

pub(crate) fn is_gone(pid: i32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    test_kill_process(Pid::from_raw(pid).unwrap()).is_err() || state.contains(") Z ")
}
