//! `policy`: how an agent's process asks whether it may use a tool.
//!
//! The tool runs in the agent's process, so what is answered here binds as far as that process is honest; containment
//! limits the rest. A question for a person is bound to the call by the hash of its arguments: an approval of one call
//! answers no other, under whatever id it is asked. A decision that is final is in the record, as one about that tool, before
//! it is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use swb_bus::{BusHandler, CallContext};
use swb_journal::audit::RecordedDecision;
use swb_proto::error::{ERR_INVALID_PARAMS, ERR_INVALID_REQUEST, ERR_POLICY_DENIED};
use swb_proto::id::{self, ApprovalId, DecisionId};
use swb_proto::policy::{DecideParams, Decided, PolicyBody, Verdict};
use swb_proto::{BusError, BusPayload, BusResult, Meta};
use swb_rules::approval::{ApprovalRequest, Patience, Status};
use swb_rules::policy::{Actor, Ancestor, Answer, Approved, Decision, Input};
use tokio::sync::oneshot;

use super::{no_method, wrong_payload};
use crate::approvals::Approvals;
use crate::gate::ancestry;
use crate::policy::{Asked, Place, Policy, ToolCall, Workspace, WrongCall};
use crate::record::{Recorder, Shown, ToolDecision};
use crate::records::Records;

/// Most subagents between a session and the one that acts.
const MAX_SUBAGENTS: usize = 32;

/// Why a call is denied where nobody was asked.
const BY_RULE: &str = "POLICY_DENIED";

/// Serves `policy/*`.
#[derive(Debug, Clone)]
pub(crate) struct PolicyDesk {
    pub(crate) policy: Policy,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) records: Arc<Records>,
    pub(crate) recorder: Arc<Recorder>,
}

impl BusHandler for PolicyDesk {
    fn prefix(&self) -> &'static str {
        "policy"
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        match (method, payload) {
            ("policy/decide", BusPayload::Policy(PolicyBody::Decide(params))) => {
                let desk = self.clone();
                ctx.clone().spawn(reply_tx, async move { desk.decide(&ctx, *params).await });
            }
            ("policy/decide", other) => {
                let _ = reply_tx.send(Err(wrong_payload(method, &other)));
            }
            _ => {
                let _ = reply_tx.send(Err(no_method(method)));
            }
        }
    }
}

/// A question under way.
struct Asking<'a> {
    ctx: &'a CallContext,
    params: &'a DecideParams,
    home: &'a Home,
    /// As the record shows it.
    question: &'a Shown,
}

/// Where the session of whoever asks works.
struct Home {
    session_id: Option<String>,
    workspace_id: Option<String>,
    project_root: Option<PathBuf>,
}

