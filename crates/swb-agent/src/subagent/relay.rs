//! Questions of a subagent on their way up, and the answers on their way down.
//!
//! A question goes to our own parent under a new id and with the name of the subagent in front, so that whoever answers
//! knows who wants it; ours is closed when the subagent's is, or when that ends. When there is no answer the subagent
//! is told so.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use swb_proto::agent::AddedCommand;
use tokio::task::{AbortHandle, JoinSet};

use crate::gate::Risk;
use crate::gate::ask::{Answer, Asks, Question, Unanswered};

/// A question as the subagent has put it.
#[derive(Debug)]
pub(super) struct Put {
    pub(super) ask_id: String,
    pub(super) subject: Value,
    pub(super) risk: String,
    pub(super) options: Vec<String>,
    pub(super) free_text: bool,
    pub(super) reason: String,
}

/// The questions of one subagent that are open.
#[derive(Debug)]
pub(super) struct Relay {
    asks: Arc<Asks>,
    name: String,
    waiting: JoinSet<(String, Result<Answer, Unanswered>)>,
    open: HashMap<String, AbortHandle>,
}

impl Relay {
    pub(super) fn new(asks: Arc<Asks>, name: String) -> Self {
        Relay { asks, name, waiting: JoinSet::new(), open: HashMap::new() }
    }

    /// Passes a question on.
    pub(super) fn put(&mut self, put: Put) {
        let Put { ask_id, mut subject, risk, options, free_text, reason } = put;
        if !subject.is_object() {
            subject = json!({ "about": subject });
        }
        let mut agents = vec![json!(self.name)];
        agents.extend(subject["agents"].as_array().cloned().unwrap_or_default());
        subject["agents"] = Value::Array(agents);
        let risk = match risk.as_str() {
            "low" => Risk::Low,
            "medium" => Risk::Medium,
            "critical" => Risk::Critical,
            _ => Risk::High,
        };
        let question = Question { subject, risk, options, free_text, reason, patience: None };
        let (asks, id) = (Arc::clone(&self.asks), ask_id.clone());
        let handle = self.waiting.spawn(async move { (id, asks.put(question).await) });
        self.open.insert(ask_id, handle);
    }

    /// The subagent does not wait for an answer any more.
    pub(super) fn close(&mut self, ask_id: &str) {
        if let Some(handle) = self.open.remove(ask_id) {
            handle.abort();
        }
    }

    /// The next answer, as the command that brings it. Waits for ever while nothing is open.
    pub(super) async fn answered(&mut self) -> AddedCommand {
        loop {
            let Some(joined) = self.waiting.join_next().await else {
                return std::future::pending().await;
            };
            let Ok((ask_id, result)) = joined else { continue };
            self.open.remove(&ask_id);
            let Answer { option, text, declined } =
                result.unwrap_or_else(|_| Answer { declined: true, ..Answer::default() });
            return AddedCommand::Answer { id: "answer".to_owned(), ask_id, option, text, declined };
        }
    }
}
