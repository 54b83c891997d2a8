//! `project`: folders of a workspace, cloned or taken in.
//!
//! A clone is made beside its place and moved there when it is whole, so nobody ever sees half of one; what is left of one
//! that failed, was cancelled or was cut short by a crash is removed, and its one end is told: `project.ready` or
//! `project.clone.failed`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use swb_bus::{BusHandler, CallContext};
use swb_proto::error::{ERR_HANDLER, ERR_INVALID_PARAMS, ERR_INVALID_REQUEST};
use swb_proto::id::{ProjectId, WorkspaceId};
use swb_proto::project::{
    CloneParams, InitParams, ListProjectsParams, Project, ProjectBody, ProjectList, ProjectStatus,
};
use swb_proto::{BusError, BusPayload, BusResult};
use tokio::sync::oneshot;

use super::workspace::folder;
use super::{publish, wrong_payload};
use crate::git::{self, Git, GitError};
use crate::records::{Estate, Records, not_kept, now};

/// Serves `project/*`.
#[derive(Debug)]
pub(crate) struct Projects {
    pub(crate) records: Arc<Records>,
    pub(crate) git: Git,
}

impl BusHandler for Projects {
    fn prefix(&self) -> &'static str {
        "project"
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let (records, git) = (Arc::clone(&self.records), self.git.clone());
        match (method, payload) {
            ("project/list", BusPayload::Project(ProjectBody::Which(which))) => {
                let _ = reply_tx.send(Ok(list(&ctx, &records, *which).into()));
            }
            ("project/init", BusPayload::Project(ProjectBody::Init(params))) => {
                ctx.clone().spawn(reply_tx, init(ctx, records, *params, git));
            }
            ("project/clone", BusPayload::Project(ProjectBody::Clone(params))) => {
                ctx.clone().spawn(reply_tx, clone(ctx, records, *params, git));
            }
            (_, other) => {
                let _ = reply_tx.send(Err(wrong_payload(method, &other)));
            }
        }
    }
}

fn list(ctx: &CallContext, records: &Records, which: ListProjectsParams) -> ProjectList {
    let workspace = which.workspace_id.or_else(|| ctx.caller().meta().workspace_id.clone());
    let estate = records.look();
    let wanted = estate
        .projects
        .iter()
        .filter(|project| workspace.as_ref().is_none_or(|workspace| project.workspace_id == *workspace));
    ProjectList { projects: wanted.cloned().collect() }
}

async fn init(ctx: CallContext, records: Arc<Records>, params: InitParams, git: Git) -> BusResult {
    let workspace_id = workspace_of(&ctx)?;
    let root = folder(&params.root_path)?;
    let root = std::fs::canonicalize(&root)
        .and_then(|root| std::fs::read_dir(&root).map(|_| root))
        .map_err(|error| invalid(format!("root_path is a folder that can be read: {}", error.kind())))?;
    records.look().active_workspace(&workspace_id)?;
    if params.git_init && !root.join(".git").exists() {
        git.init(&root).await.map_err(|error| git_failed(&error))?;
    }
    let project = Project {
        project_id: ProjectId::from_ulid(records.unique()),
        workspace_id,
        slug: String::new(),
        root_path: utf8(&root)?,
        git_url: None,
        status: ProjectStatus::Active,
        created_at: now(),
    };
    records
        .change(move |estate| {
            let project = take_in(estate, project)?;
            ready(&ctx, &project, "init");
            Ok(project.into())
        })
        .await
}

