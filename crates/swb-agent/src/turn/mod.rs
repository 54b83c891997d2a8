//! One turn: from what the user says to the model's last word, tools in between.
//!
//! A turn is a task of its own. It streams to the parent, adds to the history as it goes, and takes in steering messages
//! before each call of the model. However it ends (done, cancelled, failed) the history has an answer for each call, and
//! the loop that started it says so to the parent.

mod announced;
mod answer;
mod attach;
pub(crate) mod queue;
mod room;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use swb_proto::agent::{AssistantEvent, Attachment, Block, Event, Message, TurnUsage};

use crate::attachments::AttachmentError;
use crate::cancel::Cancel;
use crate::history::{History, TurnOutcome, WriteError};
use crate::model::{Delta, Model, ModelError, Prompt, Task, Thinking, ToolSpec};
use crate::stdio::output::{Gone, Output};
use crate::tools::{Printer, Ran, Toolbox, limits};
pub(crate) use announced::announced;
use answer::{Answer, Wanted};
use queue::Queue;
use room::Need;

/// A model that calls tools for ever is stopped here.
const MAX_STEPS: usize = 500;
/// After so many pieces the loop gets its chance, however fast the model is.
const PIECES_AT_A_TIME: usize = 64;

/// A model that talks for ever is stopped here, in bytes.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// A history that a turn and the loop share. Locked for moments only.
pub(crate) type SharedHistory = Arc<Mutex<History>>;

/// The history, locked.
pub(crate) fn locked(history: &SharedHistory) -> MutexGuard<'_, History> {
    history.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a turn needs.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) history: SharedHistory,
    pub(crate) model: Arc<dyn Model>,
    /// How many tokens fit into the model, if that is known.
    pub(crate) context_window: Option<u64>,
    /// The model that summarises, and how much fits into it.
    pub(crate) summariser: (Arc<dyn Model>, Option<u64>),
    pub(crate) system: Arc<str>,
    pub(crate) thinking: Thinking,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) queue: Queue,
    pub(crate) output: Output,
    pub(crate) cancel: Cancel,
}

/// What a turn begins with.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) message: String,
    pub(crate) attachments: Vec<Attachment>,
}

/// How a turn ended, and what it used.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) usage: TurnUsage,
    pub(crate) outcome: Outcome,
}

/// How a turn ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done,
    Cancelled,
    Failed(String),
    /// It never began, and nothing has changed.
    Refused(String),
}

