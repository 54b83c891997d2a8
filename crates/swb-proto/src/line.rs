//! One line of the control socket, judged.
//!
//! Two dialects share the socket and are told apart line by line: JSON-RPC 2.0 (it has `jsonrpc`) and the envelopes of
//! `helios.localbus.v1` (they have `type`). [`read`] turns the bytes of a line into a [`Call`] that borrows from them, or
//! into a [`Rejection`] that says in which dialect, to which id and with which error to answer.
//!
//! One pass over the line: every known top-level field is captured as raw text and only then looked at, so a field of
//! the wrong type is a precise error and never a lost id. Parameters stay text until the method is known to exist.
//! The order of the checks is that of the incumbent's validator. Nothing here panics, whatever the bytes (property test).

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use memchr::memmem::Finder;
use serde::de::{self, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::{BusError, ERR_INVALID_PARAMS, ERR_INVALID_REQUEST, ERR_PARSE};
use crate::id::{self, CorrelationId, InvalidId};
use crate::trace::TraceParent;
use crate::{Actor, MAX_PAYLOAD_BYTES, Meta, method, timestamp};

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

/// Every top-level field that either dialect knows, as raw text. Other fields are ignored: both dialects may grow.
#[derive(Deserialize, Default)]
struct Fields<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    r#type: Option<&'a RawValue>,
    // `"id": null` is a request, no id at all is a notification: the two must stay apart.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
    #[serde(borrow, default)]
    ts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    actor: Option<&'a RawValue>,
    #[serde(borrow, default)]
    workspace_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    lane_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    terminal_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    envelope_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    correlation_id: Option<&'a RawValue>,
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

    fn recall(&self, fields: &Fields<'_>) -> Option<Arc<Meta>> {
        let meta = self.meta.as_ref()?;
        let mut rest = self.text.as_str();
        for raw in fields.context() {
            // An absent field is not compared as an empty one: `memcmp` of nothing at no address is slow.
            rest = raw.map_or(Some(rest), |raw| rest.strip_prefix(raw))?.strip_prefix('\0')?;
        }
        Some(Arc::clone(meta))
    }

    fn keep(&mut self, fields: &Fields<'_>, meta: Meta) -> Arc<Meta> {
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
        (Some(version), _) => json_rpc(version, &fields),
        (None, Some(kind)) => envelope(kind, &fields, last),
        (None, None) => Err(no_dialect(
            invalid("the line has neither \"jsonrpc\" nor \"type\"").because("MALFORMED_ENVELOPE"),
        )),
    }
}

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

fn json_rpc<'a>(version: &RawValue, fields: &Fields<'a>) -> Result<Call<'a>, Rejection> {
    let id = fields.id.map(RawValue::get);
    let id_is_sound = id.is_none_or(is_wire_id);
    let reject = |error| {
        let id = id.filter(|_| id_is_sound).map(str::to_owned);
        Err(Rejection { dialect: Dialect::JsonRpc, id, correlation: None, error })
    };
    if text_of(version).as_deref() != Some("2.0") {
        return reject(invalid("\"jsonrpc\" must be \"2.0\"").because("INVALID_JSONRPC_VERSION"));
    }
    if !id_is_sound {
        return reject(
            invalid("\"id\" must be a string, a number or null, at most 256 bytes").because("INVALID_ID"),
        );
    }
    let method = match method_name(fields.method) {
        Ok(method) => method,
        Err(error) => return reject(error),
    };
    if let Some(params) = fields.params {
        if !params.get().starts_with('{') {
            let message = "\"params\" must be an object: parameters are given by name";
            return reject(BusError::new(ERR_INVALID_PARAMS, message));
        }
        if let Err(error) = within_limit(params) {
            return reject(error);
        }
    }
    let meta = match fields.params.map(meta_of_params).transpose() {
        Ok(meta) => meta.flatten(),
        Err(error) => return reject(error),
    };
    Ok(Call { dialect: Dialect::JsonRpc, id, method, params: fields.params, meta })
}

/// The `_meta` of JSON-RPC parameters. Looked for as bytes first: most calls have none, and a second parse costs.
fn meta_of_params(params: &RawValue) -> Result<Option<Arc<Meta>>, BusError> {
    #[derive(Deserialize)]
    struct WithMeta {
        #[serde(default)]
        _meta: Option<Meta>,
    }
    #[derive(Deserialize)]
    struct WithTrace<'a> {
        #[serde(borrow)]
        _meta: Trace<'a>,
    }
    #[derive(Deserialize)]
    struct Trace<'a> {
        #[serde(borrow)]
        traceparent: Cow<'a, str>,
    }
    // Built once: making a searcher costs more than a short line's search.
    static META: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"_meta\""));
    if META.find(params.get().as_bytes()).is_none() {
        return Ok(None);
    }
    static TRACE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"traceparent\""));
    match serde_json::from_str::<WithMeta>(params.get()) {
        Ok(WithMeta { _meta: Some(mut meta) }) => {
            // One that is not well formed is none, says its standard.
            if meta.correlation_id.is_none() && TRACE.find(params.get().as_bytes()).is_some() {
                let traced = serde_json::from_str::<WithTrace<'_>>(params.get()).ok();
                meta.correlation_id =
                    traced.and_then(|traced| TraceParent::correlation(&traced._meta.traceparent));
            }
            Ok(Some(Arc::new(meta)))
        }
        Ok(WithMeta { _meta: None }) => Ok(None),
        Err(error) => {
            let message = format!("\"_meta\" is not a context: {error}");
            Err(BusError::new(ERR_INVALID_PARAMS, message).because("MISSING_CONTEXT_ID"))
        }
    }
}

