//! The fields of a line as raw text, and the context that a connection repeats.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::Meta;

/// Every top-level field that either dialect knows, as raw text. Other fields are ignored: both dialects may grow.
#[derive(Deserialize, Default)]
pub(super) struct Fields<'a> {
    #[serde(borrow, default)]
    pub(super) jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) r#type: Option<&'a RawValue>,
    // `"id": null` is a request, no id at all is a notification: the two must stay apart.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) payload: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) ts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) actor: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) workspace_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) lane_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) session_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) terminal_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) envelope_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) correlation_id: Option<&'a RawValue>,
}

/// The context of the last envelope of a connection. A client says who acts, and where, with every command, and it is
/// nearly always the same; as long as its text is, it is neither checked nor built again.
#[derive(Debug, Default)]
pub struct LastContext {
    /// Its fields as they stood on the wire, each followed by a NUL, which JSON text never holds.
    text: String,
    meta: Option<Arc<Meta>>,
}

impl LastContext {
    /// A longer context is not worth its place.
    const MAX_BYTES: usize = 1024;

    pub(super) fn recall(&self, fields: &Fields<'_>) -> Option<Arc<Meta>> {
        let meta = self.meta.as_ref()?;
        let mut rest = self.text.as_str();
        for raw in fields.context() {
            // An absent field is not compared as an empty one: `memcmp` of nothing at no address is slow.
            rest = raw.map_or(Some(rest), |raw| rest.strip_prefix(raw))?.strip_prefix('\0')?;
        }
        Some(Arc::clone(meta))
    }

    pub(super) fn keep(&mut self, fields: &Fields<'_>, meta: Meta) -> Arc<Meta> {
        let meta = Arc::new(meta);
        self.meta = None;
        if fields.context().into_iter().flatten().map(str::len).sum::<usize>() <= Self::MAX_BYTES {
            self.text.clear();
            self.text.extend(fields.context().into_iter().flat_map(|raw| [raw.unwrap_or_default(), "\0"]));
            self.meta = Some(Arc::clone(&meta));
        }
        meta
    }
}

impl<'a> Fields<'a> {
    /// What the context of an envelope is made of.
    fn context(&self) -> [Option<&'a str>; 7] {
        [
            self.actor,
            self.workspace_id,
            self.lane_id,
            self.session_id,
            self.terminal_id,
            self.envelope_id,
            self.correlation_id,
        ]
        .map(|raw| raw.map(RawValue::get))
    }
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(deserializer).map(Some)
}
