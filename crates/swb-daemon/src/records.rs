//! What the daemon keeps of workspaces, projects, sessions and runs, and the questions that span more than one of them.
//!
//! All four lie behind one lock, because their rules do: a workspace with a live session is not closed. A change is on
//! disk before it is visible. The lock is held over a write, so callers come from blocking threads ([`Records::change`]).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use std::{fmt, io};

use swb_journal::registry::{Found, Registry};
use swb_proto::error::{ERR_HANDLER, ERR_INVALID_PARAMS, ERR_INVALID_REQUEST, ERR_SESSION_NOT_FOUND};
use swb_proto::id::{ProjectId, SessionId, WorkspaceId};
use swb_proto::project::Project;
use swb_proto::session::Session;
use swb_proto::workspace::{Workspace, WorkspaceState};
use swb_proto::{BusError, Timestamp};
use swb_rules::lifecycle;
use ulid::Ulid;

use crate::mint::Mint;
use crate::runs::KeptRun;

/// Agents that can stand above one another.
const MOST_ABOVE: usize = 64;

/// Workspaces, projects, sessions and runs.
#[derive(Debug)]
pub(crate) struct Records {
    estate: Mutex<Estate>,
    mint: Mint,
}

/// The four registries. Whoever has it is alone with it.
pub(crate) struct Estate {
    pub(crate) workspaces: Registry<Workspace>,
    pub(crate) projects: Registry<Project>,
    pub(crate) sessions: Registry<Session>,
    pub(crate) runs: Registry<KeptRun>,
}

impl fmt::Debug for Estate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Estate").finish_non_exhaustive()
    }
}

impl Records {
    /// Opens the files in `folder`. What a crash had cut short or a disk has damaged is told in the log.
    pub(crate) fn open(folder: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let estate = Estate {
            workspaces: open(folder, "workspaces.jsonl", |workspace: &Workspace| {
                workspace.workspace_id.as_str()
            })?,
            projects: open(folder, "projects.jsonl", |project: &Project| project.project_id.as_str())?,
            sessions: open(folder, "control-sessions.jsonl", |session: &Session| {
                session.session_id.as_str()
            })?,
            runs: open(folder, "runs.jsonl", |kept: &KeptRun| kept.run.run_id.as_str())?,
        };
        Ok(Records { estate: Mutex::new(estate), mint: Mint::default() })
    }

    /// The records as they are.
    pub(crate) fn look(&self) -> MutexGuard<'_, Estate> {
        self.estate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change on a thread that may wait for the disk. It is made whole, with the events that tell of it, also when
    /// whoever wanted it no longer waits.
    pub(crate) async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Estate) -> Result<T, BusError> + Send + 'static,
    ) -> Result<T, BusError> {
        let records = Arc::clone(self);
        let changed = tokio::task::spawn_blocking(move || change(&mut records.look())).await;
        changed
            .unwrap_or_else(|_| Err(BusError::new(ERR_HANDLER, "the change was not made; the log says why")))
    }

    /// The unique part of a new id.
    pub(crate) fn unique(&self) -> Ulid {
        self.mint.unique()
    }
}

impl Estate {
    pub(crate) fn workspace(&self, id: &WorkspaceId) -> Result<&Workspace, BusError> {
        self.workspaces.get(id.as_str()).ok_or_else(|| {
            let message = format!("there is no workspace {id}; workspace.list names them");
            BusError::new(ERR_INVALID_PARAMS, message).because("WORKSPACE_NOT_FOUND")
        })
    }

    /// A workspace in which something may be done.
    pub(crate) fn active_workspace(&self, id: &WorkspaceId) -> Result<&Workspace, BusError> {
        let workspace = self.workspace(id)?;
        if workspace.state == WorkspaceState::Active {
            return Ok(workspace);
        }
        let message = format!("the workspace {id} is closed; workspace.open opens it");
        Err(BusError::new(ERR_INVALID_REQUEST, message).because("WORKSPACE_CLOSED"))
    }

    pub(crate) fn project(&self, id: &ProjectId) -> Result<&Project, BusError> {
        self.projects.get(id.as_str()).ok_or_else(|| {
            let message = format!("there is no project {id}; project.list names them");
            BusError::new(ERR_INVALID_PARAMS, message).because("PROJECT_NOT_FOUND")
        })
    }

    pub(crate) fn session(&self, id: &SessionId) -> Result<&Session, BusError> {
        self.sessions.get(id.as_str()).ok_or_else(|| {
            BusError::new(ERR_SESSION_NOT_FOUND, format!("there is no session {id}; session.list names them"))
        })
    }

    /// The sessions of the agents above a session, the root first.
    pub(crate) fn above<'a>(&'a self, session: &str) -> Vec<&'a Session> {
        let parent = |session: &Session| {
            session.parent_session_id.as_ref().and_then(|parent| self.sessions.get(parent.as_str()))
        };
        let mut above: Vec<&Session> = Vec::new();
        let mut next = self.sessions.get(session).and_then(parent);
        while let Some(session) = next.filter(|_| above.len() < MOST_ABOVE) {
            above.push(session);
            next = parent(session);
        }
        above.reverse();
        above
    }

    pub(crate) fn projects_of<'a>(&'a self, id: &'a WorkspaceId) -> impl Iterator<Item = &'a Project> {
        self.projects.iter().filter(move |project| project.workspace_id == *id)
    }

    pub(crate) fn live_sessions_of<'a>(&'a self, id: &'a WorkspaceId) -> impl Iterator<Item = &'a Session> {
        self.sessions
            .iter()
            .filter(move |session| session.workspace_id == *id && lifecycle::session_lives(session.state))
    }
}

/// A record could not be written. The path is for the log, not for whoever asked.
pub(crate) fn not_kept(error: io::Error) -> BusError {
    tracing::error!(%error, "a record could not be written");
    BusError::new(ERR_HANDLER, format!("this could not be kept, so it was not done: {}", error.kind()))
        .because("NOT_KEPT")
}

/// Now, as records have it.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_system_time(SystemTime::now())
}

fn open<T: serde::Serialize + serde::de::DeserializeOwned>(
    folder: &Path,
    name: &str,
    key: fn(&T) -> &str,
) -> Result<Registry<T>, (PathBuf, io::Error)> {
    let path = folder.join(name);
    let (registry, found) = Registry::open(&path, key).map_err(|error| (path.clone(), error))?;
    if found != Found::default() {
        let Found { torn_bytes, damaged_lines } = found;
        tracing::warn!(path = %path.display(), torn_bytes, damaged_lines, "records were cut short or damaged");
    }
    Ok(registry)
}
