//! What a command is about, in the words of the rules: who, what, to what, and which rules hold there.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use swb_bus::Caller;
use swb_proto::method;
use swb_proto::session::Session;
use swb_rules::policy::{self, Actor, Ancestor, Input, Resource};

use crate::policy::Place;
use crate::records::{Estate, Records};

/// A question to the policy, and where it is asked.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) input: Input,
    project_root: Option<PathBuf>,
    session_id: Option<String>,
}

/// The ids that parameters may name. Whatever else they hold does not matter here.
#[derive(Debug, Default, Deserialize)]
struct Named {
    workspace_id: Option<String>,
    project_id: Option<String>,
    session_id: Option<String>,
    run_id: Option<String>,
}

impl Question {
    pub(super) fn new(records: &Records, caller: &Caller, name: &str, params: Option<&RawValue>) -> Self {
        let named: Named =
            params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        let meta = caller.meta();
        let estate = records.look();
        let of_run = named.run_id.and_then(|id| estate.runs.get(&id));
        let session_id = of_run
            .map(|kept| kept.run.session_id.as_str().to_owned())
            .or(named.session_id)
            .or_else(|| meta.session_id.as_ref().map(|id| id.as_str().to_owned()));
        let session = session_id.as_deref().and_then(|id| estate.sessions.get(id));
        let project_id =
            named.project_id.or_else(|| session.map(|session| session.project_id.as_str().to_owned()));
        let project = project_id.as_deref().and_then(|id| estate.projects.get(id));
        let workspace_id = named
            .workspace_id
            .or_else(|| meta.workspace_id.as_ref().map(|id| id.as_str().to_owned()))
            .or_else(|| session.map(|session| session.workspace_id.as_str().to_owned()))
            .or_else(|| project.map(|project| project.workspace_id.as_str().to_owned()));
        let action = action_of(name);
        let about = About {
            session: session_id.as_deref().map(|id| Resource::Session {
                id: id.to_owned(),
                workspace: session
                    .map(|session| session.workspace_id.as_str().to_owned())
                    .unwrap_or_default(),
                project: session.map(|session| session.project_id.as_str().to_owned()),
            }),
            project: project_id.as_deref().map(|id| Resource::Project {
                id: id.to_owned(),
                workspace: project
                    .map(|project| project.workspace_id.as_str().to_owned())
                    .unwrap_or_default(),
            }),
            workspace: workspace_id.map(|id| Resource::Workspace { id }),
        };
        let resource = about.narrowest(&action);
        let mut input = Input::new(actor_of(&estate, caller), action, resource);
        input.contained = caller.is_contained();
        let project_root = project.map(|project| PathBuf::from(&project.root_path));
        Question { input, project_root, session_id }
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place {
            project_root: self.project_root.as_deref().map(Path::new),
            session_id: self.session_id.as_deref(),
        }
    }
}

/// What a command names.
struct About {
    session: Option<Resource>,
    project: Option<Resource>,
    workspace: Option<Resource>,
}

impl About {
    /// The narrowest thing that the action can be done to.
    fn narrowest(self, action: &str) -> Resource {
        let named = [self.session, self.project, self.workspace, Some(Resource::House)];
        // An action that needs an id that is not there: its handler says so, if it may be asked at all.
        let nowhere = [
            Resource::Workspace { id: String::new() },
            Resource::Session { id: String::new(), workspace: String::new(), project: None },
            Resource::Project { id: String::new(), workspace: String::new() },
        ];
        let mut candidates = named.into_iter().flatten().chain(nowhere);
        candidates.find(|resource| policy::fits(action, resource)).unwrap_or(Resource::House)
    }
}

/// The action of a method. Whom a message is for does not change what is done.
pub(super) fn action_of(name: &str) -> String {
    match method::prefix(name) {
        family @ "agents" => family.to_owned(),
        _ => method::dotted(name),
    }
}

/// The actor as rules know it. An agent works in the workspace of its session.
pub(crate) fn actor_of(estate: &Estate, caller: &Caller) -> Actor {
    let actor = caller.actor();
    let id = actor.id.as_str().to_owned();
    match actor.kind.as_str() {
        "user" => Actor::User { id },
        "agent" => {
            let session = estate.sessions.get(&id);
            let workspace = session.map(|session| session.workspace_id.as_str().to_owned());
            let ancestry = ancestry(estate, &id);
            Actor::Agent { id, workspace: workspace.unwrap_or_default(), ancestry }
        }
        _ => Actor::Service { id },
    }
}

/// The agents above the agent of a session, as rules know them.
pub(crate) fn ancestry(estate: &Estate, session: &str) -> Vec<Ancestor> {
    let ancestor = |session: &Session| Ancestor {
        id: session.session_id.as_str().to_owned(),
        workspace: session.workspace_id.as_str().to_owned(),
    };
    estate.above(session).into_iter().map(ancestor).collect()
}