impl PolicyDesk {
    async fn decide(self, ctx: &CallContext, params: DecideParams) -> BusResult {
        let home = self.home(ctx);
        let (params, home, input) = {
            let desk = self.clone();
            let actor = actor(ctx, &self.records, &home, &params.subagents)?;
            // Following links means looking at the disk.
            let contained = ctx.caller().is_contained();
            let question = move || {
                let input = desk.question(&params, &home, actor)?;
                Ok((params, home, Input { contained, ..input }))
            };
            tokio::task::spawn_blocking(question).await.unwrap_or_else(|_| {
                Err(BusError::new(ERR_INVALID_REQUEST, "the call could not be looked at"))
            })?
        };
        let place =
            Place { project_root: home.project_root.as_deref(), session_id: home.session_id.as_deref() };
        let decision = self.policy.decide(&input, &place, Approved::No);
        let asking = Asking { ctx, params: &params, home: &home, question: decision.question() };
        if decision.answer != Answer::NeedsApproval {
            return self.settled(&asking, self.told(&decision, None), None, BY_RULE).await;
        }
        let agreed = || self.policy.decide(&input, &place, Approved::Yes);
        if let Some(grant) = self.approvals.covers(&input) {
            return self.settled(&asking, self.told(&agreed(), None), Some(grant.id), BY_RULE).await;
        }
        let id = params.ask_id.clone().unwrap_or_else(|| self.approvals.new_id());
        let patience = match params.timeout_ms {
            Some(limit) => Patience::Within(Duration::from_millis(limit)),
            None => Patience::Interactive,
        };
        let request = self.request(ctx, &id, &params, &home, &input, &decision);
        // Under the id of another question this is refused.
        let waiting = self.approvals.ask(request, patience).await?;
        let approval = waiting.approval();
        let basis = Some(id.as_str().to_owned());
        match &approval.outcome {
            None => Ok(self.told(&decision, Some(id)).into()),
            Some(outcome) if outcome.is_approved() => {
                self.settled(&asking, self.told(&agreed(), Some(id)), basis, BY_RULE).await
            }
            Some(outcome) => {
                let (word, because) = match outcome.status {
                    Status::TimedOut => ("nobody agreed in time", "APPROVAL_TIMED_OUT"),
                    _ => ("a person said no", "APPROVAL_DENIED"),
                };
                let reason = outcome.reason.as_ref().map_or(word.to_owned(), |why| format!("{word}: {why}"));
                let decided = Decided { decision: Verdict::Deny, reason, ..self.told(&decision, Some(id)) };
                self.settled(&asking, decided, basis, because).await
            }
        }
    }

    /// Tells a decision that is final, once it is recorded. `basis` is the approval or the grant that it rests on.
    async fn settled(
        &self,
        asking: &Asking<'_>,
        decided: Decided,
        basis: Option<String>,
        because: &'static str,
    ) -> BusResult {
        let Asking { ctx, params, home, question } = asking;
        let outcome = match (decided.decision, &basis) {
            (Verdict::Allow, Some(_)) => "approved",
            (Verdict::Allow, None) => "allow",
            (Verdict::Ask, _) => "needs_approval",
            (Verdict::Deny, _) => "deny",
        };
        let decision = RecordedDecision {
            id: decided.decision_id.to_string(),
            outcome: outcome.to_owned(),
            rules: decided.rules.clone(),
            approval_id: basis,
        };
        let own = ctx.caller().meta();
        let meta = Meta {
            session_id: home.session_id.clone().and_then(|id| id.try_into().ok()),
            workspace_id: home.workspace_id.clone().and_then(|id| id.try_into().ok()),
            ..own.clone()
        };
        let told: BusResult = match decided.decision {
            Verdict::Deny => Err(BusError::new(ERR_POLICY_DENIED, decided.reason.clone()).because(because)),
            _ => Ok(decided.clone().into()),
        };
        self.recorder
            .tool_decided(ToolDecision {
                tool: &params.tool,
                args: &params.args,
                cwd: &params.cwd,
                subagents: &params.subagents,
                actor: ctx.caller().actor(),
                meta: &meta,
                decision,
                attributes: question,
                outcome: told,
            })
            .await?;
        Ok(decided.into())
    }

    fn home(&self, ctx: &CallContext) -> Home {
        let (actor, meta) = (ctx.caller().actor(), ctx.caller().meta());
        let estate = self.records.look();
        let own = (actor.kind.as_str() == "agent").then(|| actor.id.as_str().to_owned());
        let session_id = own.or_else(|| meta.session_id.as_ref().map(|id| id.as_str().to_owned()));
        let session = session_id.as_deref().and_then(|id| estate.sessions.get(id));
        let project = session.and_then(|session| estate.projects.get(session.project_id.as_str()));
        let workspace_id = session.map(|session| session.workspace_id.as_str().to_owned());
        let project_root = project.map(|project| PathBuf::from(&project.root_path));
        Home { session_id, workspace_id, project_root }
    }

