//! `swb bus`: the real binary, no daemon.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod house;
mod post;
mod read;
mod talk;
mod terminal;

use std::process::Command;

use serde_json::Value;
use testkit::{Ran, World};

pub(crate) fn world() -> World {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    std::fs::create_dir_all(world.folder().join("root/p/t")).expect("a root with a task");
    world
}

pub(crate) fn root(world: &World) -> String {
    world.folder().join("root").display().to_string()
}

pub(crate) fn output(command: &mut Command) -> Ran {
    let output = command.output().expect("the binary runs");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn post(world: &World, arguments: &[&str]) -> String {
    let root = root(world);
    let all = [&["bus", "post", "--root", &root], arguments].concat();
    let stdout = world.swb(all).ok().stdout;
    stdout.strip_prefix("msg_id: ").expect("the id and nothing else").trim_end().to_owned()
}

pub(crate) fn read(world: &World, arguments: &[&str]) -> Vec<Value> {
    let root = root(world);
    world.swb([&["bus", "read", "--root", &root, "--json"], arguments].concat()).ok().json_lines()
}
