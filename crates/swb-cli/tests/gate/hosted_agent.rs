//! A real agent behind a real host, whose calls a real daemon judges.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use swb_host::wire::{Containment, Reply, Request, Stream};
use swb_host::{HostClient, Limits, Options, Walls, client};
use testkit::{World, wait_for};
use tokio::runtime::Runtime;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A daemon with a project, and a session for an agent in it.
pub(crate) struct Office {
    pub(crate) world: World,
    pub(crate) session: String,
    pub(crate) project: PathBuf,
}

impl Office {
    pub(crate) fn new() -> Self {
        let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
        world.swb(["up"]).ok();
        world.swb(["workspaces", "create", "home"]).ok();
        let project = world.folder().canonicalize().unwrap().join("project");
        std::fs::create_dir(&project).unwrap();
        world.swb(["projects", "init", project.to_str().unwrap()]).ok();
        let session = world.swb(["--json", "sessions", "create", "project", "--agent"]).ok().json();
        let session = session["session_id"].as_str().unwrap().to_owned();
        Office { world, session, project }
    }

    /// The rules of the user, in force when this returns.
    pub(crate) fn rules(&self, text: &str) {
        let folder = self.world.paths().policy();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("test.cedar"), text).unwrap();
        self.world.swb(["restart"]).ok();
    }

    /// The questions there are, once there are so many that wait.
    pub(crate) fn pending(&self, count: usize) -> Vec<Value> {
        wait_for("questions", || {
            let all = self.world.swb(["--json", "approvals"]).json_lines();
            (all.len() == count).then_some(all)
        })
    }

    pub(crate) fn answer(&self, word: &str, approval: &Value) {
        let id = approval["approval_id"].as_str().unwrap();
        self.world.swb(["approvals", word, id, "--reason", "I say so"]).ok();
    }
}

/// The agent.
pub(crate) struct HostedAgent {
    runtime: Runtime,
    host: HostClient,
    said: Vec<u8>,
    written: u64,
    pub(crate) containment: Containment,
}

impl HostedAgent {
    pub(crate) fn start(office: &Office, walls: Option<Walls>, arguments: &[&str]) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let binary = env!("CARGO_BIN_EXE_swb");
        let Office { world, session, project } = office;
        let folder = world.folder().join(session);
        std::fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("host.sock");
        let script = format!("cd {} && exec \"$@\"", project.display());
        let words = [
            "env".to_owned(),
            format!("SWB_HOME={}", world.home().display()),
            format!("SWB_CONTROL_SOCKET={}", world.paths().control_socket().display()),
            format!("SWB_SESSION_ID={session}"),
            "SWB_CORRELATION_ID=run_1".to_owned(),
            "sh".to_owned(),
            "-c".to_owned(),
            script,
            "sh".to_owned(),
            binary.to_owned(),
            "rpc".to_owned(),
            "--model".to_owned(),
            "demo".to_owned(),
        ];
        let command = words.into_iter().chain(arguments.iter().map(|&word| word.to_owned()));
        let options = Options {
            socket: socket.clone(),
            limits: Limits::default(),
            walls,
            folder: None,
            environment: Vec::new(),
            command: command.map(OsString::from).collect(),
        };
        let log = std::fs::File::create(folder.join("host.log")).unwrap();
        let (host, status) = runtime.block_on(async {
            client::start(&options, Path::new(binary), log).await.unwrap();
            let (mut host, status) = HostClient::connect(&socket).await.unwrap();
            host.requests.send(&Request::Follow { stream: Stream::Stdout, from: 0 }).await.unwrap();
            (host, status)
        });
        let containment = status.containment;
        let mut agent = HostedAgent { runtime, host, said: Vec::new(), written: 0, containment };
        let ready = agent.next();
        assert_eq!(ready["type"], "ready", "{ready}");
        agent
    }

    pub(crate) fn send(&mut self, frame: &Value) {
        self.written += 1;
        let bytes = format!("{frame}\n").into_bytes();
        let write = Request::Write { stream: Stream::Stdin, number: self.written, bytes };
        self.runtime.block_on(self.host.requests.send(&write)).unwrap();
    }

    pub(crate) fn prompt(&mut self, message: &str) {
        self.send(&json!({ "type": "prompt", "id": "p", "message": message }));
    }

    /// The next frame.
    pub(crate) fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.said.drain(..=end).collect();
                return serde_json::from_slice(&line).unwrap();
            }
            let replies = &mut self.host.replies;
            let reply = self.runtime.block_on(async { tokio::time::timeout(LONG, replies.next()).await });
            let reply = reply.expect("the agent says something");
            match reply.unwrap().expect("the host is there") {
                Reply::Data { bytes, .. } => self.said.extend(bytes),
                Reply::Exited(exit) => panic!("the agent has ended: {exit:?}"),
                _ => {}
            }
        }
    }

    /// What the tools said until the turn was over.
    pub(crate) fn results(&mut self) -> Vec<String> {
        let mut results = Vec::new();
        loop {
            let frame = self.next();
            if frame["event"]["type"] == "toolcall_result" {
                results.push(frame["event"]["result"].as_str().unwrap().to_owned());
            }
            if frame["type"] == "response" && frame["id"] == "p" {
                return results;
            }
        }
    }

    /// A turn of calls: what each tool said.
    pub(crate) fn turn(&mut self, calls: &[(&str, Value)]) -> Vec<String> {
        let script: Vec<_> = calls.iter().map(|(tool, input)| format!("!tool {tool} {input}")).collect();
        self.prompt(&script.join("\n!then\n"));
        self.results()
    }
}

impl Drop for HostedAgent {
    fn drop(&mut self) {
        // The host goes with its child, once somebody knows how that ended.
        let host = &mut self.host;
        let _ = self.runtime.block_on(async {
            host.requests.send(&Request::Signal { signal: 15, to_all: true }).await?;
            let ended = async {
                loop {
                    match host.replies.next().await? {
                        Some(Reply::Exited(_)) | None => return std::io::Result::Ok(()),
                        Some(_) => {}
                    }
                }
            };
            let _ = tokio::time::timeout(LONG, ended).await;
            host.requests.send(&Request::Release).await
        });
    }
}
