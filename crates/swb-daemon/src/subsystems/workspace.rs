//! `workspace`: a name and a folder, under which projects and sessions live.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use swb_bus::{BusHandler, CallContext};
use swb_proto::error::{ERR_INVALID_PARAMS, ERR_INVALID_REQUEST};
use swb_proto::id::WorkspaceId;
use swb_proto::project::ProjectInWorkspace;
use swb_proto::workspace::{
    CreateWorkspaceParams, WhichWorkspace, Workspace, WorkspaceBody, WorkspaceCreated, WorkspaceList,
    WorkspaceOpened, WorkspaceState,
};
use swb_proto::{BusError, BusPayload, BusResult};
use swb_rules::lifecycle;
use tokio::sync::oneshot;

use super::{publish, wrong_payload};
use crate::records::{Estate, Records, not_kept, now};

const LONGEST_NAME: usize = 200;

/// Serves `workspace/*`.
#[derive(Debug)]
pub(crate) struct Workspaces {
    pub(crate) records: Arc<Records>,
}

impl BusHandler for Workspaces {
    fn prefix(&self) -> &'static str {
        "workspace"
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let records = Arc::clone(&self.records);
        match (method, payload) {
            ("workspace/list", BusPayload::Empty) => {
                let workspaces = records.look().workspaces.iter().cloned().collect();
                let _ = reply_tx.send(Ok(WorkspaceList { workspaces }.into()));
            }
            ("workspace/create", BusPayload::Workspace(WorkspaceBody::Create(params))) => {
                ctx.clone().spawn(reply_tx, create(ctx, records, *params));
            }
            ("workspace/open", BusPayload::Workspace(WorkspaceBody::Which(which))) => {
                ctx.clone().spawn(reply_tx, open(ctx, records, *which));
            }
            ("workspace/close", BusPayload::Workspace(WorkspaceBody::Which(which))) => {
                ctx.clone().spawn(reply_tx, close(ctx, records, *which));
            }
            ("workspace/delete", BusPayload::Workspace(WorkspaceBody::Which(which))) => {
                ctx.clone().spawn(reply_tx, delete(ctx, records, *which));
            }
            (_, other) => {
                let _ = reply_tx.send(Err(wrong_payload(method, &other)));
            }
        }
    }
}

async fn create(ctx: CallContext, records: Arc<Records>, params: CreateWorkspaceParams) -> BusResult {
    let name = params.name.trim().to_owned();
    if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(invalid(format!("a name has 1 to {LONGEST_NAME} bytes and no control characters")));
    }
    let root_path = folder(&params.root_path)?;
    let workspace = Workspace {
        workspace_id: WorkspaceId::from_ulid(records.unique()),
        name,
        root_path,
        state: WorkspaceState::Active,
        created_at: now(),
        updated_at: now(),
    };
    records
        .change(move |estate| {
            let lower = workspace.name.to_lowercase();
            if let Some(other) = estate.workspaces.iter().find(|other| other.name.to_lowercase() == lower) {
                let message = format!("{} has this name already", other.workspace_id);
                return Err(BusError::new(ERR_INVALID_PARAMS, message).because("WORKSPACE_NAME_CONFLICT"));
            }
            estate.workspaces.put(workspace.clone()).map_err(not_kept)?;
            let Workspace { workspace_id, name, root_path, .. } = workspace;
            let created = json!({ "workspace_id": workspace_id, "name": name, "root_path": root_path });
            publish(
                &ctx,
                "workspace.created",
                |meta| meta.workspace_id = Some(workspace_id.clone()),
                &created,
            );
            Ok(WorkspaceCreated { workspace_id }.into())
        })
        .await
}

async fn open(ctx: CallContext, records: Arc<Records>, which: WhichWorkspace) -> BusResult {
    let id = which_one(&ctx, which)?;
    records
        .change(move |estate| {
            set_state(estate, &id, WorkspaceState::Active)?;
            look_after_projects(estate, &id);
            announce(&ctx, "workspace.opened", &id);
            Ok(as_it_is(estate, &id, WorkspaceState::Active).into())
        })
        .await
}

