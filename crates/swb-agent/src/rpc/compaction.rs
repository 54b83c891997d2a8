//! Compaction: the history becomes a summary of itself.
//!
//! The model is asked beside everything else; what is said meanwhile stays, because only the messages that were
//! summarised are replaced. It can be aborted, and then nothing has changed.

use std::sync::Arc;

use futures_util::StreamExt;
use swb_proto::agent::{Block, Message};

use super::jobs::{Finished, Job};
use super::reply::{Outcome, Summary};
use super::{Agent, Gone};
use crate::cancel::Cancel;
use crate::model::{Delta, Files, Model, ModelError, Prompt, Task, Thinking, catalogue};
use crate::turn::locked;

const BUSY: &str = "a compaction is under way; abort first";
const EMPTY: &str = "there is nothing to compact";

/// What the summary stands for, told to the model that goes on from it.
const ACKNOWLEDGED: &str = "I have read the summary and go on from there.";

impl Agent {
    pub(super) async fn compact(&mut self, id: String) -> Result<(), Gone> {
        if self.compaction.is_some() {
            return self.fail(Some(id), BUSY).await;
        }
        let (messages, name) = {
            let history = locked(&self.history);
            (history.messages()[..history.compactable()].to_vec(), history.model.clone())
        };
        if messages.is_empty() {
            return self.fail(Some(id), EMPTY).await;
        }
        let model = match catalogue::find(&name) {
            Ok(model) => model,
            Err(error) => return self.fail(Some(id), error.to_string()).await,
        };
        self.summarised = messages.len();
        let prompt = Prompt {
            messages,
            files: Files::default(),
            system: Arc::clone(&self.system),
            task: Task::Summarise,
            thinking: Thinking::Off,
        };
        let cancel = Cancel::new();
        let work = summarise(model, prompt, cancel.clone());
        self.compaction = Some(Job::start(id, "compact", cancel, work));
        Ok(())
    }

    pub(super) async fn compaction_ended(
        &mut self,
        finished: Finished<Result<String, ModelError>>,
    ) -> Result<(), Gone> {
        let Finished { id, command, cancelled, result } = finished;
        let result = result.map_err(|error| format!("the compaction broke off: {error}"));
        match result.and_then(|summary| summary.map_err(|error| error.to_string())) {
            _ if cancelled => self.respond(&id, command, &Outcome::cancelled()).await?,
            Ok(summary) => match self.replace(&summary) {
                Ok(()) => self.respond(&id, command, &Summary::new(summary)).await?,
                Err(error) => self.fail(Some(id), error).await?,
            },
            Err(error) => self.fail(Some(id), error).await?,
        }
        self.settle().await
    }

    fn replace(&self, summary: &str) -> Result<(), String> {
        let messages = vec![
            Message::user(format!("<context-summary>\n{summary}\n</context-summary>")),
            Message::assistant(vec![Block::Text { text: ACKNOWLEDGED.to_owned() }]),
        ];
        locked(&self.history).compact(self.summarised, messages).map_err(|error| error.to_string())
    }
}

async fn summarise(model: Arc<dyn Model>, prompt: Prompt, cancel: Cancel) -> Result<String, ModelError> {
    let mut deltas = model.answer(prompt);
    let mut summary = String::new();
    loop {
        let delta = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(summary),
            delta = deltas.next() => delta,
        };
        match delta.ok_or(ModelError::CutOff)?? {
            Delta::Text(text) => summary.push_str(&text),
            Delta::Stop if summary.trim().is_empty() => return Err(ModelError::Empty),
            Delta::Stop => return Ok(summary),
            _ => {}
        }
    }
}
