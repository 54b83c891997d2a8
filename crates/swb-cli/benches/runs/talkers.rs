//! A daemon whose agent is the talker, and a subscriber that hears it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{PATIENCE, World};

use crate::talker;

pub(crate) struct Talkers {
    world: World,
    project: String,
    workspace: String,
    commands: BufReader<UnixStream>,
    events: BufReader<UnixStream>,
    line: String,
}

impl Talkers {
    pub(crate) fn start() -> Self {
        let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
        let program = std::env::current_exe().expect("this program");
        let settings = json!([program, talker::TALKER]);
        std::fs::create_dir_all(world.paths().config).expect("a folder");
        let settings = format!("[runs]\nslots = 64\n[agents.talker]\ncommand = {settings}\n");
        std::fs::write(world.paths().config.join("config.toml"), settings).expect("settings");
        world.swb(["up"]).ok();
        let root = world.folder().join("project");
        std::fs::create_dir_all(&root).expect("a folder");
        let connect = || {
            let stream = UnixStream::connect(world.paths().control_socket()).expect("a daemon");
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            BufReader::with_capacity(64 * 1024, stream)
        };
        let (commands, events) = (connect(), connect());
        let (project, workspace, line) = (String::new(), String::new(), String::new());
        let mut talkers = Talkers { world, project, workspace, commands, events, line };
        let folder = talkers.world.folder().to_owned();
        let id = |value: &Value, key: &str| value[key].as_str().expect("an id").to_owned();
        let made = talkers.call("workspace.create", json!({ "name": "w", "root_path": folder }));
        talkers.workspace = id(&made, "workspace_id");
        talkers.project = id(&talkers.call("project.init", json!({ "root_path": root })), "project_id");
        let subscribe = json!({
            "jsonrpc": "2.0", "id": 1, "method": "events.subscribe", "params": { "topics": ["agent.run.*"] },
        });
        writeln!(talkers.events.get_mut(), "{subscribe}").expect("a daemon");
        talkers.hear();
        talkers
    }

    /// Hears so many words in a new session, and looks at each of them.
    pub(crate) fn check(&mut self, words: u32) -> String {
        let taken = self.run(None, &talker::prompt(words, None));
        let mut heard = Heard::default();
        while !heard.over {
            let line = self.hear();
            heard.take(&serde_json::from_str(line).expect("JSON"));
        }
        assert!(heard.text == talker::words(words), "words are missing");
        taken["session_id"].as_str().expect("an id").to_owned()
    }

    /// The same again, without looking at more than what sort of thing each is.
    pub(crate) fn round(&mut self, session: &str, prompt: &str) {
        self.run(Some(session), prompt);
        loop {
            let line = self.hear();
            if !line.contains(r#""kind":"text""#) && line.contains("agent.run.completed") {
                return;
            }
        }
    }

    /// Starts so many runs, and hears them all; how many were whole, and how long the slowest took.
    pub(crate) fn all_at_once(&mut self, runs: u32, words: u32, each_second: u32) -> (u32, Duration) {
        let prompt = talker::prompt(words, Some(each_second));
        let mut heard: HashMap<String, Heard> = HashMap::new();
        for _ in 0..runs {
            let taken = self.run(None, &prompt);
            heard.entry(taken["run_id"].as_str().expect("an id").to_owned()).or_default();
        }
        while heard.values().any(|heard| !heard.over) {
            let event: Value = serde_json::from_str(self.hear()).expect("JSON");
            let run = event["params"]["event"]["payload"]["run_id"].as_str().unwrap_or_default();
            if let Some(heard) = heard.get_mut(run) {
                heard.take(&event);
            }
        }
        let said = talker::words(words);
        let whole = heard.values().filter(|heard| heard.text == said).count();
        let slowest = heard.values().filter_map(Heard::took).max().unwrap_or_default();
        (u32::try_from(whole).expect("a number of runs is small"), slowest)
    }

    fn run(&mut self, session: Option<&str>, prompt: &str) -> Value {
        let mut params = json!({ "project_id": self.project, "prompt": prompt, "agent": "talker" });
        if let Some(session) = session {
            params["session_id"] = session.into();
        }
        self.call("agent.run", params)
    }

    fn call(&mut self, method: &str, mut params: Value) -> Value {
        if !self.workspace.is_empty() {
            params["_meta"] = json!({ "workspace_id": self.workspace });
        }
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.commands.get_mut(), "{line}").expect("a daemon");
        let mut answer = String::new();
        self.commands.read_line(&mut answer).expect("an answer");
        let mut answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].take()
    }

    fn hear(&mut self) -> &str {
        self.line.clear();
        let read = self.events.read_line(&mut self.line).expect("an event");
        assert!(read > 0, "the daemon has ended");
        &self.line
    }
}

impl Drop for Talkers {
    fn drop(&mut self) {
        let _ = self.world.swb(["down", "--yes"]);
    }
}

/// What was heard of one run.
#[derive(Default)]
struct Heard {
    text: String,
    first: Option<Instant>,
    last: Option<Instant>,
    over: bool,
}

impl Heard {
    fn take(&mut self, line: &Value) {
        let event = &line["params"]["event"];
        match event["topic"].as_str().unwrap_or_default() {
            "agent.run.progress" if event["payload"]["kind"] == "text" => {
                self.text += event["payload"]["delta"].as_str().expect("words");
                let now = Instant::now();
                self.first.get_or_insert(now);
                self.last = Some(now);
            }
            "agent.run.completed" => self.over = true,
            "agent.run.failed" | "agent.run.dropped" | "bus.gap" => panic!("{line}"),
            _ => {}
        }
    }

    fn took(&self) -> Option<Duration> {
        Some(self.last?.duration_since(self.first?))
    }
}
