//! Sessions: work in a project, by a person or an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::{ProfileId, ProjectId, SessionId, WorkspaceId};
use crate::method::Method;
use crate::payload::body;

/// Who works in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionMode {
    /// A person, with nothing in between.
    #[default]
    Freehand,
    /// An agent.
    Agent,
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Nobody is at it.
    Detached,
    /// Somebody is on the way.
    Attaching,
    /// Somebody is at it.
    Attached,
    /// Somebody is at it and waits for what was there before.
    Restoring,
    /// It has ended.
    Terminated,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Its id.
    pub session_id: SessionId,
    /// The workspace it lies in.
    pub workspace_id: WorkspaceId,
    /// The project it works in.
    pub project_id: ProjectId,
    /// The session of the agent that made it; whoever works in it may do no more than that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<SessionId>,
    /// How its agent is set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_id: Option<ProfileId>,
    /// Who works in it.
    pub mode: SessionMode,
    /// Where it stands.
    pub state: SessionState,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `session.create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreateSessionParams {
    /// The project to work in.
    pub project_id: ProjectId,
    /// How its agent is set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_id: Option<ProfileId>,
    /// Who works in it.
    #[serde(default)]
    pub mode: SessionMode,
    /// Rules in Cedar that hold in it beside all others, also for agents below it. They may only forbid or ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
}

/// A session was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionCreated {
    /// Its id.
    pub session_id: SessionId,
}

/// `session.attach`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachParams {
    /// Which one. Absent: the one of the request's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Bring back what was there before.
    #[serde(default)]
    pub restore: bool,
}

/// Somebody is at a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionAttached {
    /// Its id.
    pub session_id: SessionId,
    /// Where it stands.
    pub state: SessionState,
}

/// `session.terminate`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminateParams {
    /// Which one. Absent: the one of the request's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A session has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionTerminated {
    /// Its id.
    pub session_id: SessionId,
    /// `terminated`.
    pub status: SessionState,
}

/// `session.get`: which one. Absent: the one of the request's context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhichSession {
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// `session.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListSessionsParams {
    /// Of which workspace. Absent: the one of the request's context, else all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// Those that have ended, too.
    #[serde(default)]
    pub ended: bool,
}

/// Sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// The oldest first.
    pub sessions: Vec<Session>,
}

body! {
    /// Words of `session/*`.
    SessionBody in Session {
        /// A wish for one.
        Create(CreateSessionParams),
        /// Its answer.
        Created(SessionCreated),
        /// A wish to be at one.
        Attach(AttachParams),
        /// Its answer.
        Attached(SessionAttached),
        /// A wish for its end.
        Terminate(TerminateParams),
        /// Its answer.
        Terminated(SessionTerminated),
        /// Which one is meant.
        Which(WhichSession),
        /// Which ones are meant.
        WhichOnes(ListSessionsParams),
        /// One.
        One(Session),
        /// Many.
        List(SessionList),
    }
}

/// `session/create`.
#[derive(Debug)]
pub enum Create {}
impl Method for Create {
    const NAME: &'static str = "session/create";
    const SUMMARY: &'static str = "Make a session in a project";
    type Params = CreateSessionParams;
    type Response = SessionCreated;
}

/// `session/attach`.
#[derive(Debug)]
pub enum Attach {}
impl Method for Attach {
    const NAME: &'static str = "session/attach";
    const SUMMARY: &'static str = "Be at a session";
    type Params = AttachParams;
    type Response = SessionAttached;
}

/// `session/terminate`.
#[derive(Debug)]
pub enum Terminate {}
impl Method for Terminate {
    const NAME: &'static str = "session/terminate";
    const SUMMARY: &'static str = "End a session; ending it again changes nothing";
    type Params = TerminateParams;
    type Response = SessionTerminated;
}

/// `session/get`.
#[derive(Debug)]
pub enum Get {}
impl Method for Get {
    const NAME: &'static str = "session/get";
    const SUMMARY: &'static str = "Describe a session";
    type Params = WhichSession;
    type Response = Session;
}

/// `session/list`.
#[derive(Debug)]
pub enum List {}
impl Method for List {
    const NAME: &'static str = "session/list";
    const SUMMARY: &'static str = "List sessions";
    type Params = ListSessionsParams;
    type Response = SessionList;
}