fn envelope<'a>(kind: &RawValue, fields: &Fields<'a>, last: &mut LastContext) -> Result<Call<'a>, Rejection> {
    let id = fields.id.map(RawValue::get).filter(|raw| raw.starts_with('"') && is_wire_id(raw));
    let reject = |error| {
        let (id, correlation) = (id.map(str::to_owned), fields.correlation_id.and_then(correlation));
        Err(Rejection { dialect: Dialect::Envelope, id, correlation, error })
    };
    let kind = text_of(kind);
    let is_command = match kind.as_deref().map(str::trim) {
        Some("command") => true,
        Some("response" | "event") => false,
        Some("") => return reject(missing("type")),
        _ => {
            let message = "\"type\" must be \"command\", \"response\" or \"event\"";
            return reject(invalid(message).because("INVALID_ENVELOPE_TYPE"));
        }
    };
    if fields.id.filter(|_| id.is_some()).and_then(text_of).is_none_or(|id| id.trim().is_empty()) {
        return reject(missing("id")).map_err(|rejection| Rejection { id: None, ..rejection });
    }
    let ts = match fields.ts.and_then(text_of) {
        Some(ts) if !ts.trim().is_empty() => ts,
        _ => return reject(missing("ts")),
    };
    if !timestamp::is_valid(&ts) {
        let shown: String = ts.chars().take(80).collect();
        let error = invalid("\"ts\" must be an RFC 3339 timestamp with a zone").because("INVALID_TIMESTAMP");
        return reject(error.with("field", "ts").with("value", shown));
    }
    let known = last.recall(fields);
    let ids = match known.as_ref().map_or_else(|| context(fields), |_| Ok(Meta::default())) {
        Ok(ids) => ids,
        Err(error) => return reject(error),
    };
    if !is_command {
        let message = "only commands are sent to the daemon; responses and events come from it";
        return reject(invalid(message).because("NOT_A_COMMAND"));
    }
    let method = match method_name(fields.method) {
        Ok(method) => method,
        Err(error) => return reject(error),
    };
    let Some(payload) = fields.payload else { return reject(missing("payload")) };
    if !payload.get().starts_with('{') {
        return reject(invalid("\"payload\" must be an object").with("field", "payload"));
    }
    if let Err(error) = within_limit(payload) {
        return reject(error);
    }
    let meta =
        match known.map_or_else(|| Ok(last.keep(fields, Meta { actor: Some(actor(fields)?), ..ids })), Ok) {
            Ok(meta) => meta,
            Err(error) => return reject(error),
        };
    if meta.workspace_id.is_none() && !method::workspace_is_optional(&method) {
        let error = invalid(&format!("{} needs a workspace_id", method::dotted(&method)));
        return reject(error.because("MISSING_CONTEXT_ID").with("field", "workspace_id"));
    }
    Ok(Call { dialect: Dialect::Envelope, id, method, params: Some(payload), meta: Some(meta) })
}

fn actor(fields: &Fields<'_>) -> Result<Actor, BusError> {
    let Some(raw) = fields.actor.filter(|raw| raw.get().starts_with('{')) else {
        return Err(missing("actor"));
    };
    serde_json::from_str(raw.get()).map_err(|error| {
        let error = invalid(&format!("\"actor\" must be an object with kind and id: {error}"));
        error.because("MISSING_REQUIRED_FIELD").with("field", "actor")
    })
}

/// The ids around an envelope: absent or null is fine, blank or of another type is not.
fn context(fields: &Fields<'_>) -> Result<Meta, BusError> {
    fn one<T: TryFrom<String, Error = InvalidId>>(
        raw: Option<&RawValue>,
        field: &'static str,
    ) -> Result<Option<T>, BusError> {
        let Some(raw) = raw else { return Ok(None) };
        let text = text_of(raw).unwrap_or_default().into_owned();
        T::try_from(text).map(Some).map_err(|error| {
            let reason = if error == InvalidId::Blank { "MISSING_CONTEXT_ID" } else { "INVALID_CONTEXT_ID" };
            invalid(&format!("\"{field}\" is not an id: {error}")).because(reason).with("field", field)
        })
    }
    if let Some(raw) = fields.envelope_id {
        let text = text_of(raw).unwrap_or_default();
        id::check(&text).map_err(|error| {
            let error = invalid(&format!("\"envelope_id\" is not an id: {error}"));
            error.because("MISSING_CONTEXT_ID").with("field", "envelope_id")
        })?;
    }
    Ok(Meta {
        actor: None,
        workspace_id: one(fields.workspace_id, "workspace_id")?,
        lane_id: one(fields.lane_id, "lane_id")?,
        session_id: one(fields.session_id, "session_id")?,
        terminal_id: one(fields.terminal_id, "terminal_id")?,
        correlation_id: one(fields.correlation_id, "correlation_id")?,
        timeout_ms: None,
    })
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

#[cfg(test)]
mod tests;
