//! One command after the other: may it go on, must somebody agree, or not at all?

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use swb_bus::Caller;
use swb_bus::gate::{Admission, Command, Guest, Receipt};
use swb_journal::audit::RecordedDecision;
use swb_proto::control::HelloParams;
use swb_proto::error::{ERR_POLICY_DENIED, ERR_UNAUTHORIZED};
use swb_proto::id::DecisionId;
use swb_proto::{BusError, Meta, method};
use swb_rules::approval::{ApprovalRequest, Outcome, Patience, Status};
use swb_rules::policy::{Answer, Approved, Decision};

use super::HouseGate;
use super::identity::Identity;
use super::question::Question;
use super::receipt::Owed;
use crate::approvals::Approvals;
use crate::policy::Ruling;
use crate::record::{Shown, Start, Started};

/// Somebody whom the gate has met.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) house: Arc<HouseGate>,
    pub(super) identity: Identity,
}

impl Guest for Known {
    fn caller(&self, context: Meta) -> Caller {
        self.identity.caller(context)
    }

    fn admit(&self, caller: &Arc<Caller>, command: &Command<'_>) -> Admission {
        let errand = Errand::new(&self.house, caller, command);
        if let Some(error) = self.turned_away(caller, command) {
            return errand.refuse(&Shown::of(&errand.question.input), None, error);
        }
        let ruling = errand.decide(Approved::No);
        match ruling.answer {
            Answer::Allow => errand.go(&ruling, None),
            Answer::Deny => errand.deny(&ruling, None, None),
            Answer::NeedsApproval => match self.house.approvals.covers(&errand.question.input) {
                Some(grant) => errand.go_if_still_allowed(Some(grant.id)),
                None if errand.can_wait => Admission::Wait(errand.lasting().ask(ruling).boxed()),
                None => errand.deny(&ruling, None, Some("APPROVAL_CANNOT_BE_AWAITED")),
            },
        }
    }
}

impl Known {
    /// Why this line is not heard at all.
    fn turned_away(&self, caller: &Caller, command: &Command<'_>) -> Option<BusError> {
        if self.identity == Identity::Nobody {
            let message = "whose process this is cannot be told, so it is not served";
            return Some(BusError::new(ERR_UNAUTHORIZED, message).because("UNKNOWN_PEER"));
        }
        let hello = (command.method == "bus/hello")
            .then(|| HelloParams::try_from(command.payload.clone()).ok())
            .flatten()
            .map(|hello| self.identity.caller(hello.context));
        let claimed = hello.as_ref().and_then(Caller::claimed).or(caller.claimed())?;
        let message = format!(
            "this connection is {} {}, not {} {}",
            caller.actor().kind.as_str(),
            caller.actor().id,
            claimed.kind.as_str(),
            claimed.id
        );
        Some(BusError::new(ERR_UNAUTHORIZED, message).because("ACTOR_MISMATCH"))
    }
}

/// A command on its way through the gate.
struct Errand<'a> {
    house: Arc<HouseGate>,
    caller: Arc<Caller>,
    question: Question,
    /// The dotted name.
    method: String,
    command_id: Option<Cow<'a, str>>,
    params: Option<Cow<'a, RawValue>>,
    can_wait: bool,
}

impl<'a> Errand<'a> {
    fn new(house: &Arc<HouseGate>, caller: &Arc<Caller>, command: &Command<'a>) -> Self {
        Errand {
            house: Arc::clone(house),
            caller: Arc::clone(caller),
            question: Question::new(&house.records, caller, command.method, command.params),
            method: method::dotted(command.method),
            command_id: command.id.map(|id| Cow::Borrowed(id.trim_matches('"'))),
            params: command.params.map(Cow::Borrowed),
            can_wait: command.can_wait,
        }
    }

