//! One line of the control socket, judged.
//!
//! Two dialects share the socket and are told apart line by line: JSON-RPC 2.0 (it has `jsonrpc`) and the envelopes of
//! `helios.localbus.v1` (they have `type`). [`read`] turns the bytes of a line into a [`Call`] that borrows from them, or
//! into a [`Rejection`] that says in which dialect, to which id and with which error to answer.
//!
//! One pass over the line: every known top-level field is captured as raw text and only then looked at, so a field of
//! the wrong type is a precise error and never a lost id. Parameters stay text until the method is known to exist.
//! The order of the checks is that of the incumbent's validator. Nothing here panics, whatever the bytes (property test).

mod envelope;
mod fields;
mod head;
mod json_rpc;

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::error::{BusError, ERR_INVALID_PARAMS, ERR_INVALID_REQUEST, ERR_PARSE};
use crate::id::CorrelationId;
use crate::{MAX_PAYLOAD_BYTES, Meta, method};
use fields::Fields;

pub use fields::LastContext;
pub use head::oversized;

/// The longest wire id, in bytes of JSON.
pub const MAX_WIRE_ID_BYTES: usize = 256;

/// How a line is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `{"jsonrpc":"2.0", …}`
    JsonRpc,
    /// `{"type":"command", …}`
    Envelope,
}

/// A well-formed request or notification.
#[derive(Debug)]
pub struct Call<'a> {
    /// How to answer.
    pub dialect: Dialect,
    /// The id as it stands on the wire, quotes included. `None`: a notification, never answered.
    pub id: Option<&'a str>,
    /// The slashed method name.
    pub method: String,
    /// The bare parameters.
    pub params: Option<&'a RawValue>,
    /// What the line says about its context.
    pub meta: Option<Arc<Meta>>,
}

/// A line that is not one, and the answer to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    /// How to answer.
    pub dialect: Dialect,
    /// The id as it stood on the wire, if it could be read.
    pub id: Option<String>,
    /// What the command was a part of, if that could be read; only envelopes are answered with it.
    pub correlation: Option<CorrelationId>,
    /// What is wrong.
    pub error: BusError,
}

impl Rejection {
    /// Whether the sender expects no answer: a well-formed notification whose parameters do not fit. (Parameters are
    /// looked at only after the id, so an error about them without an id means that there was none.)
    pub fn is_of_notification(&self) -> bool {
        self.dialect == Dialect::JsonRpc && self.id.is_none() && self.error.code == ERR_INVALID_PARAMS
    }
}

/// Judges one line (without its newline).
pub fn read(line: &[u8]) -> Result<Call<'_>, Rejection> {
    read_after(&mut LastContext::default(), line)
}

/// The same for a line of a connection, whose earlier lines left `last` behind.
pub fn read_after<'a>(last: &mut LastContext, line: &'a [u8]) -> Result<Call<'a>, Rejection> {
    let text = std::str::from_utf8(line)
        .map_err(|_| no_dialect(BusError::new(ERR_PARSE, "the line is not UTF-8").because("INVALID_UTF8")))?;
    // Looked at first, because a derived struct would also take an array for its fields in order.
    if !text.trim_start().starts_with('{') {
        return Err(no_dialect(not_an_object(text)));
    }
    let fields: Fields<'_> = serde_json::from_str(text).map_err(|error| {
        no_dialect(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => invalid(&format!("the object is ambiguous: {error}")).because("MALFORMED_ENVELOPE"),
            Err(error) => BusError::new(ERR_PARSE, format!("the line is not JSON: {error}")),
        })
    })?;
    match (fields.jsonrpc, fields.r#type) {
        (Some(version), _) => json_rpc::read(version, &fields),
        (None, Some(kind)) => envelope::read(kind, &fields, last),
        (None, None) => Err(no_dialect(
            invalid("the line has neither \"jsonrpc\" nor \"type\"").because("MALFORMED_ENVELOPE"),
        )),
    }
}

fn no_dialect(error: BusError) -> Rejection {
    Rejection { dialect: Dialect::JsonRpc, id: None, correlation: None, error }
}

fn invalid(message: &str) -> BusError {
    BusError::new(ERR_INVALID_REQUEST, message)
}

fn not_an_object(text: &str) -> BusError {
    match serde_json::from_str::<IgnoredAny>(text) {
        Err(error) => BusError::new(ERR_PARSE, format!("the line is not JSON: {error}")),
        Ok(_) if text.trim_start().starts_with('[') => {
            invalid("batches are not supported; send one request per line").because("BATCH_NOT_SUPPORTED")
        }
        Ok(_) => invalid("a line must be a JSON object").because("MALFORMED_ENVELOPE"),
    }
}

fn method_name(raw: Option<&RawValue>) -> Result<String, BusError> {
    let text =
        raw.and_then(text_of).filter(|text| !text.trim().is_empty()).ok_or_else(|| missing("method"))?;
    let bad = || {
        invalid("a method name is segments of letters and digits joined by '.' or '/'")
            .because("INVALID_METHOD")
    };
    if text.len() > 200 { Err(bad()) } else { method::slashed(&text).ok_or_else(bad) }
}

fn missing(field: &str) -> BusError {
    invalid(&format!("\"{field}\" is missing or blank"))
        .because("MISSING_REQUIRED_FIELD")
        .with("field", field)
}

fn within_limit(payload: &RawValue) -> Result<(), BusError> {
    let bytes = payload.get().len();
    if bytes <= MAX_PAYLOAD_BYTES {
        return Ok(());
    }
    let error = invalid(&format!("the payload has {bytes} bytes; the limit is {MAX_PAYLOAD_BYTES}"));
    Err(error.because("BACKPRESSURE"))
}

/// A correlation id, if it is one: what is wrong with an envelope must not keep its sender from finding out which it was.
fn correlation(raw: &RawValue) -> Option<CorrelationId> {
    CorrelationId::try_from(text_of(raw)?.into_owned()).ok()
}

/// The text of a JSON string; `None` for anything else. Without escapes, which is nearly always, nothing is copied.
fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

fn is_wire_id(raw: &str) -> bool {
    let shape = raw == "null" || raw.starts_with(['"', '-']) || raw.starts_with(|c: char| c.is_ascii_digit());
    shape && raw.len() <= MAX_WIRE_ID_BYTES
}

#[cfg(test)]
mod tests;
