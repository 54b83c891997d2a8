//! `swb run --no-daemon`: one prompt to an agent, seen as a script sees it and as a person at a terminal does. What goes
//! through the daemon is in `tests/runs/`.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod cut_short;
mod on_a_terminal;
mod scripted;
mod terminal;

use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;
use testkit::{PATIENCE, Ran, World, wait};

fn world() -> World {
    World::new().with_binary(env!("CARGO_BIN_EXE_swb"))
}

fn run(world: &World, arguments: &[&str]) -> Ran {
    world.swb(["run", "--no-daemon"].iter().chain(arguments))
}

fn sessions(world: &World) -> Vec<Value> {
    world.swb(["sessions", "--json"]).ok().json_lines()
}

/// Returns once no agent of this world lives any more.
fn wait_for_agents_to_end(world: &World) {
    wait("the agent to end", || sessions(world).iter().all(|session| session["live"] == false));
}

/// A run under way, its standard output read as it comes.
struct Running {
    process: Child,
    output: Receiver<Vec<u8>>,
    seen: String,
}

impl Running {
    fn start(world: &World, arguments: &[&str]) -> Self {
        let mut process = world.spawn(["run", "--no-daemon"].iter().chain(arguments));
        let mut stdout = process.stdout.take().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Running { process, output, seen: String::new() }
    }

    #[track_caller]
    fn until(&mut self, text: &str) {
        while !self.seen.contains(text) {
            let Ok(bytes) = self.output.recv_timeout(PATIENCE) else {
                panic!("waited in vain for {text:?} after {:?}", self.seen)
            };
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.process.id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    #[track_caller]
    fn exit_code(&mut self) -> Option<i32> {
        testkit::wait_for("swb run to end", || self.process.try_wait().unwrap()).code()
    }

    fn stderr(&mut self) -> String {
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs with this on standard input.
fn run_with_input(world: &World, arguments: &[&str], input: &[u8]) -> Ran {
    use std::io::Write;
    let mut command = world.command(["run", "--no-daemon"].iter().chain(arguments));
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It may end before it has read everything.
    let _ = process.stdin.take().unwrap().write_all(input);
    let output = process.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A call of bash as a line of a demo script.
fn bash(command: &str) -> String {
    format!("!tool bash {}", serde_json::json!({ "command": command }))
}
