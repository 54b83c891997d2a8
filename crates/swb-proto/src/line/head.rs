//! A line that was too long to be kept: its beginning says how to answer.

use std::borrow::Cow;

use serde::Deserializer;
use serde::de::{self, IgnoredAny};
use serde_json::value::RawValue;

use super::{Dialect, Rejection, correlation, invalid, is_wire_id};
use crate::id::CorrelationId;

/// The answer to a line that was too long to be kept. `head` is its beginning: the id may stand there.
pub fn oversized(head: &[u8], limit: usize) -> Rejection {
    let error = invalid(&format!("the line is longer than {limit} bytes")).because("BACKPRESSURE");
    let mut seen = Head::default();
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(cut) => std::str::from_utf8(&head[..cut.valid_up_to()]).unwrap_or_default(),
    };
    // The text ends in the middle of something, so this fails; what came before it has been seen.
    let _ = HeadVisitor(&mut seen).deserialize_from(valid);
    let dialect = if seen.envelope && !seen.jsonrpc { Dialect::Envelope } else { Dialect::JsonRpc };
    let correlation = seen.correlation.filter(|_| dialect == Dialect::Envelope);
    Rejection { dialect, id: seen.id.filter(|id| is_wire_id(id)), correlation, error }
}

/// What can be told from the beginning of a line.
#[derive(Default)]
struct Head {
    jsonrpc: bool,
    envelope: bool,
    id: Option<String>,
    correlation: Option<CorrelationId>,
}

struct HeadVisitor<'h>(&'h mut Head);

impl HeadVisitor<'_> {
    fn deserialize_from(self, text: &str) -> Result<(), serde_json::Error> {
        serde_json::Deserializer::from_str(text).deserialize_map(self)
    }
}

impl<'de> de::Visitor<'de> for HeadVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "id" => self.0.id = Some(map.next_value::<&RawValue>()?.get().to_owned()),
                "correlation_id" => self.0.correlation = correlation(map.next_value::<&RawValue>()?),
                "jsonrpc" => self.0.jsonrpc = map.next_value::<IgnoredAny>().is_ok(),
                "type" => self.0.envelope = map.next_value::<IgnoredAny>().is_ok(),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
