//! Finding the bus, the incumbent's name, and exit codes.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{output, root, world};

#[test]
fn discover_climbs_from_a_relative_folder_too() {
    let world = world();
    std::fs::write(world.folder().join("MESSAGE-BUS.md"), "").unwrap();
    std::fs::create_dir_all(world.folder().join("a/b")).unwrap();
    let expected = world.folder().join("MESSAGE-BUS.md").canonicalize().unwrap();
    for from in [".", "a/b", "a/../a"] {
        let found = world.swb(["bus", "discover", "--from", from]).ok().stdout;
        assert_eq!(PathBuf::from(found.trim_end()), expected, "{from}");
    }
    let nowhere = world.swb(["bus", "discover", "--from", "/proc/self"]);
    assert_eq!(nowhere.code, Some(1));
    assert!(nowhere.stderr.contains("no message bus file found"), "{nowhere:?}");
}

#[test]
fn under_the_name_run_agent_the_commands_are_the_same() {
    let world = world();
    let alias = world.folder().join("run-agent");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_swb"), &alias).unwrap();
    let root = root(&world);
    let mut command = Command::new(&alias);
    command.env_clear().env("SWB_HOME", world.home()).stdin(Stdio::null());
    let posted =
        output(command.args(["bus", "post", "--root", &root, "--project", "p", "--body", "x", "ignored"]))
            .ok();
    assert!(posted.stdout.starts_with("msg_id: MSG-"), "{posted:?}");
    let mut unknown = Command::new(&alias);
    unknown.env_clear().env("SWB_HOME", world.home()).args(["bus", "psot"]);
    assert_eq!(output(&mut unknown).code, Some(1), "a mistyped command must not look like a posted message");
}

#[test]
fn every_failure_exits_with_one() {
    let world = world();
    for arguments in [
        &["bus", "post", "--nope"][..],
        &["bus", "post", "--project", "p", "--type", " ", "--body", "x"],
        &["bus", "post", "--project", "p", "--body", "x", "--meta", "novalue"],
        &["bus", "post", "--bus", "no/such/folder/B.md", "--project", "p", "--body", "x"],
        &["bus", "read", "--tail", "many"],
        &["bus", "read", "--bus", "."],
        &["bus", "thread"],
        &["bus", "nothing"],
    ] {
        let failed = world.swb(arguments);
        assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""), "{arguments:?}: {failed:?}");
        assert!(failed.stderr.starts_with("error: "), "{failed:?}");
    }
    assert_eq!(world.swb(["bus", "post", "--help"]).code, Some(0));
}

#[test]
fn the_incumbents_name_has_the_incumbents_errors() {
    let world = world();
    let alias = world.folder().join("run-agent");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_swb"), &alias).unwrap();
    for (arguments, error) in [
        (
            &["bus", "read", "--bus", "x", "--project", "p"][..],
            "Error: cannot specify both --bus and --project\n",
        ),
        (&["bus", "post", "--nope"], "Error: unexpected argument '--nope' found\n"),
    ] {
        let mut command = Command::new(&alias);
        command.env_clear().env("SWB_HOME", world.home()).stdin(Stdio::null());
        let failed = output(command.args(arguments));
        assert_eq!((failed.code, failed.stderr.as_str()), (Some(1), error));
    }
}
