//! A conversation as a text that a model can summarise: bounded, the beginning and the end rather than the middle.

use std::sync::Arc;

use swb_proto::agent::{Block, Message, Role};

use super::outline::cut;

const MAX_TEXT_CHARS: usize = 6000;
const MAX_RESULT_CHARS: usize = 1500;
const MAX_INPUT_CHARS: usize = 500;

/// The messages in at most about so many bytes. The first is always in it.
pub(super) fn transcript(messages: &[Arc<Message>], bytes: usize) -> String {
    let Some((first, rest)) = messages.split_first() else { return String::new() };
    let first = entry(first);
    let mut left = bytes.saturating_sub(first.len());
    let mut latest = Vec::new();
    for message in rest.iter().rev() {
        let entry = entry(message);
        let Some(less) = left.checked_sub(entry.len()) else { break };
        left = less;
        latest.push(entry);
    }
    let mut text = first;
    if latest.len() < rest.len() {
        text.push_str(&format!("[{} messages are left out here]\n\n", rest.len() - latest.len()));
    }
    text.extend(latest.into_iter().rev());
    text
}

fn entry(message: &Message) -> String {
    let mut text = String::new();
    if let Some(said) = message.user_text() {
        text.push_str(&format!("User:\n{}\n\n", ends(said, MAX_TEXT_CHARS)));
    }
    for block in message.blocks() {
        match block {
            Block::Text { text: said } if message.role == Role::Assistant => {
                text.push_str(&format!("Agent:\n{}\n\n", ends(said, MAX_TEXT_CHARS)));
            }
            Block::ToolUse { name, input, .. } => {
                text.push_str(&format!(
                    "Agent calls {name} with {}\n\n",
                    cut(&input.to_string(), MAX_INPUT_CHARS)
                ));
            }
            Block::ToolResult { content, is_error, .. } => {
                let failed = if *is_error { ", which failed" } else { "" };
                text.push_str(&format!("Result of a tool{failed}:\n{}\n\n", ends(content, MAX_RESULT_CHARS)));
            }
            Block::Image { title, .. } | Block::Document { title, .. } => {
                text.push_str(&format!("User attached {title}\n\n"));
            }
            Block::Text { .. } | Block::Thinking { .. } => {}
        }
    }
    text
}

/// The beginning and the end of a text that has more characters than this: errors tend to stand at the end.
fn ends(text: &str, characters: usize) -> String {
    let total = text.chars().count();
    if total <= characters {
        return text.to_owned();
    }
    let head: String = text.chars().take(characters * 2 / 3).collect();
    let tail: String = text.chars().skip(total - characters / 3).collect();
    format!("{head}\n[…]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_text_both_ends_are_kept() {
        assert_eq!(ends("é".repeat(9).as_str(), 9), "é".repeat(9));
        assert_eq!(ends("abcdefghijkl", 9), "abcdef\n[…]\njkl");
    }

    #[test]
    fn a_long_conversation_loses_its_middle_and_says_so() {
        let messages: Vec<_> = (0..1000).map(|at| Arc::new(Message::user(format!("message {at}")))).collect();
        let text = transcript(&messages, 2000);
        assert!(text.len() < 2100, "{}", text.len());
        assert!(text.starts_with("User:\nmessage 0\n") && text.contains("message 999"));
        assert!(text.contains("messages are left out here"));
        assert!(!transcript(&messages[..3], 2000).contains("left out"));
        assert_eq!(transcript(&[], 10), "");
    }

    #[test]
    fn one_message_larger_than_everything_is_cut() {
        let messages = [Arc::new(Message::user("x".repeat(1_000_000)))];
        assert!(transcript(&messages, 100).len() < MAX_TEXT_CHARS + 100);
    }
}
