//! Agents that do what their prompt says: the subsystems that `POST /agui` calls, with a script in place of a model.
//!
//! `text`, `tools`, `reason`, `subagents`, `fail`, `many N`, `hold` (until released), `ask N` (N questions at once), and
//! `refused`, which the policy denies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use swb_bus::topics::Topics;
use swb_bus::{BusBuilder, BusHandler, CallContext};
use swb_proto::approval::ApprovalBody;
use swb_proto::error::{ERR_INVALID_REQUEST, ERR_POLICY_DENIED, ERR_SESSION_NOT_FOUND};
use swb_proto::run::RunBody;
use swb_proto::session::SessionBody;
use swb_proto::{BusError, BusPayload, BusResult, Meta, method};
use tokio::sync::oneshot;

#[derive(Debug, Default)]
pub(crate) struct Agents(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    made: u64,
    /// The state of each session.
    sessions: HashMap<String, &'static str>,
    runs: HashMap<String, Run>,
    approvals: HashMap<String, (String, Value)>,
    /// Projects beside the first.
    more_projects: u64,
}

#[derive(Debug, Clone)]
struct Run {
    session: String,
    state: &'static str,
    step: u64,
    prompt: String,
}

pub(crate) fn register(builder: BusBuilder, agents: &Arc<Agents>) -> BusBuilder {
    ["project", "session", "agent", "approval"]
        .into_iter()
        .fold(builder, |builder, prefix| builder.register(Desk { prefix, agents: Arc::clone(agents) }))
}

#[derive(Debug)]
struct Desk {
    prefix: &'static str,
    agents: Arc<Agents>,
}

impl BusHandler for Desk {
    fn prefix(&self) -> &str {
        self.prefix
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        name: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let topics = ctx.spine().topics();
        let answer = self.agents.answer(topics, name, payload).map(|answer| {
            let raw = serde_json::value::to_raw_value(&answer).expect("JSON");
            method::lookup(name).expect("a method").decode_result(&raw).expect("an answer of its type")
        });
        let _ = reply_tx.send(answer);
    }
}

impl Agents {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn answer(&self, topics: &Arc<Topics>, name: &str, payload: BusPayload) -> Result<Value, BusError> {
        match (name, payload) {
            ("project/list", _) => {
                let more = self.state().more_projects;
                Ok(json!({ "projects": (0..=more).map(project).collect::<Vec<_>>() }))
            }
            ("session/create", _) => {
                let mut state = self.state();
                state.made += 1;
                let id = format!("sess_{}", state.made);
                state.sessions.insert(id.clone(), "detached");
                Ok(json!({ "session_id": id }))
            }
            ("session/get", BusPayload::Session(SessionBody::Which(which))) => {
                let id = which.session_id.expect("an id").to_string();
                let stands = self.state().sessions.get(&id).copied();
                let stands = stands.ok_or_else(|| BusError::new(ERR_SESSION_NOT_FOUND, "no such session"))?;
                Ok(json!({
                    "session_id": id, "workspace_id": "ws_1", "project_id": "proj_0", "mode": "agent", "state": stands,
                    "created_at": NOW, "updated_at": NOW,
                }))
            }
            ("agent/run", BusPayload::Run(RunBody::Run(params))) => {
                let session = params.session_id.expect("a session").to_string();
                self.run(topics, &session, &params.prompt)
            }
            ("agent/cancel", BusPayload::Run(RunBody::Cancel(params))) => {
                let id = params.run_id.expect("a run").to_string();
                self.end(topics, &id, "cancelled");
                Ok(json!({ "run_id": id, "status": "cancelled" }))
            }
            ("agent/get", BusPayload::Run(RunBody::Which(which))) => {
                let id = which.run_id.expect("a run").to_string();
                let run = self.state().runs.get(&id).cloned();
                let run = run.ok_or_else(|| BusError::new(ERR_INVALID_REQUEST, "no such run"))?;
                let run = json!({
                    "run_id": id, "session_id": run.session, "workspace_id": "ws_1", "project_id": "proj_0",
                    "agent": "builtin", "state": run.state, "title": run.prompt, "created_at": NOW,
                });
                Ok(json!({ "run": run, "waits": [] }))
            }
            ("approval/get", BusPayload::Approval(ApprovalBody::Which(which))) => {
                let approval = self.state().approvals.get(which.approval_id.as_str()).cloned();
                let unknown = || BusError::new(ERR_INVALID_REQUEST, "no such question");
                approval.map(|(_, approval)| approval).ok_or_else(unknown)
            }
            ("approval/list", _) => Ok(json!({ "approvals": [] })),
            ("approval/request/resolve", BusPayload::Approval(ApprovalBody::Resolve(params))) => {
                let approved = serde_json::to_value(params.decision).expect("JSON") == "approve";
                let status = if approved { "approved" } else { "denied" };
                self.resolve(topics, params.approval_id.as_str(), status, params.reason.as_deref())?;
                Ok(json!({ "approval_id": params.approval_id, "status": status, "resolved_at": NOW }))
            }
            (_, other) => panic!("{name} with {other:?}"),
        }
    }

