//! Asking: what a person has to decide goes to the parent, if that has said it would answer.
//!
//! A [`Question`] has a deadline and is answered once. Without a parent that answers, past the deadline, or when the turn
//! is aborted, there is no answer, and who asked goes on without one; nothing ever hangs on it. An id is never used
//! twice, not even by the next process of the same session, so that a late answer meets no other question than its own.
//! A parent that did not answer is told when a question is closed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use swb_proto::Timestamp;
use swb_proto::agent::AddedEvent;
use swb_rules::redact::{redact, redact_json};
use tokio::sync::oneshot;
use ulid::Ulid;

use super::Risk;
use crate::stdio::output::Output;

/// How many may be open at once.
const MAX_OPEN: usize = 64;

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// What it is about, in a form for programs.
    pub(crate) subject: Value,
    pub(crate) risk: Risk,
    /// What may be answered.
    pub(crate) options: Vec<String>,
    /// Whether other words will do as well.
    pub(crate) free_text: bool,
    /// Why it is asked, for people.
    pub(crate) reason: String,
    /// How long an answer is waited for, if that is shorter than usual.
    pub(crate) patience: Option<Duration>,
}

/// What was answered: an option, words, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) option: Option<String>,
    pub(crate) text: Option<String>,
    /// Nobody will answer.
    pub(crate) declined: bool,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unanswered {
    #[error("nobody was there to ask")]
    Nobody,
    #[error("nobody answered in time")]
    Expired,
    #[error("nobody wanted to answer")]
    Declined,
    #[error("too many questions are open already")]
    TooMany,
}

/// An answer that fits no question.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("there is no open ask of this id: it was answered, or its deadline has passed")]
    NotOpen,
    #[error("an answer is one of the options: {0}")]
    NoSuchOption(String),
    #[error("this ask is answered with one of its options, not with words of your own")]
    NoFreeText,
    #[error("an answer has an `option` or a `text`, or says that it is `declined`")]
    Empty,
}

/// The questions that are open.
#[derive(Debug)]
pub(crate) struct Asks {
    /// Where to ask; `None` if nobody answers.
    parent: Option<Output>,
    patience: Duration,
    open: Mutex<HashMap<String, Open>>,
}

#[derive(Debug)]
struct Open {
    options: Vec<String>,
    free_text: bool,
    waiting: oneshot::Sender<Answer>,
}

impl Asks {
    pub(crate) fn new(parent: Option<Output>, patience: Duration) -> Self {
        Asks { parent, patience, open: Mutex::default() }
    }

    /// Whether there is anybody to ask.
    pub(crate) fn anybody(&self) -> bool {
        self.parent.is_some()
    }

    /// Asks, and waits for the answer. Dropping the wait closes the question.
    pub(crate) async fn put(&self, question: Question) -> Result<Answer, Unanswered> {
        let parent = self.parent.as_ref().ok_or(Unanswered::Nobody)?;
        let Question { mut subject, risk, options, free_text, reason, patience } = question;
        let patience = patience.unwrap_or(self.patience).min(self.patience);
        let ask_id = new_id();
        let (waiting, answer) = oneshot::channel();
        {
            let mut open = self.open();
            if open.len() >= MAX_OPEN {
                return Err(Unanswered::TooMany);
            }
            open.insert(ask_id.clone(), Open { options: options.clone(), free_text, waiting });
        }
        let mut closing = Closing { asks: self, ask_id: &ask_id, told: false, outcome: "cancelled" };
        // Whoever answers sees what is to be done, and not the keys it is done with.
        redact_json(&mut subject);
        let event = AddedEvent::Ask {
            ask_id: ask_id.clone(),
            subject,
            risk: risk.to_string(),
            options,
            free_text,
            deadline: Timestamp::from_system_time(SystemTime::now() + patience).as_str().to_owned(),
            reason: redact(&reason).text,
        };
        let deadline = tokio::time::Instant::now() + patience;
        parent.send(&event).await.map_err(|_| Unanswered::Nobody)?;
        closing.told = true;
        match tokio::time::timeout_at(deadline, answer).await {
            Ok(Ok(Answer { declined: true, .. })) => Err(Unanswered::Declined),
            Ok(Ok(answer)) => Ok(answer),
            _ => {
                closing.outcome = "expired";
                Err(Unanswered::Expired)
            }
        }
    }

    /// Takes an answer. One that does not fit changes nothing.
    pub(crate) fn answer(&self, ask_id: &str, answer: Answer) -> Result<(), AnswerError> {
        let mut questions = self.open();
        let open = questions.get(ask_id).ok_or(AnswerError::NotOpen)?;
        match &answer {
            Answer { declined: true, .. } => {}
            Answer { option: None, text: None, .. } => return Err(AnswerError::Empty),
            Answer { option: Some(option), .. } if !open.options.contains(option) => {
                return Err(AnswerError::NoSuchOption(open.options.join(", ")));
            }
            Answer { text: Some(_), .. } if !open.free_text => return Err(AnswerError::NoFreeText),
            _ => {}
        }
        let open = questions.remove(ask_id).ok_or(AnswerError::NotOpen)?;
        open.waiting.send(answer).map_err(|_| AnswerError::NotOpen)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_id() -> String {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis());
    let mut random = [0; 16];
    // Without randomness the time alone keeps two processes apart.
    let _ = getrandom::fill(&mut random);
    let id = Ulid::from_parts(u64::try_from(millis).unwrap_or(0), u128::from_le_bytes(random));
    format!("ask_{id}")
}

/// Forgets a question that nobody waits for any more, and tells the parent if that still thinks it is open.
struct Closing<'a> {
    asks: &'a Asks,
    ask_id: &'a str,
    told: bool,
    outcome: &'static str,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let was_open = self.asks.open().remove(self.ask_id).is_some();
        if let (Some(parent), true, true) = (&self.asks.parent, was_open, self.told) {
            let (ask_id, outcome) = (self.ask_id.to_owned(), self.outcome.to_owned());
            parent.post(&AddedEvent::AskClosed { ask_id, outcome });
        }
    }
}

#[cfg(test)]
mod tests;