    fn question(&self, params: &DecideParams, home: &Home, actor: Actor) -> Result<Input, BusError> {
        let arguments = Value::Object(params.args.clone());
        let user_home = std::env::var("HOME").ok();
        let workspace = home.workspace_id.as_deref().zip(home.project_root.as_deref());
        let call = ToolCall {
            tool: &params.tool,
            arguments: &arguments,
            folder: Path::new(&params.cwd),
            workspace: workspace.map(|(id, root)| Workspace { id, root }),
            home: user_home.as_deref(),
        };
        let wrong = |error: WrongCall| BusError::new(ERR_INVALID_PARAMS, error.to_string());
        let Asked { mut input, .. } = call.ask(actor).map_err(wrong)?;
        let mut bound = json!([params.tool, params.cwd, arguments]);
        // The same arguments in another order are the same.
        bound.sort_all_objects();
        input.arguments = Some(self.recorder.hash_arguments(bound.to_string().as_bytes()));
        Ok(input)
    }

    fn request(
        &self,
        ctx: &CallContext,
        id: &ApprovalId,
        params: &DecideParams,
        home: &Home,
        input: &Input,
        decision: &Decision,
    ) -> ApprovalRequest {
        let subject = match params.args.get("command") {
            Some(command) if params.tool == "bash" => json!({ "command": command, "cwd": params.cwd }),
            _ => json!({ "tool": params.tool, "arguments": params.args, "cwd": params.cwd }),
        };
        ApprovalRequest {
            id: id.as_str().to_owned(),
            input: input.clone(),
            subject,
            reason: decision.reason(),
            risk: input.risk,
            rules: decision.spoke().rules,
            contained: input.contained,
            session_id: home.session_id.clone(),
            correlation_id: ctx.caller().meta().correlation_id.as_ref().map(|id| id.as_str().to_owned()),
            call_id: params.call_id.clone().filter(|id| id.len() <= id::MAX_ID_BYTES),
            token_for: None,
        }
    }

    fn told(&self, decision: &Decision, approval_id: Option<ApprovalId>) -> Decided {
        Decided {
            decision: match decision.answer {
                Answer::Allow => Verdict::Allow,
                Answer::NeedsApproval => Verdict::Ask,
                Answer::Deny => Verdict::Deny,
            },
            decision_id: DecisionId::from_ulid(self.records.unique()),
            reason: decision.reason(),
            rules: decision.spoke().rules,
            approval_id,
        }
    }
}

/// Who asks. A subagent is named below its session, and is judged as every agent above it too.
fn actor(ctx: &CallContext, records: &Records, home: &Home, subagents: &[String]) -> Result<Actor, BusError> {
    let actor = ctx.caller().actor();
    let id = actor.id.as_str().to_owned();
    match actor.kind.as_str() {
        "agent" => {}
        _ if !subagents.is_empty() => {
            return Err(BusError::new(ERR_INVALID_PARAMS, "only an agent has subagents"));
        }
        "user" => return Ok(Actor::User { id }),
        _ => return Ok(Actor::Service { id }),
    }
    if subagents.len() > MAX_SUBAGENTS {
        let message = format!("at most {MAX_SUBAGENTS} subagents can stand below each other");
        return Err(BusError::new(ERR_INVALID_PARAMS, message));
    }
    let workspace = home.workspace_id.clone().unwrap_or_default();
    let mut line = vec![id];
    for name in subagents {
        id::check(name).map_err(|error| BusError::new(ERR_INVALID_PARAMS, error.to_string()))?;
        line.push(format!("{}/{name}", line.last().map(String::as_str).unwrap_or_default()));
    }
    let id = line.pop().unwrap_or_default();
    let above = |id: String| Ancestor { id, workspace: workspace.clone() };
    let mut ancestry = ancestry(&records.look(), ctx.caller().actor().id.as_str());
    ancestry.extend(line.into_iter().map(above));
    Ok(Actor::Agent { id, workspace, ancestry })
}
