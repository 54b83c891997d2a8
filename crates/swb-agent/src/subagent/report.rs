//! What the model is told when a subagent that ran in the background is over.

use std::fmt::Write;
use std::sync::Arc;

use super::task::{Outcome, Task};

/// How much of a result is told at once, in characters.
const SHOWN_CHARS: usize = 2000;
/// How many are told of at once.
const AT_ONCE: usize = 8;
const BEGIN: &str = "<subagent-report>";
const END: &str = "</subagent-report>";

/// Whether a message is such a report, and not the user's own words.
pub(crate) fn is_report(text: &str) -> bool {
    text.starts_with(BEGIN) && text.ends_with(END)
}

/// Tells of these, as far as there is room for them, and notes that it was told.
pub(super) fn report(tasks: &[Arc<Task>]) -> Option<String> {
    let mut text = String::new();
    for task in tasks.iter().take(AT_ONCE) {
        let Some(ended) = task.outcome() else { continue };
        task.tell();
        let Task { id, name, .. } = task.as_ref();
        let seconds = ended.took.as_secs_f64();
        let (how, words) = match &ended.outcome {
            Outcome::Done(result) => (format!("is done after {seconds:.1} s"), result.as_str()),
            Outcome::Failed { reason, said } => {
                (format!("has failed after {seconds:.1} s: {reason}"), said.as_str())
            }
            Outcome::Cancelled { said } => ("was cancelled".to_owned(), said.as_str()),
        };
        let _ = writeln!(text, "Subagent {id} ({name}) {how}.");
        let shown: String = words.chars().take(SHOWN_CHARS).collect();
        // Its words cannot end the report.
        let _ = writeln!(text, "{}", shown.replace(END, "").trim_end());
        if shown.len() < words.len() {
            let _ = writeln!(text, "[there is more: `subagent_collect` with id {id}]");
        }
    }
    (!text.is_empty()).then(|| format!("{BEGIN}\n{text}{END}"))
}
