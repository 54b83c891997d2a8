//! One child and its process group.
//!
//! The child leads a group of its own, so that a signal meant for us does not reach it and one meant for it reaches
//! everything it started in the same group. The leader is reaped only after the group was signalled for the last time:
//! until then its number cannot belong to anybody else. Leaders that somebody still waits for are written down, so that
//! [`crate::descendants::reap_ended`] leaves them alone.

use std::collections::HashSet;
use std::io;
use std::process::ExitStatus;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

static LEADERS: LazyLock<Mutex<HashSet<Pid>>> = LazyLock::new(Mutex::default);

/// The leaders whose end their [`Group`] wants to hear of. Nobody else may reap them while this is held.
pub(crate) fn leaders() -> MutexGuard<'static, HashSet<Pid>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child that leads a process group. Dropped before it was waited for, the whole group is killed.
#[derive(Debug)]
pub struct Group {
    child: Child,
    /// The group's number; `None` once the leader was reaped.
    number: Option<Pid>,
}

impl Group {
    /// Starts the command as the leader of a new group.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        // Locked over the start: a child that ends at once must not be reaped before it is written down.
        let mut leaders = leaders();
        let child = command.process_group(0).spawn()?;
        let number = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        leaders.extend(number);
        Ok(Group { child, number })
    }

    /// The leader's process number; `None` once it was waited for.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// The leader's standard input, if it was piped. Given once.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// The leader's standard output, if it was piped. Given once.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The leader's standard error, if it was piped. Given once.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Waits for the leader. Others of its group may live on.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.forget();
        Ok(status)
    }

    /// Kills every process of the group. Does nothing once the leader was reaped.
    pub fn kill(&self) {
        if let Some(number) = self.number {
            // It may have ended by itself in this moment, which is as good.
            let _ = kill_process_group(number, Signal::KILL);
        }
    }

    /// Sends the leader a signal. Does nothing once it was reaped.
    pub fn signal(&self, signal: Signal) {
        if let Some(number) = self.number {
            let _ = kill_process(number, signal);
        }
    }

    /// Lets it go on without us.
    pub fn release(mut self) {
        self.forget();
    }

    fn forget(&mut self) {
        if let Some(number) = self.number.take() {
            leaders().remove(&number);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The leader is left to tokio, which reaps children nobody waits for.
        self.kill();
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;
    use tokio::io::{AsyncReadExt, BufReader};

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    #[tokio::test]
    async fn the_end_of_a_leader_is_reported() {
        let mut group = Group::spawn(&mut sh("exit 7")).unwrap();
        assert_eq!(group.wait().await.unwrap().code(), Some(7));
        group.kill();
    }

    #[tokio::test]
    async fn a_leader_that_is_waited_for_is_not_reaped_by_others() {
        let mut group = Group::spawn(&mut sh("exit 7")).unwrap();
        let stat = format!("/proc/{}/stat", group.child.id().unwrap());
        while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
            tokio::task::yield_now().await;
        }
        crate::descendants::reap_ended();
        assert_eq!(group.wait().await.unwrap().code(), Some(7));
    }

    #[tokio::test]
    async fn dropping_a_group_ends_its_grandchildren() {
        let mut group = Group::spawn(&mut sh("(sleep 1000; echo no) & echo begun; wait")).unwrap();
        let mut out = BufReader::new(group.take_stdout().unwrap());
        let mut begun = [0; 6];
        out.read_exact(&mut begun).await.unwrap();
        drop(group);
        // The pipe ends when the last of its writers has gone.
        let mut rest = Vec::new();
        out.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty());
    }
}
