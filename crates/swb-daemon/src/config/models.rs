//! Settings about models: how to call them, who provides them, what they can do and cost.
//!
//! `providers` and `models` are tables whose entries the user names. An entry says only what differs from what is known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Value;

/// How models are called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelConfig {
    /// How long connecting to a provider may take, in milliseconds.
    pub connect_timeout_ms: u64,
    /// How long the first piece of an answer may take, in milliseconds.
    pub first_byte_timeout_ms: u64,
    /// How long a provider may be silent in the middle of an answer, in milliseconds.
    pub silence_timeout_ms: u64,
    /// How long a provider may take to list its models, in milliseconds.
    pub list_timeout_ms: u64,
    /// How often a call that failed before it said anything is repeated.
    pub retries: u32,
    /// The wait before the first repetition, in milliseconds; each further one is twice as long.
    pub retry_wait_ms: u64,
    /// The longest wait, in milliseconds. A provider that asks for more is not waited for.
    pub retry_wait_max_ms: u64,
    /// Whether commands that the model runs see the variables that hold keys of providers.
    pub share_keys: bool,
}

impl Default for ModelConfig {
    fn default() -> Self {
        ModelConfig {
            connect_timeout_ms: 10_000,
            first_byte_timeout_ms: 300_000,
            silence_timeout_ms: 120_000,
            list_timeout_ms: 2000,
            retries: 4,
            retry_wait_ms: 1000,
            retry_wait_max_ms: 60_000,
            share_keys: false,
        }
    }
}

/// A provider of models: a new one, or a change to one that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProviderConfig {
    /// What it speaks: `openai` (the usual), `anthropic` or `gemini`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Where it is, with the version: `http://127.0.0.1:8080/v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The variable of the environment that holds its key. Keys themselves do not belong into files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
}

/// A model, named `provider/model`. Prices are in US dollars per million tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelEntry {
    /// How many tokens fit into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// How many tokens an answer may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Whether it can be asked to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
    /// Whether it can look at pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Whether it can read PDF documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdf: Option<bool>,
    /// The price of tokens sent, those from a cache not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_price: Option<f64>,
    /// The price of tokens that come back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_price: Option<f64>,
    /// The price of tokens that a cache supplies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_price: Option<f64>,
    /// The price of tokens that go into a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_price: Option<f64>,
}

/// A value of the type that a setting of a named entry has; `None` if entries have no such setting.
pub(super) fn sample(table: &str, setting: &str) -> Option<Value> {
    let (text, number, yes) = (Value::String(String::new()), Value::Integer(0), Value::Boolean(false));
    Some(match (table, setting) {
        ("providers", "dialect" | "base_url" | "key_env") | ("agents", "containment") => text,
        ("agents", "command") => Value::Array(Vec::new()),
        ("models", "context_window" | "max_output_tokens") => number,
        ("models", "thinking" | "images" | "pdf") => yes,
        ("models", "input_price" | "output_price" | "cache_read_price" | "cache_write_price") => {
            Value::Float(0.0)
        }
        _ => return None,
    })
}

/// What has the right type and still makes no sense.
pub(super) fn check_provider(provider: &ProviderConfig) -> Result<(), (&'static str, String)> {
    if let Some(dialect) = &provider.dialect
        && !matches!(dialect.as_str(), "openai" | "anthropic" | "gemini")
    {
        return Err(("dialect", "must be openai, anthropic or gemini".to_owned()));
    }
    if let Some(url) = &provider.base_url
        && !(url.starts_with("http://") || url.starts_with("https://"))
    {
        return Err(("base_url", "must begin with http:// or https://".to_owned()));
    }
    if let Some(name) = &provider.key_env
        && !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        // It may well be the key itself, so it is not repeated here.
        return Err(("key_env", "must be the name of a variable, not a key".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_an_entry_has_a_sample() {
        let whole = ModelEntry {
            context_window: Some(1),
            max_output_tokens: Some(1),
            thinking: Some(true),
            images: Some(true),
            pdf: Some(true),
            input_price: Some(1.0),
            output_price: Some(1.0),
            cache_read_price: Some(1.0),
            cache_write_price: Some(1.0),
        };
        let text = || Some(String::new());
        let provider = ProviderConfig { dialect: text(), base_url: text(), key_env: text() };
        let tables = [
            ("models", toml::Table::try_from(whole).unwrap()),
            ("providers", toml::Table::try_from(provider).unwrap()),
        ];
        for (table, entry) in tables {
            for (setting, value) in entry {
                let sample = sample(table, &setting).unwrap_or_else(|| panic!("{table}.*.{setting}"));
                assert!(sample.same_type(&value), "{table}.*.{setting}");
            }
        }
    }
}
