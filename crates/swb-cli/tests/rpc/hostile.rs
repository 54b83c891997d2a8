//! Tools among things that are not what they seem: pipes, devices, holes, loops, floods, names that are no text.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};

use serde_json::json;
use testkit::wait;

use crate::child::{Child, bash, world};
use crate::tools::{file, refusal, result};

#[test]
fn nothing_is_read_that_would_never_end() {
    let world = world();
    let made = std::process::Command::new("mkfifo").arg(world.folder().join("pipe")).status().unwrap();
    assert!(made.success());
    fs::File::create(world.folder().join("sparse")).unwrap().set_len(10 << 30).unwrap();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    for (path, reason) in [
        ("pipe", "it is a pipe, not a regular file"),
        ("/dev/zero", "it is a device, not a regular file"),
        ("sparse", "is not a text file"),
        (".", "it is a folder, not a regular file"),
        ("nowhere", "No such file"),
    ] {
        let error = refusal(&mut child, "read", json!({ "path": path }));
        assert!(error.contains(reason), "{path}: {error}");
    }
    for path in ["pipe", "/dev/zero"] {
        let error = refusal(&mut child, "edit", json!({ "path": path, "old_text": "a", "new_text": "b" }));
        assert!(error.contains("not a regular file"), "{error}");
        assert!(
            refusal(&mut child, "write", json!({ "path": path, "content": "" }))
                .contains("not a regular file")
        );
        let error = refusal(&mut child, "grep", json!({ "path": path, "pattern": "x" }));
        assert!(error.contains("neither a folder nor a file"), "{error}");
    }
    assert_eq!(result(&mut child, "grep", json!({ "pattern": "in no file" })), "[nothing matches]\n");
}

#[test]
fn a_loop_of_links_ends_and_a_link_is_shown_as_one() {
    let world = world();
    file(&world, "w/a.txt", "needle\n");
    symlink(".", world.folder().join("w/here")).unwrap();
    symlink("circle", world.folder().join("w/circle")).unwrap();
    let mut child = Child::start(&world, &[]);
    assert_eq!(result(&mut child, "grep", json!({ "path": "w", "pattern": "needle" })), "w/a.txt:1:needle\n");
    assert_eq!(result(&mut child, "find", json!({ "path": "w", "pattern": "*.txt" })), "w/a.txt\n");
    assert_eq!(result(&mut child, "ls", json!({ "path": "w" })), "a.txt\ncircle -> circle\nhere -> .\n");
    assert!(refusal(&mut child, "read", json!({ "path": "w/circle" })).contains("symbolic link"));
    assert!(
        refusal(&mut child, "write", json!({ "path": "w/circle", "content": "" })).contains("regular file")
    );
}

#[test]
fn a_link_that_leads_nowhere_does_not_lead_out_of_the_workspace() {
    let world = world();
    let inside = world.folder().join("in");
    fs::create_dir(&inside).unwrap();
    symlink("../outside.txt", inside.join("up")).unwrap();
    symlink("up", inside.join("twice")).unwrap();
    let mut command = world.command(["rpc"]);
    command.current_dir(&inside);
    let mut child = Child::start_with(command);
    for path in ["up", "twice"] {
        let error = refusal(&mut child, "write", json!({ "path": path, "content": "x" }));
        assert!(error.starts_with("Denied: "), "{error}");
    }
    assert!(!world.folder().join("outside.txt").exists());
}

