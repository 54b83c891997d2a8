//! What goes in, what comes out, and what is kept.

use swb_host::Limits;
use swb_host::wire::{Exit, Reply, Request, Stream};

use crate::hosted::{Hosted, Wish, lives, story, until};

#[test]
fn what_a_child_said_is_read_from_any_offset_by_anybody() {
    story(async {
        let hosted = Hosted::start("echo hello; echo oops >&2; exit 3", Wish::default()).await;
        for from in [0u64, 2, 6] {
            let (mut talk, _) = hosted.connect().await;
            assert_eq!(
                talk.read_all(Stream::Stdout, from, false).await,
                b"hello\n"[usize::try_from(from).unwrap()..]
            );
            assert_eq!(talk.read_all(Stream::Stderr, 0, false).await, b"oops\n");
        }
        let (mut talk, _) = hosted.connect().await;
        assert_eq!(talk.exit().await, Exit::Code(3));
    });
}

#[test]
fn a_write_that_is_repeated_after_a_lost_connection_arrives_once() {
    story(async {
        let hosted = Hosted::start("cat", Wish::default()).await;
        let (mut talk, _) = hosted.connect().await;
        talk.say(Request::Write { stream: Stream::Stdin, number: 1, bytes: b"one ".to_vec() }).await;
        drop(talk);
        let (mut talk, _) = hosted.connect().await;
        let taken = Reply::Taken { stream: Stream::Stdin, number: 1 };
        assert_eq!(talk.write(Stream::Stdin, 1, b"one ").await, taken);
        assert!(matches!(talk.write(Stream::Stdin, 3, b"three").await, Reply::Refused { .. }));
        talk.write(Stream::Stdin, 2, b"two").await;
        talk.ask(Request::Close { stream: Stream::Stdin }).await;
        assert_eq!(talk.read_all(Stream::Stdout, 0, false).await, b"one two");
        assert_eq!(talk.exit().await, Exit::Code(0));
    });
}

#[test]
fn at_the_cap_the_child_waits_and_nothing_is_lost() {
    const BYTES: usize = 3_000_000;
    story(async {
        let limits = Limits { ring: 10_000, cap: 300_000 };
        let script = format!("head -c {BYTES} /dev/zero | tr '\\0' 'x'; echo end");
        let hosted = Hosted::start(&script, Wish { limits, ..Wish::default() }).await;
        let (mut talk, _) = hosted.connect().await;
        loop {
            let out = talk.status().await.out;
            let stdout = out.iter().find(|out| out.stream == Stream::Stdout).unwrap();
            assert!(stdout.end <= limits.cap);
            if stdout.full {
                break;
            }
        }
        let all = talk.read_all(Stream::Stdout, 0, true).await;
        assert_eq!(all.len(), BYTES + 4);
        assert!(all.ends_with(b"xend\n"));
        assert_eq!(talk.exit().await, Exit::Code(0));
        let (mut late, _) = hosted.connect().await;
        late.say(Request::Follow { stream: Stream::Stdout, from: 0 }).await;
        let gone = Reply::Gap { stream: Stream::Stdout, from: 0, to: BYTES as u64 + 4 };
        assert!([late.hear().await, late.hear().await, late.hear().await].contains(&gone));
    });
}

#[test]
fn the_control_channel_goes_both_ways_and_is_not_stdout() {
    story(async {
        let script = r#"read word <&$SWB_CONTROL_FD; echo "heard $word" >&$SWB_CONTROL_FD"#;
        let hosted = Hosted::start(script, Wish::default()).await;
        let (mut talk, _) = hosted.connect().await;
        talk.write(Stream::Control, 1, b"you\n").await;
        assert_eq!(talk.read_all(Stream::Control, 0, false).await, b"heard you\n");
        assert_eq!(talk.read_all(Stream::Stdout, 0, false).await, b"");
    });
}

#[test]
fn an_exit_status_is_kept_until_it_was_read() {
    story(async {
        let hosted = Hosted::start("read line", Wish::default()).await;
        let (mut talk, _) = hosted.connect().await;
        assert!(matches!(talk.ask(Request::Release).await, Reply::Refused { .. }));
        talk.ask(Request::Signal { signal: 15, to_all: false }).await;
        assert_eq!(talk.exit().await, Exit::Signal(15));
        drop(talk);
        let (mut talk, status) = hosted.connect().await;
        assert_eq!(status.exit, Some(Exit::Signal(15)));
        assert!(matches!(talk.ask(Request::Release).await, Reply::Done { .. }));
        until(|| (!lives(hosted.host_pid) && !hosted.socket.exists()).then_some(())).await;
    });
}

#[test]
fn a_stranger_s_bytes_cost_only_the_connection() {
    use std::io::{Read, Write};
    story(async {
        let hosted = Hosted::start("cat", Wish::default()).await;
        let mut raw = std::os::unix::net::UnixStream::connect(&hosted.socket).unwrap();
        raw.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(raw.read(&mut [0; 64]).unwrap_or(0), 0);
        let (mut talk, _) = hosted.connect().await;
        assert_eq!(talk.status().await.exit, None);
    });
}

#[test]
fn a_host_with_a_quiet_child_has_hardly_any_memory_of_its_own() {
    story(async {
        let hosted = Hosted::start("cat", Wish::default()).await;
        let status = std::fs::read_to_string(format!("/proc/{}/status", hosted.host_pid)).unwrap();
        let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        let own: u64 = own.trim().trim_end_matches("kB").trim().parse().unwrap();
        assert!(own < 700, "{own} kB that no other process shares");
    });
}
