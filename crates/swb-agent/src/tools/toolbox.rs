//! All tools, and the one way to run them: through the gate.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use swb_proto::agent::{LentTool, McpCall, McpOutcome};

use super::{
    Call, Caller, Place, Printer, Tool, ToolError, ask_user, bash, bus, edit, find, grep, ls, plan, read,
    subagent, write,
};
use crate::cancel::Cancel;
use crate::gate::ask::Asks;
use crate::gate::permit::{Denied, permit};
use crate::gate::{Action, Effect, Gate, Mode, Subject};
use crate::lend::Borrowed;
use crate::mcp::{Mcp, Record};
use crate::subagent::Subagents;

/// What a result says when the call was aborted.
const CANCELED: &str = "Canceled by user";
/// How long a turn or a call waits for servers that are starting.
const START_PATIENCE: Duration = Duration::from_secs(5);

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
    pub(crate) borrowed: Arc<Borrowed>,
    pub(crate) mcp: Mcp,
}

/// How a call ended without a result.
#[derive(Debug)]
enum Stop {
    Canceled,
    Denied(Denied),
    Failed(ToolError),
}

impl From<Result<String, Stop>> for Ran {
    fn from(end: Result<String, Stop>) -> Self {
        match end {
            Ok(result) => Ran { result, failed: false },
            Err(Stop::Canceled) => Ran::canceled(),
            Err(Stop::Denied(denied)) => Ran::failed(denied.to_string()),
            Err(Stop::Failed(ToolError::Lent(words))) => Ran::failed(words),
            Err(Stop::Failed(error)) => Ran::failed(format!("Tool execution failed: {error}")),
        }
    }
}