async fn clone(ctx: CallContext, records: Arc<Records>, params: CloneParams, git: Git) -> BusResult {
    let workspace_id = workspace_of(&ctx)?;
    git::check_address(&params.git_url).map_err(|error| invalid(error.to_string()))?;
    let target = target(&params.target_dir)?;
    let project = Project {
        project_id: ProjectId::from_ulid(records.unique()),
        workspace_id,
        slug: String::new(),
        root_path: utf8(&target)?,
        git_url: Some(git::without_password(&params.git_url)),
        status: ProjectStatus::Cloning,
        created_at: now(),
    };
    let began = ctx.clone();
    let project = records
        .change(move |estate| {
            let project = take_in(estate, project)?;
            announce(&began, "project.clone.started", &project, json!({ "git_url": project.git_url }));
            Ok(project)
        })
        .await?;
    let half = HalfMade { ctx: Some(ctx), records, project };
    match half.finish(&params, &target, &git).await {
        Ok(()) => half.become_ready().await,
        Err(error) => Err(half.give_up(error).await),
    }
}

/// A clone that is not yet a project. Dropped before it is one, it leaves nothing behind.
struct HalfMade {
    /// Taken when its end was told.
    ctx: Option<CallContext>,
    records: Arc<Records>,
    project: Project,
}

impl HalfMade {
    async fn finish(&self, params: &CloneParams, target: &Path, git: &Git) -> Result<(), BusError> {
        let place = scratch(&self.project).ok_or_else(|| invalid("target_dir has no name".to_owned()))?;
        let mut last = None;
        let progress = |step: git::Progress| {
            // Every tenth of a phase is often enough for anybody who looks.
            let mark = (step.phase.clone(), step.percent / 10);
            if last.as_ref() != Some(&mark)
                && let Some(ctx) = &self.ctx
            {
                let payload = json!({ "phase": step.phase, "percent": step.percent });
                announce(ctx, "project.clone.progress", &self.project, payload);
                last = Some(mark);
            }
        };
        git.clone_to(&params.git_url, params.branch.as_deref(), &place, progress)
            .await
            .map_err(|error| git_failed(&error))?;
        // An empty folder may stand in its place; anything else has come meanwhile and stays.
        let _ = std::fs::remove_dir(target);
        if target.exists() {
            return Err(conflict("target_dir is not empty any more"));
        }
        std::fs::rename(&place, target)
            .map_err(|error| BusError::new(ERR_HANDLER, format!("the clone was not moved: {}", error.kind())))
    }

    async fn become_ready(mut self) -> BusResult {
        let Some(ctx) = self.ctx.take() else { return Ok(BusPayload::Empty) };
        let project = Project { status: ProjectStatus::Active, ..self.project.clone() };
        self.records
            .change(move |estate| {
                estate.projects.put(project.clone()).map_err(not_kept)?;
                ready(&ctx, &project, "clone");
                Ok(project.into())
            })
            .await
    }

    async fn give_up(mut self, error: BusError) -> BusError {
        if let Some(ctx) = self.ctx.take() {
            let (project, why) = (self.project.clone(), error.message.clone());
            let undone = self.records.change(move |estate| {
                undo(estate, &project);
                announce(&ctx, "project.clone.failed", &project, json!({ "error": why }));
                Ok(())
            });
            let _ = undone.await;
        }
        error
    }
}

impl Drop for HalfMade {
    fn drop(&mut self) {
        let Some(ctx) = self.ctx.take() else { return };
        let (records, project) = (Arc::clone(&self.records), self.project.clone());
        // Cancelled in the middle: removing a large clone takes its time, and nobody waits for it.
        tokio::task::spawn_blocking(move || {
            undo(&mut records.look(), &project);
            announce(&ctx, "project.clone.failed", &project, json!({ "error": "cancelled" }));
        });
    }
}

/// Takes back a clone that did not become a project.
fn undo(estate: &mut Estate, project: &Project) {
    if let Some(place) = scratch(project)
        && let Err(error) = std::fs::remove_dir_all(place)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, project = %project.project_id, "a half-made clone was not removed");
    }
    if let Err(error) = estate.projects.remove(project.project_id.as_str()) {
        tracing::error!(%error, project = %project.project_id, "a half-made project is still on record");
    }
}