#[test]
fn names_that_are_no_text_are_shown_on_one_line() {
    let world = world();
    let folder = world.folder().join("w");
    fs::create_dir(&folder).unwrap();
    for name in [b"a\nb.txt".as_slice(), b"c\xff.txt", b"\x1b[31m.txt"] {
        fs::write(folder.join(OsStr::from_bytes(name)), "needle\n").unwrap();
    }
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let names = ["\\u{1b}[31m.txt", "a\\nb.txt", "c\u{fffd}.txt"];
    assert_eq!(result(&mut child, "ls", json!({ "path": "w" })).lines().collect::<Vec<_>>(), names);
    assert_eq!(
        result(&mut child, "find", json!({ "path": "w", "pattern": "*.txt" })).lines().collect::<Vec<_>>(),
        names.map(|name| format!("w/{name}"))
    );
    assert!(
        result(&mut child, "grep", json!({ "path": "w", "pattern": "needle" }))
            .contains("w/a\\nb.txt:1:needle\n")
    );
    // A folder of such a name can be worked in.
    result(&mut child, "bash", json!({ "command": "mkdir $'d\\xff' && cd $'d\\xff'" }));
    result(&mut child, "write", json!({ "path": "here", "content": "" }));
    assert!(world.folder().join(OsStr::from_bytes(b"d\xff")).join("here").exists());
}

#[test]
fn a_flood_of_output_is_cut_on_the_wire_and_in_the_result() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let frames = child.turn("p", &bash("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end"));
    let shown: usize = frames
        .iter()
        .filter(|frame| frame["type"] == "tool_output")
        .map(|frame| frame["delta"].as_str().unwrap().len())
        .sum();
    assert!((1_000_000..1_200_000).contains(&shown), "{shown}");
    let result = crate::child::results(&frames)[0];
    assert!(result.len() < 1_100_000 && result.ends_with("more bytes were dropped]"), "{}", result.len());
    // Bytes that are no text do no harm.
    let frames = child.turn("q", &bash("head -c 100000 /dev/urandom"));
    assert_eq!(frames.last().unwrap()["ok"], true);
}

#[test]
fn what_runs_on_in_the_background_may_go_on_printing() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    // More than fits into a pipe that nobody reads, from a program that dies if there is no pipe any more.
    let command =
        "(while [ ! -e stop ]; do head -c 5000 /dev/zero && echo >> ticks || exit; done; touch stopped) &";
    result(&mut child, "bash", json!({ "command": command }));
    let ticks = || std::fs::read(world.folder().join("ticks")).map_or(0, |ticks| ticks.len());
    let before = ticks();
    wait("it to print on", || ticks() > before + 50);
    fs::write(world.folder().join("stop"), "").unwrap();
    wait("it to end by itself", || world.folder().join("stopped").exists());
}

#[test]
fn a_folder_that_is_gone_is_left() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    result(&mut child, "bash", json!({ "command": "mkdir gone && cd gone" }));
    fs::remove_dir(world.folder().join("gone")).unwrap();
    let shown = result(&mut child, "bash", json!({ "command": "pwd" }));
    assert!(shown.starts_with('[') && shown.contains("gone is gone; this ran in "), "{shown}");
}

#[test]
fn an_edit_keeps_mode_line_ends_and_bytes() {
    let world = world();
    let path = world.folder().join("f");
    fs::write(&path, b"gr\xfcn\r\na\r\nb\r\n").unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o750)).unwrap();
    let mut child = Child::start(&world, &[]);
    let edit = json!({ "path": "f", "old_text": "a\nb", "new_text": "a\nx\nb" });
    assert_eq!(result(&mut child, "edit", edit), "made 1 replacement in f");
    assert_eq!(fs::read(&path).unwrap(), b"gr\xfcn\r\na\r\nx\r\nb\r\n");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o750);
}

#[test]
fn a_home_path_is_one() {
    let world = world();
    let mut child = Child::start(&world, &["--tool-mode", "full"]);
    let home = std::env::var("HOME").unwrap_or_default();
    let error = refusal(&mut child, "read", json!({ "path": "~/there-is-no-such-file" }));
    assert!(!error.contains('~'), "{error} for {home}");
}

#[test]
fn a_pattern_that_would_eat_all_memory_is_refused() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let error = refusal(&mut child, "grep", json!({ "pattern": "(((a{100}){100}){100}){100}" }));
    assert!(error.contains("size limit"), "{error}");
}
