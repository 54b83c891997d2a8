//! What a server answered, in words for the model.
//!
//! Texts stand as they are; pictures, sounds and other bytes are named with their size, because a tool result is text;
//! links are shown so that they can be followed. The whole is cut like the output of any tool.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::tools::limits::CAPTURED_BYTES;

/// The answer as text, and whether the server calls it a failure.
pub(super) fn text_of(result: &CallToolResult) -> (String, bool) {
    let mut text = Text::default();
    for block in &result.content {
        text.block(block);
    }
    if let (true, Some(structured)) = (result.content.is_empty(), &result.structured_content) {
        text.add(&serde_json::to_string_pretty(structured).unwrap_or_default());
    }
    (text.finish(), result.is_error == Some(true))
}

#[derive(Default)]
struct Text {
    kept: String,
    dropped: usize,
}

impl Text {
    fn block(&mut self, block: &ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.add(&text.text),
            ContentBlock::Image(image) => self.bytes("image", Some(&image.mime_type), &image.data),
            ContentBlock::Audio(audio) => self.bytes("audio", Some(&audio.mime_type), &audio.data),
            ContentBlock::Resource(resource) => match &resource.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    self.add(&format!("[resource {uri}]\n{text}"));
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    self.bytes(&format!("resource {uri}"), mime_type.as_deref(), blob);
                }
                _ => self.add("[a resource of an unknown kind]"),
            },
            ContentBlock::ResourceLink(link) => {
                let kind = link.mime_type.as_deref().map(|kind| format!(" ({kind})")).unwrap_or_default();
                let about = link.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
                self.add(&format!("[link to {} at {}{kind}{about}]", link.name, link.uri));
            }
            _ => self.add("[content of an unknown kind]"),
        }
    }

    fn bytes(&mut self, what: &str, kind: Option<&str>, base64: &str) {
        let size = base64.trim_end_matches('=').len() * 3 / 4;
        self.add(&format!("[{what}: {}, {size} bytes, not shown]", kind.unwrap_or("unknown type")));
    }

    fn add(&mut self, part: &str) {
        if !self.kept.is_empty() && !self.kept.ends_with('\n') {
            self.kept.push('\n');
        }
        let room = CAPTURED_BYTES.saturating_sub(self.kept.len());
        let end = part.floor_char_boundary(room);
        self.kept.push_str(&part[..end]);
        self.dropped += part.len() - end;
    }

    fn finish(mut self) -> String {
        if self.dropped > 0 {
            self.kept.push_str(&format!("\n[{} more bytes were dropped]", self.dropped));
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn text(result: Value) -> (String, bool) {
        text_of(&serde_json::from_value(result).unwrap())
    }

    #[test]
    fn every_kind_of_content_has_words() {
        let content = json!([
            { "type": "text", "text": "one" },
            { "type": "image", "mimeType": "image/png", "data": "aGVsbG8=" },
            { "type": "audio", "mimeType": "audio/wav", "data": "aGVsbG8" },
            { "type": "resource", "resource": { "uri": "x://t", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "x://b", "blob": "AAAA" } },
            { "type": "resource_link", "uri": "x://l", "name": "L", "mimeType": "text/plain" },
        ]);
        assert_eq!(
            text(json!({ "content": content, "isError": true })),
            (
                "one\n[image: image/png, 5 bytes, not shown]\n[audio: audio/wav, 5 bytes, not shown]\n\
                 [resource x://t]\ninside\n[resource x://b: unknown type, 3 bytes, not shown]\n\
                 [link to L at x://l (text/plain)]"
                    .to_owned(),
                true
            )
        );
    }

    #[test]
    fn structure_is_shown_when_there_are_no_words() {
        let structured = json!({ "t": 1 });
        assert_eq!(text(json!({ "structuredContent": structured, "content": [] })).0, "{\n  \"t\": 1\n}");
        let both = json!({ "structuredContent": structured, "content": [{ "type": "text", "text": "t=1" }] });
        assert_eq!(text(both).0, "t=1");
        assert_eq!(text(json!({ "content": [] })), (String::new(), false));
    }

    #[test]
    fn a_flood_of_words_is_cut_with_a_note() {
        let long = "é".repeat(CAPTURED_BYTES);
        let (cut, _) =
            text(json!({ "content": [{ "type": "text", "text": long }, { "type": "text", "text": "x" }] }));
        assert!(cut.len() < CAPTURED_BYTES + 100);
        assert!(
            cut.ends_with(&format!("\n[{} more bytes were dropped]", CAPTURED_BYTES + 1)),
            "{}",
            &cut[cut.len() - 60..]
        );
    }
}
