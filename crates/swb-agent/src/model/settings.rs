//! What is configured about models: where providers are, what models can do and cost, and how patient to be.

use std::collections::BTreeMap;
use std::time::Duration;

use super::provider::{Dialect, Key};

/// All of it. The default knows the providers of [`super::provider`] and no prices.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Providers by name: new ones, or changes to known ones.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// Models by `provider/model`.
    pub models: BTreeMap<String, ModelSettings>,
    /// How patient to be.
    pub limits: Limits,
    /// Whether commands that the model runs see the variables that hold keys.
    pub share_keys: bool,
}

/// What is configured about a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderSettings {
    /// Which protocol it speaks.
    pub dialect: Option<Dialect>,
    /// Where it is.
    pub base_url: Option<String>,
    /// The variable of the environment that holds its key. Our own configuration never holds the key itself.
    pub key_env: Option<String>,
    /// A key that came with another program's configuration, for when no variable holds one.
    pub key: Option<Key>,
}

/// What is configured about a model. Nothing is known of what is not said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    /// How many tokens fit into it.
    pub context_window: Option<u64>,
    /// How many tokens an answer may have.
    pub max_output_tokens: Option<u32>,
    /// Whether it can be asked to think.
    pub thinking: Option<bool>,
    /// Whether it can look at pictures.
    pub images: Option<bool>,
    /// Whether it can read PDF documents.
    pub pdf: Option<bool>,
    /// What it costs.
    pub prices: Prices,
}

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Prices {
    /// Tokens sent, those from a cache not counted.
    pub input: Option<f64>,
    /// Tokens that come back.
    pub output: Option<f64>,
    /// Tokens that a cache supplies.
    pub cache_read: Option<f64>,
    /// Tokens that go into a cache.
    pub cache_write: Option<f64>,
}

/// How patient to be with a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long connecting may take.
    pub connect: Duration,
    /// How long the first piece of an answer may take.
    pub first_byte: Duration,
    /// How long a provider may be silent in the middle of an answer.
    pub silence: Duration,
    /// How long a provider may take to list its models.
    pub listing: Duration,
    /// How often a call that failed before it said anything is repeated.
    pub retries: u32,
    /// The first wait before a repetition; each further one is twice as long.
    pub retry_wait: Duration,
    /// The longest wait, also when the provider asks for more.
    pub retry_wait_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            silence: Duration::from_secs(120),
            listing: Duration::from_secs(2),
            retries: 4,
            retry_wait: Duration::from_secs(1),
            retry_wait_max: Duration::from_secs(60),
        }
    }
}
