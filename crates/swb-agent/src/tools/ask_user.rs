//! `ask_user`: a question for whoever is behind the parent.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Effect, Place, Tool, ToolError, arguments};
use crate::gate::Risk;
use crate::gate::ask::{Answer, Asks, Question, Unanswered};

const MAX_OPTIONS: usize = 12;
const GO_ON: &str = "Go on with what is most likely wanted, and say in your answer what you have assumed.";

/// The tool.
#[derive(Debug)]
pub(super) struct AskUser {
    pub(super) asks: Arc<Asks>,
}

#[derive(Deserialize)]
struct Arguments {
    question: String,
    #[serde(default)]
    options: Vec<String>,
    free_text: Option<bool>,
    timeout: Option<u64>,
}

fn checked(value: &Value) -> Result<Arguments, ToolError> {
    let arguments: Arguments = arguments(value)?;
    if arguments.question.trim().is_empty() {
        return Err(ToolError::refused("there is no question"));
    }
    if arguments.options.len() > MAX_OPTIONS {
        return Err(ToolError::refused(format!("there are at most {MAX_OPTIONS} options")));
    }
    if arguments.options.is_empty() && arguments.free_text == Some(false) {
        return Err(ToolError::refused("without options and without free text there is no answer"));
    }
    Ok(arguments)
}

impl Tool for AskUser {
    fn name(&self) -> &'static str {
        "ask_user"
    }

    fn description(&self) -> &'static str {
        "Ask the user a question and wait for the answer. Only for what you cannot find out and must not guess."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "question": { "type": "string" },
                "options": { "type": "array", "items": { "type": "string" }, "maxItems": MAX_OPTIONS,
                             "description": "Answers to choose from." },
                "free_text": { "type": "boolean",
                               "description": "Whether the user may also answer in other words; true if not given." },
                "timeout": { "type": "integer", "minimum": 1,
                             "description": "Seconds to wait for the answer, if less than usual." },
            },
            "required": ["question"],
        })
    }

    fn effect(&self, value: &Value, _place: &Place) -> Result<Effect, ToolError> {
        checked(value).map(|_| Effect::Consult)
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        async move {
            let Arguments { question, options, free_text, timeout } = checked(&call.arguments)?;
            let asked = self.asks.put(Question {
                subject: json!({ "session_id": call.session_id, "tool": self.name(), "arguments": call.arguments }),
                risk: Risk::Low,
                options,
                free_text: free_text.unwrap_or(true),
                reason: question,
                patience: timeout.map(|seconds| Duration::from_secs(seconds.max(1))),
            });
            match asked.await {
                Ok(Answer { option, text, .. }) => {
                    Ok(option.into_iter().chain(text).collect::<Vec<_>>().join("\n"))
                }
                Err(Unanswered::Nobody) => {
                    let why = "nobody can be asked: whoever started this agent does not answer questions.";
                    Err(ToolError::refused(format!("{why} {GO_ON}")))
                }
                Err(why) => Err(ToolError::refused(format!("{why}. {GO_ON}"))),
            }
        }
        .boxed()
    }
}
