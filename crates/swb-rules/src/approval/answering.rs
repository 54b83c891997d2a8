//! Putting questions and answering them.

use thiserror::Error;

use super::deadline::{LONGEST_GRANT, Patience, millis};
use super::desk::{Desk, MAX_PENDING};
use super::event::ApprovalEvent;
use super::outcome::{Choice, Outcome, Status};
use super::request::{Announced, Approval, ApprovalRequest};
use crate::policy::{Actor, Grant, GrantScope};

/// Why a question was not put.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Too many wait already.
    #[error("{MAX_PENDING} approvals are pending already")]
    Full,
    /// The id was used for something else.
    #[error("approval {id} is another question")]
    OtherQuestion {
        /// The id.
        id: String,
    },
}

/// A question that was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    /// The question, with its outcome if it has one already.
    pub approval: Approval,
    /// What is to be kept; nothing if it had been put before.
    pub events: Vec<ApprovalEvent>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Resolve<'a> {
    /// Which question.
    pub id: &'a str,
    /// The answer.
    pub choice: Choice,
    /// Who gives it.
    pub by: &'a Actor,
    /// In their words.
    pub reason: Option<String>,
    /// The id of the grant, should one come of it.
    pub grant_id: &'a str,
}

/// An answer that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The outcome.
    pub outcome: Outcome,
    /// The grant that came of it.
    pub grant: Option<Grant>,
    /// What is to be kept.
    pub events: Vec<ApprovalEvent>,
}

/// Why an answer was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// No such question, or its outcome is too old to be remembered.
    #[error("there is no approval {id}")]
    Unknown {
        /// The id.
        id: String,
    },
    /// Somebody or the deadline was first.
    #[error("approval {id} is already resolved")]
    AlreadyResolved {
        /// The id.
        id: String,
        /// What came out.
        outcome: Box<Outcome>,
        /// To be kept, if the deadline had passed unnoticed.
        events: Vec<ApprovalEvent>,
    },
    /// It is not among the options.
    #[error("approval {id} cannot be answered like that")]
    NoSuchOption {
        /// The id.
        id: String,
    },
    /// Agents do not answer.
    #[error("approvals are answered by people")]
    NotForAgents,
}

impl Desk {
    /// Puts a question. Asked again under the same id it is the same question, with whatever became of it.
    pub fn request(
        &mut self,
        now: u64,
        request: ApprovalRequest,
        patience: Patience,
    ) -> Result<Requested, RequestError> {
        let now = self.not_before(now);
        if let Some(known) = self.approvals.get(&request.id) {
            return if known.request == request {
                Ok(Requested { approval: known.clone(), events: Vec::new() })
            } else {
                Err(RequestError::OtherQuestion { id: request.id })
            };
        }
        if self.pending().count() >= MAX_PENDING {
            return Err(RequestError::Full);
        }
        let approval = Approval {
            options: request.options(),
            requested_at: now,
            deadline: patience.deadline(now),
            outcome: None,
            announced: Announced::Nothing,
            token_issued: false,
            request,
        };
        let id = approval.request.id.clone();
        let mut events = vec![ApprovalEvent::Requested { approval: Box::new(approval) }];
        self.apply_all(&events);
        // Where nobody can be asked, the deadline is now.
        events.extend(self.expire_where(now, |approval| approval.request.id == id));
        let approval = self.approvals.get(&id).cloned();
        Ok(Requested { approval: approval.ok_or(RequestError::Full)?, events })
    }

