//! The end of the record, told to a place that this machine cannot change.
//!
//! A command of the user gets it on standard input, as `swb audit head` prints it. It has half a minute; that it failed is
//! told in the log and in the status, and the next time tries again. The daemon's log gets every head too.

use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use swb_journal::audit::Head;
use swb_rules::redact::redact;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// How long the command may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much of its complaint is kept.
const COMPLAINT: u64 = 1000;

/// Where the end of the record is told, and what came of it.
#[derive(Debug)]
pub(super) struct Anchor {
    command: String,
    patience: Duration,
    last: Mutex<Last>,
}

/// The last time it was told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Last {
    /// The head that was taken.
    pub(super) head: Option<Head>,
    /// Why a later one was not.
    pub(super) failure: Option<String>,
}

impl Anchor {
    pub(super) fn new(command: &str) -> Self {
        Anchor { command: command.trim().to_owned(), patience: PATIENCE, last: Mutex::default() }
    }

    pub(super) fn last(&self) -> Last {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells a head, if it has not been told.
    pub(super) async fn tell(&self, head: Head) {
        if self.last().head.as_ref() == Some(&head) {
            return;
        }
        let Head { chain, number, hash } = &head;
        tracing::info!(%chain, number, %hash, "the end of the record");
        let told = if self.command.is_empty() { Ok(()) } else { self.run(&head).await };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match told {
            Ok(()) => *last = Last { head: Some(head), failure: None },
            Err(failure) => {
                tracing::error!(failure, "the anchor command failed");
                last.failure = Some(failure);
            }
        }
    }

    async fn run(&self, head: &Head) -> Result<(), String> {
        let mut line = serde_json::to_vec(head).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("sh does not start: {error}"))?;
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let told = async {
            if let Some(mut stdin) = stdin {
                // One that does not read may still succeed.
                let _ = stdin.write_all(&line).await;
            }
            let mut complaint = Vec::new();
            if let Some(mut stderr) = stderr {
                let _ = (&mut stderr).take(COMPLAINT).read_to_end(&mut complaint).await;
                let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            }
            (child.wait().await, complaint)
        };
        match tokio::time::timeout(self.patience, told).await {
            Err(_) => Err(format!("it did not end within {:?}", self.patience)),
            Ok((Ok(status), _)) if status.success() => Ok(()),
            Ok((Ok(status), complaint)) => {
                let complaint = String::from_utf8_lossy(&complaint);
                let first = redact(complaint.lines().next().unwrap_or_default()).text;
                Err(format!("{status}{}{first}", if first.is_empty() { "" } else { ": " }))
            }
            Ok((Err(error), _)) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use swb_journal::audit::ChainHash;

    use super::*;

    fn head(number: u64) -> Head {
        Head { chain: "c".to_owned(), number, hash: ChainHash::NONE }
    }

    #[tokio::test]
    async fn the_command_gets_each_head_once_and_its_failure_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("heads");
        let anchor = Anchor::new(&format!("cat >> {}", file.display()));
        for number in [1, 1, 2] {
            anchor.tell(head(number)).await;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let heads: Vec<Head> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(heads, [head(1), head(2)]);
        assert_eq!(anchor.last(), Last { head: Some(head(2)), failure: None });

        let broken = Anchor::new("echo password=hunter2x >&2; exit 3");
        broken.tell(head(1)).await;
        let failure = broken.last().failure.unwrap();
        assert_eq!(failure, "exit status: 3: password=[REDACTED:PASSWORD]");
        assert_eq!(broken.last().head, None, "the next time tries again");
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_ended() {
        let anchor = Anchor { patience: Duration::from_millis(50), ..Anchor::new("exec sleep 1000") };
        anchor.tell(head(1)).await;
        assert_eq!(anchor.last().failure.as_deref(), Some("it did not end within 50ms"));
    }
}
