//! The sessions that the daemon keeps.

use std::collections::BTreeMap;

use serde_json::json;
use swb_bus::BusHandle;
use swb_proto::Meta;
use swb_proto::id::{ProjectId, SessionId};
use swb_proto::project::{List as ListProjects, ListProjectsParams};
use swb_proto::session::{
    Attach, AttachParams, Create, CreateSessionParams, List, ListSessionsParams, Session, SessionMode,
    SessionState, Terminate, TerminateParams,
};

use crate::connect::connect;
use crate::failure::Failure;
use crate::io::{DIM, GOOD, Io, NAME};
use crate::plain;

/// What a running daemon knows, by id.
#[derive(Debug, Default)]
pub(super) struct Kept {
    sessions: BTreeMap<String, Session>,
    projects: BTreeMap<String, String>,
}

impl Kept {
    pub(super) async fn ask(handle: &BusHandle, ended: bool) -> Result<Self, Failure> {
        let sessions = handle.call::<List>(ListSessionsParams { workspace_id: None, ended }).await?.sessions;
        let projects = handle.call::<ListProjects>(ListProjectsParams::default()).await?.projects;
        Ok(Kept {
            sessions: sessions.into_iter().map(|one| (one.session_id.to_string(), one)).collect(),
            projects: projects.into_iter().map(|one| (one.project_id.to_string(), one.slug)).collect(),
        })
    }

    /// Where a session stands, taken out: what is left at the end has no history.
    pub(super) fn take(&mut self, id: &str) -> Option<SessionState> {
        self.sessions.remove(id).map(|session| session.state)
    }

    /// Shows what was not taken, the latest first.
    pub(super) fn show(&self, io: &Io) -> Result<usize, Failure> {
        let mut sessions: Vec<&Session> = self.sessions.values().collect();
        sessions.sort_by(|one, other| other.updated_at.as_str().cmp(one.updated_at.as_str()));
        for session in &sessions {
            if io.json {
                let mut object = serde_json::to_value(session).unwrap_or_default();
                object["id"] = session.session_id.as_str().into();
                io.line(object)?;
            } else {
                io.line(self.line(session))?;
            }
        }
        Ok(sessions.len())
    }

    fn line(&self, session: &Session) -> String {
        let (sign, style) = match session.state {
            SessionState::Attached | SessionState::Attaching | SessionState::Restoring => ("●", GOOD),
            SessionState::Detached | SessionState::Terminated => ("○", DIM),
        };
        let project = self.projects.get(session.project_id.as_str());
        let project = project.map_or(session.project_id.as_str(), String::as_str);
        let whose = match session.mode {
            SessionMode::Agent => "agent",
            SessionMode::Freehand => "person",
        };
        format!(
            "{style}{sign}{style:#} {NAME}{}{NAME:#} {DIM}{}{DIM:#}  {}  {DIM}{whose}{DIM:#}",
            session.session_id,
            word(session.state),
            plain::text(project),
        )
    }
}

pub(super) async fn create(
    project: &str,
    agent: bool,
    rules: Option<&std::path::Path>,
    io: &Io,
) -> Result<(), Failure> {
    let read = |file: &std::path::Path| {
        let failed = |error| Failure::new(format!("cannot read {}", file.display())).because(error);
        std::fs::read_to_string(file).map_err(failed)
    };
    let rules = rules.map(read).transpose()?;
    let handle = connect(Meta::default()).await?;
    let project_id = find_project(&handle, project).await?;
    let mode = if agent { SessionMode::Agent } else { SessionMode::Freehand };
    let params = CreateSessionParams { project_id, profile_id: None, mode, rules };
    let made = handle.call::<Create>(params).await?;
    tell(io, &made, format!("{GOOD}created{GOOD:#} {}", made.session_id))
}

pub(super) async fn attach(session: &str, restore: bool, io: &Io) -> Result<(), Failure> {
    let handle = connect(Meta::default()).await?;
    let params = AttachParams { session_id: Some(id(session)?), restore };
    let attached = handle.call::<Attach>(params).await?;
    tell(io, &attached, format!("{} is {}", attached.session_id, word(attached.state)))
}

pub(super) async fn end(session: &str, reason: Option<String>, io: &Io) -> Result<(), Failure> {
    let handle = connect(Meta::default()).await?;
    let params = TerminateParams { session_id: Some(id(session)?), reason };
    let ended = handle.call::<Terminate>(params).await?;
    tell(io, &ended, format!("ended {}", ended.session_id))
}

fn tell(io: &Io, object: &impl serde::Serialize, line: String) -> Result<(), Failure> {
    if io.json { io.object(object) } else { io.line(line) }
}

async fn find_project(handle: &BusHandle, wanted: &str) -> Result<ProjectId, Failure> {
    let projects = handle.call::<ListProjects>(ListProjectsParams::default()).await?.projects;
    let found = projects.into_iter().find(|one| one.project_id.as_str() == wanted || one.slug == wanted);
    found.map(|one| one.project_id).ok_or_else(|| {
        Failure::new(format!("there is no project {}", plain::text(wanted)))
            .hint("`swb projects` lists them; `swb projects init` takes this folder in")
    })
}

fn id(session: &str) -> Result<SessionId, Failure> {
    SessionId::try_from(session.to_owned()).map_err(|error| {
        Failure::new(format!("{} is no session", plain::text(session)))
            .because(error)
            .hint("`swb sessions` lists them")
    })
}

pub(super) fn word(state: SessionState) -> String {
    json!(state).as_str().unwrap_or_default().to_owned()
}
