//! How many tokens something is, by rule of thumb: a model's own count comes only after it was asked.

use serde_json::Value;
use swb_proto::agent::{Block, Content, Message, Source};

/// What surrounds each message and block.
const FRAME: u64 = 4;
/// What providers charge for a picture of the size that they scale larger ones to.
const IMAGE: u64 = 1600;
/// Nobody can tell from outside how much text a PDF holds; the model's own count corrects it.
const PDF: u64 = 5000;

/// The tokens of a message.
pub(crate) fn message(message: &Message) -> u64 {
    FRAME
        + match &message.content {
            Content::Text(said) => text(said),
            Content::Blocks(blocks) => blocks.iter().map(block).sum(),
        }
}

/// The tokens of a text: four letters of English, a little over one character of most other scripts.
pub(crate) fn text(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let other = text.len() as u64 - ascii;
    ascii.div_ceil(4) + other.div_ceil(3)
}

fn block(block: &Block) -> u64 {
    FRAME
        + match block {
            Block::Text { text: said } => text(said),
            Block::Thinking { thinking, .. } => text(thinking),
            Block::ToolUse { name, input, .. } => text(name) + value(input),
            Block::ToolResult { content, .. } => text(content),
            Block::Image { .. } => IMAGE,
            Block::Document { source: Source::File { media_type, size, .. }, .. } => {
                if media_type.starts_with("text/") { size.div_ceil(4) } else { PDF }
            }
        }
}

fn value(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 2,
        Value::String(said) => 1 + text(said),
        Value::Array(values) => 1 + values.iter().map(self::value).sum::<u64>(),
        Value::Object(fields) => {
            1 + fields.iter().map(|(name, field)| 1 + text(name) + self::value(field)).sum::<u64>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn more_is_more_and_nothing_is_free() {
        assert_eq!(text(""), 0);
        assert_eq!(text("abcd"), 1);
        assert_eq!(text("日本"), 2);
        let short = Message::user("hello");
        let long = Message::user("hello ".repeat(100));
        assert!(message(&short) > 0 && message(&long) > 100);
        let call = Block::ToolUse {
            id: "1".into(),
            name: "write".into(),
            input: json!({ "content": "x".repeat(400) }),
        };
        assert!(message(&Message::assistant(vec![call])) > 100);
        let source = Source::File { file_id: "1".into(), media_type: "text/plain".into(), size: 4000 };
        let with_text = Message::with_files("", vec![Block::Document { title: "t".into(), source }]);
        assert!(message(&with_text) >= 1000, "the text of a file counts, though the message only names it");
    }
}
