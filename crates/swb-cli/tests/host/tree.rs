//! Nothing a child has started is left, whichever way it ends.

use rustix::process::{Signal, kill_process};
use swb_host::Walls;
use swb_host::wire::{Exit, Request, Stream};

use crate::hosted::{Hosted, Wish, lives, story, until};

/// A grandchild that has left its group, its session and its parent, and says its number.
const RUNAWAY: &str =
    r#"setsid sh -c 'sh -c "echo \$\$ >$0/tmp; mv $0/tmp $0/pid; exec sleep 1000" "$0" &' "$1"; "#;

async fn runaway(hosted: &Hosted) -> u32 {
    hosted.file("pid").await.trim().parse().unwrap()
}

#[test]
fn a_runaway_grandchild_ends_before_the_exit_is_said() {
    story(async {
        let script = format!("{RUNAWAY} while ! test -e $1/pid; do :; done; exit 5");
        let hosted = Hosted::start(&script, Wish::default()).await;
        let pid = runaway(&hosted).await;
        let (mut talk, _) = hosted.connect().await;
        assert_eq!(talk.exit().await, Exit::Code(5));
        assert!(!lives(pid));
    });
}

#[test]
fn a_host_that_is_told_to_end_takes_everything_along() {
    story(async {
        let hosted =
            Hosted::start(&format!("{RUNAWAY} trap '' TERM; while :; do sleep 1; done"), Wish::default())
                .await;
        let pid = runaway(&hosted).await;
        kill_process(hosted.host(), Signal::TERM).unwrap();
        until(|| (!lives(hosted.host_pid)).then_some(())).await;
        assert!(!lives(pid));
        assert!(!hosted.socket.exists());
    });
}

#[test]
fn a_signal_to_all_reaches_a_runaway() {
    story(async {
        let hosted = Hosted::start(&format!("{RUNAWAY} cat"), Wish::default()).await;
        let pid = runaway(&hosted).await;
        let (mut talk, _) = hosted.connect().await;
        talk.ask(Request::Signal { signal: 9, to_all: true }).await;
        assert_eq!(talk.exit().await, Exit::Signal(9));
        assert!(!lives(pid));
    });
}

#[test]
fn a_killed_host_takes_its_cell_along() {
    story(async {
        let wish = Wish { walls: Some(Walls::default()), ..Wish::default() };
        // Numbers inside are not those outside; a name found in /proc is.
        let hosted = Hosted::start("setsid sleep 4242.4242 & cat", wish).await;
        let (mut talk, status) = hosted.connect().await;
        if status.containment != swb_host::wire::Containment::Namespaces {
            return;
        }
        let sleeper = until(|| process_named(&["sleep", "4242.4242"])).await;
        kill_process(hosted.host(), Signal::KILL).unwrap();
        until(|| (!lives(sleeper)).then_some(())).await;
        drop(talk.client.requests);
        assert!(matches!(talk.client.replies.next().await, Ok(None) | Err(_)));
        let _ = std::fs::remove_file(&hosted.socket);
    });
}

#[test]
fn a_killed_host_takes_its_child_along_even_without_a_cell() {
    story(async {
        let hosted =
            Hosted::start("echo $$ >$1/tmp; mv $1/tmp $1/pid; exec sleep 1000", Wish::default()).await;
        let pid = runaway(&hosted).await;
        kill_process(hosted.host(), Signal::KILL).unwrap();
        until(|| (!lives(pid)).then_some(())).await;
        let _ = std::fs::remove_file(&hosted.socket);
    });
}

#[test]
fn a_command_that_is_not_there_is_said_on_its_stderr() {
    story(async {
        for walls in [None, Some(Walls::default())] {
            let hosted = Hosted::run(&["/no/such/program"], Wish { walls, ..Wish::default() }).await;
            let (mut talk, _) = hosted.connect().await;
            let said = talk.read_all(Stream::Stderr, 0, false).await;
            assert!(String::from_utf8_lossy(&said).contains("cannot start /no/such/program"), "{said:?}");
            assert_eq!(talk.exit().await, Exit::Code(125));
        }
    });
}

fn process_named(words: &[&str]) -> Option<u32> {
    let wanted: String = words.iter().map(|word| format!("{word}\0")).collect();
    std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        (std::fs::read_to_string(entry.path().join("cmdline")).ok()? == wanted).then_some(pid)
    })
}

#[test]
fn nobody_from_below_a_host_commands_one() {
    story(async {
        let other = Hosted::start("cat", Wish::default()).await;
        let script = format!(
            "for socket in $1/host.sock {}; do python3 -c '{CONNECT}' $socket; done; setsid -f python3 -c '{CONNECT}' {} ; cat",
            other.socket.display(),
            other.socket.display()
        );
        let hosted = Hosted::start(&script, Wish::default()).await;
        let (mut talk, _) = hosted.connect().await;
        talk.say(Request::Follow { stream: Stream::Stdout, from: 0 }).await;
        let mut said = String::new();
        while said.matches('\n').count() < 3 {
            if let swb_host::wire::Reply::Data { bytes, .. } = talk.hear().await {
                said += std::str::from_utf8(&bytes).unwrap();
            }
        }
        assert_eq!(said, "closed\nclosed\nclosed\n");
    });
}

/// Greets a host and says whether it answers.
const CONNECT: &str = r#"
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    s.sendall(bytes([3, 0, 0, 0, 1, 1, 0]))
    print("answered" if s.recv(10) else "closed", flush=True)
except OSError:
    print("closed", flush=True)
"#;
