//! How a call is made: how much to think, how long the answer may be, what to keep of the stream.

use genai::chat::{ChatOptions, ReasoningEffort};

use crate::model::Thinking;
use crate::model::provider::Dialect;
use crate::model::settings::ModelSettings;

/// Builds the options.
pub(super) fn build(
    dialect: Dialect,
    model: &str,
    settings: &ModelSettings,
    thinking: Thinking,
) -> ChatOptions {
    let thinks = settings.thinking == Some(true);
    let mut options = ChatOptions::default()
        // Without it OpenAI-style servers tell no usage.
        .with_capture_usage(true)
        .with_capture_content(false)
        .with_capture_tool_calls(false)
        // What asks Anthropic and Google for the words of the thoughts.
        .with_capture_reasoning_content(thinks && thinking != Thinking::Off)
        .with_reasoning_effort(if thinks { effort(dialect, model, thinking) } else { no_effort(dialect) });
    options.max_tokens = settings.max_output_tokens;
    options
}

/// An effort is always named: without one the library takes the end of a model's name for it (`some-model-high`).
fn no_effort(dialect: Dialect) -> ReasoningEffort {
    match dialect {
        Dialect::Anthropic | Dialect::Gemini => ReasoningEffort::Zero,
        // A budget is the one effort that sends nothing in this dialect.
        Dialect::OpenAi => ReasoningEffort::Budget(0),
    }
}

fn effort(dialect: Dialect, model: &str, thinking: Thinking) -> ReasoningEffort {
    match (thinking, dialect) {
        (Thinking::Low, _) => ReasoningEffort::Low,
        (Thinking::Medium, _) => ReasoningEffort::Medium,
        (Thinking::High, _) => ReasoningEffort::High,
        (Thinking::Off, Dialect::Anthropic) => ReasoningEffort::Zero,
        // Those that cannot do without are asked for the least they can do.
        (Thinking::Off, Dialect::OpenAi) if model.starts_with('o') => ReasoningEffort::Low,
        (Thinking::Off, Dialect::OpenAi) if model == "gpt-5" || model.starts_with("gpt-5-") => {
            ReasoningEffort::Minimal
        }
        (Thinking::Off, Dialect::OpenAi) => ReasoningEffort::Zero,
        (Thinking::Off, Dialect::Gemini) if model.contains("-pro") => ReasoningEffort::Low,
        (Thinking::Off, Dialect::Gemini) if model.starts_with("gemini-3") => ReasoningEffort::Minimal,
        (Thinking::Off, Dialect::Gemini) => ReasoningEffort::Budget(0),
    }
}
