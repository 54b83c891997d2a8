//! One line, both ways.
//!
//! In: [`decode`] gives a [`Request`], or a [`BadFrame`] with the id of the line if it had one that can be read. The
//! words of the errors are for people; a parent must not depend on them. Out: [`encode`] writes pure ASCII, because a
//! parent may decode chunks of bytes one by one, or take U+2028 for the end of a line.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};

use super::added::{AddedCommand, AddedEvent};
use super::command::Command;
use super::event::Event;
use super::readable_id;

/// A command, of the contract or beyond it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Request {
    /// One of the twelve.
    Contract(Command),
    /// One of ours.
    Added(AddedCommand),
}

/// A line that is no command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadFrame {
    /// Whom to answer.
    pub id: Option<String>,
    /// What is wrong, for people.
    pub message: String,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    name: String,
}

const ADDED: [&str; 9] = [
    "steer",
    "queue",
    "clear_queue",
    "tool_call",
    "set_thinking_level",
    "set_tool_mode",
    "answer",
    "lend",
    "lent_result",
];

/// Reads one line. `None` if there is nothing on it.
pub fn decode(line: &[u8]) -> Result<Option<Request>, BadFrame> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let bad = |message: String| BadFrame { id: readable_id::find(line), message };
    // An enum would also be read from a list.
    if line[0] != b'{' {
        return Err(bad("a frame is one JSON object".to_owned()));
    }
    let text = std::str::from_utf8(line).map_err(|error| bad(format!("a frame is UTF-8: {error}")))?;
    let added = serde_json::from_str::<Kind>(text).is_ok_and(|kind| ADDED.contains(&kind.name.as_str()));
    let request = if added {
        serde_json::from_str(text).map(Request::Added)
    } else {
        serde_json::from_str(text).map(Request::Contract)
    };
    request.map(Some).map_err(|error| bad(error.to_string()))
}

/// What a child says, of the contract or beyond it.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// One of the contract's events.
    Contract(Event),
    /// One of ours.
    Added(AddedEvent),
    /// One of a later version, to be passed over.
    Unknown,
}

/// Reads one line of a child, as a parent does.
pub fn decode_event(line: &[u8]) -> Result<Frame, serde_json::Error> {
    match serde_json::from_slice(line) {
        Ok(event) => Ok(Frame::Contract(event)),
        Err(_) => match serde_json::from_slice(line) {
            Ok(event) => Ok(Frame::Added(event)),
            // A word that is not known is fine; something that is no word at all is not.
            Err(_) => serde_json::from_slice::<Kind>(line).map(|_| Frame::Unknown),
        },
    }
}

/// Appends the word as one line.
pub fn encode(word: &impl Serialize, line: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let begin = line.len();
    let mut serializer = serde_json::Serializer::with_formatter(&mut *line, Ascii);
    if let Err(error) = word.serialize(&mut serializer) {
        line.truncate(begin);
        return Err(error);
    }
    line.push(b'\n');
    Ok(())
}

/// Writes every character beyond ASCII as its UTF-16 escape.
struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| !byte.is_ascii()) {
            out.write_all(&rest.as_bytes()[..at])?;
            let Some(character) = rest[at..].chars().next() else { break };
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + character.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        CompactFormatter.write_char_escape(out, escape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn id_of_bad(line: &[u8]) -> Option<String> {
        decode(line).unwrap_err().id
    }

    #[test]
    fn nothing_is_no_command() {
        for blank in ["", " ", "\t\r", "\n"] {
            assert_eq!(decode(blank.as_bytes()), Ok(None));
        }
    }

    #[test]
    fn an_id_that_can_be_read_is_kept() {
        for line in [
            r#"{"id":"x"}"#,
            r#"{"id":"x","type":"does_not_exist"}"#,
            r#"{"type":"prompt","id":"x"}"#,
            r#"{"type":"prompt","id":"x","message":7}"#,
            r#"{"type":"prompt","id":"x","message":"a","attachments":null}"#,
            r#"{"type":"abort","type":"abort","id":"x"}"#,
            r#"{"type":"abort","id":"x"}{"type":"abort","id":"y"}"#,
            r#"{"a":{"id":"no","b":["]",{}]},"c":-1.5e3,"d":null,"id":"x","type":"#,
            r#"{"type":"steer","id":"x"}"#,
        ] {
            assert_eq!(id_of_bad(line.as_bytes()).as_deref(), Some("x"), "{line}");
        }
        assert_eq!(id_of_bad(b"{\"type\":\"abort\",\"id\":\"x\",\"m\":\"\xff\"}").as_deref(), Some("x"));
    }

    #[test]
    fn what_is_no_id_is_none() {
        for line in ["not json", "[1,2]", r#""x""#, r#"["shutdown"]"#, r#"{"type":"abort","id":7}"#] {
            assert_eq!(id_of_bad(line.as_bytes()), None, "{line}");
        }
        for line in [r#"{"type":"abort","id":null}"#, r#"{"type":"abort"}"#, r#"{"type":"abort","id":"x"#] {
            assert_eq!(id_of_bad(line.as_bytes()), None, "{line}");
        }
        assert_eq!(id_of_bad(b"{\"type\":\"abort\",\"id\":\"\xff\"}"), None);
        assert_eq!(id_of_bad("\u{feff}{\"id\":\"x\"}".as_bytes()), None);
    }

    #[test]
    fn a_parent_tells_words_it_knows_from_those_of_later_versions_and_from_noise() {
        let read = |line: &str| decode_event(line.as_bytes());
        let ready = r#"{"type":"ready","session_id":"s","model":"m","protocol_version":1}"#;
        assert!(matches!(read(ready), Ok(Frame::Contract(Event::Ready { .. }))));
        let closed = r#"{"type":"ask_closed","ask_id":"a","outcome":"expired"}"#;
        assert!(matches!(read(closed), Ok(Frame::Added(AddedEvent::AskClosed { .. }))));
        assert_eq!(read(r#"{"type":"novelty","x":[1]}"#).unwrap(), Frame::Unknown);
        for noise in ["", "hello", "[1]", "{}", "{\"type\":7}"] {
            assert!(read(noise).is_err(), "{noise}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-z]{0,3}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&line);
        }

        #[test]
        fn no_text_of_json_like_bytes_makes_it_panic(line in "[{}\\[\\]\":,id\\\\0-9 ]{0,60}") {
            let _ = decode(line.as_bytes());
        }

        #[test]
        fn an_id_is_found_whatever_stands_around_it(
            id: String, before in proptest::collection::vec(value(), 0..4), after in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut line = b"{".to_vec();
            for (at, value) in before.iter().enumerate() {
                line.extend_from_slice(format!("\"k{at}\" : {value},\n").as_bytes());
            }
            line.extend_from_slice(format!("\"id\": {},", json!(id)).as_bytes());
            line.extend_from_slice(&after);
            if let Err(bad) = decode(&line) {
                prop_assert_eq!(bad.id, Some(id));
            }
        }

        #[test]
        fn what_is_written_is_ascii_on_one_line_and_reads_back(text: String) {
            let mut line = Vec::new();
            encode(&json!({ "text": text }), &mut line).unwrap();
            prop_assert!(line.is_ascii() && line.iter().filter(|byte| **byte == b'\n').count() == 1);
            prop_assert_eq!(&serde_json::from_slice::<Value>(&line).unwrap()["text"], &json!(text));
        }
    }
}
