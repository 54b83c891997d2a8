//! What came out, and which rules said so.

use std::fmt;

use serde::{Deserialize, Serialize};

use std::sync::Arc;

use super::rule::RuleInfo;

/// The answer. A later one is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Go.
    Allow,
    /// Go once somebody has agreed.
    NeedsApproval,
    /// No.
    Deny,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::NeedsApproval => "needs approval",
            Self::Deny => "deny",
        })
    }
}

/// A decision with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The answer.
    pub answer: Answer,
    /// How it came about.
    pub why: Why,
    /// The rules that spoke. For a denial: those that forbid. For an approval: those that would let it pass, and those
    /// that ask for it.
    pub rules: Vec<Arc<RuleInfo>>,
    /// The agent for which the answer was this strict, if that was one above the actor.
    pub on_behalf_of: Option<String>,
    /// What keeps the rules from speaking, in words.
    pub trouble: Option<String>,
}

/// How an answer came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Why {
    /// Rules permit it.
    Permitted,
    /// Rules permit it because somebody has agreed.
    Approved,
    /// Rules would permit it if somebody agreed.
    PermittedIfApproved,
    /// A rule forbids it unless somebody agrees.
    AskedFor,
    /// A rule forbids it.
    Forbidden,
    /// No rule permits it.
    NotPermitted,
    /// No rule can speak of this action.
    UnknownAction,
    /// The question does not fit the action: a command line without its facts, a path where a session belongs.
    Unfit,
    /// A rule failed while it was evaluated.
    BrokenRule,
    /// There are no rules.
    NoRules,
}

/// Which rules spoke, in words: the part of a decision that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spoke {
    /// The answer.
    pub answer: Answer,
    /// How it came about.
    pub why: Why,
    /// The names of the rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The agent for which the answer was this strict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
}

impl Decision {
    pub(super) fn deny(why: Why) -> Self {
        Self { answer: Answer::Deny, why, rules: Vec::new(), on_behalf_of: None, trouble: None }
    }

    /// The denial of those whose rules cannot be used, and what is wrong with them.
    #[must_use]
    pub fn without_rules(trouble: impl Into<String>) -> Self {
        Self { trouble: Some(trouble.into()), ..Self::deny(Why::NoRules) }
    }

    /// The reason in one sentence, for people and models.
    #[must_use]
    pub fn reason(&self) -> String {
        let told = self.rules.iter().find_map(|rule| rule.reason.clone());
        let general = match self.why {
            Why::Permitted => "a rule permits it",
            Why::Approved => "somebody has agreed",
            Why::PermittedIfApproved => "it needs an approval",
            Why::AskedFor => "a rule asks for an approval",
            Why::Forbidden => "a rule forbids it",
            Why::NotPermitted => "no rule permits it",
            Why::UnknownAction => "no rule can speak of this action",
            Why::Unfit => "what is known about the call does not fit its action",
            Why::BrokenRule => "a rule failed while it was evaluated",
            Why::NoRules => "there are no rules",
        };
        let mut reason = told.unwrap_or_else(|| general.to_owned());
        if let Some(trouble) = &self.trouble {
            reason = format!("the rules cannot be used: {trouble}");
        }
        if let Some(agent) = &self.on_behalf_of {
            reason.push_str(&format!(" (this holds for {agent}, on whose behalf it would be done)"));
        }
        reason
    }

    /// The part of it that is kept.
    #[must_use]
    pub fn spoke(&self) -> Spoke {
        Spoke {
            answer: self.answer,
            why: self.why,
            rules: self.rules.iter().map(|rule| rule.name.clone()).collect(),
            on_behalf_of: self.on_behalf_of.clone(),
        }
    }
}
