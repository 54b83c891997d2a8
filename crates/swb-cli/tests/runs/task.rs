//! A run that is written to over the bus of its task.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use serde_json::{Value, json};
use swb_journal::message_bus::{BusOptions, BusPath, Draft, MessageBus, ReaderCursor};
use testkit::{PATIENCE, wait};

use crate::house::{House, Story};

/// A run, and the bus of its task.
pub(crate) struct Task<'a> {
    pub(crate) house: &'a House,
    pub(crate) project: String,
    pub(crate) run: String,
    pub(crate) session: String,
    pub(crate) after: u64,
}

impl<'a> Task<'a> {
    /// A run that has begun to speak.
    pub(crate) fn begin(house: &'a House, prompt: &str) -> Self {
        house.hold_back();
        let (run, session, after) = house.run(prompt);
        Task::of(house, run, session, after).at_work()
    }

    pub(crate) fn of(house: &'a House, run: String, session: String, after: u64) -> Self {
        let projects = house.call("project.list", &json!({}));
        let project = projects["projects"][0]["slug"].as_str().unwrap().to_owned();
        Task { house, project, run, session, after }
    }

    pub(crate) fn at_work(self) -> Self {
        wait("it works", || {
            self.house.call("agent.get", &json!({ "run_id": self.run }))["run"]["state"] == "running"
        });
        self
    }

    pub(crate) fn bus(&self) -> MessageBus {
        let root: PathBuf = self.house.world.paths().data.join("projects");
        let path = BusPath::in_root(root, &self.project, Some(&self.session)).unwrap();
        MessageBus::new(path, BusOptions::default())
    }

    /// Writes to the file, as any process may.
    pub(crate) fn append(&self, body: &str, change: impl FnOnce(&mut Draft)) -> String {
        let mut draft = Draft::new("USER", self.project.clone(), body);
        draft.task_id = self.session.clone();
        change(&mut draft);
        self.bus().append(&draft).unwrap().id.as_str().to_owned()
    }

    /// Posts through the daemon, with a token.
    pub(crate) fn post(&self, token: &[&str], message: &Value) -> String {
        let token = self.house.world.swb([&["token"], token].concat()).ok().stdout.trim().to_owned();
        let url = self.house.world.status("http");
        let address = url.as_str().and_then(|url| url.strip_prefix("http://")).unwrap().to_owned();
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = message.to_string();
        let path = format!("/api/projects/{}/tasks/{}/messages", self.project, self.session);
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let (mut reader, mut status, mut rest) = (BufReader::new(stream), String::new(), String::new());
        reader.read_line(&mut status).unwrap();
        reader.read_to_string(&mut rest).unwrap();
        assert!(status.contains("201"), "{status}{rest}");
        let posted: Value = serde_json::from_str(rest.rsplit("\r\n\r\n").next().unwrap()).unwrap();
        posted["msg_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn say(&self, body: &str) -> String {
        self.post(&[], &json!({ "type": "USER", "body": body }))
    }

    /// Lets the run end, and tells it from its beginning.
    pub(crate) fn story(&self) -> Story {
        self.house.let_go();
        self.house.follow(&self.run, self.after)
    }

    /// How far the agent's reader has come.
    pub(crate) fn cursor(&self) -> ReaderCursor {
        self.bus().reader(&format!("agent.{}", self.session)).unwrap()
    }

    pub(crate) fn acked(&self) -> Option<String> {
        self.cursor().acked.map(|mark| mark.msg_id)
    }

    /// Waits for an event about a message.
    pub(crate) fn fact(&self, name: &str, msg_id: &str) -> Value {
        let mut wire = self.house.wire();
        let params = json!({ "topics": ["agent.message.*"], "after": self.after });
        wire.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "events.subscribe", "params": params }));
        loop {
            let line = wire.receive().unwrap_or_else(|| panic!("{name} of {msg_id} is told"));
            let event = &line["params"]["event"];
            if event["topic"] == format!("agent.message.{name}") && event["payload"]["msg_id"] == msg_id {
                return event.clone();
            }
        }
    }

    pub(crate) fn waits(&self, what: &str) -> Option<Value> {
        let view = self.house.call("agent.get", &json!({ "run_id": self.run }));
        view["waits"].as_array().unwrap().iter().find(|wait| wait["for"] == what).cloned()
    }
}

pub(crate) fn inputs(story: &Story) -> Vec<(String, String, String)> {
    story.of_kind("input").map(|it| (text_of(it, "how"), text_of(it, "from"), text_of(it, "text"))).collect()
}

pub(crate) fn text_of(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap().to_owned()
}
