//! `subagent` and its relatives: work that another agent does, while this one waits or goes on.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Effect, Place, Tool, ToolError, arguments};
use crate::gate::Mode;
use crate::subagent::{Ended, Outcome, Subagents, Task, Wish};

const MAX_SECONDS: u64 = 3600;
const MAX_TASK_BYTES: usize = 256 * 1024;
const MAX_NAME_CHARS: usize = 40;
const DEFAULT_NAME: &str = "subagent";

/// What is to be done with subagents.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    Run,
    Start,
    Status,
    Steer,
    Collect,
    Cancel,
}

impl Act {
    pub(super) const ALL: [Act; 6] =
        [Act::Run, Act::Start, Act::Status, Act::Steer, Act::Collect, Act::Cancel];
}

/// One of the tools.
#[derive(Debug)]
pub(super) struct SubagentTool {
    pub(super) act: Act,
    pub(super) subagents: Arc<Subagents>,
    /// How long it may take if its task asks for no other time.
    pub(super) usual_time: Duration,
}

#[derive(Deserialize)]
struct Starting {
    task: String,
    name: Option<String>,
    model: Option<String>,
    mode: Option<String>,
    timeout: Option<u64>,
}

#[derive(Deserialize)]
struct About {
    id: u64,
}

#[derive(Deserialize)]
struct Looking {
    id: Option<u64>,
}

#[derive(Deserialize)]
struct Steering {
    id: u64,
    message: String,
}

#[derive(Deserialize)]
struct Collecting {
    id: u64,
    wait: Option<u64>,
}

impl Tool for SubagentTool {
    fn name(&self) -> &'static str {
        match self.act {
            Act::Run => "subagent",
            Act::Start => "subagent_start",
            Act::Status => "subagent_status",
            Act::Steer => "subagent_steer",
            Act::Collect => "subagent_collect",
            Act::Cancel => "subagent_cancel",
        }
    }

    fn description(&self) -> &'static str {
        match self.act {
            Act::Run => {
                "Give a task to another agent and wait for its answer. It works in the same folder with the same tools, \
                 but knows nothing of this conversation: say all it needs to know, and what to answer."
            }
            Act::Start => {
                "Give a task to another agent and go on while it works. You are told when it is done. It knows nothing of \
                 this conversation: say all it needs to know, and what to answer."
            }
            Act::Status => "Show what the subagents are doing.",
            Act::Steer => "Say something to a subagent that is at work.",
            Act::Collect => {
                "Get the whole answer of a subagent that was started, waiting for it if it is not done."
            }
            Act::Cancel => "End a subagent and get what it has said so far.",
        }
    }

    fn input_schema(&self) -> Value {
        let id = json!({ "type": "integer", "description": "The number that `subagent_start` has given." });
        let (properties, required) = match self.act {
            Act::Run | Act::Start => (
                json!({
                    "task": { "type": "string", "description": "What to do, and what to answer." },
                    "name": { "type": "string", "maxLength": MAX_NAME_CHARS, "description": "What to call it." },
                    "model": { "type": "string", "description": "Its model; yours if not given." },
                    "mode": { "type": "string", "enum": ["read-only", "workspace", "full"],
                              "description": "What it may do; never more than you may." },
                    "timeout": { "type": "integer", "minimum": 1, "maximum": MAX_SECONDS,
                                 "description": format!("Seconds after which it is ended; {} if not given.", self.usual_time.as_secs()) },
                }),
                json!(["task"]),
            ),
            Act::Status => (json!({ "id": id }), json!([])),
            Act::Steer => (json!({ "id": id, "message": { "type": "string" } }), json!(["id", "message"])),
            Act::Collect => (
                json!({
                    "id": id,
                    "wait": { "type": "integer", "minimum": 0, "maximum": MAX_SECONDS,
                              "description": "Seconds to wait for its end; until its end if not given." },
                }),
                json!(["id"]),
            ),
            Act::Cancel => (json!({ "id": id }), json!(["id"])),
        };
        json!({ "type": "object", "properties": properties, "required": required })
    }

    fn effect(&self, value: &Value, _place: &Place) -> Result<Effect, ToolError> {
        match self.act {
            Act::Run | Act::Start => wish(value, false, self.usual_time).map(drop)?,
            Act::Status => arguments::<Looking>(value).map(drop)?,
            Act::Steer => arguments::<Steering>(value).map(drop)?,
            Act::Collect => arguments::<Collecting>(value).map(drop)?,
            Act::Cancel => arguments::<About>(value).map(drop)?,
        }
        Ok(Effect::Delegate)
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        async move {
            let value = &call.arguments;
            match self.act {
                Act::Run => {
                    let task = self.start(wish(value, false, self.usual_time)?)?;
                    // Whoever aborts the call ends the subagent.
                    let waiting = CancelOnDrop(&task);
                    let ended = task.ended().await;
                    drop(waiting);
                    result(&task, &ended)
                }
                Act::Start => {
                    let task = self.start(wish(value, true, self.usual_time)?)?;
                    let Task { id, name, .. } = task.as_ref();
                    Ok(format!("subagent {id} ({name}) is at work; you will be told when it is done\n"))
                }
                Act::Status => self.status(arguments::<Looking>(value)?.id),
                Act::Steer => {
                    let Steering { id, message } = arguments(value)?;
                    if self.find(id)?.steer(message) {
                        Ok(format!("subagent {id} will hear it before its next step\n"))
                    } else {
                        Err(ToolError::refused(format!(
                            "subagent {id} has ended, or takes no more messages now"
                        )))
                    }
                }
                Act::Collect => {
                    let Collecting { id, wait } = arguments(value)?;
                    self.collect(id, wait).await
                }
                Act::Cancel => {
                    let About { id } = arguments(value)?;
                    let task = self.find(id)?;
                    task.cancel();
                    let ended = task.ended().await;
                    self.taken(&task);
                    match &ended.outcome {
                        Outcome::Cancelled { said } if said.is_empty() => {
                            Ok("it had said nothing\n".to_owned())
                        }
                        Outcome::Cancelled { said } => Ok(said.clone()),
                        // It was faster.
                        _ => result(&task, &ended),
                    }
                }
            }
        }
        .boxed()
    }
}

