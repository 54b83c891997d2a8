//! Which messages a compaction replaces.
//!
//! The latest messages stay as they are, as many as fit into what is granted to them; what a user has said last and nobody
//! has answered yet stays in any case. A call and its answer are never parted.

use std::sync::Arc;

use swb_proto::agent::{Block, Message};

use super::estimate;

/// How many messages from the beginning are replaced if the rest may have so many tokens.
pub(crate) fn replaced(messages: &[Arc<Message>], kept_tokens: u64) -> usize {
    let mut from = messages.len();
    let mut tokens = 0;
    for (at, message) in messages.iter().enumerate().rev() {
        tokens += estimate::message(message);
        let unanswered = at + 1 == messages.len() && message.user_text().is_some();
        if tokens > kept_tokens && !unanswered {
            break;
        }
        // An answer to calls stays only together with the calls.
        if !answers_calls(message) {
            from = at;
        }
    }
    // Calls that are still running have no answer yet: it would come without them.
    match messages.last() {
        Some(last) if last.calls().next().is_some() => from.min(messages.len() - 1),
        _ => from,
    }
}

fn answers_calls(message: &Message) -> bool {
    message.blocks().iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn call(id: usize) -> Message {
        let id = id.to_string();
        Message::assistant(vec![Block::ToolUse { id, name: "ls".into(), input: json!({}) }])
    }

    fn answer(id: usize) -> Message {
        let tool_use_id = id.to_string();
        Message::results(vec![Block::ToolResult { tool_use_id, content: "x".repeat(400), is_error: false }])
    }

    fn said(text: &str) -> Message {
        Message::assistant(vec![Block::Text { text: text.into() }])
    }

    fn shared(messages: Vec<Message>) -> Vec<Arc<Message>> {
        messages.into_iter().map(Arc::new).collect()
    }

    #[test]
    fn the_latest_stay_and_an_unanswered_prompt_always_does() {
        let talk =
            shared(vec![Message::user("a"), said("b"), Message::user("c"), said("d"), Message::user("e")]);
        assert_eq!(replaced(&talk, 0), 4);
        assert_eq!(replaced(&talk, 1_000_000), 0);
        assert_eq!(replaced(&talk[..4], 0), 4, "what was answered may go");
        assert_eq!(replaced(&[], 9), 0);
    }

    #[test]
    fn a_call_stays_with_its_answer() {
        let talk = shared(vec![Message::user("a"), call(1), answer(1), call(2), answer(2)]);
        let last = estimate::message(&talk[4]);
        assert_eq!(replaced(&talk, last), 5, "the answer alone would fit");
        assert_eq!(replaced(&talk, last + estimate::message(&talk[3])), 3);
        assert_eq!(replaced(&talk[..4], 0), 3, "a call that is running stays");
    }

    proptest! {
        #[test]
        fn no_answer_is_ever_parted_from_its_call(kinds in proptest::collection::vec(0..3, 0..30), running: bool, kept in 0u64..2000) {
            let mut messages = Vec::new();
            for (id, kind) in kinds.into_iter().enumerate() {
                match kind {
                    0 => messages.push(Message::user("x".repeat(id * 7))),
                    1 => messages.push(said("y")),
                    _ => messages.extend([call(id), answer(id)]),
                }
            }
            if running {
                messages.push(call(99));
            }
            let messages = shared(messages);
            let count = replaced(&messages, kept);
            prop_assert!(count <= messages.len());
            let ids = |messages: &[Arc<Message>]| {
                let called: Vec<String> = messages.iter().flat_map(|message| message.calls().map(str::to_owned)).collect();
                let answered: Vec<String> = messages.iter().flat_map(|message| message.blocks().iter().filter_map(|block| match block {
                    Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.clone()),
                    _ => None,
                })).collect();
                (called, answered)
            };
            let (called, answered) = ids(&messages[..count]);
            prop_assert_eq!(called, answered);
            if messages.last().is_some_and(|last| last.user_text().is_some()) {
                prop_assert!(count < messages.len());
            }
        }
    }
}
