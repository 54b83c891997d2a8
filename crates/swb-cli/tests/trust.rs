//! `swb trust`: what is recorded, listed and taken back. What becomes of it is tested with agents (`tests/rpc/mcp`).
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use testkit::World;

fn world() -> World {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    std::fs::create_dir_all(world.folder().join(".switchboard")).unwrap();
    world
}

fn name_a_program(world: &World, program: &str) {
    let text = format!("[mcp.builder]\ncommand = \"{program}\"\nargs = [\"-x\", \"\\u001b[31m\"]\n");
    std::fs::write(world.folder().join(".switchboard/config.toml"), text).unwrap();
}

#[test]
fn trust_shows_what_would_run_and_is_kept_outside_the_project() {
    let world = world();
    name_a_program(&world, "make");
    std::fs::create_dir_all(world.folder().join("deep/er")).unwrap();
    let inside = world.command(["trust"]).current_dir(world.folder().join("deep/er")).output().unwrap();
    let shown = String::from_utf8_lossy(&inside.stdout);
    assert!(shown.contains(".switchboard/config.toml") && shown.contains("builder: make -x"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let book = world.paths().trust_file();
    assert_eq!(std::fs::metadata(&book).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(book.starts_with(world.home()));
    let listed = world.swb(["trust", "--list", "--json"]).ok().json_lines();
    assert_eq!((listed.len(), &listed[0]["changed"]), (1, &json!(false)));
    name_a_program(&world, "evil");
    assert_eq!(world.swb(["trust", "--list", "--json"]).ok().json_lines()[0]["changed"], true);
    assert_eq!(world.swb(["trust", "--json"]).ok().json()["files"][0]["before"], "changed");
    assert!(world.swb(["trust", "--list"]).ok().stdout.contains("as it was"));
}

#[test]
fn trust_is_taken_back_also_when_the_project_is_gone() {
    let world = world();
    name_a_program(&world, "make");
    world.swb(["trust"]).ok();
    std::fs::remove_dir_all(world.folder().join(".switchboard")).unwrap();
    assert_eq!(world.swb(["trust", "--list", "--json"]).ok().json_lines()[0]["changed"], true);
    let path = world.folder().canonicalize().unwrap();
    let taken = world.swb(["trust", "--revoke", path.to_str().unwrap(), "--json"]).ok().json();
    assert_eq!(taken["was_trusted"], true);
    assert!(world.swb(["trust", "--list"]).ok().stderr.contains("no project is trusted"));
}

#[test]
fn what_cannot_be_trusted_is_refused_and_changes_nothing() {
    let world = world();
    let nothing = world.swb(["trust"]);
    assert!(nothing.code == Some(1) && nothing.stderr.contains("names a program"), "{nothing:?}");
    assert_eq!(world.swb(["trust", "/no/where"]).code, Some(1));
    std::os::unix::fs::symlink("/etc/hostname", world.folder().join(".mcp.json")).unwrap();
    name_a_program(&world, "make");
    let link = world.swb(["trust"]);
    assert!(link.code == Some(1) && link.stderr.contains("not a link"), "{link:?}");
    std::fs::remove_file(world.folder().join(".mcp.json")).unwrap();
    assert!(!world.paths().trust_file().exists());
    std::fs::create_dir_all(world.paths().state).unwrap();
    std::fs::write(world.paths().trust_file(), "damaged").unwrap();
    let damaged = world.swb(["trust"]);
    assert!(damaged.code == Some(1) && damaged.stderr.contains("trust.json"), "{damaged:?}");
    assert_eq!(std::fs::read_to_string(world.paths().trust_file()).unwrap(), "damaged");
    assert_eq!(world.swb(["trust", "--list", "--revoke"]).code, Some(2));
}
