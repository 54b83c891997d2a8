//! What a model can do: tools with a schema, an effect that the gate judges, and a result in words.
//!
//! A [`Tool`] says what a call would do before it does it; [`Toolbox::run`] is the only way to run one, and it passes
//! the gate. Results are cut for the history ([`limits`]). Relative paths mean the folder that `bash` last was in.

mod ask_user;
mod bash;
mod bus;
mod edit;
mod find;
mod grep;
pub(crate) mod limits;
mod ls;
mod place;
mod plan;
mod read;
mod subagent;
mod text;
mod toolbox;
mod walk;
mod write;

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use swb_proto::agent::{AddedEvent, Plan, PlanUpdate};

pub(crate) use place::Place;
pub(crate) use toolbox::{Ran, Toolbox};

use crate::cancel::Cancel;
use crate::gate::{Effect, Mode};
use crate::mcp::CallError;
use crate::stdio::output::Output;

/// What is configured about tools.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// How much of a result the model gets to see, in characters.
    pub kept_chars: usize,
    /// How long a command may take that asks for no other time.
    pub bash_time: Duration,
    /// How long a command may take at most.
    pub bash_time_max: Duration,
    /// How long a subagent may take whose task asks for no other time.
    pub subagent_time: Duration,
    /// Those that are not there.
    pub disabled: Vec<String>,
    /// Variables of the environment that commands do not see.
    pub hidden_variables: Vec<String>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        ToolSettings {
            kept_chars: limits::KEPT_CHARS,
            bash_time: Duration::from_secs(30),
            bash_time_max: Duration::from_secs(300),
            subagent_time: Duration::from_secs(600),
            disabled: Vec::new(),
            hidden_variables: Vec::new(),
        }
    }
}

/// Something a model can do.
pub(crate) trait Tool: Debug + Send + Sync {
    /// What the model calls it.
    fn name(&self) -> &str;
    /// When to use it, for the model.
    fn description(&self) -> &str;
    /// Its arguments, as JSON Schema.
    fn input_schema(&self) -> Value;
    /// The MCP server it belongs to, if it does: such calls leave a record.
    fn server(&self) -> Option<&str> {
        None
    }
    /// Whether subagents may use it, too.
    fn lendable(&self) -> bool {
        self.server().is_some()
    }
    /// What a call would do.
    fn effect(&self, arguments: &Value, place: &Place) -> Result<Effect, ToolError>;
    /// Does it.
    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>>;
}

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) arguments: Value,
    /// Whose call it is.
    pub(crate) session_id: String,
    /// The subagents that lead to whoever calls; none if that is this agent itself.
    pub(crate) agents: Vec<String>,
    /// What it may do at most.
    pub(crate) mode: Mode,
    pub(crate) place: Arc<Place>,
    pub(crate) cancel: Cancel,
    pub(crate) printer: Printer,
}

/// Who calls a tool.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) session_id: String,
    /// The subagents that lead to it; none if it is this agent itself.
    pub(crate) agents: Vec<String>,
    /// What it may do at most.
    pub(crate) mode: Mode,
}

/// Shows what a running tool prints.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    output: Option<Output>,
    pub(crate) tool_id: String,
}

impl Printer {
    pub(crate) fn new(output: Output, tool_id: String) -> Self {
        Printer { output: Some(output), tool_id }
    }

    /// One that shows nothing, for a call that our parent knows nothing of.
    pub(crate) fn mute(tool_id: &str) -> Self {
        Printer { output: None, tool_id: tool_id.to_owned() }
    }

    pub(crate) async fn print(&self, text: &str) {
        let Some(output) = &self.output else { return };
        let event = AddedEvent::ToolOutput { tool_id: self.tool_id.clone(), delta: text.to_owned() };
        // A parent that has gone is noticed by the loop.
        let _ = output.send(&event).await;
    }

    /// Shows a plan. Nobody sees that of a call that our parent knows nothing of.
    pub(crate) async fn plan(&self, plan: Plan) {
        let Some(output) = &self.output else { return };
        let (path, agents) = (Vec::new(), Vec::new());
        let event = AddedEvent::Plan(PlanUpdate { tool_id: self.tool_id.clone(), path, agents, plan });
        let _ = output.send(&event).await;
    }
}

/// Why a tool did not do it. The text is for the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    #[error("the arguments do not fit: {0}")]
    Arguments(#[from] serde_json::Error),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Mcp(#[from] CallError),
    #[error("{reason}")]
    Refused { reason: String },
    /// What whoever has lent the tool says about it, whole.
    #[error("{0}")]
    Lent(String),
}

impl ToolError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| ToolError::Io { path: path.to_owned(), source }
    }

    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        ToolError::Refused { reason: reason.into() }
    }
}

/// The arguments as what they are meant to be. A call without any is one with none.
fn arguments<T: DeserializeOwned>(value: &Value) -> Result<T, ToolError> {
    let empty = Value::Object(serde_json::Map::new());
    Ok(T::deserialize(if value.is_null() { &empty } else { value })?)
}

/// Runs what may take its time on a thread of its own.
async fn on_a_thread(
    work: impl FnOnce() -> Result<String, ToolError> + Send + 'static,
) -> Result<String, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(ToolError::refused("the tool has failed in a way it should not")))
}
