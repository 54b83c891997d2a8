//! The policy on the wire: how an agent's process asks whether it may use a tool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::{ApprovalId, DecisionId};
use crate::method::Method;
use crate::payload::body;

/// `policy.decide`: a call of a tool that is about to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecideParams {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// The folder it works in, absolute.
    pub cwd: String,
    /// The id under which a person is asked, should that be needed. Asked again under the same id it is the same question,
    /// with whatever became of it; so a call that waits survives a restart on either side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_id: Option<ApprovalId>,
    /// The agents between the asking session and the one whose call it is, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<String>,
    /// The call, as the asking agent tells of it; absent for a call of one below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// How long a person is waited for at most, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What the rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Go.
    Allow,
    /// A person is asked: `approval.wait`, then ask here again under the same id.
    Ask,
    /// No.
    Deny,
}

/// The answer to `policy.decide`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decided {
    /// What the rules say.
    pub decision: Verdict,
    /// The decision, for the record.
    pub decision_id: DecisionId,
    /// Why, for people and models.
    pub reason: String,
    /// The rules that spoke.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The question that was put to a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<ApprovalId>,
}

body! {
    /// Words of `policy/*`.
    PolicyBody in Policy {
        /// A call that is about to be made.
        Decide(DecideParams),
        /// What the rules say to it.
        Decided(Decided),
    }
}

/// `policy/decide`.
#[derive(Debug)]
pub enum Decide {}
impl Method for Decide {
    const NAME: &'static str = "policy/decide";
    const SUMMARY: &'static str =
        "Ask whether a tool may be used; puts the question to a person where rules want that";
    type Params = DecideParams;
    type Response = Decided;
}
