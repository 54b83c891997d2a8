//! Words of a model on their way through `swb rpc`, beside a program that only reads SSE lines and writes frames.
//!
//! Both are processes that a parent drives over pipes, and both are fed by the same peer on loopback, which has the whole
//! answer ready. The clock runs from the prompt to the response.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod copier;
#[path = "../../../swb-bus/benches/figures/mod.rs"]
mod figures;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use figures::{Unit, Wanted, heading, is_quick, row, take_turns};
use testkit::World;
use testkit::peer::{Peer, Reply, openai};

const DELTAS: u32 = 10_000;

fn main() {
    if std::env::args().any(|arg| arg == copier::COPIER) {
        return copier::run();
    }
    heading("agent");
    let rounds = if is_quick() { 2 } else { 15 };
    let peer = Peer::start();
    let answer = answer();
    let world = World::new()
        .with_binary(env!("CARGO_BIN_EXE_swb"))
        .with_env("LOCAL_ENDPOINT", &format!("{}/v1", peer.url()));
    let mut ours = Driven::start(world.command(["rpc", "--model", "local/bench"]));
    ours.read_line();
    let mut bare = Driven::start(copier::command(&peer.url()));
    let round = |driven: &mut Driven, begin: &str| {
        peer.reply(Reply::opening().bytes(answer.clone()).end());
        let begun = Instant::now();
        driven.say(begin);
        let frames = driven.count_until_response();
        let nanos = begun.elapsed().as_nanos();
        assert!(frames >= DELTAS, "{frames} frames");
        #[expect(clippy::cast_precision_loss, reason = "a round takes less than 2^52 ns")]
        let nanos = nanos as f64;
        nanos / f64::from(DELTAS)
    };
    let prompt = r#"{"type":"prompt","id":"p","message":"go"}"#;
    let mut our_round = || {
        let nanos = round(&mut ours, prompt);
        // The conversation does not grow from round to round.
        ours.say(r#"{"type":"new_session","id":"n"}"#);
        ours.count_until_response();
        nanos
    };
    let mut bare_round = || round(&mut bare, prompt);
    let [our_samples, bare_samples] = take_turns(rounds, [&mut our_round, &mut bare_round]);
    row(
        "swb rpc: 10,000 text deltas vs a copier of SSE lines",
        Unit::PerSecond,
        &our_samples,
        &bare_samples,
        Wanted::RateAtLeast(0.5),
    );
}

/// The frames of a whole answer, word by word.
fn answer() -> Vec<u8> {
    let mut frames = String::new();
    for at in 0..DELTAS {
        frames.push_str(&openai::text(&format!(" word{at}")));
    }
    frames.push_str(&openai::finish("stop"));
    frames.push_str(&openai::usage(10, 0, u64::from(DELTAS)));
    frames.push_str(openai::DONE);
    frames.into_bytes()
}

/// A child that is driven over pipes.
struct Driven {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Driven {
    fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the child can be run");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::with_capacity(64 * 1024, child.stdout.take().expect("a pipe"));
        Driven { child, stdin, stdout, line: Vec::new() }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("the child takes what is said");
    }

    fn read_line(&mut self) -> &[u8] {
        self.line.clear();
        let read = self.stdout.read_until(b'\n', &mut self.line).expect("the child writes");
        assert!(read > 0, "the child has ended");
        &self.line
    }

    /// How many frames there are up to the response, this one included.
    fn count_until_response(&mut self) -> u32 {
        (1..).find(|_| self.read_line().starts_with(br#"{"type":"response""#)).expect("it counts for long")
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
