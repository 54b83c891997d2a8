//! `swb workspaces` and `swb projects`, across a kill of the daemon.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use rustix::process::{Pid, Signal, kill_process};
use testkit::World;

#[test]
fn workspaces_and_projects_outlive_a_killed_daemon() {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    world.swb(["up"]).ok();
    let early = world.swb(["projects", "init"]);
    assert!(early.code == Some(1) && early.stderr.contains("swb workspaces create"), "{early:?}");
    let made = world.swb(["--json", "workspaces", "create", "Home"]).ok().json();
    let project = world.swb(["--json", "projects", "init", "--git"]).ok().json();
    assert_eq!(project["workspace_id"], made["workspace_id"]);
    assert!(world.folder().join(".git").is_dir());

    let pid = i32::try_from(world.status("pid").as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();

    let listed = world.swb(["--json", "projects", "--workspace", "home"]).ok().json_lines();
    assert_eq!(listed, [project]);
    let closed = world.swb(["workspaces", "close", "HOME"]).ok();
    assert!(closed.stdout.starts_with("closed ws_"), "{closed:?}");
    assert!(world.swb(["workspaces"]).ok().stdout.starts_with("Home (closed)"));
    let unknown = world.swb(["workspaces", "open", "nobody"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("`swb workspaces` lists them"), "{unknown:?}");
    world.swb(["workspaces", "delete", "home"]).ok();
    assert_eq!(world.swb(["--json", "projects"]).ok().stdout, "");
    world.swb(["down"]).ok();
}
