//! Completions: a child of this program asks the model, one child for each question.
//!
//! A daemon calls no model: a provider that sends nonsense, or a library that panics over it, must not cost anybody else
//! anything. The child has no tools and runs nothing, so it needs no host and no cell. It ends with whoever wants its
//! answer: a cancelled request kills it, and it goes by itself when the daemon is gone ([`Question`]).
//! So many are asked at once, and so many wait; the time for an answer counts from when it was asked for.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use swb_host::Group;
use swb_proto::BusError;
use swb_proto::agent::{Completion, Question};
use swb_proto::error::{ERR_INTERNAL, ERR_MODEL_FAILED, ERR_OVERLOADED, ERR_TIMEOUT};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::config::LlmConfig;

/// The longest answer. Also with every byte escaped it fits into a line of the control socket.
const MAX_ANSWER: usize = 128 * 1024;
/// The longest line of a child: such an answer, and what stands around it.
const MAX_LINE: u64 = 6 * MAX_ANSWER as u64 + 64 * 1024;
/// Questions that may wait for their turn.
const MOST_WAITING: usize = 64;
/// How much of what a child complains of is told.
const LAST_WORDS: u64 = 4096;

/// Those who ask models.
#[derive(Debug)]
pub(crate) struct Completions {
    /// What `SWB_HOME` is for them.
    home: Option<PathBuf>,
    limit: Duration,
    /// Who is asked or waits.
    places: Arc<Semaphore>,
    /// Who is asked.
    turns: Arc<Semaphore>,
}

impl Completions {
    pub(crate) fn new(home: Option<PathBuf>, config: &LlmConfig) -> Self {
        Completions {
            home,
            limit: Duration::from_secs(config.timeout_s),
            places: Arc::new(Semaphore::new(config.at_once + MOST_WAITING)),
            turns: Arc::new(Semaphore::new(config.at_once)),
        }
    }

    /// What the model says. Dropped, it ends the child.
    pub(crate) async fn answer(&self, content: String) -> Result<String, BusError> {
        let _place = self.places.try_acquire().map_err(|_| {
            BusError::new(ERR_OVERLOADED, format!("{MOST_WAITING} questions wait for the model already"))
        })?;
        let work = async {
            let _turn: SemaphorePermit<'_> =
                self.turns.acquire().await.map_err(|error| broke(error.to_string()))?;
            self.ask(content).await
        };
        timeout(self.limit, work).await.unwrap_or_else(|_| {
            let message = format!("the model did not answer within {} s", self.limit.as_secs());
            Err(BusError::new(ERR_TIMEOUT, message))
        })
    }

    async fn ask(&self, content: String) -> Result<String, BusError> {
        let mut command = Command::new(swb_host::entry::this_program());
        command.arg0("swb").arg("complete");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(self.home.iter().map(|home| ("SWB_HOME", home)));
        let mut child = Group::spawn(&mut command).map_err(|error| broke(error.to_string()))?;
        let pipes = (child.take_stdin(), child.take_stdout(), child.take_stderr());
        let (Some(mut stdin), Some(stdout), Some(mut stderr)) = pipes else {
            return Err(broke("it has no pipes".to_owned()));
        };
        let mut question = serde_json::to_vec(&Question { content, max_bytes: MAX_ANSWER })
            .map_err(|error| broke(error.to_string()))?;
        question.push(b'\n');
        let (mut line, mut complaints) = (Vec::new(), Vec::new());
        // All at once: neither waits for the other to read first. A child that does not read says why.
        let said = tokio::join!(
            async {
                let _ = stdin.write_all(&question).await;
            },
            async { stdout.take(MAX_LINE).read_to_end(&mut line).await },
            async {
                let _ = (&mut stderr).take(LAST_WORDS).read_to_end(&mut complaints).await;
                let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            },
        )
        .1;
        // Only now: the end of its input tells it that nobody wants the answer any more.
        drop(stdin);
        said.map_err(|error| broke(error.to_string()))?;
        let status = child.wait().await.map_err(|error| broke(error.to_string()))?;
        let told = serde_json::from_slice(&line).map_err(|_| silent(status, &complaints))?;
        understand(told)
    }
}

fn understand(told: Completion) -> Result<String, BusError> {
    match told {
        Completion::Answered { content, model, usage } => {
            tracing::debug!(model, usage.input_tokens, usage.output_tokens, "a model answered");
            Ok(content)
        }
        Completion::Failed { model, reason, status, message } => {
            let error = BusError::new(ERR_MODEL_FAILED, message).because(&reason).with("model", model);
            Err(match status {
                Some(status) => error.with("status", status),
                None => error,
            })
        }
    }
}

/// A child that ended without a word, or with half of one.
fn silent(status: ExitStatus, complaints: &[u8]) -> BusError {
    let complaints = String::from_utf8_lossy(complaints);
    tracing::warn!(%status, complaints = complaints.trim(), "nobody asked the model");
    broke(match complaints.trim() {
        "" => format!("whoever asks the model ended without an answer ({status})"),
        complaints => complaints.to_owned(),
    })
}

fn broke(why: String) -> BusError {
    BusError::new(ERR_INTERNAL, format!("the model could not be asked: {why}")).because("MODEL_NOT_ASKED")
}
