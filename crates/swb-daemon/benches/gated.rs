//! A command that passes the whole gate (identified, decided, recorded) beside `$/ping`, which passes none of it.
//!
//! Both go over the same connection to a daemon in a process of its own (this program, started again with `--serve`),
//! with the rules everyone starts with, and take turns within one run. The record is written, not synced.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

#[path = "../../swb-bus/benches/figures/mod.rs"]
mod figures;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use figures::{Unit, Wanted};
use swb_daemon::{Config, Daemon, Paths};

const WINDOW: usize = 64;
const PING: &str = "$/ping";
/// With hardly a handler behind it, so that the gate is what is measured.
const COMMAND: &str = "workspace.list";

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--serve") {
        return serve(Path::new(&args[at + 1]));
    }
    let folder = tempfile::Builder::new().prefix("swb-").tempdir_in("/tmp").expect("a temporary folder");
    let mut daemon = start(folder.path());
    let mut client = Client::connect(&Paths::under(folder.path()).control_socket());
    figures::heading("a gated and recorded command over the socket, limit: $/ping, which is neither");
    let (rounds, calls) = if figures::is_quick() { (3, 300) } else { (15, 3_000) };
    let client = std::cell::RefCell::new(&mut client);
    let [gated, ping] = figures::take_turns(
        rounds,
        [&mut || client.borrow_mut().sequential(COMMAND, calls), &mut || {
            client.borrow_mut().sequential(PING, calls)
        }],
    );
    figures::row("sequential p50", Unit::Time, &gated, &ping, Wanted::TimeAtMost(2.5));
    let [gated, ping] = figures::take_turns(
        rounds,
        [&mut || client.borrow_mut().in_flight(COMMAND, calls * 4), &mut || {
            client.borrow_mut().in_flight(PING, calls * 4)
        }],
    );
    figures::row("64 in flight", Unit::PerSecond, &gated, &ping, Wanted::Rate);
    drop(daemon.stdin.take());
    let _ = daemon.wait();
}

/// A daemon until standard input ends.
fn serve(home: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("threads for the daemon");
    let mut config = Config::default();
    config.http.enabled = false;
    let daemon = runtime.block_on(Daemon::start(Paths::under(home), &config)).expect("the daemon starts");
    println!("ready");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    runtime.block_on(daemon.stop("the bench is over", std::future::pending()));
}

fn start(home: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("this program has a name"))
        .arg("--serve")
        .arg(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts again");
    let mut line = String::new();
    let said = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
    assert!(matches!(said, Some(Ok(n)) if n > 0), "the daemon did not start");
    child
}

struct Client {
    stream: UnixStream,
    input: BufReader<UnixStream>,
    line: String,
    asked: u64,
}

impl Client {
    fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("the daemon listens");
        let input = BufReader::new(stream.try_clone().expect("a second descriptor"));
        Client { stream, input, line: String::new(), asked: 0 }
    }

    fn question(&mut self, method: &str) -> String {
        self.asked += 1;
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"{method}\",\"params\":{{}}}}\n", self.asked)
    }

    fn write(&mut self, lines: &str) {
        self.stream.write_all(lines.as_bytes()).expect("the daemon reads");
    }

    fn read(&mut self) {
        self.line.clear();
        self.input.read_line(&mut self.line).expect("the daemon answers");
        assert!(self.line.contains("\"result\""), "{}", self.line);
    }

    /// The median time of a round trip, in nanoseconds.
    fn sequential(&mut self, method: &str, calls: usize) -> f64 {
        let times = (0..calls).map(|_| {
            let started = Instant::now();
            let question = self.question(method);
            self.write(&question);
            self.read();
            started.elapsed().as_secs_f64() * 1e9
        });
        figures::median(times)
    }

    /// Nanoseconds per request with a window of them under way.
    fn in_flight(&mut self, method: &str, calls: usize) -> f64 {
        let started = Instant::now();
        let (mut sent, mut answered) = (0, 0);
        while answered < calls {
            let more = (calls - sent).min(WINDOW - (sent - answered));
            let lines: String = (0..more).map(|_| self.question(method)).collect();
            self.write(&lines);
            sent += more;
            // What has come in one piece is taken together, as a client that keeps up would.
            self.read();
            answered += 1;
            while answered < sent && self.input.buffer().contains(&b'\n') {
                self.read();
                answered += 1;
            }
        }
        started.elapsed().as_secs_f64() * 1e9 / calls as f64
    }
}
