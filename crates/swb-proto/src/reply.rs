//! Answers and events as lines, in the dialect they were asked for.
//!
//! Written piece by piece into the buffer of the connection: an answer costs no allocation of its own.

use std::time::SystemTime;

use crate::error::ErrorEnvelope;
use crate::id::CorrelationId;
use crate::line::Dialect;
use crate::payload::write_json;
use crate::{BusError, BusResult, timestamp};

/// Appends the answer to a request, newline included. `id` is the id as it stood on the wire.
pub fn write(
    out: &mut Vec<u8>,
    dialect: Dialect,
    id: Option<&str>,
    correlation: Option<&CorrelationId>,
    now: SystemTime,
    result: &BusResult,
) {
    let id = id.unwrap_or("null").as_bytes();
    match (dialect, result) {
        (Dialect::JsonRpc, Ok(payload)) => {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            out.extend_from_slice(id);
            out.extend_from_slice(br#","result":"#);
            payload.write_bare(out);
        }
        (Dialect::JsonRpc, Err(error)) => {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            out.extend_from_slice(id);
            out.extend_from_slice(br#","error":"#);
            write_json(out, error);
        }
        (Dialect::Envelope, Ok(payload)) => {
            envelope_head(out, id, correlation, now, "ok");
            out.extend_from_slice(br#","result":"#);
            payload.write_bare(out);
            out.extend_from_slice(br#","error":null"#);
        }
        (Dialect::Envelope, Err(error)) => {
            envelope_head(out, id, correlation, now, "error");
            out.extend_from_slice(br#","result":null,"error":"#);
            write_json(out, &ErrorEnvelope::from(BusError::clone(error)));
        }
    }
    out.extend_from_slice(b"}\n");
}

fn envelope_head(
    out: &mut Vec<u8>,
    id: &[u8],
    correlation: Option<&CorrelationId>,
    now: SystemTime,
    status: &str,
) {
    out.extend_from_slice(br#"{"id":"#);
    out.extend_from_slice(id);
    out.extend_from_slice(br#","type":"response","status":""#);
    out.extend_from_slice(status.as_bytes());
    out.extend_from_slice(br#"","ts":""#);
    out.extend_from_slice(&timestamp::millis_ascii(now));
    out.push(b'"');
    if let Some(correlation) = correlation {
        // Ids consist of bytes that need no escaping.
        out.extend_from_slice(br#","correlation_id":""#);
        out.extend_from_slice(correlation.as_str().as_bytes());
        out.push(b'"');
    }
}

/// Appends one event for one subscription, newline included. `event` is the JSON of its envelope.
pub fn write_event(out: &mut Vec<u8>, dialect: Dialect, subscription: &str, event: &str) {
    match dialect {
        Dialect::JsonRpc => {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"events.event","params":{"subscription":""#);
            out.extend_from_slice(subscription.as_bytes());
            out.extend_from_slice(br#"","event":"#);
            out.extend_from_slice(event.as_bytes());
            out.extend_from_slice(b"}}\n");
        }
        Dialect::Envelope => {
            out.extend_from_slice(br#"{"subscription":""#);
            out.extend_from_slice(subscription.as_bytes());
            out.extend_from_slice(br#"","#);
            // The envelope is an object with at least an id, so its brace opens this line too.
            out.extend_from_slice(&event.as_bytes()[1..]);
            out.push(b'\n');
        }
    }
}
