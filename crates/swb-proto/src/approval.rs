//! Approvals: questions that a person answers once, before something is done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::{ApprovalId, CorrelationId, GrantId, SessionId, WorkspaceId};
use crate::method::Method;
use crate::payload::body;
use crate::{Actor, Timestamp};

/// Where a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// It waits for an answer.
    Pending,
    /// Somebody agreed.
    Approved,
    /// Somebody did not, or whoever asked has ended.
    Denied,
    /// Nobody answered in time, which means no.
    TimedOut,
}

/// How bad it could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Nothing is lost.
    Low,
    /// Work in the project may be lost, or something leaves the machine.
    Medium,
    /// The account, other projects or other people may be harmed.
    High,
    /// The machine may be.
    Critical,
}

/// What can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalOption {
    /// Yes, this once.
    Allow,
    /// Yes, and calls like it for this session.
    AllowForSession,
    /// No.
    Deny,
}

/// Whether anything but the answer holds the asker back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// The kernel does.
    Enforced,
    /// Nothing does.
    Advisory,
}

/// What happens when nobody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutAction {
    /// The answer is no.
    Deny,
}

/// A question, and what has become of it. Also the payload of `approval.requested`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// Its id.
    pub approval_id: ApprovalId,
    /// Where it stands.
    pub status: ApprovalStatus,
    /// What is to be done: the name of a method, or `tool.` and the name of a tool.
    pub action: String,
    /// Who wants to do it.
    pub actor: Actor,
    /// The agents it goes up through, the asker first and the root last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<String>,
    /// What exactly, without secrets: the command line, the arguments, the diff.
    pub subject: Map<String, Value>,
    /// Why it needs an approval.
    pub reason: String,
    /// How bad it could be.
    pub risk: Risk,
    /// The rules that asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// Whether anything but the answer holds the asker back.
    pub containment: Containment,
    /// What can be answered.
    pub options: Vec<ApprovalOption>,
    /// The workspace it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// The session it was asked in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The chain of causes it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// The call that it is about, if it is one of the session's own agent: as in the progress of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// When it was put.
    pub requested_at: Timestamp,
    /// From when on the answer is no.
    pub timeout_at: Timestamp,
    /// What happens then.
    pub timeout_action: TimeoutAction,
    /// What came out, once it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ApprovalOutcome>,
}

/// How a question ended. With `approval_id` it is the payload of `approval.resolved`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalOutcome {
    /// `approved`, `denied` or `timed_out`.
    pub status: ApprovalStatus,
    /// Who answered; null if nobody did.
    pub resolved_by: Option<String>,
    /// In whose words.
    pub reason: Option<String>,
    /// When.
    pub resolved_at: Timestamp,
    /// The grant that came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<GrantId>,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// Yes.
    Approve,
    /// No.
    Deny,
}

/// `approval.request.resolve`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResolveParams {
    /// Which question.
    pub approval_id: ApprovalId,
    /// The answer.
    pub decision: ApprovalDecision,
    /// Why, in words for whoever asked and for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With `approve`: calls like it need not ask again in this session.
    #[serde(default)]
    pub allow_for_session: bool,
    /// Other arguments than those that were asked about. Not supported: such an answer is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_args: Option<Map<String, Value>>,
}

/// The answer counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalResolved {
    /// Which question.
    pub approval_id: ApprovalId,
    /// `approved` or `denied`.
    pub status: ApprovalStatus,
    /// When.
    pub resolved_at: Timestamp,
    /// The grant that came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<GrantId>,
    /// Proof of the answer where the call demands one; good once, for five minutes. It is not kept anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_token: Option<String>,
}

/// `approval.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListApprovalsParams {
    /// Those that stand there. Absent: all that are remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ApprovalStatus>,
    /// Those of this session and of agents below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Those of this workspace. Absent: the one of the request's context, else all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
}

/// Questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalList {
    /// The oldest first.
    pub approvals: Vec<Approval>,
}

/// `approval.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhichApproval {
    /// Its id.
    pub approval_id: ApprovalId,
}

/// `approval.wait`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitParams {
    /// Its id.
    pub approval_id: ApprovalId,
    /// How long to wait at most, in milliseconds. Absent: until there is an outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

body! {
    /// Words of `approval/*`.
    ApprovalBody in Approval {
        /// An answer.
        Resolve(ResolveParams),
        /// It counts.
        Resolved(ApprovalResolved),
        /// Which ones are meant.
        WhichOnes(ListApprovalsParams),
        /// Many.
        List(ApprovalList),
        /// Which one is meant.
        Which(WhichApproval),
        /// A wish to hear of its end.
        Wait(WaitParams),
        /// One.
        One(Approval),
    }
}

/// `approval/request/resolve`.
#[derive(Debug)]
pub enum Resolve {}
impl Method for Resolve {
    const NAME: &'static str = "approval/request/resolve";
    const SUMMARY: &'static str =
        "Answer a question; the first answer counts, whoever comes later is told the outcome";
    type Params = ResolveParams;
    type Response = ApprovalResolved;
}

/// `approval/list`.
#[derive(Debug)]
pub enum List {}
impl Method for List {
    const NAME: &'static str = "approval/list";
    const SUMMARY: &'static str = "List questions, those that wait and those that were answered";
    type Params = ListApprovalsParams;
    type Response = ApprovalList;
}

/// `approval/get`.
#[derive(Debug)]
pub enum Get {}
impl Method for Get {
    const NAME: &'static str = "approval/get";
    const SUMMARY: &'static str = "Describe a question and what became of it";
    type Params = WhichApproval;
    type Response = Approval;
}

/// `approval/wait`.
#[derive(Debug)]
pub enum Wait {}
impl Method for Wait {
    const NAME: &'static str = "approval/wait";
    const SUMMARY: &'static str = "Wait for what becomes of a question";
    type Params = WaitParams;
    type Response = Approval;
}