async fn close(ctx: CallContext, records: Arc<Records>, which: WhichWorkspace) -> BusResult {
    let id = which_one(&ctx, which)?;
    records
        .change(move |estate| {
            refuse_if_lived_in(estate, &id)?;
            set_state(estate, &id, WorkspaceState::Closed)?;
            announce(&ctx, "workspace.closed", &id);
            Ok(as_it_is(estate, &id, WorkspaceState::Closed).into())
        })
        .await
}

async fn delete(ctx: CallContext, records: Arc<Records>, which: WhichWorkspace) -> BusResult {
    let id = which_one(&ctx, which)?;
    records
        .change(move |estate| {
            estate.workspace(&id)?;
            refuse_if_lived_in(estate, &id)?;
            // The workspace last: a crash in between leaves one that can be deleted again.
            let projects: Vec<String> =
                estate.projects_of(&id).map(|project| project.project_id.to_string()).collect();
            for project in projects {
                estate.projects.remove(&project).map_err(not_kept)?;
            }
            estate.workspaces.remove(id.as_str()).map_err(not_kept)?;
            announce(&ctx, "workspace.deleted", &id);
            Ok(BusPayload::Empty)
        })
        .await
}

/// An absolute folder, without the slash at its end.
pub(super) fn folder(path: &str) -> Result<String, BusError> {
    if !Path::new(path).is_absolute() || path.contains('\0') {
        return Err(invalid("root_path is an absolute path".to_owned()));
    }
    let short = path.trim_end_matches('/');
    Ok(if short.is_empty() { "/" } else { short }.to_owned())
}

fn which_one(ctx: &CallContext, which: WhichWorkspace) -> Result<WorkspaceId, BusError> {
    which
        .workspace_id
        .or_else(|| ctx.caller().meta().workspace_id.clone())
        .ok_or_else(|| invalid("which workspace? workspace_id names it".to_owned()))
}

fn set_state(estate: &mut Estate, id: &WorkspaceId, state: WorkspaceState) -> Result<(), BusError> {
    let workspace = estate.workspace(id)?;
    if !lifecycle::workspace_may(workspace.state, state) {
        return Ok(());
    }
    estate.workspaces.put(Workspace { state, updated_at: now(), ..workspace.clone() }).map_err(not_kept)
}

fn refuse_if_lived_in(estate: &Estate, id: &WorkspaceId) -> Result<(), BusError> {
    let sessions: Vec<&str> =
        estate.live_sessions_of(id).map(|session| session.session_id.as_str()).collect();
    if sessions.is_empty() {
        return Ok(());
    }
    let message = format!("{id} has live sessions; session.terminate ends them");
    Err(BusError::new(ERR_INVALID_REQUEST, message)
        .because("WORKSPACE_HAS_ACTIVE_SESSIONS")
        .with("sessions", json!(sessions)))
}

/// Notes which folders can be read now. That one cannot be noted does not keep anybody from opening.
fn look_after_projects(estate: &mut Estate, id: &WorkspaceId) {
    let changed: Vec<_> = estate
        .projects_of(id)
        .filter_map(|project| {
            let readable = std::fs::read_dir(&project.root_path).is_ok();
            let status = lifecycle::project_status(project.status, readable);
            (status != project.status).then(|| swb_proto::project::Project { status, ..project.clone() })
        })
        .collect();
    for project in changed {
        if let Err(error) = estate.projects.put(project) {
            tracing::warn!(%error, "the state of a project was not noted");
        }
    }
}

fn as_it_is(estate: &Estate, id: &WorkspaceId, state: WorkspaceState) -> WorkspaceOpened {
    let projects = estate
        .projects_of(id)
        .map(|project| ProjectInWorkspace { project_id: project.project_id.clone(), status: project.status });
    WorkspaceOpened { workspace_id: id.clone(), state, projects: projects.collect() }
}

fn announce(ctx: &CallContext, topic: &str, id: &WorkspaceId) {
    publish(ctx, topic, |meta| meta.workspace_id = Some(id.clone()), &json!({ "workspace_id": id }));
}

fn invalid(message: String) -> BusError {
    BusError::new(ERR_INVALID_PARAMS, message)
}