impl Outcome {
    /// What the history keeps of it.
    fn kept(&self) -> TurnOutcome {
        match self {
            Outcome::Done => TurnOutcome::Done,
            Outcome::Cancelled => TurnOutcome::Cancelled,
            Outcome::Failed(_) | Outcome::Refused(_) => TurnOutcome::Failed,
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum TurnError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    History(#[from] WriteError),
    #[error(transparent)]
    Attachment(#[from] AttachmentError),
    #[error(transparent)]
    Gone(#[from] Gone),
    #[error("the message has about {tokens} tokens; the model's context has room for {window}")]
    TooLarge { tokens: u64, window: u64 },
    #[error("the model's answer is longer than {} MiB", MAX_ANSWER >> 20)]
    Flood,
    #[error("the model went on calling tools for {MAX_STEPS} steps")]
    Endless,
}

impl Turn {
    /// Runs the turn to its end.
    pub(crate) async fn run(self, said: Said) -> Ended {
        let mut usage = TurnUsage::default();
        let outcome = match self.go(said, &mut usage).await {
            Ok(outcome) => outcome,
            Err(TurnError::Attachment(error)) => Outcome::Refused(error.to_string()),
            Err(error) => Outcome::Failed(error.to_string()),
        };
        // Those that were cancelled with this turn end with it, and what they used is told with it.
        self.toolbox.subagents.end_of_cancelled().await;
        usage.add(&self.toolbox.subagents.take_usage());
        let kept = {
            let mut history = locked(&self.history);
            history.end_turn(outcome.kept()).and_then(|()| history.sync())
        };
        let outcome = match (kept, outcome) {
            // The first thing that went wrong is the one to be told.
            (Err(error), Outcome::Done | Outcome::Cancelled) => Outcome::Failed(error.to_string()),
            (_, outcome) => outcome,
        };
        Ended { usage, outcome }
    }

    async fn go(&self, said: Said, usage: &mut TurnUsage) -> Result<Outcome, TurnError> {
        let Some(message) = self.with_files(said).await? else { return Ok(Outcome::Cancelled) };
        self.check_size(&message)?;
        locked(&self.history).begin_turn(message)?;
        self.toolbox.prepare(&self.cancel).await;
        for _ in 0..MAX_STEPS {
            self.make_room(usage).await?;
            self.take_steering().await?;
            let wanted = self.one_fitting_answer(usage).await?;
            let last = wanted.is_empty();
            // Also when cancelled meanwhile: each call gets its answer.
            if !last {
                self.run_tools(wanted).await?;
            }
            if self.cancel.is_cancelled() {
                return Ok(Outcome::Cancelled);
            }
            if last && !self.queue.has_steering() {
                return Ok(Outcome::Done);
            }
        }
        Err(TurnError::Endless)
    }

    /// What was said to the running turn becomes part of it, and its senders learn so; the same holds for what has
    /// become of subagents in the background.
    async fn take_steering(&self) -> Result<(), TurnError> {
        for waiting in self.queue.take_steering() {
            let message = Message::user(waiting.message);
            if let Err(error) = self.check_size(&message) {
                let refused = Event::Error { id: Some(waiting.id), message: error.to_string() };
                self.output.send(&refused).await?;
                continue;
            }
            locked(&self.history).push(message)?;
            let body = BTreeMap::from_iter([("ok".to_owned(), Value::Bool(true))]);
            let said = Event::Response { id: waiting.id, command: waiting.command.to_owned(), body };
            self.output.send(&said).await?;
        }
        if let Some(report) = self.toolbox.subagents.take_news() {
            locked(&self.history).push(Message::user(report))?;
        }
        Ok(())
    }

    /// One answer; if the model says that the conversation is too long for it, one more try with a shorter one.
    async fn one_fitting_answer(&self, usage: &mut TurnUsage) -> Result<Vec<Wanted>, TurnError> {
        match self.one_answer(usage).await {
            Err(TurnError::Model(error @ ModelError::TooLong { .. })) => {
                if self.compact(Need::Overflow, usage).await? {
                    self.one_answer(usage).await
                } else if self.cancel.is_cancelled() {
                    Ok(Vec::new())
                } else {
                    Err(error.into())
                }
            }
            answer => answer,
        }
    }

    /// One call of the model, streamed. Returns the tools it wants.
    async fn one_answer(&self, usage: &mut TurnUsage) -> Result<Vec<Wanted>, TurnError> {
        let mut answer = Answer::default();
        let result = self.output.in_bursts(self.stream(&mut answer)).await;
        if let Some(used) = answer.usage.take() {
            usage.add(&used);
            locked(&self.history).used(&used)?;
        }
        if result.is_ok() && !self.cancel.is_cancelled() {
            let (blocks, wanted) = answer.finish();
            // Thoughts alone are no answer.
            if blocks.iter().all(|block| matches!(block, Block::Thinking { .. })) {
                return Err(ModelError::Empty.into());
            }
            locked(&self.history).push(Message::assistant(blocks))?;
            for call in &wanted {
                self.show(AssistantEvent::ToolcallInput {
                    tool_id: call.id.clone(),
                    input: call.shown_input(),
                })
                .await?;
            }
            return Ok(wanted);
        }
        // What the parent has seen stays; calls that were never whole do not.
        let (blocks, started) = answer.without_calls(self.kept_chars(1));
        if !blocks.is_empty() {
            locked(&self.history).push(Message::assistant(blocks))?;
        }
        for tool_id in started {
            self.show(AssistantEvent::ToolcallResult { tool_id, result: Ran::canceled().result }).await?;
        }
        result.map(|()| Vec::new())
    }

    async fn stream(&self, answer: &mut Answer) -> Result<(), TurnError> {
        let (messages, files) = self.conversation();
        let mut deltas = self.model.answer(Prompt {
            messages,
            files,
            system: Arc::clone(&self.system),
            task: Task::Answer,
            thinking: self.thinking,
            tools: ToolSpec::list(&self.toolbox.describe()),
        });
        let mut cancelled = pin!(self.cancel.cancelled());
        for count in 1.. {
            let delta = tokio::select! {
                biased;
                () = &mut cancelled => return Ok(()),
                delta = deltas.next() => delta,
            };
            match delta.ok_or(ModelError::CutOff)?? {
                Delta::Stop => return Ok(()),
                Delta::Retry(retry) => self.output.send(&retry.event()).await?,
                delta => {
                    if let Some(event) = answer.take(delta) {
                        self.output.put(&Event::MessageUpdate { event }).await?;
                    }
                    if answer.size > MAX_ANSWER {
                        return Err(TurnError::Flood);
                    }
                }
            }
            if count % PIECES_AT_A_TIME == 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// How much of each of so many results is kept.
    fn kept_chars(&self, results: usize) -> usize {
        limits::kept_chars(self.toolbox.place.settings.kept_chars, self.context_window, results)
    }

    /// Runs the tools at once; results are shown as they come and kept in the order of the calls.
    async fn run_tools(&self, wanted: Vec<Wanted>) -> Result<(), TurnError> {
        let session_id = locked(&self.history).id.clone();
        let mut results: Vec<Option<Block>> = wanted.iter().map(|_| None).collect();
        let kept_chars = self.kept_chars(wanted.len());
        let mut running: FuturesUnordered<_> =
            wanted.into_iter().enumerate().map(|(at, call)| self.run_tool(&session_id, at, call)).collect();
        let mut shown = Ok(());
        while let Some((at, tool_id, ran)) = running.next().await {
            results[at] = Some(Block::ToolResult {
                tool_use_id: tool_id.clone(),
                content: limits::for_history(&ran.result, kept_chars),
                is_error: ran.failed,
            });
            if shown.is_ok() {
                shown = self.show(AssistantEvent::ToolcallResult { tool_id, result: ran.result }).await;
            }
        }
        // The answers are kept even if nobody sees them.
        locked(&self.history).push(Message::results(results.into_iter().flatten().collect()))?;
        Ok(shown?)
    }

    async fn run_tool(&self, session_id: &str, at: usize, call: Wanted) -> (usize, String, Ran) {
        let printer = Printer::new(self.output.clone(), call.id.clone());
        let ran = match call.input {
            Ok(input) => self.toolbox.run(session_id, &call.name, input, &self.cancel, printer).await,
            Err(error) => Ran::failed(format!("Tool execution failed: the arguments are not JSON: {error}")),
        };
        (at, call.id, ran)
    }

    async fn show(&self, event: AssistantEvent) -> Result<(), Gone> {
        self.output.send(&Event::MessageUpdate { event }).await
    }
}
