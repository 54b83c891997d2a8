//! Work that is under way, and its end.

use std::sync::Arc;

use swb_proto::agent::{Attachment, Event, TurnUsage};
use tokio::task::{JoinError, JoinHandle};

use super::compaction::Written;
use super::reply::{Models, Outcome as OutcomeBody};
use super::{Agent, Gone};
use crate::cancel::Cancel;
use crate::history::TurnOutcome;
use crate::model::ModelError;
use crate::model::catalogue::Entry;
use crate::tools::{Printer, Ran};
use crate::turn::queue::Waiting;
use crate::turn::{Ended, Outcome, Said, Turn, locked};

/// A task with the id it is answered to.
#[derive(Debug)]
pub(super) struct Job<T> {
    pub(super) id: String,
    pub(super) command: &'static str,
    pub(super) cancel: Cancel,
    task: JoinHandle<T>,
}

pub(super) type TurnJob = Job<Ended>;
pub(super) type CompactionJob = Job<Result<Written, ModelError>>;

impl<T: Send + 'static> Job<T> {
    pub(super) fn start(
        id: String,
        command: &'static str,
        cancel: Cancel,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Self {
        Job { id, command, cancel, task: tokio::spawn(work) }
    }
}

/// A job that is over, taken from where it was.
#[derive(Debug)]
pub(super) struct Finished<T> {
    pub(super) id: String,
    pub(super) command: &'static str,
    pub(super) cancelled: bool,
    pub(super) result: Result<T, JoinError>,
}

/// Returns when the job is over, and leaves none behind. Waits for ever if there is none.
pub(super) async fn finished<T>(slot: &mut Option<Job<T>>) -> Finished<T> {
    let result = match slot {
        Some(job) => (&mut job.task).await,
        None => std::future::pending().await,
    };
    match slot.take() {
        Some(Job { id, command, cancel, .. }) => {
            Finished { id, command, cancelled: cancel.is_cancelled(), result }
        }
        None => std::future::pending().await,
    }
}

impl Agent {
    /// Begins a turn. Only when none is running.
    pub(super) async fn start_turn(
        &mut self,
        waiting: Waiting,
        attachments: Vec<Attachment>,
    ) -> Result<(), Gone> {
        let Waiting { id, command, message } = waiting;
        let name = locked(&self.history).model.clone();
        let model = match self.models.find(&name) {
            Ok(model) => model,
            Err(error) => {
                // The words are kept, as with any other turn that fails.
                let kept = {
                    let mut history = locked(&self.history);
                    history
                        .begin_turn(swb_proto::agent::Message::user(message))
                        .and_then(|()| history.end_turn(TurnOutcome::Failed))
                };
                let reason = kept.map_or_else(|error| error.to_string(), |()| error.to_string());
                let ended = Ended { usage: TurnUsage::default(), outcome: Outcome::Failed(reason) };
                return self.turn_answered(&id, command, ended).await;
            }
        };
        let context_window = self.models.context_window(&name);
        let summariser = self.summariser(&name).unwrap_or_else(|_| (Arc::clone(&model), context_window));
        // How much fits into it is asked meanwhile, should nobody know.
        let models = Arc::clone(&self.models);
        tokio::spawn(async move { models.learn(&name).await });
        let cancel = Cancel::new();
        let turn = Turn {
            history: Arc::clone(&self.history),
            model,
            context_window,
            summariser,
            system: Arc::clone(&self.system),
            thinking: self.thinking,
            toolbox: Arc::clone(&self.toolbox),
            queue: self.queue.clone(),
            output: self.output.clone(),
            cancel: cancel.clone(),
        };
        self.turn = Some(Job::start(id, command, cancel, turn.run(Said { message, attachments })));
        Ok(())
    }

    /// Answers for a turn that is over, and begins the next one that waits.
    pub(super) async fn turn_ended(&mut self, finished: Finished<Ended>) -> Result<(), Gone> {
        let ended = finished.result.unwrap_or_else(|error| Ended {
            usage: TurnUsage::default(),
            outcome: Outcome::Failed(format!("the turn broke off: {error}")),
        });
        self.turn_answered(&finished.id, finished.command, ended).await?;
        self.settle().await?;
        while self.turn.is_none() && self.deadline.is_none() {
            let Some(waiting) = self.queue.next() else { break };
            self.start_turn(waiting, Vec::new()).await?;
        }
        self.begin_auto_turn().await
    }

    async fn turn_answered(&mut self, id: &str, command: &'static str, ended: Ended) -> Result<(), Gone> {
        let body = match ended.outcome {
            Outcome::Done => OutcomeBody::done(),
            Outcome::Cancelled => OutcomeBody::cancelled(),
            Outcome::Refused(message) => return self.fail(Some(id.to_owned()), message).await,
            Outcome::Failed(message) => {
                self.fail(Some(id.to_owned()), message.clone()).await?;
                OutcomeBody::failed(message)
            }
        };
        self.output.send(&Event::AgentEnd { usage: ended.usage }).await?;
        self.respond(id, command, &body).await
    }

    /// Asks who is there. Providers answer in their own time, so it is done beside everything else.
    pub(super) fn list_models(&mut self, id: String) {
        let models = Arc::clone(&self.models);
        self.listings.spawn(async move { (id, models.entries().await) });
    }

    pub(super) async fn listed(&self, listed: Result<(String, Vec<Entry>), JoinError>) -> Result<(), Gone> {
        match listed {
            Ok((id, models)) => self.respond(&id, "get_available_models", &Models { models, ok: true }).await,
            // Only the end of the process ends such a task early.
            Err(_) => Ok(()),
        }
    }

    /// Runs one tool without a model.
    pub(super) fn start_call(&mut self, id: String, name: String, arguments: serde_json::Value) {
        let toolbox = Arc::clone(&self.toolbox);
        let cancel = self.calls_cancel.clone();
        let session_id = locked(&self.history).id.clone();
        let printer = Printer::new(self.output.clone(), id.clone());
        self.calls.spawn(async move {
            let ran = toolbox.run(&session_id, &name, arguments, &cancel, printer).await;
            (id, ran)
        });
    }

    pub(super) async fn call_ended(&mut self, ran: Result<(String, Ran), JoinError>) -> Result<(), Gone> {
        if let Ok((id, ran)) = ran {
            let cancelled = self.calls_cancel.is_cancelled().then_some(true);
            let body = super::reply::ToolRan::new(ran, cancelled);
            self.respond(&id, "tool_call", &body).await?;
        }
        self.settle().await
    }
}
