//! A parent for tests: starts the agent, sends lines, reads frames.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child as Process, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{PATIENCE, World, wait_for};

pub(crate) fn world() -> World {
    World::new().with_binary(env!("CARGO_BIN_EXE_swb"))
}

/// A running agent.
pub(crate) struct Child {
    pub(crate) process: Process,
    stdin: Option<ChildStdin>,
    frames: Receiver<Value>,
    pub(crate) session_id: String,
    /// How long to wait for a frame.
    pub(crate) patience: Duration,
}

impl Child {
    /// Starts it and takes its `ready`.
    #[track_caller]
    pub(crate) fn start(world: &World, arguments: &[&str]) -> Self {
        Self::start_in(world, arguments, &[])
    }

    /// The same, with more in its environment.
    #[track_caller]
    pub(crate) fn start_in(world: &World, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = Self::from_process(spawn_in(world, arguments, environment));
        let ready = child.next();
        assert_eq!(ready["type"], "ready", "{ready}");
        child.session_id = ready["session_id"].as_str().unwrap().to_owned();
        child
    }

    /// Starts it the way the command says and takes its `ready`.
    #[track_caller]
    pub(crate) fn start_with(mut command: std::process::Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Self::from_process(command.spawn().expect("the binary can be run"));
        let ready = child.next();
        assert_eq!(ready["type"], "ready", "{ready}");
        child
    }

    fn from_process(mut process: Process) -> Self {
        let stdin = process.stdin.take();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let (sender, frames) = channel();
        std::thread::spawn(move || {
            for line in stdout.split(b'\n').map_while(Result::ok) {
                assert!(line.is_ascii(), "frames are ASCII");
                let frame = serde_json::from_slice(&line);
                let frame =
                    frame.unwrap_or_else(|_| json!({ "not a frame": String::from_utf8_lossy(&line) }));
                if sender.send(frame).is_err() {
                    return;
                }
            }
        });
        Child { process, stdin, frames, session_id: String::new(), patience: PATIENCE }
    }

    #[track_caller]
    pub(crate) fn send(&mut self, frame: Value) {
        self.send_bytes(format!("{frame}\n").as_bytes());
    }

    #[track_caller]
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).expect("the child takes what is sent");
    }

    #[track_caller]
    pub(crate) fn prompt(&mut self, id: &str, message: &str) {
        self.send(json!({ "type": "prompt", "id": id, "message": message }));
    }

    /// The next frame.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Value {
        self.frames.recv_timeout(self.patience).expect("another frame comes")
    }

    /// All frames up to the first that fits, this one included.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let Ok(frame) = self.frames.recv_timeout(self.patience) else {
                panic!("waited in vain for {what} after {frames:#?}");
            };
            assert!(frame.get("not a frame").is_none(), "{frame}");
            frames.push(frame);
            if fits(&frames[frames.len() - 1]) {
                return frames;
            }
        }
    }

    /// All frames up to the response with this id.
    #[track_caller]
    pub(crate) fn until_response(&mut self, id: &str) -> Vec<Value> {
        self.until(&format!("the response {id}"), |frame| frame["type"] == "response" && frame["id"] == id)
    }

    /// Sends a command and returns its response or error, passing over what comes before.
    #[track_caller]
    pub(crate) fn ask(&mut self, frame: Value) -> Value {
        let id = frame["id"].clone();
        self.send(frame);
        self.until("an answer", |frame| frame["id"] == id).pop().unwrap()
    }

    /// A whole turn.
    #[track_caller]
    pub(crate) fn turn(&mut self, id: &str, message: &str) -> Vec<Value> {
        self.prompt(id, message);
        self.until_response(id)
    }

    #[track_caller]
    pub(crate) fn state(&mut self, field: &str) -> Value {
        self.ask(json!({ "type": "get_state", "id": "state" }))[field].take()
    }

    #[track_caller]
    pub(crate) fn messages(&mut self) -> Vec<Value> {
        let mut response = self.ask(json!({ "type": "get_messages", "id": "messages" }));
        serde_json::from_value(response["messages"].take()).unwrap()
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(pid(&self.process), signal).expect("the child is there");
    }

    /// Its exit code, once it has ended; `None` if a signal ended it.
    #[track_caller]
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        exit_code(&mut self.process)
    }

    /// Whatever frames are left after its end.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        self.frames.iter().collect()
    }

    pub(crate) fn stderr(&mut self) -> String {
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts it with three pipes and nothing else.
#[track_caller]
pub(crate) fn spawn(world: &World, arguments: &[&str]) -> Process {
    spawn_in(world, arguments, &[])
}

#[track_caller]
pub(crate) fn spawn_in(world: &World, arguments: &[&str], environment: &[(&str, &str)]) -> Process {
    let mut command = world.command(["rpc"].iter().chain(arguments));
    command.envs(environment.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary can be run")
}

pub(crate) fn pid(process: &Process) -> Pid {
    Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap()
}

#[track_caller]
pub(crate) fn exit_code(process: &mut Process) -> Option<i32> {
    wait_for("the child to end", || process.try_wait().unwrap()).code()
}

pub(crate) fn is_alive(pid: &str) -> bool {
    // A zombie that nobody reaps yet is not alive.
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z "))
}

/// A call of bash as a line of a demo script.
pub(crate) fn bash(command: &str) -> String {
    format!("!tool bash {}", json!({ "command": command }))
}

/// The kinds of frames, streamed pieces by their own.
pub(crate) fn kinds(frames: &[Value]) -> Vec<&str> {
    frames
        .iter()
        .map(|frame| frame["event"]["type"].as_str().or(frame["type"].as_str()).unwrap_or("?"))
        .collect()
}

/// The text that was streamed.
pub(crate) fn text(frames: &[Value]) -> String {
    frames
        .iter()
        .filter(|frame| frame["event"]["type"] == "text_delta")
        .filter_map(|frame| frame["event"]["delta"].as_str())
        .collect()
}

/// What tools returned, as it was streamed.
pub(crate) fn results(frames: &[Value]) -> Vec<&str> {
    frames
        .iter()
        .filter(|frame| frame["event"]["type"] == "toolcall_result")
        .filter_map(|frame| frame["event"]["result"].as_str())
        .collect()
}
