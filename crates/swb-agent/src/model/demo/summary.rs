//! What the demo model does when it is to write the notes of a summary. The facts beside them need no model.

use std::sync::Arc;

use swb_proto::agent::Message;

use super::script::{Act, Step};

/// The latest `!summary …` in the conversation says what to do; without one there is little to say.
pub(super) fn step(messages: &[Arc<Message>]) -> Step {
    let request = messages.iter().rev().find_map(|message| message.user_text()).unwrap_or_default();
    let told = request.lines().rev().find_map(|line| line.trim().strip_prefix("!summary "));
    match told.map(str::trim) {
        Some("stall") => Step { acts: vec![Act::Stall], cut_off: false },
        Some("fail") => {
            Step { acts: vec![Act::Fail("the demo model was told to fail".to_owned())], cut_off: false }
        }
        Some(text) => Step::saying(text),
        None => Step::saying("The demo model has nothing to add."),
    }
}
