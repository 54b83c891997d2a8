//! At a terminal: nothing hangs, colours are there, and what others wrote cannot do anything.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::{post, read, root, world};

/// Both ends of a terminal.
fn terminal() -> (File, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    (File::from(ours), theirs)
}

/// What a command shows on a terminal.
fn shown(mut command: Command) -> String {
    let (mut ours, theirs) = terminal();
    command.env("TERM", "xterm").stdout(theirs);
    let mut child = command.spawn().unwrap();
    // The command's own copy of the other end goes with it, or reading would never end.
    drop(command);
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(read @ 1..) = ours.read(&mut chunk) {
        bytes.extend_from_slice(&chunk[..read]);
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_terminal_for_standard_input_is_no_body_to_wait_for() {
    let world = world();
    let root = root(&world);
    let (_ours, theirs) = terminal();
    let mut command = world.command(["bus", "post", "--root", &root, "--project", "p"]);
    assert!(command.stdin(theirs).output().unwrap().status.success());
    assert_eq!(read(&world, &["--project", "p"])[0]["body"], "");
}

#[test]
fn messages_are_coloured_and_their_escapes_do_nothing() {
    let world = world();
    let id = post(
        &world,
        &[
            "--project",
            "p",
            "--type",
            "ERROR\u{1b}[2J",
            "--body",
            "\u{1b}]0;title\u{7}one\u{1b}[1A\rtwo\u{202e}x",
        ],
    );
    let root = root(&world);
    for arguments in [
        &["bus", "read", "--root", &root, "--project", "p"][..],
        &["bus", "thread", &id, "--root", &root, "--project", "p"],
    ] {
        let text = shown(world.command(arguments));
        assert!(text.contains("\u{1b}[2m") && text.contains("(ERROR)"), "{text:?}");
        assert!(text.contains("one") && text.contains("two\u{fffd}x"), "{text:?}");
        let colours = |text: &str| text.matches("\u{1b}[").count();
        let ours = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[36m"];
        assert_eq!(
            ours.iter().map(|colour| text.matches(colour).count()).sum::<usize>(),
            colours(&text),
            "{text:?}"
        );
        assert!(!text.contains('\u{7}') && !text.contains("\u{1b}]"), "{text:?}");
    }
}

#[test]
fn json_stays_one_line_for_each_message() {
    let world = world();
    post(&world, &["--project", "p", "--body", "one"]);
    post(&world, &["--project", "p", "--body", "two"]);
    let root = root(&world);
    let text = shown(world.command(["bus", "read", "--json", "--root", &root, "--project", "p"]));
    assert_eq!(text.lines().filter(|line| line.starts_with('{') && line.ends_with('}')).count(), 2, "{text}");
}