    fn run(&self, topics: &Arc<Topics>, session: &str, prompt: &str) -> Result<Value, BusError> {
        if prompt == "refused" {
            return Err(BusError::new(ERR_POLICY_DENIED, "a rule forbids it"));
        }
        let after = topics.head();
        let id = {
            let mut state = self.state();
            state.made += 1;
            let id = format!("run_{}", state.made);
            let run =
                Run { session: session.to_owned(), state: "running", step: 0, prompt: prompt.to_owned() };
            state.runs.insert(id.clone(), run);
            id
        };
        let started = json!({ "run_id": id, "prompt_hash": "h", "agent": "builtin", "model": "script/1" });
        say(topics, "agent.run.started", session, &started);
        let text = |text: &str| self.tell(topics, &id, json!({ "kind": "text", "delta": text }));
        let (what, count) = prompt.split_once(' ').unwrap_or((prompt, "1"));
        let count: u64 = count.parse().unwrap_or(1);
        match what {
            "tools" => {
                text("I look.");
                self.tool(topics, &id, "c1", "started", ("args_hash", json!("h")));
                for delta in ["{\"path\":", "\"README.md\"}"] {
                    self.tool(topics, &id, "c1", "arguments", ("delta", json!(delta)));
                }
                self.tool(topics, &id, "c1", "called", ("args", json!({ "path": "README.md" })));
                self.tool(topics, &id, "c1", "output", ("delta", json!("# Swi")));
                self.tool(topics, &id, "c1", "done", ("result", json!("# Switchboard")));
                text("I saw.");
            }
            "reason" => {
                for delta in ["Let me ", "think."] {
                    self.tell(topics, &id, json!({ "kind": "thinking", "delta": delta }));
                }
                text("Done thinking.");
            }
            "subagents" => {
                for (path, stands) in [
                    (json!([1]), "started"),
                    (json!([1, 1]), "started"),
                    (json!([1, 1]), "failed"),
                    (json!([1]), "done"),
                ] {
                    let subagent =
                        json!({ "path": path, "name": "scout", "state": stands, "preview": "looks" });
                    self.tell(topics, &id, json!({ "kind": "subagent", "subagent": subagent }));
                }
            }
            "many" => (0..count).for_each(|_| text("x")),
            "fail" => {
                text("Oh.");
                self.end(topics, &id, "failed");
            }
            "ask" => {
                text("May I?");
                let calls: Vec<_> = (1..=count).map(|n| format!("c{n}")).collect();
                for call in &calls {
                    self.tool(topics, &id, call, "called", ("args", json!({ "command": "make" })));
                }
                calls.iter().for_each(|call| self.ask(topics, &id, session, call));
            }
            "hold" => text("I wait."),
            _ => ["Hello", ", ", "world"].into_iter().for_each(text),
        }
        if !["ask", "hold", "fail"].contains(&what) {
            self.end(topics, &id, "completed");
        }
        Ok(json!({ "run_id": id, "session_id": session, "status": "started", "after": after }))
    }

    fn tell(&self, topics: &Topics, run: &str, what: Value) {
        let (session, step) = {
            let mut state = self.state();
            let run = state.runs.get_mut(run).expect("a run");
            run.step += 1;
            (run.session.clone(), run.step)
        };
        let mut payload = json!({ "run_id": run, "step": step });
        payload.as_object_mut().expect("an object").extend(what.as_object().expect("an object").clone());
        say(topics, "agent.run.progress", &session, &payload);
    }

    fn tool(&self, topics: &Topics, run: &str, call: &str, status: &str, more: (&str, Value)) {
        let mut tool = json!({ "name": "read", "call_id": call, "status": status });
        tool[more.0] = more.1;
        self.tell(topics, run, json!({ "kind": "tool", "tool": tool }));
    }

    fn ask(&self, topics: &Topics, run: &str, session: &str, call: &str) {
        let id = format!("apr_{run}.{call}");
        let approval = json!({
            "approval_id": id, "status": "pending", "action": "tool.bash",
            "actor": { "kind": "agent", "id": session }, "subject": { "command": "make" }, "reason": "it builds",
            "risk": "medium", "containment": "enforced", "options": ["allow", "deny"], "session_id": session,
            "requested_at": NOW, "timeout_at": "2099-01-01T00:00:00.000Z", "timeout_action": "deny",
        });
        self.state().approvals.insert(id, (run.to_owned(), approval.clone()));
        say(topics, "approval.requested", session, &approval);
    }