    /// Takes an answer. The first one counts; whoever comes later is told the outcome.
    pub fn resolve(&mut self, now: u64, answer: Resolve<'_>) -> Result<Resolution, ResolveError> {
        let now = self.not_before(now);
        if answer.by.is_agent() {
            return Err(ResolveError::NotForAgents);
        }
        let id = answer.id.to_owned();
        // Nothing but this question may expire here: an error that tells of no events must have caused none.
        let events = self.expire_where(now, |approval| approval.request.id == id);
        let Some(approval) = self.approvals.get(&id) else { return Err(ResolveError::Unknown { id }) };
        if let Some(outcome) = approval.outcome.clone() {
            return Err(ResolveError::AlreadyResolved { id, outcome: Box::new(outcome), events });
        }
        if !approval.options.contains(&answer.choice) {
            return Err(ResolveError::NoSuchOption { id });
        }
        let grant = (answer.choice == Choice::AllowForSession)
            .then(|| grant_of(approval, now, answer.by, answer.grant_id))
            .flatten();
        let outcome = Outcome {
            status: if answer.choice == Choice::Deny { Status::Denied } else { Status::Approved },
            resolved_by: Some(answer.by.id().to_owned()),
            reason: answer.reason,
            resolved_at: now,
            grant_id: grant.as_ref().map(|grant| grant.id.clone()),
        };
        let mut events = vec![ApprovalEvent::Resolved { id: id.clone(), outcome: outcome.clone() }];
        events.extend(grant.clone().map(|grant| ApprovalEvent::Granted { approval_id: id, grant }));
        self.apply_all(&events);
        Ok(Resolution { outcome, grant, events })
    }

    /// Everything whose deadline has passed.
    pub fn expire(&mut self, now: u64) -> Vec<ApprovalEvent> {
        self.expire_where(now, |_| true)
    }

    fn expire_where(&mut self, now: u64, which: impl Fn(&Approval) -> bool) -> Vec<ApprovalEvent> {
        let now = self.not_before(now);
        let outcome = Outcome {
            status: Status::TimedOut,
            resolved_by: None,
            reason: None,
            resolved_at: now,
            grant_id: None,
        };
        self.close(|approval| approval.deadline <= now && which(approval), &outcome)
    }

    /// Whoever asked wants no answer any more.
    pub fn withdraw(&mut self, now: u64, id: &str) -> Vec<ApprovalEvent> {
        let outcome = Outcome {
            status: Status::Denied,
            resolved_by: None,
            reason: Some("the question was taken back".to_owned()),
            resolved_at: self.not_before(now),
            grant_id: None,
        };
        self.close(|approval| approval.request.id == id, &outcome)
    }

    /// An agent has ended: what it and those below it have asked is answered with no, and its grants end.
    pub fn end_agent(&mut self, now: u64, agent: &str) -> Vec<ApprovalEvent> {
        let now = self.not_before(now);
        let mut events = self.expire(now);
        let outcome = Outcome {
            status: Status::Denied,
            resolved_by: None,
            reason: Some("the one who asked has ended".to_owned()),
            resolved_at: now,
            grant_id: None,
        };
        events.extend(self.close(|approval| approval.concerns(agent), &outcome));
        let ended: Vec<ApprovalEvent> = self
            .grants
            .iter()
            .filter(|grant| grant.agent == agent)
            .map(|grant| ApprovalEvent::Revoked { grant_id: grant.id.clone(), by: None, at: now })
            .collect();
        self.apply_all(&ended);
        events.extend(ended);
        events
    }

    /// The daemon came back: deadlines are moved so that somebody can still answer, then what is past is closed.
    pub fn restart(&mut self, now: u64) -> Vec<ApprovalEvent> {
        let at = self.not_before(now);
        let mut events = vec![ApprovalEvent::Restarted { at }];
        self.apply_all(&events);
        events.extend(self.expire(at));
        events
    }

    fn close(&mut self, ends: impl Fn(&Approval) -> bool, outcome: &Outcome) -> Vec<ApprovalEvent> {
        let mut ending: Vec<&Approval> = self.pending().filter(|approval| ends(approval)).collect();
        ending.sort_by_key(|approval| approval.deadline);
        let events: Vec<ApprovalEvent> = ending
            .into_iter()
            .map(|approval| ApprovalEvent::Resolved {
                id: approval.request.id.clone(),
                outcome: outcome.clone(),
            })
            .collect();
        self.apply_all(&events);
        events
    }
}

fn grant_of(approval: &Approval, now: u64, by: &Actor, id: &str) -> Option<Grant> {
    let input = &approval.request.input;
    Some(Grant {
        id: id.to_owned(),
        agent: input.actor.id().to_owned(),
        action: input.action.clone(),
        scope: GrantScope::of(input)?,
        risk: input.risk,
        granted_by: by.id().to_owned(),
        granted_at: now,
        expires_at: now.saturating_add(millis(LONGEST_GRANT)),
    })
}
