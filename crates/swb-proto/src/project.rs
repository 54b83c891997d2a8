//! Projects: folders of a workspace, most of them git repositories.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::{ProjectId, WorkspaceId};
use crate::method::Method;
use crate::payload::body;

/// How a project's folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProjectStatus {
    /// It is being cloned; there is nothing to work in yet.
    Cloning,
    /// It is there.
    Active,
    /// It cannot be read now. It is active again as soon as it can.
    Stale,
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// Its id.
    pub project_id: ProjectId,
    /// The workspace it lies in.
    pub workspace_id: WorkspaceId,
    /// Its short name, unique; also that of its folder on the message bus.
    pub slug: String,
    /// Its folder, without symbolic links.
    pub root_path: String,
    /// Where it was cloned from, without any password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_url: Option<String>,
    /// How its folder is.
    pub status: ProjectStatus,
    /// When it joined.
    pub created_at: Timestamp,
}

/// A project as its workspace lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectInWorkspace {
    /// Its id.
    pub project_id: ProjectId,
    /// How its folder is.
    pub status: ProjectStatus,
}

/// `project.clone`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CloneParams {
    /// From where: anything `git clone` takes but options and helpers.
    pub git_url: String,
    /// To where: an absolute path that does not exist, or an empty folder.
    pub target_dir: String,
    /// Which branch; absent: the one the other side names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// `project.init`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InitParams {
    /// Its folder: an absolute path that can be read.
    pub root_path: String,
    /// Make it a git repository if it is none.
    #[serde(default)]
    pub git_init: bool,
}

/// `project.list`: of which workspace. Absent: the one of the request's context, else all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListProjectsParams {
    /// Which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
}

/// Projects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectList {
    /// The oldest first.
    pub projects: Vec<Project>,
}

body! {
    /// Words of `project/*`.
    ProjectBody in Project {
        /// A wish to clone.
        Clone(CloneParams),
        /// A wish to take a folder in.
        Init(InitParams),
        /// Which ones to list.
        Which(ListProjectsParams),
        /// One.
        One(Project),
        /// Many.
        List(ProjectList),
    }
}

/// `project/clone`.
#[derive(Debug)]
pub enum Clone {}
impl Method for Clone {
    const NAME: &'static str = "project/clone";
    const SUMMARY: &'static str =
        "Clone a git repository into the workspace; project.clone.progress events tell how far it is";
    type Params = CloneParams;
    type Response = Project;
}

/// `project/init`.
#[derive(Debug)]
pub enum Init {}
impl Method for Init {
    const NAME: &'static str = "project/init";
    const SUMMARY: &'static str = "Take a folder into the workspace as a project";
    type Params = InitParams;
    type Response = Project;
}

/// `project/list`.
#[derive(Debug)]
pub enum List {}
impl Method for List {
    const NAME: &'static str = "project/list";
    const SUMMARY: &'static str = "List projects";
    type Params = ListProjectsParams;
    type Response = ProjectList;
}
