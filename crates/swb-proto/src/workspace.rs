//! Workspaces: a name and a folder, under which projects and sessions live.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::comms::Empty;
use crate::id::WorkspaceId;
use crate::method::Method;
use crate::payload::body;
use crate::project::ProjectInWorkspace;

/// What can be done in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceState {
    /// Everything.
    Active,
    /// Nothing, until it is opened.
    Closed,
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workspace {
    /// Its id.
    pub workspace_id: WorkspaceId,
    /// Its name, unique without regard to case.
    pub name: String,
    /// Its folder.
    pub root_path: String,
    /// What can be done in it.
    pub state: WorkspaceState,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// `workspace.create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreateWorkspaceParams {
    /// Its name: not blank, and no other workspace's.
    pub name: String,
    /// Its folder: an absolute path.
    pub root_path: String,
}

/// A workspace was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceCreated {
    /// Its id.
    pub workspace_id: WorkspaceId,
}

/// `workspace.open`, `workspace.close` and `workspace.delete`: which one. Absent: the one of the request's context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhichWorkspace {
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
}

/// A workspace as it is now, with its projects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceOpened {
    /// Its id.
    pub workspace_id: WorkspaceId,
    /// What can be done in it.
    pub state: WorkspaceState,
    /// What lies in it.
    pub projects: Vec<ProjectInWorkspace>,
}

/// All workspaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceList {
    /// The oldest first.
    pub workspaces: Vec<Workspace>,
}

body! {
    /// Words of `workspace/*`.
    WorkspaceBody in Workspace {
        /// A wish for one.
        Create(CreateWorkspaceParams),
        /// Its answer.
        Created(WorkspaceCreated),
        /// Which one is meant.
        Which(WhichWorkspace),
        /// One as it is now.
        Opened(WorkspaceOpened),
        /// All of them.
        List(WorkspaceList),
    }
}

/// `workspace/create`.
#[derive(Debug)]
pub enum Create {}
impl Method for Create {
    const NAME: &'static str = "workspace/create";
    const SUMMARY: &'static str = "Make a workspace; it is active at once";
    type Params = CreateWorkspaceParams;
    type Response = WorkspaceCreated;
}

/// `workspace/open`.
#[derive(Debug)]
pub enum Open {}
impl Method for Open {
    const NAME: &'static str = "workspace/open";
    const SUMMARY: &'static str = "Open a workspace, and look whether its projects are where they were";
    type Params = WhichWorkspace;
    type Response = WorkspaceOpened;
}

/// `workspace/close`.
#[derive(Debug)]
pub enum Close {}
impl Method for Close {
    const NAME: &'static str = "workspace/close";
    const SUMMARY: &'static str = "Close a workspace that has no live session; nothing in it is lost";
    type Params = WhichWorkspace;
    type Response = WorkspaceOpened;
}

/// `workspace/delete`.
#[derive(Debug)]
pub enum Delete {}
impl Method for Delete {
    const NAME: &'static str = "workspace/delete";
    const SUMMARY: &'static str =
        "Forget a workspace that has no live session, with its projects; no file is touched";
    type Params = WhichWorkspace;
    type Response = Empty;
}

/// `workspace/list`.
#[derive(Debug)]
pub enum List {}
impl Method for List {
    const NAME: &'static str = "workspace/list";
    const SUMMARY: &'static str = "List all workspaces";
    type Params = Empty;
    type Response = WorkspaceList;
}
