//! An agent's place: a shell behind a host, with the binary at hand.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use swb_host::wire::{Containment, Reply, Request, Stream};
use swb_host::{HostClient, Limits, Options, Walls, client};
use testkit::World;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// What a shell behind a host has said, or why it was not contained.
pub(crate) struct Said {
    pub(crate) lines: Vec<String>,
    pub(crate) containment: Containment,
}

/// Runs a script as the agent `name`. In it `$SWB` is the binary, and it works in the world's folder.
pub(crate) fn run(world: &World, name: &str, walls: Option<Walls>, script: &str) -> Said {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(LONG, story(world, name, walls, script)).await.expect("the script ends")
    })
}

async fn story(world: &World, name: &str, walls: Option<Walls>, script: &str) -> Said {
    let binary = env!("CARGO_BIN_EXE_swb");
    let folder = world.folder().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let socket = folder.join("host.sock");
    let script = format!("cd {}; {script}", world.folder().display());
    let home = format!("SWB_HOME={}", world.home().display());
    let swb = format!("SWB={binary}");
    let words = ["env", &home, &swb, "SWB_LOG=off", "bash", "-c", &script];
    let options = Options {
        socket: socket.clone(),
        limits: Limits::default(),
        walls,
        folder: None,
        environment: Vec::new(),
        command: words.map(OsString::from).to_vec(),
    };
    let log = std::fs::File::create(folder.join("host.log")).unwrap();
    client::start(&options, Path::new(binary), log).await.unwrap();
    let (mut host, status) = HostClient::connect(&socket).await.unwrap();
    let (mut said, mut ended, mut exited) = (Vec::new(), false, false);
    host.requests.send(&Request::Follow { stream: Stream::Stdout, from: 0 }).await.unwrap();
    while !ended || !exited {
        match host.replies.next().await.unwrap().expect("the host is there") {
            Reply::Data { bytes, .. } => said.extend(bytes),
            Reply::End { .. } => ended = true,
            Reply::Exited(_) => exited = true,
            _ => {}
        }
    }
    // A host stays until somebody has the exit of its child.
    host.requests.send(&Request::Release).await.unwrap();
    while host.replies.next().await.is_ok_and(|reply| reply.is_some()) {}
    let lines = String::from_utf8(said).unwrap().lines().map(str::to_owned).collect();
    Said { lines, containment: status.containment }
}
