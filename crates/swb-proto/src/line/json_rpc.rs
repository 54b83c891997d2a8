//! A line of JSON-RPC 2.0.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::Fields;
use super::{Call, Dialect, Rejection, invalid, is_wire_id, method_name, text_of, within_limit};
use crate::Meta;
use crate::error::{BusError, ERR_INVALID_PARAMS};
use crate::trace::TraceParent;

pub(super) fn read<'a>(version: &RawValue, fields: &Fields<'a>) -> Result<Call<'a>, Rejection> {
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
