//! `compact`: the parent wants the history to become a summary of itself.
//!
//! The model is asked beside everything else; what is said meanwhile stays, because only the messages that were
//! summarised are replaced. It can be aborted, and then nothing has changed. It fails if no summary can be written.

use std::sync::Arc;

use swb_proto::agent::TurnUsage;

use super::jobs::{Finished, Job};
use super::reply::{Compacted, Outcome};
use super::{Agent, Gone};
use crate::cancel::Cancel;
use crate::compaction::{self, Summary};
use crate::model::{Model, ModelError};
use crate::turn::{announced, locked};

const BUSY: &str = "a compaction is under way; abort first";
const EMPTY: &str = "there is nothing to compact";
const OVERTAKEN: &str = "the history was compacted meanwhile";

/// A summary, and what it stands for.
#[derive(Debug)]
pub(super) struct Written {
    summary: Summary,
    /// How many messages it stands for, …
    count: usize,
    /// … after so many compactions.
    seen: u64,
}

impl Agent {
    /// The model that summarises, and how much fits into it: the one that was named for it, else the one in use.
    pub(super) fn summariser(&self, in_use: &str) -> Result<(Arc<dyn Model>, Option<u64>), ModelError> {
        let named =
            self.compaction_model.as_deref().and_then(|name| Some((name, self.models.find(name).ok()?)));
        match named {
            Some((name, model)) => Ok((model, self.models.context_window(name))),
            None => Ok((self.models.find(in_use)?, self.models.context_window(in_use))),
        }
    }

    pub(super) async fn compact(&mut self, id: String) -> Result<(), Gone> {
        if self.compaction.is_some() {
            return self.fail(Some(id), BUSY).await;
        }
        let (messages, seen, name) = {
            let history = locked(&self.history);
            let count = history.compactable(self.turn.is_some());
            (history.messages()[..count].to_vec(), history.compactions(), history.model.clone())
        };
        if messages.is_empty() {
            return self.fail(Some(id), EMPTY).await;
        }
        let (model, its_window) = match self.summariser(&name) {
            Ok(summariser) => summariser,
            Err(error) => return self.fail(Some(id), error.to_string()).await,
        };
        let context_window = self.models.context_window(&name);
        let cancel = Cancel::new();
        let cancelled = cancel.clone();
        let model = announced(model, self.output.clone());
        let work = async move {
            let summary = tokio::select! {
                biased;
                // Nobody reads this.
                () = cancelled.cancelled() => return Err(ModelError::CutOff),
                summary = compaction::summarise((model, its_window), &messages, context_window) => summary,
            };
            let summary = match summary {
                // A second try would not help.
                Err(error @ ModelError::TooLong { .. }) => {
                    let text = compaction::without_model(&messages, context_window, &error.to_string());
                    Summary { text, usage: TurnUsage::default() }
                }
                summary => summary?,
            };
            Ok(Written { summary, count: messages.len(), seen })
        };
        self.compaction = Some(Job::start(id, "compact", cancel, work));
        Ok(())
    }

    pub(super) async fn compaction_ended(
        &mut self,
        finished: Finished<Result<Written, ModelError>>,
    ) -> Result<(), Gone> {
        let Finished { id, command, cancelled, result } = finished;
        let result = result.map_err(|error| format!("the compaction broke off: {error}"));
        match result.and_then(|written| written.map_err(|error| error.to_string())) {
            _ if cancelled => self.respond(&id, command, &Outcome::cancelled()).await?,
            Ok(written) => match self.replace(written) {
                Ok(compacted) => self.respond(&id, command, &compacted).await?,
                Err(error) => self.fail(Some(id), error).await?,
            },
            Err(error) => self.fail(Some(id), error).await?,
        }
        self.settle().await
    }

    fn replace(&self, written: Written) -> Result<Compacted, String> {
        let Written { summary: Summary { text, usage }, count, seen } = written;
        let mut history = locked(&self.history);
        let replaced = history.used_aside(&usage).and_then(|()| {
            let idle = self.turn.is_none();
            history.compact(seen, count, &text, idle)
        });
        match replaced {
            Ok(true) => Ok(Compacted {
                context_tokens: history.context_tokens(),
                message_count: history.messages().len(),
                ok: true,
                summary: text,
            }),
            Ok(false) => Err(OVERTAKEN.to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}
