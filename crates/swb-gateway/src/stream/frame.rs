//! Frames: `id`, `event`, one line of `data`, a blank line.

use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use swb_journal::message_bus::{FollowEvent, Message};
use swb_proto::message::EventItem;

use crate::json;

/// Sent when nothing else was for a while.
pub(super) const HEARTBEAT: Bytes = Bytes::from_static(b"event: heartbeat\ndata: {}\n\n");

/// Tells a client that it fell so many messages behind and is being served from the file again.
pub(super) fn lagged(behind: u64) -> Bytes {
    format!("event: lagged\ndata: {{\"behind\":{behind}}}\n\n").into()
}

/// Frames in one buffer, so that a burst is one write to each client.
#[derive(Debug, Clone, Default)]
pub(super) struct Frames {
    pub(super) bytes: Bytes,
    pub(super) marks: Vec<Mark>,
}

/// One frame of a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    /// Where it ends.
    pub(super) end: usize,
    /// Recognises the same frame read by another way.
    pub(super) whole: u64,
    /// Recognises its id; `None` if it has none.
    pub(super) id: Option<u64>,
}

impl Frames {
    /// Formats what a follower has seen. That a file was changed by hand is no message.
    pub(super) fn format(events: &[FollowEvent], hasher: &RandomState) -> Self {
        let mut bytes = Vec::new();
        let mut marks = Vec::with_capacity(events.len());
        for event in events {
            let FollowEvent::Message(message) = event else { continue };
            let start = bytes.len();
            push(&mut bytes, message);
            marks.push(Mark {
                end: bytes.len(),
                whole: hasher.hash_one(&bytes[start..]),
                id: usable_id(message).map(|id| hasher.hash_one(id)),
            });
        }
        Frames { bytes: bytes.into(), marks }
    }

    /// The bytes of the frames from this one on.
    pub(super) fn from(&self, index: usize) -> Bytes {
        self.bytes.slice(self.start(index)..)
    }

    /// The bytes of the last frame.
    pub(super) fn last(&self) -> Bytes {
        self.from(self.marks.len().saturating_sub(1))
    }

    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).and_then(|before| self.marks.get(before)).map_or(0, |mark| mark.end)
    }
}

/// The id in the first line of a frame.
pub(super) fn id_of(frame: &[u8]) -> Option<&str> {
    let line = frame.strip_prefix(b"id: ")?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()
}

/// An id that fits on its line. Others wrote some of these files: an id with a line break would end the line.
fn usable_id(message: &Message) -> Option<&str> {
    let id = message.id.as_ref();
    (!id.is_empty() && !id.contains(['\n', '\r', '\0'])).then_some(id)
}

fn push(out: &mut Vec<u8>, message: &Message) {
    if let Some(id) = usable_id(message) {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"event: message\ndata: ");
    json::write(out, &EventItem::from(message));
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(messages: &[Message]) -> Frames {
        let events: Vec<_> =
            messages.iter().map(|message| FollowEvent::Message(Box::new(message.clone()))).collect();
        Frames::format(&events, &RandomState::new())
    }

    #[test]
    fn a_frame_is_id_event_and_one_line_of_data() {
        let message =
            Message { id: "MSG-1".into(), body: b"a\nb <c>".as_slice().into(), ..Message::default() };
        let text = String::from_utf8(frames(&[message]).bytes.to_vec()).unwrap();
        assert_eq!(
            text,
            "id: MSG-1\nevent: message\ndata: {\"msg_id\":\"MSG-1\",\"timestamp\":\"0001-01-01T00:00:00Z\",\
             \"body\":\"a\\nb \\u003cc\\u003e\"}\n\n"
        );
        assert_eq!(id_of(text.as_bytes()), Some("MSG-1"));
    }

    #[test]
    fn an_id_from_elsewhere_cannot_forge_a_line() {
        let forged = Message { id: "x\ndata: forged".into(), ..Message::default() };
        let phantom = Message::default();
        let frames = frames(&[forged, phantom]);
        let text = String::from_utf8(frames.bytes.to_vec()).unwrap();
        assert!(!text.contains("id: "), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("data: ")).count(), 2);
        assert_eq!(id_of(&frames.last()), None);
    }
}