    /// The first answer counts. When all questions of the run have one, it goes on.
    pub(crate) fn resolve(
        &self,
        topics: &Topics,
        id: &str,
        status: &str,
        reason: Option<&str>,
    ) -> Result<(), BusError> {
        let (run, answers) = {
            let mut state = self.state();
            let (run, approval) = state.approvals.get_mut(id).expect("a question");
            if approval["status"] != "pending" {
                return Err(BusError::new(ERR_INVALID_REQUEST, "it was answered").because("ALREADY_RESOLVED"));
            }
            approval["status"] = status.into();
            let run = run.clone();
            let answers: Vec<_> = state
                .approvals
                .iter()
                .filter(|(_, (of, _))| *of == run)
                .map(|(id, (_, approval))| {
                    (id.clone(), approval["status"].as_str().unwrap_or_default().to_owned())
                })
                .collect();
            (run, answers)
        };
        let session = self.state().runs[&run].session.clone();
        let resolved = json!({
            "approval_id": id, "status": status, "resolved_by": "user_local", "reason": reason, "resolved_at": NOW,
        });
        say(topics, "approval.resolved", &session, &resolved);
        if answers.iter().all(|(_, status)| status != "pending") {
            for (id, status) in answers {
                let call = id.rsplit('.').next().unwrap_or_default();
                self.tool(topics, &run, call, "done", ("result", json!(status)));
            }
            self.tell(topics, &run, json!({ "kind": "text", "delta": "So be it." }));
            self.end(topics, &run, "completed");
        }
        Ok(())
    }

    fn end(&self, topics: &Topics, id: &str, how: &'static str) {
        let session = {
            let mut state = self.state();
            let run = state.runs.get_mut(id).expect("a run");
            if std::mem::replace(&mut run.state, how) != "running" {
                return;
            }
            run.session.clone()
        };
        let usage = json!({ "input_tokens": 7, "output_tokens": 3, "cache_read_tokens": 1, "turns": 1 });
        if how == "completed" {
            let ended = json!({ "run_id": id, "result": "done", "usage": usage, "duration_ms": 1 });
            return say(topics, "agent.run.completed", &session, &ended);
        }
        let error =
            json!({ "code": "INTERNAL_ERROR", "message": format!("it was {how}"), "retryable": false });
        let ended = json!({ "run_id": id, "error": error, "cancelled": how == "cancelled", "usage": usage });
        say(topics, "agent.run.failed", &session, &ended);
    }

    /// Lets every run that holds come to its end.
    pub(crate) fn release(&self, topics: &Topics) {
        let held: Vec<_> = self.state().runs.keys().cloned().collect();
        held.iter().for_each(|id| self.end(topics, id, "completed"));
    }

    /// Ends every run that is under way.
    pub(crate) fn cancel(&self, topics: &Topics) {
        let runs: Vec<_> = self.state().runs.keys().cloned().collect();
        runs.iter().for_each(|id| self.end(topics, id, "cancelled"));
    }

    /// How the runs of a thread's session stand, the oldest first.
    pub(crate) fn runs(&self) -> Vec<&'static str> {
        let state = self.state();
        let mut runs: Vec<_> =
            state.runs.iter().map(|(id, run)| (id[4..].parse::<u64>().ok(), run.state)).collect();
        runs.sort_unstable();
        runs.into_iter().map(|(_, state)| state).collect()
    }

    pub(crate) fn sessions(&self) -> usize {
        self.state().sessions.len()
    }

    /// Ends every session.
    pub(crate) fn terminate(&self) {
        self.state().sessions.values_mut().for_each(|state| *state = "terminated");
    }

    /// The questions without an answer.
    pub(crate) fn pending(&self) -> Vec<String> {
        let state = self.state();
        let pending = state.approvals.iter().filter(|(_, (_, approval))| approval["status"] == "pending");
        let mut ids: Vec<_> = pending.map(|(id, _)| id.clone()).collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) fn add_project(&self) {
        self.state().more_projects += 1;
    }
}

const NOW: &str = "2026-02-26T00:00:00.000Z";

fn project(number: u64) -> Value {
    json!({
        "project_id": format!("proj_{number}"), "workspace_id": "ws_1", "slug": format!("p{number}"),
        "root_path": format!("/p{number}"), "status": "active", "created_at": NOW,
    })
}

fn say(topics: &Topics, topic: &str, session: &str, payload: &Value) {
    let scope = Meta { session_id: session.to_owned().try_into().ok(), ..Meta::default() };
    topics.publish(topic, &scope, None, payload).expect("an event");
}
