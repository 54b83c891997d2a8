//! Asking: a decision that needs a person goes to the parent, if that has said it would answer.
//!
//! An ask has a deadline and is answered once. Without a parent that answers, past the deadline, or when the turn is
//! aborted, the answer is no; nothing ever hangs on it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use swb_proto::Timestamp;
use swb_proto::agent::AddedEvent;
use swb_rules::redact::{redact, redact_json};
use tokio::sync::oneshot;

use super::{Action, Decision, Gate, Risk, Subject};
use crate::stdio::output::Output;

/// What may be answered.
const OPTIONS: [&str; 2] = ["allow", "deny"];

/// Why a call may not happen. The text is for the model.
#[derive(Debug, thiserror::Error)]
#[error("Denied: {reason}")]
pub(crate) struct Denied {
    reason: String,
}

/// An answer that fits no ask.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("there is no open ask of this id: it was answered, or its deadline has passed")]
    NotOpen,
    #[error("the options are `allow` and `deny`")]
    NoSuchOption,
}

/// The asks that are open.
#[derive(Debug)]
pub(crate) struct Asks {
    /// Where to ask; `None` if nobody answers.
    parent: Option<Output>,
    patience: Duration,
    open: Mutex<HashMap<String, oneshot::Sender<bool>>>,
    count: AtomicU64,
}

impl Asks {
    pub(crate) fn new(parent: Option<Output>, patience: Duration) -> Self {
        Asks { parent, patience, open: Mutex::default(), count: AtomicU64::new(1) }
    }

    /// Lets a call pass, or says why not.
    pub(crate) async fn permit(
        &self,
        gate: &Gate,
        subject: Subject<'_>,
        action: &Action<'_>,
        arguments: &Value,
    ) -> Result<(), Denied> {
        match gate.decide(subject, action, arguments) {
            Decision::Allow => Ok(()),
            Decision::Deny { reason } => Err(Denied { reason: redact(&reason).text }),
            Decision::Ask { risk, reason } => {
                let mut question =
                    json!({ "session_id": subject.session_id, "tool": action.tool, "arguments": arguments });
                if !subject.agents.is_empty() {
                    question["agents"] = json!(subject.agents);
                }
                // Whoever answers sees what is to be done, and not the keys it is done with.
                redact_json(&mut question);
                let reason = redact(&reason).text;
                match self.ask(question, risk, &reason).await {
                    Some(true) => Ok(()),
                    Some(false) => Err(Denied { reason: format!("{reason}, and the answer was no") }),
                    None => Err(Denied { reason: format!("{reason}, and nobody was there to allow it") }),
                }
            }
        }
    }

    /// Takes an answer.
    pub(crate) fn answer(&self, ask_id: &str, option: &str) -> Result<(), AnswerError> {
        if !OPTIONS.contains(&option) {
            return Err(AnswerError::NoSuchOption);
        }
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(ask_id);
        open.and_then(|waiting| waiting.send(option == "allow").ok()).ok_or(AnswerError::NotOpen)
    }

    async fn ask(&self, subject: Value, risk: Risk, reason: &str) -> Option<bool> {
        let parent = self.parent.as_ref()?;
        let ask_id = format!("ask_{}", self.count.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(ask_id.clone(), sender);
        let _closed = Closed { asks: self, ask_id: &ask_id };
        let event = AddedEvent::Ask {
            ask_id: ask_id.clone(),
            subject,
            risk: risk.to_string(),
            options: OPTIONS.map(str::to_owned).to_vec(),
            deadline: Timestamp::from_system_time(SystemTime::now() + self.patience).as_str().to_owned(),
            reason: reason.to_owned(),
        };
        parent.send(&event).await.ok()?;
        tokio::time::timeout(self.patience, answer).await.ok()?.ok()
    }
}

/// Forgets an ask that nobody waits for any more, also when its turn was aborted.
struct Closed<'a> {
    asks: &'a Asks,
    ask_id: &'a str,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.asks.open.lock().unwrap_or_else(PoisonError::into_inner).remove(self.ask_id);
    }
}
