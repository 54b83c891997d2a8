//! A line of `helios.localbus.v1`.

use serde_json::value::RawValue;

use super::fields::{Fields, LastContext};
use super::{
    Call, Dialect, Rejection, correlation, invalid, is_wire_id, method_name, missing, text_of, within_limit,
};
use crate::error::BusError;
use crate::id::{self, InvalidId};
use crate::{Actor, Meta, method, timestamp};

pub(super) fn read<'a>(
    kind: &RawValue,
    fields: &Fields<'a>,
    last: &mut LastContext,
) -> Result<Call<'a>, Rejection> {
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
