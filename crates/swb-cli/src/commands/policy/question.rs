//! From a method or a tool and its parameters to the question that rules are asked.

use std::path::{Path, PathBuf};

use serde_json::Value;
use swb_daemon::policy::{Asked, ToolCall, Workspace};
use swb_rules::policy::{Actor, Input, Resource, fits, is_action};

use crate::exit_code;
use crate::failure::Failure;

/// What stands for an id that nobody gave.
const SOME: &str = "some";

/// Who is asked about, as it is written: `user`, `agent:ID`, `service:ID`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Who {
    User(String),
    Agent(String),
    Service(String),
}

impl std::str::FromStr for Who {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, id) = text.split_once(':').unwrap_or((text, SOME));
        if id.is_empty() {
            return Err("an id is missing after the colon".to_owned());
        }
        match kind {
            "user" => Ok(Who::User(id.to_owned())),
            "agent" => Ok(Who::Agent(id.to_owned())),
            "service" => Ok(Who::Service(id.to_owned())),
            _ => Err("it is user, agent:ID or service:ID".to_owned()),
        }
    }
}

/// Where and by whom something would be done.
#[derive(Debug)]
pub(super) struct Circumstances {
    pub(super) who: Option<Who>,
    pub(super) workspace: Option<String>,
    /// The folder of the workspace.
    pub(super) root: PathBuf,
    /// The folder in which it would be done.
    pub(super) folder: PathBuf,
    pub(super) contained: bool,
}

impl Circumstances {
    /// The question, and what was found against it.
    pub(super) fn ask(&self, method: &str, params: &Value) -> Result<Asked, Failure> {
        let method = method.replace('/', ".");
        let workspace = self.workspace.as_deref().or(text(params, "workspace_id")).unwrap_or(SOME);
        let is_tool = method.starts_with("tool.");
        let actor = match &self.who {
            Some(Who::User(id)) => Actor::User { id: id.clone() },
            Some(Who::Service(id)) => Actor::Service { id: id.clone() },
            Some(Who::Agent(id)) => agent(id, workspace),
            None if is_tool => agent(SOME, workspace),
            None => Actor::User { id: SOME.to_owned() },
        };
        let mut asked = if is_tool {
            let home = std::env::var("HOME").ok();
            let call = ToolCall {
                tool: &method,
                arguments: params,
                folder: &self.folder,
                workspace: Some(Workspace { id: workspace, root: &self.root }),
                home: home.as_deref(),
            };
            call.ask(actor).map_err(|error| {
                Failure::new(error.to_string())
                    .code(exit_code::USAGE)
                    .hint("for example: swb policy explain tool.bash '{\"command\":\"ls\"}'")
            })?
        } else {
            if !is_action(&method) {
                return Err(Failure::new(format!("no rule can speak of {method}"))
                    .code(exit_code::USAGE)
                    .hint("`swb policy schema` names every action"));
            }
            let resource = resource(&method, params, workspace);
            Asked { input: Input::new(actor, method, resource), findings: Vec::new() }
        };
        asked.input.contained = self.contained;
        Ok(asked)
    }
}

fn agent(id: &str, workspace: &str) -> Actor {
    Actor::Agent { id: id.to_owned(), workspace: workspace.to_owned(), ancestry: Vec::new() }
}

/// The narrowest thing that the parameters name and the action can be about.
fn resource(method: &str, params: &Value, workspace: &str) -> Resource {
    let id = |name: &str| text(params, name).map(str::to_owned);
    let workspace = || workspace.to_owned();
    let session = || id("session_id").unwrap_or_else(|| SOME.to_owned());
    let project = || id("project_id");
    let terminal = Resource::Terminal {
        id: id("terminal_id").unwrap_or_else(|| SOME.to_owned()),
        session: session(),
        workspace: workspace(),
    };
    let one_session = Resource::Session { id: session(), workspace: workspace(), project: project() };
    let one_project =
        Resource::Project { id: project().unwrap_or_else(|| SOME.to_owned()), workspace: workspace() };
    let one_workspace = Resource::Workspace { id: workspace() };
    let named = [
        (id("terminal_id").is_some(), terminal.clone()),
        (id("session_id").is_some(), one_session.clone()),
        (project().is_some(), one_project.clone()),
        (true, one_workspace),
        (true, Resource::House),
    ];
    // What is not named must be something all the same where an action is about nothing else.
    let unnamed = [one_session, one_project, terminal].map(|resource| (true, resource));
    let mut all = named.into_iter().chain(unnamed);
    all.find(|(is_named, resource)| *is_named && fits(method, resource))
        .map_or(Resource::House, |(_, resource)| resource)
}

fn text<'a>(params: &'a Value, name: &str) -> Option<&'a str> {
    params.get(name).and_then(Value::as_str)
}

/// The folder as it really is.
pub(super) fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_narrowest_thing_that_fits_is_asked_about() {
        let kind = |method: &str, params: &Value| {
            let resource = resource(method, params, "ws_1");
            (resource.id().to_owned(), resource.workspace().map(str::to_owned))
        };
        let ws = Some("ws_1".to_owned());
        assert_eq!(kind("session.get", &json!({ "session_id": "s1" })), ("s1".to_owned(), ws.clone()));
        assert_eq!(kind("session.get", &json!({})), (SOME.to_owned(), ws.clone()));
        assert_eq!(kind("session.create", &json!({ "project_id": "p1" })), ("p1".to_owned(), ws.clone()));
        assert_eq!(kind("terminal.input", &json!({ "terminal_id": "t1" })), ("t1".to_owned(), ws.clone()));
        assert_eq!(kind("workspace.list", &json!({})), ("ws_1".to_owned(), ws));
        assert_eq!(kind("bus.shutdown", &json!({})), ("house".to_owned(), None));
    }

    #[test]
    fn actors_are_written_with_their_kind() {
        assert_eq!("user".parse::<Who>(), Ok(Who::User(SOME.to_owned())));
        assert_eq!("agent:sess_1".parse::<Who>(), Ok(Who::Agent("sess_1".to_owned())));
        assert!("agent:".parse::<Who>().is_err() && "robot".parse::<Who>().is_err());
    }
}
