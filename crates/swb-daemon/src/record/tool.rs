//! The decision about the call of a tool, recorded like a command: what was to be done, by whom, which rule spoke, what
//! came out. The call itself is made in the agent's process, so the end is that of the decision.
//!
//! Decisions that only put a question are not recorded here: the question is an event of its own, and what came of it is
//! decided, and recorded, afterwards.

use std::sync::Arc;

use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use swb_journal::audit::RecordedDecision;
use swb_proto::{Actor, BusResult, Meta};

use super::{RecordError, Recorder, Shown, Start};

/// A decision that is final.
#[derive(Debug)]
pub(crate) struct ToolDecision<'a> {
    /// The tool, as its agent calls it.
    pub(crate) tool: &'a str,
    /// Its arguments.
    pub(crate) args: &'a Map<String, Value>,
    /// The folder it works in.
    pub(crate) cwd: &'a str,
    /// The agents between the session and the one whose call it is.
    pub(crate) subagents: &'a [String],
    pub(crate) actor: &'a Actor,
    pub(crate) meta: &'a Meta,
    pub(crate) decision: RecordedDecision,
    /// What it was made on.
    pub(crate) attributes: &'a Shown,
    /// What the agent is told; a refusal is an error here.
    pub(crate) outcome: BusResult,
}

impl Recorder {
    /// Records a decision. Until this has returned nobody may hear of it.
    pub(crate) async fn tool_decided(self: &Arc<Self>, decided: ToolDecision<'_>) -> Result<(), RecordError> {
        let ToolDecision { tool, args, cwd, subagents, actor, meta, decision, attributes, outcome } = decided;
        let mut told = json!({ "arguments": args, "cwd": cwd });
        if !subagents.is_empty() {
            told["subagents"] = json!(subagents);
        }
        let mut started = self.started(Start {
            method: &format!("tool.{}", super::shown::foreign_id(tool)),
            actor,
            meta,
            parent_correlation_id: None,
            command_id: decision.approval_id.clone().as_deref(),
            decision: Some(decision),
            attributes: Some(attributes),
            args: to_raw_value(&told).ok().as_deref(),
        })?;
        started.settled().await?;
        started.ended(&outcome).settled().await?;
        Ok(())
    }
}
