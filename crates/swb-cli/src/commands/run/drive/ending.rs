//! What is said, and with which code, when a run is over.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::commands::run::link::Ended;
use crate::commands::run::view::Outcome;
use crate::exit_code;
use crate::failure::Failure;
use crate::plain;

/// What the answer to a prompt says of its turn.
pub(super) fn outcome(body: &BTreeMap<String, Value>) -> Outcome {
    let is = |key: &str| body.get(key).and_then(Value::as_bool).unwrap_or(false);
    match body.get("error").and_then(Value::as_str) {
        _ if is("cancelled") => Outcome::Aborted,
        _ if is("ok") => Outcome::Done,
        Some(error) => Outcome::Failed(error.to_owned()),
        None => Outcome::Failed("the agent does not say why".to_owned()),
    }
}

/// `told`: who looks at a screen has seen why.
pub(super) fn in_the_end(outcome: Outcome, denied: u64, told: bool) -> Result<u8, Failure> {
    match outcome {
        Outcome::Done if denied > 0 => {
            let calls = if denied == 1 { "one call was".to_owned() } else { format!("{denied} calls were") };
            Err(Failure::new(format!("{calls} denied, because nobody was there to ask"))
                .code(exit_code::NOBODY_TO_ASK)
                .hint("run it on a terminal, or with --detach and answer with `swb approvals`"))
        }
        Outcome::Failed(_) if told => Ok(exit_code::TURN_FAILED),
        Outcome::Done => Ok(exit_code::SUCCESS),
        Outcome::Aborted => Ok(exit_code::ABORTED),
        Outcome::Failed(message) => {
            Err(Failure::new("the turn failed").code(exit_code::TURN_FAILED).cause(plain::text(&message)))
        }
    }
}

/// What is told of an agent that went away.
pub(super) fn gone(starting: bool, ended: Option<Ended>) -> Failure {
    let (how, code, said) = match ended {
        Some(Ended { how, code, said }) => (how, code, said),
        None => Default::default(),
    };
    let said = plain::text(said.trim());
    if starting && let Some(rest) = said.strip_prefix("error: ") {
        // Its own words are better than ours about them.
        let mut lines = rest.lines().map(str::trim);
        let code = code.filter(|code| *code != exit_code::SUCCESS).unwrap_or(exit_code::FAILURE);
        let failure = Failure::new(lines.next().unwrap_or_default()).code(code);
        return lines.fold(failure, |failure, line| match line.strip_prefix("hint: ") {
            Some(hint) => failure.hint(hint),
            None => failure.cause(line),
        });
    }
    let cause = if said.is_empty() { how } else { format!("{how}\n{said}") };
    Failure::new("the agent went away in the middle of the turn")
        .code(exit_code::AGENT_GONE)
        .cause(cause)
        .hint("`swb run --continue` goes on from what it had said")
}
