//! `bus_post` and `bus_read`: the message bus of a project, which other agents and people read too.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use swb_journal::message_bus::{BusOptions, BusPath, Draft, MessageBus, Scope, discover};

use super::{Call, Effect, Place, Tool, ToolError, arguments, on_a_thread};

const DEFAULT_COUNT: usize = 20;
const MAX_COUNT: usize = 200;

/// Posts.
#[derive(Debug)]
pub(super) struct BusPost;

/// Reads.
#[derive(Debug)]
pub(super) struct BusRead;

#[derive(Deserialize)]
struct Where {
    #[serde(default)]
    project: String,
    #[serde(default)]
    task: String,
}

#[derive(Deserialize)]
struct Posting {
    #[serde(flatten)]
    place: Where,
    body: String,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    reply_to: Option<String>,
}

#[derive(Deserialize)]
struct Reading {
    #[serde(flatten)]
    place: Where,
    count: Option<usize>,
    since: Option<String>,
}

const PROJECT: &str = "The project; if not given, the bus of this run is used, else the bus file nearest to the current folder.";
/// Where whoever runs us names the bus of the run.
const BUS_OF_RUN: [&str; 2] = ["MESSAGE_BUS", "JRUN_MESSAGE_BUS"];
/// Where it names the run.
const RUN: &str = "JRUN_ID";

impl Tool for BusPost {
    fn name(&self) -> &'static str {
        "bus_post"
    }

    fn description(&self) -> &'static str {
        "Post a message to the project's message bus, where other agents and people read it."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "body": { "type": "string", "description": "The message, in Markdown." },
                "type": { "type": "string", "description": "INFO if not given." },
                "project": { "type": "string", "description": PROJECT },
                "task": { "type": "string" },
                "reply_to": { "type": "string", "description": "The id of the message that this one answers." },
            },
            "required": ["body"],
        })
    }

    fn effect(&self, value: &Value, _place: &Place) -> Result<Effect, ToolError> {
        arguments::<Posting>(value).map(|_| Effect::Post)
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        on_a_thread(move || {
            let args: Posting = arguments(&call.arguments)?;
            let (bus, scope) = open(&args.place, &call.place)?;
            let kind = args.kind.unwrap_or_else(|| "INFO".to_owned());
            let mut draft = Draft::new(kind, scope.project_id, args.body);
            // So that what it says does not come back to it as a word of somebody else.
            (draft.task_id, draft.run_id) = (scope.task_id, std::env::var(RUN).unwrap_or_default());
            if let Some(id) = args.reply_to {
                draft = draft.reply_to(id);
            }
            let posted = bus.append(&draft).map_err(|error| refused(&error))?;
            Ok(format!("posted {}", posted.id.as_str()))
        })
        .boxed()
    }
}

impl Tool for BusRead {
    fn name(&self) -> &'static str {
        "bus_read"
    }

    fn description(&self) -> &'static str {
        "Read messages of the project's message bus, the latest last."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "project": { "type": "string", "description": PROJECT },
                "task": { "type": "string" },
                "count": { "type": "integer", "minimum": 1, "maximum": MAX_COUNT },
                "since": { "type": "string", "description": "Only messages after the one of this id." },
            },
        })
    }

    fn effect(&self, value: &Value, _place: &Place) -> Result<Effect, ToolError> {
        arguments::<Reading>(value).map(|_| Effect::Listen)
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        on_a_thread(move || {
            let args: Reading = arguments(&call.arguments)?;
            let (bus, _) = open(&args.place, &call.place)?;
            let count = args.count.unwrap_or(DEFAULT_COUNT).clamp(1, MAX_COUNT);
            let messages = match &args.since {
                Some(id) => bus.read_since_limited(id, count),
                None => bus.read_last(count),
            };
            let messages = messages.map_err(|error| refused(&error))?;
            if messages.is_empty() {
                return Ok("there are no messages\n".to_owned());
            }
            let shown = messages.iter().map(|message| {
                let time = message.timestamp.map(|time| time.to_string()).unwrap_or_default();
                format!("[{}] {time} {}\n{}\n\n", message.id, message.kind, message.body_text())
            });
            Ok(shown.collect())
        })
        .boxed()
    }
}

fn open(wanted: &Where, place: &Place) -> Result<(MessageBus, Scope), ToolError> {
    let (project, task) = (wanted.project.trim(), wanted.task.trim());
    let path = if project.is_empty() {
        let mut named = BUS_OF_RUN.iter().filter_map(std::env::var_os);
        let found = match named.find(|path| !path.is_empty()) {
            Some(path) => path.into(),
            None => discover(&place.folder()).map_err(|_| {
                ToolError::refused("there is no bus file in this folder or above it: name the project")
            })?,
        };
        BusPath::new(found)
    } else {
        BusPath::in_root(&place.messages, project, (!task.is_empty()).then_some(task))
    };
    let path = path.map_err(|error| refused(&error))?;
    let named = Scope { project_id: project.to_owned(), task_id: task.to_owned(), run_id: String::new() };
    let scope = named.or(Scope::from_bus_path(path.file()));
    if !project.is_empty() {
        std::fs::create_dir_all(&place.messages).map_err(ToolError::io(&place.messages))?;
    }
    Ok((MessageBus::new(path, BusOptions::default()), scope))
}

/// An error with the causes behind it, in one line.
fn refused(error: &dyn std::error::Error) -> ToolError {
    let mut reason = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        reason = format!("{reason}: {cause}");
        next = cause.source();
    }
    ToolError::Refused { reason }
}
