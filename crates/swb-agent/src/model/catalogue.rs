//! The models that can be used now, by name.

use std::sync::Arc;

use serde::Serialize;

use super::demo::Demo;
use super::{Model, ModelError};

/// The model that is used if nobody names one: it needs neither key nor network.
pub(crate) const DEFAULT: &str = "demo";

/// A line of `get_available_models`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Entry {
    context_window: u64,
    model_id: &'static str,
    model_name: &'static str,
    provider: &'static str,
}

/// All of them.
pub(crate) fn entries() -> Vec<Entry> {
    vec![Entry {
        context_window: 200_000,
        model_id: "demo",
        model_name: "Demo (offline, scripted by the prompt)",
        provider: "demo",
    }]
}

/// The model of this name, as listed or as `provider/model`.
pub(crate) fn find(name: &str) -> Result<Arc<dyn Model>, ModelError> {
    match name {
        "demo" | "demo/demo" => Ok(Arc::new(Demo)),
        _ => Err(ModelError::Unusable { name: name.to_owned() }),
    }
}

/// How many tokens fit into the model of this name, if that is known.
pub(crate) fn context_window(name: &str) -> Option<u64> {
    let id = name.strip_prefix("demo/").unwrap_or(name);
    entries().into_iter().find(|entry| entry.model_id == id).map(|entry| entry.context_window)
}

/// What the tokens have cost, if the price is known. The demo costs nothing.
pub(crate) fn cost(name: &str) -> Option<f64> {
    find(name).is_ok().then_some(0.0)
}
