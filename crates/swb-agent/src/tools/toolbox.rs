//! All tools, and the one way to run them: through the gate.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Call, Place, Printer, Tool, ToolError, ask_user, bash, bus, edit, find, grep, ls, read, subagent, write,
};
use crate::cancel::Cancel;
use crate::gate::ask::Asks;
use crate::gate::permit::{Denied, permit};
use crate::gate::{Action, Effect, Gate, Subject};
use crate::subagent::Subagents;

/// What a result says when the call was aborted.
const CANCELED: &str = "Canceled by user";

/// What became of a call.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) result: String,
    pub(crate) failed: bool,
}

impl Ran {
    pub(crate) fn canceled() -> Self {
        Ran { result: CANCELED.to_owned(), failed: true }
    }

    pub(crate) fn failed(result: String) -> Self {
        Ran { result, failed: true }
    }
}

/// The tools of one agent, and what they need.
#[derive(Debug)]
pub(crate) struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    pub(crate) place: Arc<Place>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) asks: Arc<Asks>,
    pub(crate) subagents: Arc<Subagents>,
}

impl Toolbox {
    pub(crate) fn new(
        place: Arc<Place>,
        gate: Arc<Gate>,
        asks: Arc<Asks>,
        subagents: Arc<Subagents>,
    ) -> Self {
        let mut tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(ask_user::AskUser { asks: Arc::clone(&asks) }),
            Arc::new(bash::Bash::default()),
            Arc::new(bus::BusPost),
            Arc::new(bus::BusRead),
            Arc::new(edit::Edit),
            Arc::new(find::Find),
            Arc::new(grep::Grep),
            Arc::new(ls::Ls),
            Arc::new(read::Read),
            Arc::new(write::Write),
        ];
        if subagents.allowed() {
            tools.extend(subagent::Act::ALL.map(|act| {
                let subagents = Arc::clone(&subagents);
                Arc::new(subagent::SubagentTool { act, subagents }) as Arc<dyn Tool>
            }));
        }
        tools.sort_by(|one, other| one.name().cmp(other.name()));
        Toolbox { tools, place, gate, asks, subagents }
    }

    /// As `tools_list` shows them, sorted by name.
    pub(crate) fn describe(&self) -> Value {
        let mut list = Vec::new();
        for tool in &self.tools {
            list.push(json!({
                "description": tool.description(),
                "input_schema": tool.input_schema(),
                "name": tool.name(),
            }));
        }
        Value::Array(list)
    }

    /// Asks the gate whether this file may be read on somebody's behalf, under this name.
    pub(crate) async fn may_read(
        &self,
        session_id: &str,
        on_behalf_of: &'static str,
        path: &Path,
    ) -> Result<(), Denied> {
        let subject = Subject { session_id, agents: &[], workspace: self.place.root() };
        let action = Action { tool: on_behalf_of, effect: Effect::Read(path.to_owned()) };
        permit(&self.gate, &self.asks, subject, &action, &json!({ "path": path })).await
    }

    /// Runs a tool if the gate lets it. Always gives a text, also about failures.
    pub(crate) async fn run(
        &self,
        session_id: &str,
        name: &str,
        arguments: Value,
        cancel: &Cancel,
        printer: Printer,
    ) -> Ran {
        let Some(tool) = self.tools.iter().find(|tool| tool.name() == name) else {
            return Ran::failed(format!("Unknown tool: {name}"));
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Ran::canceled(),
            ran = self.pass(session_id, tool.as_ref(), arguments, cancel, printer) => ran,
        }
    }

    async fn pass(
        &self,
        session_id: &str,
        tool: &dyn Tool,
        arguments: Value,
        cancel: &Cancel,
        printer: Printer,
    ) -> Ran {
        let failed = |error: ToolError| Ran::failed(format!("Tool execution failed: {error}"));
        let effect = match tool.effect(&arguments, &self.place) {
            Ok(effect) => effect,
            Err(error) => return failed(error),
        };
        let subject = Subject { session_id, agents: &[], workspace: self.place.root() };
        let action = Action { tool: tool.name(), effect };
        if let Err(denied) = permit(&self.gate, &self.asks, subject, &action, &arguments).await {
            return Ran::failed(denied.to_string());
        }
        let session_id = session_id.to_owned();
        let call =
            Call { arguments, session_id, place: Arc::clone(&self.place), cancel: cancel.clone(), printer };
        match tool.run(call).await {
            Ok(result) => Ran { result, failed: false },
            Err(error) => failed(error),
        }
    }
}
