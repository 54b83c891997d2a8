//! A bus in a folder of its own, a reader as simple as the format's own description, and child processes.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use swb_journal::message_bus::{BusOptions, BusPath, Draft, Message, MessageBus};

/// Long enough for any machine; only a hang takes as long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("MESSAGE-BUS.md")
    }

    pub(crate) fn bus(&self) -> MessageBus {
        self.bus_with(BusOptions::default())
    }

    pub(crate) fn rotating_bus(&self, limit: u64) -> MessageBus {
        self.bus_with(BusOptions { auto_rotate: Some(limit), ..BusOptions::default() })
    }

    pub(crate) fn bus_with(&self, options: BusOptions) -> MessageBus {
        MessageBus::new(BusPath::new(self.file()).unwrap(), options)
    }

    pub(crate) fn write(&self, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.file(), bytes).unwrap();
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.file()).unwrap()
    }

    pub(crate) fn archives(&self) -> Vec<PathBuf> {
        let mut found: Vec<_> = std::fs::read_dir(self.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().ends_with(".archived"))
            .collect();
        found.sort();
        found
    }
}

pub(crate) fn draft(body: impl Into<Vec<u8>>) -> Draft {
    Draft::new("INFO", "p", body)
}

pub(crate) fn bodies(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.body_text().into_owned()).collect()
}

pub(crate) fn ids(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.id.to_string()).collect()
}

/// A record as the incumbent writes one.
pub(crate) fn foreign(id: &str, body: &str) -> String {
    let end = if body.ends_with('\n') { "" } else { "\n" };
    format!(
        "---\nmsg_id: {id}\nts: 2026-11-15T07:50:00Z\ntype: INFO\nproject_id: p\ntask_id: \"\"\nrun_id: \"\"\n---\n{body}{end}"
    )
}

/// The incumbent's reader, line by line and without any of our shortcuts: ids and raw bodies.
pub(crate) fn incumbent_reads(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    #[derive(serde::Deserialize, Default)]
    #[serde(default)]
    struct Header {
        msg_id: Option<String>,
    }
    enum State {
        Seek,
        Header(Vec<u8>),
        Body(String, Vec<u8>),
    }
    let trim = |body: &[u8]| {
        let body = body.strip_suffix(b"\n").unwrap_or(body);
        body.strip_suffix(b"\r").unwrap_or(body).to_vec()
    };
    let mut state = State::Seek;
    let mut found = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let end = line.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |at| at + 1);
        let delimiter = &line[..end] == b"---";
        state = match (state, delimiter) {
            (State::Seek, true) => State::Header(Vec::new()),
            (State::Seek, false) => State::Seek,
            (State::Header(text), true) => {
                let text = String::from_utf8(text).unwrap_or("[".to_owned());
                match serde_saphyr::from_str::<Header>(&text) {
                    Ok(header) => State::Body(header.msg_id.unwrap_or_default(), Vec::new()),
                    Err(_) => State::Header(Vec::new()),
                }
            }
            (State::Body(id, body), true) => {
                found.push((id, trim(&body)));
                State::Header(Vec::new())
            }
            (State::Header(mut text), false) => {
                text.extend_from_slice(line);
                State::Header(text)
            }
            (State::Body(id, mut body), false) => {
                body.extend_from_slice(line);
                State::Body(id, body)
            }
        };
    }
    if let State::Body(id, body) = state
        && body.ends_with(b"\n")
    {
        found.push((id, trim(&body)));
    }
    found
}

/// Waits until something holds, and names it if it never does.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

/// Runs an ignored test of this binary as a process of its own.
pub(crate) fn child(test: &str, vars: &[(&str, String)]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .envs(vars.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Ids a child said were acknowledged, as it says them.
pub(crate) fn acknowledgements(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| line.split_once("ACK ").map(|(_, id)| id.to_owned()))
}