/// What became of a clone that a crash cut short: whole and only not yet on record, or taken back.
pub(crate) fn settle(estate: &mut Estate, project: &Project) -> Option<Project> {
    let moved = scratch(project).is_some_and(|place| !place.exists())
        && Path::new(&project.root_path).join(".git").exists();
    let whole = Project { status: ProjectStatus::Active, ..project.clone() };
    if moved && estate.projects.put(whole.clone()).is_ok() {
        return Some(whole);
    }
    undo(estate, project);
    None
}

/// Where a clone grows: beside its place, so that moving it there is one step.
fn scratch(project: &Project) -> Option<PathBuf> {
    let target = Path::new(&project.root_path);
    target.file_name()?;
    Some(target.parent()?.join(format!(".{}.clone", project.project_id)))
}

/// Gives a project its short name and keeps it, unless its folder is taken.
fn take_in(estate: &mut Estate, mut project: Project) -> Result<Project, BusError> {
    estate.active_workspace(&project.workspace_id)?;
    if let Some(other) = estate.projects.iter().find(|other| other.root_path == project.root_path) {
        return Err(conflict(&format!("{} has this folder already", other.project_id)));
    }
    let wish = slug(&project.root_path);
    let taken = |slug: &str| estate.projects.iter().any(|other| other.slug == slug);
    let numbered = std::iter::once(wish.clone()).chain((2..).map(|n| format!("{wish}-{n}")));
    project.slug = numbered.into_iter().find(|slug| !taken(slug)).unwrap_or(wish);
    estate.projects.put(project.clone()).map_err(not_kept)?;
    Ok(project)
}

fn slug(root: &str) -> String {
    let name = Path::new(root).file_name().and_then(|name| name.to_str()).unwrap_or("root");
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() { "project".to_owned() } else { plain.chars().take(60).collect() }
}

/// A place that is free: nothing there, or an empty folder, in a folder that exists.
fn target(path: &str) -> Result<PathBuf, BusError> {
    let path = PathBuf::from(folder(path)?);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(invalid("target_dir has a name of its own".to_owned()));
    };
    let parent = std::fs::canonicalize(parent)
        .map_err(|error| invalid(format!("the folder above target_dir cannot be used: {}", error.kind())))?;
    let target = parent.join(name);
    match std::fs::symlink_metadata(&target) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(target),
        Ok(there)
            if there.is_dir() && std::fs::read_dir(&target).is_ok_and(|mut all| all.next().is_none()) =>
        {
            Ok(target)
        }
        _ => Err(conflict("target_dir is there already and not an empty folder")),
    }
}

fn workspace_of(ctx: &CallContext) -> Result<WorkspaceId, BusError> {
    let named = ctx.caller().meta().workspace_id.clone();
    named.ok_or_else(|| {
        BusError::new(ERR_INVALID_REQUEST, "which workspace? workspace_id names it")
            .because("MISSING_CONTEXT_ID")
    })
}

fn ready(ctx: &CallContext, project: &Project, source: &str) {
    announce(ctx, "project.ready", project, ready_payload(project, source));
}

/// What `project.ready` says.
pub(crate) fn ready_payload(project: &Project, source: &str) -> Value {
    let Project { project_id, root_path, git_url, slug, .. } = project;
    json!({ "project_id": project_id, "root_path": root_path, "git_url": git_url, "slug": slug, "source": source })
}

fn announce(ctx: &CallContext, topic: &str, project: &Project, mut payload: Value) {
    payload["project_id"] = json!(project.project_id);
    publish(ctx, topic, |meta| meta.workspace_id = Some(project.workspace_id.clone()), &payload);
}

fn git_failed(error: &GitError) -> BusError {
    BusError::new(ERR_HANDLER, error.to_string()).because("GIT_FAILED")
}

fn conflict(message: &str) -> BusError {
    BusError::new(ERR_INVALID_PARAMS, message).because("PROJECT_CONFLICT")
}

fn invalid(message: String) -> BusError {
    BusError::new(ERR_INVALID_PARAMS, message)
}

fn utf8(path: &Path) -> Result<String, BusError> {
    path.to_str().map(str::to_owned).ok_or_else(|| invalid("the path is not UTF-8".to_owned()))
}
