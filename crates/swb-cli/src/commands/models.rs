//! What the configuration says about models, as the agent wants to be told.

use std::collections::BTreeMap;
use std::time::Duration;

use swb_agent::model::provider::{Dialect, Key};
use swb_agent::model::settings::{Limits, ModelSettings, Prices, ProviderSettings, Settings};
use swb_daemon::Config;
use swb_daemon::config::{ModelEntry, ProviderConfig};

/// `keys`: those that no variable holds, by provider.
pub(crate) fn settings(config: &Config, keys: BTreeMap<String, String>) -> Settings {
    let model = &config.model;
    let mut providers: BTreeMap<_, _> =
        config.providers.iter().map(|(name, entry)| (name.clone(), provider(entry))).collect();
    for (name, key) in keys {
        providers.entry(name).or_default().key = Key::new(&key);
    }
    Settings {
        providers,
        models: config.models.iter().map(|(name, entry)| (name.clone(), self::model(entry))).collect(),
        limits: Limits {
            connect: Duration::from_millis(model.connect_timeout_ms),
            first_byte: Duration::from_millis(model.first_byte_timeout_ms),
            silence: Duration::from_millis(model.silence_timeout_ms),
            listing: Duration::from_millis(model.list_timeout_ms),
            retries: model.retries,
            retry_wait: Duration::from_millis(model.retry_wait_ms),
            retry_wait_max: Duration::from_millis(model.retry_wait_max_ms),
        },
        share_keys: model.share_keys,
    }
}

fn provider(entry: &ProviderConfig) -> ProviderSettings {
    ProviderSettings {
        dialect: entry.dialect.as_deref().and_then(Dialect::from_name),
        base_url: entry.base_url.clone(),
        key_env: entry.key_env.clone(),
        key: None,
    }
}

fn model(entry: &ModelEntry) -> ModelSettings {
    ModelSettings {
        context_window: entry.context_window,
        max_output_tokens: entry.max_output_tokens,
        thinking: entry.thinking,
        images: entry.images,
        pdf: entry.pdf,
        prices: Prices {
            input: entry.input_price,
            output: entry.output_price,
            cache_read: entry.cache_read_price,
            cache_write: entry.cache_write_price,
        },
    }
}