impl Toolbox {
    pub(crate) fn new(
        place: Arc<Place>,
        gate: Arc<Gate>,
        asks: Arc<Asks>,
        subagents: Arc<Subagents>,
        borrowed: Arc<Borrowed>,
        mcp: Mcp,
    ) -> Self {
        let mut tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(ask_user::AskUser { asks: Arc::clone(&asks) }),
            Arc::new(bash::Bash::new(&place.settings)),
            Arc::new(bus::BusPost),
            Arc::new(bus::BusRead),
            Arc::new(edit::Edit),
            Arc::new(find::Find),
            Arc::new(grep::Grep),
            Arc::new(ls::Ls),
            Arc::new(plan::PlanTool),
            Arc::new(read::Read),
            Arc::new(write::Write),
        ];
        if subagents.allowed() {
            tools.extend(subagent::Act::ALL.map(|act| {
                let subagents = Arc::clone(&subagents);
                Arc::new(subagent::SubagentTool { act, subagents, usual_time: place.settings.subagent_time })
                    as Arc<dyn Tool>
            }));
        }
        tools.retain(|tool| !place.settings.disabled.iter().any(|name| name == tool.name()));
        tools.sort_by(|one, other| one.name().cmp(other.name()));
        Toolbox { tools, place, gate, asks, subagents, borrowed, mcp }
    }

    /// Gives servers that are starting a moment, so that a turn begins with all tools.
    pub(crate) async fn prepare(&self, cancel: &Cancel) {
        self.mcp.revive();
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = self.mcp.settled(START_PATIENCE) => {}
        }
    }

    /// All tools, sorted by name.
    fn all(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.tools.clone();
        tools.extend(self.mcp.tools());
        tools.extend(self.borrowed.tools());
        tools.sort_by(|one, other| one.name().cmp(other.name()));
        tools
    }

    /// Whether a tool of this name is there without being lent.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        self.tools.iter().chain(&self.mcp.tools()).any(|tool| tool.name() == name)
    }

    async fn find(&self, fits: impl Fn(&dyn Tool) -> bool) -> Option<Arc<dyn Tool>> {
        let find = || self.all().into_iter().find(|tool| fits(tool.as_ref()));
        if let Some(tool) = find() {
            return Some(tool);
        }
        // It may be a tool of a server that has not said yet what it has.
        self.mcp.settled(START_PATIENCE).await;
        find()
    }

    /// What subagents may use, too.
    pub(crate) fn lendable(&self) -> Vec<LentTool> {
        let lent = |tool: Arc<dyn Tool>| LentTool {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            input_schema: tool.input_schema(),
        };
        self.all().into_iter().filter(|tool| tool.lendable()).map(lent).collect()
    }

    /// As `tools_list` shows them, sorted by name.
    pub(crate) fn describe(&self) -> Value {
        let mut list = Vec::new();
        for tool in self.all() {
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
        let (workspace, folder) = (self.place.root(), self.place.folder());
        let subject =
            Subject { session_id, agents: &[], workspace, folder: &folder, mode: Mode::Full, call_id: None };
        let action = Action { tool: on_behalf_of, effect: Effect::Read(path.to_owned()) };
        permit(&self.gate, &self.asks, subject, &action, &json!({ "path": path })).await
    }

    /// Runs a tool for this agent, if the gate lets it. Always gives a text, also about failures.
    pub(crate) async fn run(
        &self,
        session_id: &str,
        name: &str,
        arguments: Value,
        cancel: &Cancel,
        printer: Printer,
    ) -> Ran {
        let caller = Caller { session_id: session_id.to_owned(), agents: Vec::new(), mode: self.gate.mode() };
        self.run_for(&caller, |tool| tool.name() == name, name, arguments, cancel, printer).await
    }

    /// Runs a tool for a subagent to which it was lent.
    pub(crate) async fn run_lent(
        &self,
        caller: &Caller,
        name: &str,
        arguments: Value,
        cancel: &Cancel,
        printer: Printer,
    ) -> Ran {
        let lent = |tool: &dyn Tool| tool.name() == name && tool.lendable();
        self.run_for(caller, lent, name, arguments, cancel, printer).await
    }

    async fn run_for(
        &self,
        caller: &Caller,
        fits: impl Fn(&dyn Tool) -> bool,
        name: &str,
        arguments: Value,
        cancel: &Cancel,
        printer: Printer,
    ) -> Ran {
        let tool = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ran::canceled(),
            tool = self.find(fits) => tool,
        };
        let Some(tool) = tool else { return Ran::failed(format!("Unknown tool: {name}")) };
        let record =
            tool.server().map(|server| self.mcp.record(name, server, caller, &printer.tool_id, &arguments));
        let end = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Stop::Canceled),
            end = self.pass(caller, tool.as_ref(), arguments, cancel, printer) => end,
        };
        if let Some(record) = record {
            self.mcp.tell(recorded(record, &end)).await;
        }
        end.into()
    }

    async fn pass(
        &self,
        caller: &Caller,
        tool: &dyn Tool,
        arguments: Value,
        cancel: &Cancel,
        printer: Printer,
    ) -> Result<String, Stop> {
        let effect = tool.effect(&arguments, &self.place).map_err(Stop::Failed)?;
        let Caller { session_id, agents, mode } = caller.clone();
        let (workspace, folder) = (self.place.root(), self.place.folder());
        let subject = Subject {
            session_id: &session_id,
            agents: &agents,
            workspace,
            folder: &folder,
            mode,
            call_id: Some(&printer.tool_id),
        };
        let action = Action { tool: tool.name(), effect };
        permit(&self.gate, &self.asks, subject, &action, &arguments).await.map_err(Stop::Denied)?;
        let place = Arc::clone(&self.place);
        let call = Call { arguments, session_id, agents, mode, place, cancel: cancel.clone(), printer };
        tool.run(call).await.map_err(Stop::Failed)
    }
}

fn recorded(record: Record, end: &Result<String, Stop>) -> McpCall {
    match end {
        Ok(_) => record.end(McpOutcome::Ok, None),
        Err(Stop::Canceled) => record.end(McpOutcome::Cancelled, None),
        Err(Stop::Denied(denied)) => record.end(McpOutcome::Denied, Some((denied.to_string(), false))),
        Err(Stop::Failed(error)) => {
            let retryable = matches!(error, ToolError::Mcp(error) if error.retryable());
            record.end(McpOutcome::Failed, Some((error.to_string(), retryable)))
        }
    }
}

#[cfg(test)]
mod tests;
