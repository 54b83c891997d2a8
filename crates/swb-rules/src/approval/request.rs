//! A question, and what has become of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::outcome::{Choice, Outcome};
use super::token::Binding;
use crate::policy::{Actor, GrantScope, Input};
use crate::shell::Risk;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Its id. Asking again under the same id is the same question.
    pub id: String,
    /// What the policy was asked: who wants to do what, to what.
    pub input: Input,
    /// What a person is shown, redacted: the command line, the arguments, the diff.
    pub subject: Value,
    /// Why it needs an approval, in words.
    pub reason: String,
    /// How bad it could be.
    pub risk: Risk,
    /// The rules that asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// Whether containment holds around the asker (`false` is shown as `advisory`).
    pub contained: bool,
    /// Ids of the wire, for whoever shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The chain of causes it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The call of a tool that it is about, as the one who calls names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// What a token of it would be good for, if one is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_for: Option<Binding>,
}

/// A question that was put, with its deadline and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The question.
    pub request: ApprovalRequest,
    /// What can be answered.
    pub options: Vec<Choice>,
    /// When it was put.
    pub requested_at: u64,
    /// From when on the answer is no.
    pub deadline: u64,
    /// What became of it; none while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What whoever listens was told of it.
    #[serde(default, skip_serializing_if = "Announced::is_nothing")]
    pub announced: Announced,
    /// A token was made of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub token_issued: bool,
}

/// What whoever listens was told of a question: it has one beginning and one end, also where a crash comes between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Announced {
    /// Nothing.
    #[default]
    Nothing,
    /// That it was put.
    Question,
    /// What came out.
    Outcome,
}

impl Announced {
    fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }
}

impl ApprovalRequest {
    /// What can be answered: for the session only if that can be said narrowly.
    pub(super) fn options(&self) -> Vec<Choice> {
        let for_session =
            self.token_for.is_none() && self.input.actor.is_agent() && GrantScope::of(&self.input).is_some();
        let mut options = vec![Choice::Allow];
        options.extend(for_session.then_some(Choice::AllowForSession));
        options.push(Choice::Deny);
        options
    }
}

impl Approval {
    /// Whether an answer is still waited for.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.outcome.is_none()
    }

    /// The agents it bubbles up through, the asker first and the root last.
    pub fn audience(&self) -> impl Iterator<Item = &str> {
        let above: &[_] = match &self.request.input.actor {
            Actor::Agent { ancestry, .. } => ancestry,
            _ => &[],
        };
        std::iter::once(self.request.input.actor.id())
            .chain(above.iter().rev().map(|agent| agent.id.as_str()))
    }

    /// Whether it was asked by this agent or one below it, or in this session.
    #[must_use]
    pub fn concerns(&self, agent: &str) -> bool {
        self.audience().any(|member| member == agent) || self.request.session_id.as_deref() == Some(agent)
    }

    /// Whether somebody who listens does not know yet what is to be known.
    #[must_use]
    pub fn is_unannounced(&self) -> bool {
        let known = if self.is_pending() { Announced::Question } else { Announced::Outcome };
        self.announced < known
    }
}
