//! `swb models`: which models can be used now; and what the configuration says about models, as the agent wants to be told.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use swb_agent::Offer;
use swb_agent::model::provider::{Dialect, Key};
use swb_agent::model::settings::{Limits, ModelSettings, Prices, ProviderSettings, Settings};
use swb_daemon::config::{ModelEntry, ProviderConfig};
use swb_daemon::{Config, Paths};

use super::rpc::profile_name;
use crate::exit_code;
use crate::failure::Failure;
use crate::incumbent;
use crate::io::{DIM, Io, NAME};
use crate::plain;

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Those that a provider of this name serves.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// With the settings of this profile.
    #[arg(long, value_name = "NAME", value_parser = profile_name)]
    profile: Option<String>,
}

pub(crate) fn run(args: &ModelsArgs, set: &[String], io: &Io) -> Result<u8, Failure> {
    let (paths, profile) = (Paths::from_env()?, args.profile.as_deref());
    let config = crate::io::layers_of_profile(&paths, set, profile)?.finish()?;
    let Offer { models, without_key } =
        swb_agent::describe_models(settings(&config, incumbent::Settings::read(profile).keys))?;
    let wanted = |provider: &str| args.provider.as_deref().is_none_or(|wanted| wanted == provider);
    for model in models.as_array().into_iter().flatten() {
        if !wanted(model["provider"].as_str().unwrap_or_default()) {
            continue;
        }
        if io.json {
            io.json_line(model)?;
        } else {
            io.line(line(model))?;
        }
    }
    if !io.json {
        tell_of_keys(args.provider.as_deref(), &without_key, io);
    }
    Ok(exit_code::SUCCESS)
}

/// What the others want: of one that was asked for its variables, of all others their names.
fn tell_of_keys(wanted: Option<&str>, without_key: &[(String, Vec<String>)], io: &Io) {
    let names = || without_key.iter().map(|(provider, _)| provider.as_str()).collect::<Vec<_>>();
    match wanted {
        Some(wanted) => {
            if let Some((provider, keys)) = without_key.iter().find(|(provider, _)| provider == wanted) {
                io.note(format!("{provider} wants a key in ${}", keys.join(" or $")));
            }
        }
        None if without_key.is_empty() => {}
        None => io.note(format!(
            "{DIM}with a key also {}; `swb models --provider NAME` says where it is looked for{DIM:#}",
            names().join(", ")
        )),
    }
}

/// A model as `--model` takes it, what fits into it, and what it costs.
fn line(model: &Value) -> String {
    let text = |key: &str| plain::line(model[key].as_str().unwrap_or_default(), 80);
    let (provider, id, title) = (text("provider"), text("model_id"), text("model_name"));
    let name = if provider == id { id.clone() } else { format!("{provider}/{id}") };
    let context = model["context_window"].as_u64().map_or_else(|| "?".to_owned(), tokens);
    let price = match (model["price"]["input"].as_f64(), model["price"]["output"].as_f64()) {
        (Some(0.0), Some(0.0)) => "free".to_owned(),
        (Some(input), Some(output)) => format!("${input:.2} in, ${output:.2} out"),
        _ => "price unknown".to_owned(),
    };
    let title = if title == id { String::new() } else { title };
    format!("{NAME}{name:<40}{NAME:#} {context:>6}  {price:<22} {DIM}{title}{DIM:#}").trim_end().to_owned()
}

/// A size that nobody counts to the last digit.
fn tokens(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        1000..1_000_000 => format!("{}k", tokens / 1000),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

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
