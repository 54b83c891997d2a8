//! All tools, and the one way to run them: through the gate.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use swb_proto::agent::LentTool;

use super::{
    Call, Caller, Place, Printer, Tool, ToolError, ask_user, bash, bus, edit, find, grep, ls, read, subagent,
    write,
};
use crate::cancel::Cancel;
use crate::gate::ask::Asks;
use crate::gate::permit::{Denied, permit};
use crate::gate::{Action, Effect, Gate, Mode, Subject};
use crate::lend::Borrowed;
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
    pub(crate) borrowed: Arc<Borrowed>,
}

impl Toolbox {
    pub(crate) fn new(
        place: Arc<Place>,
        gate: Arc<Gate>,
        asks: Arc<Asks>,
        subagents: Arc<Subagents>,
        borrowed: Arc<Borrowed>,
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
        Toolbox { tools, place, gate, asks, subagents, borrowed }
    }

    /// All tools, sorted by name.
    fn all(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.tools.clone();
        tools.extend(self.borrowed.tools());
        tools.sort_by(|one, other| one.name().cmp(other.name()));
        tools
    }

    /// Whether a tool of this name is there without being lent.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name() == name)
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
        let subject = Subject { session_id, agents: &[], workspace: self.place.root(), mode: Mode::Full };
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
        let Some(tool) = self.all().into_iter().find(|tool| fits(tool.as_ref())) else {
            return Ran::failed(format!("Unknown tool: {name}"));
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Ran::canceled(),
            ran = self.pass(caller, tool.as_ref(), arguments, cancel, printer) => ran,
        }
    }

    async fn pass(
        &self,
        caller: &Caller,
        tool: &dyn Tool,
        arguments: Value,
        cancel: &Cancel,
        printer: Printer,
    ) -> Ran {
        let failed = |error: ToolError| match error {
            ToolError::Lent(words) => Ran::failed(words),
            error => Ran::failed(format!("Tool execution failed: {error}")),
        };
        let effect = match tool.effect(&arguments, &self.place) {
            Ok(effect) => effect,
            Err(error) => return failed(error),
        };
        let Caller { session_id, agents, mode } = caller.clone();
        let subject =
            Subject { session_id: &session_id, agents: &agents, workspace: self.place.root(), mode };
        let action = Action { tool: tool.name(), effect };
        if let Err(denied) = permit(&self.gate, &self.asks, subject, &action, &arguments).await {
            return Ran::failed(denied.to_string());
        }
        let place = Arc::clone(&self.place);
        let call = Call { arguments, session_id, agents, mode, place, cancel: cancel.clone(), printer };
        match tool.run(call).await {
            Ok(result) => Ran { result, failed: false },
            Err(error) => failed(error),
        }
    }
}

#[cfg(test)]
mod tests;
