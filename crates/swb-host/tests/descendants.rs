//! The end of everything a process has started. One test per process: the functions mean every child there is.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::process::Stdio;
use std::time::Duration;

use swb_host::descendants::{adopt_orphans, end_all, living};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

#[tokio::test]
async fn a_daemon_that_ignores_requests_is_ended_all_the_same() {
    adopt_orphans();
    // The orphan has a session of its own and does not listen.
    let mut child = Command::new("sh")
        .args(["-c", "setsid sh -c 'trap \"\" TERM; echo begun; while :; do sleep 1; done' & sleep 0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut begun = [0; 6];
    out.read_exact(&mut begun).await.unwrap();
    child.wait().await.unwrap();
    assert!(!living().is_empty(), "it is still ours");
    end_all(Duration::from_millis(50)).await;
    assert!(living().is_empty());
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).await.unwrap();
}
