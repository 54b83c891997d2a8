//! What our parent has lent to us.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use swb_proto::agent::{AddedEvent, LentCall, LentTool};
use tokio::sync::oneshot;

use crate::gate::Effect;
use crate::stdio::output::Output;
use crate::tools::{Call, Place, Ran, Tool, ToolError};

/// How many tools may be lent.
const MAX_TOOLS: usize = 1024;
/// What they may weigh together.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// What models take for the name of a tool.
const MAX_NAME_BYTES: usize = 128;

/// The tools that were lent, and the calls of them that are under way.
#[derive(Debug, Default)]
pub(crate) struct Borrowed {
    output: Option<Output>,
    state: Mutex<State>,
    count: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    tools: Vec<LentTool>,
    bytes: usize,
    open: HashMap<String, oneshot::Sender<Ran>>,
}

/// A result that fits no call.
#[derive(Debug, thiserror::Error)]
#[error("there is no open call of this id: it was answered, or it was cancelled")]
pub(crate) struct NotOpen;

impl Borrowed {
    pub(crate) fn new(output: Output) -> Self {
        Borrowed { output: Some(output), ..Self::default() }
    }

    /// Takes tools. Returns how many there are now, and the names of those that were not taken.
    pub(crate) fn take(
        &self,
        tools: Vec<LentTool>,
        add: bool,
        is_ours: impl Fn(&str) -> bool,
    ) -> (usize, Vec<String>) {
        let mut state = self.state();
        if !add {
            (state.tools, state.bytes) = (Vec::new(), 0);
        }
        let mut refused = Vec::new();
        for tool in tools {
            let bytes = tool.name.len() + tool.description.len() + tool.input_schema.to_string().len();
            let known = state.tools.iter().any(|known| known.name == tool.name);
            let fits = state.tools.len() < MAX_TOOLS && state.bytes + bytes <= MAX_BYTES;
            if !fits || known || is_ours(&tool.name) || !is_name(&tool.name) || !tool.input_schema.is_object()
            {
                refused.push(tool.name);
                continue;
            }
            state.bytes += bytes;
            state.tools.push(tool);
        }
        (state.tools.len(), refused)
    }

    /// All of them, as tools of ours.
    pub(crate) fn tools(self: &Arc<Self>) -> Vec<Arc<dyn Tool>> {
        let tool = |tool: &LentTool| -> Arc<dyn Tool> {
            Arc::new(BorrowedTool { tool: tool.clone(), borrowed: Arc::clone(self) })
        };
        self.state().tools.iter().map(tool).collect()
    }

    /// Takes what became of a call.
    pub(crate) fn answer(&self, call_id: &str, ran: Ran) -> Result<(), NotOpen> {
        let open = self.state().open.remove(call_id).ok_or(NotOpen)?;
        open.send(ran).map_err(|_| NotOpen)
    }

    async fn call(&self, name: &str, call: Call) -> Result<String, ToolError> {
        let gone = || ToolError::refused("whoever has lent this tool is gone");
        let output = self.output.as_ref().ok_or_else(gone)?;
        let call_id = format!("lent_{}", self.count.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, result) = oneshot::channel();
        self.state().open.insert(call_id.clone(), sender);
        let mut waiting = Waiting { borrowed: self, call_id: &call_id, told: false };
        let event = AddedEvent::LentCall(LentCall {
            call_id: call_id.clone(),
            name: name.to_owned(),
            input: call.arguments,
            session_id: call.session_id,
            mode: call.mode.name().to_owned(),
            agents: call.agents,
        });
        output.send(&event).await.map_err(|_| gone())?;
        waiting.told = true;
        match result.await.map_err(|_| gone())? {
            Ran { result, failed: false } => Ok(result),
            Ran { result, failed: true } => Err(ToolError::Lent(result)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(fits)
}

/// Tells the lender when nobody waits for a result any more.
struct Waiting<'a> {
    borrowed: &'a Borrowed,
    call_id: &'a str,
    told: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let was_open = self.borrowed.state().open.remove(self.call_id).is_some();
        if let (Some(output), true, true) = (&self.borrowed.output, was_open, self.told) {
            output.post(&AddedEvent::LentCancel { call_id: self.call_id.to_owned() });
        }
    }
}

/// One of them.
#[derive(Debug)]
struct BorrowedTool {
    tool: LentTool,
    borrowed: Arc<Borrowed>,
}

impl Tool for BorrowedTool {
    fn name(&self) -> &str {
        &self.tool.name
    }

    fn description(&self) -> &str {
        &self.tool.description
    }

    fn input_schema(&self) -> Value {
        self.tool.input_schema.clone()
    }

    fn lendable(&self) -> bool {
        true
    }

    fn effect(&self, _arguments: &Value, _place: &Place) -> Result<Effect, ToolError> {
        Ok(Effect::Borrow)
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        self.borrowed.call(&self.tool.name, call).boxed()
    }
}

#[cfg(test)]
mod tests;