impl SubagentTool {
    fn start(&self, wish: Wish) -> Result<Arc<Task>, ToolError> {
        self.subagents.start(wish).map_err(|error| ToolError::refused(error.to_string()))
    }

    fn find(&self, id: u64) -> Result<Arc<Task>, ToolError> {
        let known =
            || self.subagents.all().iter().map(|task| task.id.to_string()).collect::<Vec<_>>().join(", ");
        let unknown = || match known() {
            known if known.is_empty() => format!("there is no subagent {id}, nor any other"),
            known => format!("there is no subagent {id}; there are {known}"),
        };
        self.subagents.find(id).ok_or_else(|| ToolError::refused(unknown()))
    }

    fn status(&self, id: Option<u64>) -> Result<String, ToolError> {
        let tasks = id.map_or_else(|| Ok(self.subagents.all()), |id| self.find(id).map(|task| vec![task]))?;
        let mut text = String::new();
        for task in tasks {
            let news = task.news();
            let state = match task.outcome().as_deref() {
                None => format!("at work for {:.0} s: {}", task.age().as_secs_f64(), news.status),
                Some(ended) => match &ended.outcome {
                    Outcome::Done(_) => "done".to_owned(),
                    Outcome::Failed { reason, .. } => format!("failed: {reason}"),
                    Outcome::Cancelled { .. } => "cancelled".to_owned(),
                },
            };
            let Task { id, name, .. } = task.as_ref();
            let _ = writeln!(text, "{id} {name}: {state}, {} tool calls", news.tool_calls);
        }
        Ok(if text.is_empty() { "there are no subagents\n".to_owned() } else { text })
    }

    async fn collect(&self, id: u64, wait: Option<u64>) -> Result<String, ToolError> {
        let task = self.find(id)?;
        let limit = Duration::from_secs(wait.unwrap_or(MAX_SECONDS).min(MAX_SECONDS));
        let Ok(ended) = tokio::time::timeout(limit, task.ended()).await else {
            let status = task.news().status;
            return Err(ToolError::refused(format!("subagent {id} is still at work: {status}")));
        };
        self.taken(&task);
        result(&task, &ended)
    }

    /// Its outcome is known now, and need not be told again.
    fn taken(&self, task: &Task) {
        task.tell();
        self.subagents.forget(task.id);
    }
}

fn wish(value: &Value, background: bool, usual_time: Duration) -> Result<Wish, ToolError> {
    let Starting { task, name, model, mode, timeout } = arguments(value)?;
    if task.trim().is_empty() {
        return Err(ToolError::refused("there is no task"));
    }
    if task.len() > MAX_TASK_BYTES {
        return Err(ToolError::refused(format!(
            "a task has at most {MAX_TASK_BYTES} bytes; put the rest into a file"
        )));
    }
    let name =
        name.as_deref().map(str::trim).filter(|name| !name.is_empty()).unwrap_or(DEFAULT_NAME).to_owned();
    if name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(ToolError::refused(format!(
            "a name has at most {MAX_NAME_CHARS} characters on one line"
        )));
    }
    let unknown = || ToolError::refused("the modes are `read-only`, `workspace` and `full`");
    let mode = mode.map(|mode| Mode::from_name(&mode).ok_or_else(unknown)).transpose()?;
    let model = model.filter(|model| !model.trim().is_empty());
    let time = Duration::from_secs(timeout.unwrap_or(usual_time.as_secs()).clamp(1, MAX_SECONDS));
    Ok(Wish { task, name, model, mode, background, time })
}

fn result(task: &Task, ended: &Ended) -> Result<String, ToolError> {
    let Task { id, name, .. } = task;
    let (what, said) = match &ended.outcome {
        Outcome::Done(said) => return Ok(said.clone()),
        Outcome::Failed { reason, said } => (format!("subagent {id} ({name}) has failed: {reason}"), said),
        Outcome::Cancelled { said } => (format!("subagent {id} ({name}) was cancelled"), said),
    };
    if said.is_empty() {
        return Err(ToolError::refused(what));
    }
    Err(ToolError::refused(format!("{what}\nIt had said:\n{said}")))
}

struct CancelOnDrop<'a>(&'a Task);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        // Harmless once it is over.
        self.0.cancel();
    }
}