    /// The same, for longer than the line it came on.
    fn lasting(self) -> Errand<'static> {
        Errand {
            command_id: self.command_id.map(|id| Cow::Owned(id.into_owned())),
            params: self.params.map(|params| Cow::Owned(params.into_owned())),
            ..self
        }
    }

    fn decide(&self, approved: Approved) -> Arc<Ruling> {
        self.house.policy.decide(&self.question.input, &self.question.place(), approved)
    }

    /// A decision as it is recorded.
    fn recorded(&self, decision: &Decision, approval_id: Option<String>) -> RecordedDecision {
        let spoke = decision.spoke();
        let outcome = match (&approval_id, spoke.answer) {
            (Some(_), Answer::Allow) => "approved",
            (_, Answer::Allow) => "allow",
            (_, Answer::NeedsApproval) => "needs_approval",
            (_, Answer::Deny) => "deny",
        };
        let id = DecisionId::from_ulid(self.house.records.unique()).into_string();
        RecordedDecision { id, outcome: outcome.to_owned(), rules: spoke.rules, approval_id }
    }

    fn start(&self, question: &Shown, decision: Option<RecordedDecision>) -> Result<Started, BusError> {
        let start = Start {
            method: &self.method,
            actor: self.caller.actor(),
            meta: self.caller.meta(),
            parent_correlation_id: None,
            command_id: self.command_id.as_deref(),
            decision,
            attributes: Some(question),
            args: self.params.as_deref(),
        };
        Ok(self.house.recorder.started(start)?)
    }

    /// Begins: recorded now, or as soon as the disk has it. What cannot wait for the disk begins at once, and its answer
    /// waits: its end comes after its start, on the disk too.
    fn go(&self, ruling: &Ruling, approval_id: Option<String>) -> Admission {
        match self.start(ruling.question(), Some(self.recorded(ruling, approval_id))) {
            Err(error) => Admission::Refused(error),
            Ok(started) if started.is_settled() || !self.can_wait => Admission::Go(Box::new(Owed(started))),
            Ok(started) => Admission::Wait(settled(started).boxed()),
        }
    }

    /// Somebody has agreed, now or before; what the rules say to that counts.
    fn go_if_still_allowed(&self, approval_id: Option<String>) -> Admission {
        let ruling = self.decide(Approved::Yes);
        if ruling.answer == Answer::Allow {
            return self.go(&ruling, approval_id);
        }
        self.deny(&ruling, approval_id, None)
    }

    /// Refuses what the rules do not allow; `because` is a finer reason than that.
    fn deny(&self, ruling: &Ruling, approval_id: Option<String>, because: Option<&'static str>) -> Admission {
        let recorded = self.recorded(ruling, approval_id);
        let message = format!("{} is not allowed: {}", self.method, ruling.reason());
        let mut error = BusError::new(ERR_POLICY_DENIED, message)
            .with("decision_id", recorded.id.clone())
            .with("rule_ids", recorded.rules.clone());
        if let Some(because) = because {
            error = error.because(because);
        }
        self.refuse(ruling.question(), Some(recorded), error)
    }

    /// Records a refusal. Where that cannot be done, its cause is told instead.
    fn refuse(&self, question: &Shown, decision: Option<RecordedDecision>, error: BusError) -> Admission {
        let started = match self.start(question, decision) {
            Ok(started) => started,
            Err(unrecorded) => return Admission::Refused(unrecorded),
        };
        match Box::new(Owed(started)).close(Err(error)) {
            swb_bus::gate::Closing::Now(Err(error)) => Admission::Refused(error),
            closing => Admission::Wait(
                async move {
                    match closing.settled().await {
                        Err(error) => Err(error),
                        Ok(_) => Err(BusError::new(ERR_POLICY_DENIED, "it was refused")),
                    }
                }
                .boxed(),
            ),
        }
    }

    /// Asks a person.
    async fn ask(self, ruling: Arc<Ruling>) -> Result<Box<dyn Receipt>, BusError> {
        let approvals = &self.house.approvals;
        let id = approvals.new_id().to_string();
        let patience = match self.caller.meta().timeout_ms {
            Some(limit) => Patience::Within(std::time::Duration::from_millis(limit)),
            None => Patience::Interactive,
        };
        // From here on: a caller that leaves while the question is being put leaves with it.
        let asked = Asked { approvals, id: Some(id.clone()) };
        let waiting = approvals.ask(self.request(&id, &ruling), patience).await?;
        let outcome = waiting.outcome().await;
        asked.answered();
        let outcome = outcome?;
        let admission = if outcome.is_approved() {
            self.go_if_still_allowed(Some(id))
        } else {
            let recorded = self.recorded(&ruling, Some(id.clone()));
            let error = not_agreed(&self.method, &outcome)
                .with("decision_id", recorded.id.clone())
                .with("rule_ids", recorded.rules.clone())
                .with("approval_id", id);
            self.refuse(ruling.question(), Some(recorded), error)
        };
        match admission {
            Admission::Go(receipt) => Ok(receipt),
            Admission::Wait(later) => later.await,
            Admission::Refused(error) => Err(error),
        }
    }

    fn request(&self, id: &str, decision: &Decision) -> ApprovalRequest {
        let mut arguments: Value = self
            .params
            .as_deref()
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or(Value::Null);
        // Who asks, and where, is shown beside it.
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.remove("_meta");
        }
        let meta = self.caller.meta();
        let own_session = || {
            let actor = self.caller.actor();
            (actor.kind.as_str() == "agent").then(|| actor.id.as_str().to_owned())
        };
        ApprovalRequest {
            id: id.to_owned(),
            input: self.question.input.clone(),
            subject: json!({ "method": self.method, "arguments": arguments }),
            reason: decision.reason(),
            risk: self.question.input.risk,
            rules: decision.spoke().rules,
            contained: self.question.input.contained,
            session_id: meta.session_id.as_ref().map(|id| id.as_str().to_owned()).or_else(own_session),
            correlation_id: meta.correlation_id.as_ref().map(|id| id.as_str().to_owned()),
            call_id: None,
            token_for: None,
        }
    }
}

/// A question that is taken back when nobody waits for its answer any more.
struct Asked<'a> {
    approvals: &'a Arc<Approvals>,
    id: Option<String>,
}

impl Asked<'_> {
    fn answered(mut self) {
        self.id = None;
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let approvals = Arc::clone(self.approvals);
        // The disk is not waited for here. Where there is no runtime any more, the deadline ends it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || {
                if let Err(error) = approvals.withdraw(&id) {
                    tracing::warn!(%error, "a question was not taken back; its deadline ends it");
                }
            });
        }
    }
}

async fn settled(mut started: Started) -> Result<Box<dyn Receipt>, BusError> {
    started.settled().await?;
    Ok(Box::new(Owed(started)))
}

fn not_agreed(method: &str, outcome: &Outcome) -> BusError {
    let (message, reason) = match (outcome.status, &outcome.reason) {
        (Status::TimedOut, _) => ("nobody agreed in time".to_owned(), "APPROVAL_TIMED_OUT"),
        (_, Some(reason)) => (format!("it was denied: {reason}"), "APPROVAL_DENIED"),
        (_, None) => ("it was denied".to_owned(), "APPROVAL_DENIED"),
    };
    BusError::new(ERR_POLICY_DENIED, format!("{method} needs an approval, and {message}")).because(reason)
}
