//! The models that can be used now, by name.
//!
//! A model is named `provider/model`, or without a provider if its maker is known (`claude-…`, `gpt-…`, `gemini-…`). It
//! can be used if its provider is known and has what it wants of a key; whether a server is there is found out by asking
//! it, within a limit. What is configured about a model wins over what its provider says, and that over what is known of
//! its family.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use serde::Serialize;
use swb_proto::agent::TurnUsage;

use super::demo::Demo;
use super::provider::{Access, Environment, Provider};
use super::remote::{Remote, http, listing};
use super::settings::{ModelSettings, Prices, Settings};
use super::{Model, ModelError, Unusable, known, provider};

/// The model that is used if nobody names one: it needs neither key nor network.
pub(crate) const DEFAULT: &str = "demo";
const DEMO_CONTEXT: u64 = 200_000;

/// A line of `get_available_models`. Fields stand in alphabetical order, which is the order of the wire.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Entry {
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<u64>,
    model_id: String,
    model_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<PriceEntry>,
    provider: String,
}

/// US dollars per million tokens; what is not known is not there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct PriceEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<f64>,
}

impl PriceEntry {
    fn of(prices: Prices) -> Option<Self> {
        let Prices { input, output, cache_read, cache_write } = prices;
        prices.is_known().then_some(PriceEntry { cache_read, cache_write, input, output })
    }
}

/// All providers and what is known of their models.
#[derive(Debug)]
pub(crate) struct Catalogue {
    providers: BTreeMap<String, Arc<Provider>>,
    settings: Settings,
    clients: http::Clients,
    /// Context windows that providers have told, by `provider/model`.
    told: Mutex<BTreeMap<String, u64>>,
}

impl Catalogue {
    pub(crate) fn new(settings: Settings, environment: Environment<'_>) -> Self {
        let providers = provider::all(&settings.providers, environment);
        Catalogue {
            providers: providers.into_iter().map(|(name, provider)| (name, Arc::new(provider))).collect(),
            clients: http::Clients::new(settings.limits.connect),
            settings,
            told: Mutex::default(),
        }
    }

    /// The model of this name.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        if is_demo(name) {
            return Ok(Arc::new(Demo));
        }
        let (provider, model) = self.usable(name)?;
        let line = self.clients.get(provider).map_err(|why| unusable(name, why))?;
        let settings = self.known(provider, model);
        Ok(Arc::new(Remote::new(name, model, Arc::clone(provider), line, settings, self.settings.limits)))
    }

    /// Whether the model can be used as far as can be told at once: a server on this machine is knocked at.
    pub(crate) async fn check(&self, name: &str) -> Result<(), ModelError> {
        if is_demo(name) {
            return Ok(());
        }
        let (provider, _) = self.usable(name)?;
        if provider.local && !http::answers(&provider.base_url).await {
            return Err(unusable(name, Unusable::Silent { base_url: provider.base_url.clone() }));
        }
        Ok(())
    }

    /// How many tokens fit into the model of this name, if that is known.
    pub(crate) fn context_window(&self, name: &str) -> Option<u64> {
        if is_demo(name) {
            return Some(DEMO_CONTEXT);
        }
        let (provider, model) = self.split(name)?;
        self.known(provider, model).context_window
    }

    /// What the tokens have cost, if every price is known.
    pub(crate) fn cost<'a>(
        &self,
        used: impl IntoIterator<Item = (&'a String, &'a TurnUsage)>,
    ) -> Option<f64> {
        used.into_iter().try_fold(0.0, |sum, (name, usage)| Some(sum + self.prices(name).cost(usage)?))
    }

    fn prices(&self, name: &str) -> Prices {
        match self.split(name) {
            _ if is_demo(name) => Prices::FREE,
            Some((provider, model)) => self.known(provider, model).prices,
            None => Prices::default(),
        }
    }

    /// Everything that can be used now.
    pub(crate) async fn entries(&self) -> Vec<Entry> {
        let demo = Entry {
            context_window: Some(DEMO_CONTEXT),
            model_id: DEFAULT.to_owned(),
            model_name: "Demo (offline, scripted by the prompt)".to_owned(),
            price: PriceEntry::of(Prices::FREE),
            provider: DEFAULT.to_owned(),
        };
        let ready = self.providers.values().filter(|provider| !matches!(provider.access, Access::Missing(_)));
        let lists = join_all(ready.map(|provider| self.entries_of(provider))).await;
        std::iter::once(demo).chain(lists.into_iter().flatten()).collect()
    }

    /// The providers that cannot be used, with the variables in which they look for a key.
    pub(crate) fn without_key(&self) -> Vec<(String, Vec<String>)> {
        let missing = |provider: &Arc<Provider>| match &provider.access {
            Access::Missing(variables) => Some((provider.name.clone(), variables.clone())),
            Access::Key(_) | Access::Open => None,
        };
        self.providers.values().filter_map(missing).collect()
    }

    async fn entries_of(&self, provider: &Arc<Provider>) -> Vec<Entry> {
        let Ok(line) = self.clients.get(provider) else { return Vec::new() };
        let listed = listing::models(provider, &line.http, self.settings.limits.listing).await;
        let mut names: BTreeMap<String, Option<String>> = match listed {
            Ok(models) => {
                self.remember(provider, &models);
                models.into_iter().map(|model| (model.id, model.name)).collect()
            }
            // A server of one's own that does not answer offers nothing; neither does one that refuses the key.
            Err(listing::NotListed::Refused) => return Vec::new(),
            Err(listing::NotListed::Silent) if provider.local => return Vec::new(),
            Err(listing::NotListed::Silent) => {
                known::offered(&provider.name).iter().map(|name| ((*name).to_owned(), None)).collect()
            }
        };
        let prefix = format!("{}/", provider.name);
        for configured in self.settings.models.keys().filter_map(|name| name.strip_prefix(&prefix)) {
            names.entry(configured.to_owned()).or_insert(None);
        }
        names.into_iter().map(|(id, name)| self.entry(provider, id, name)).collect()
    }

    fn entry(&self, provider: &Provider, id: String, name: Option<String>) -> Entry {
        let known = self.known(provider, &id);
        Entry {
            context_window: known.context_window,
            model_name: name.unwrap_or_else(|| id.clone()),
            model_id: id,
            price: PriceEntry::of(known.prices),
            provider: provider.name.clone(),
        }
    }

    /// Asks the model's provider how much fits into it, if nobody has said so yet.
    pub(crate) async fn learn(&self, name: &str) {
        let Some((provider, model)) = self.split(name) else { return };
        if is_demo(name) || self.known(provider, model).context_window.is_some() {
            return;
        }
        let Ok(line) = self.clients.get(provider) else { return };
        if let Ok(models) = listing::models(provider, &line.http, self.settings.limits.listing).await {
            self.remember(provider, &models);
        }
    }

    fn remember(&self, provider: &Provider, models: &[listing::Listed]) {
        let mut told = self.told();
        for model in models {
            if let Some(context_window) = model.context_window {
                told.insert(format!("{}/{}", provider.name, model.id), context_window);
            }
        }
    }

    /// What is known of the model, from whoever says it first.
    fn known(&self, provider: &Provider, model: &str) -> ModelSettings {
        let full = format!("{}/{model}", provider.name);
        let set = self.settings.models.get(&full).cloned().unwrap_or_default();
        let family = known::settings(&provider.name, provider.dialect, model);
        let told = self.told().get(&full).copied();
        ModelSettings {
            context_window: set.context_window.or(told).or(family.context_window),
            thinking: set.thinking.or(family.thinking),
            images: set.images.or(family.images),
            pdf: set.pdf.or(family.pdf),
            ..set
        }
    }

    fn usable<'a>(&self, name: &'a str) -> Result<(&Arc<Provider>, &'a str), ModelError> {
        let (provider, model) = self.split(name).ok_or_else(|| unusable(name, Unusable::Unknown))?;
        match &provider.access {
            Access::Missing(variables) => {
                Err(unusable(name, Unusable::NoKey { variables: variables.join(" or $") }))
            }
            Access::Key(_) | Access::Open => Ok((provider, model)),
        }
    }

    fn split<'a>(&self, name: &'a str) -> Option<(&Arc<Provider>, &'a str)> {
        let named = name.split_once('/').and_then(|(provider, model)| {
            Some((self.providers.get(provider)?, model)).filter(|_| !model.is_empty())
        });
        named.or_else(|| {
            let maker = known::maker(name).filter(|_| !name.contains('/'))?;
            Some((self.providers.get(maker)?, name))
        })
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_demo(name: &str) -> bool {
    matches!(name, "demo" | "demo/demo")
}

fn unusable(name: &str, why: Unusable) -> ModelError {
    ModelError::Unusable { name: name.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::settings::ProviderSettings;

    fn catalogue(models: &[(&str, ModelSettings)], variables: &[(&str, &str)]) -> Catalogue {
        let models = models.iter().map(|(name, settings)| ((*name).to_owned(), settings.clone())).collect();
        let nowhere =
            ProviderSettings { base_url: Some("http://127.0.0.1:1/v1".into()), ..Default::default() };
        let providers =
            ["local", "ollama", "mine"].into_iter().map(|name| (name.to_owned(), nowhere.clone())).collect();
        let find = |wanted: &str| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
        };
        Catalogue::new(Settings { providers, models, ..Settings::default() }, &find)
    }

    fn why(catalogue: &Catalogue, name: &str) -> String {
        catalogue.find(name).unwrap_err().to_string()
    }

    #[test]
    fn a_name_leads_to_its_provider() {
        let catalogue = catalogue(&[], &[("ANTHROPIC_API_KEY", "k")]);
        for name in
            ["demo", "demo/demo", "claude-sonnet-4-6", "anthropic/claude-x", "local/any/thing", "mine/m"]
        {
            assert!(catalogue.find(name).is_ok(), "{name}");
        }
        assert!(why(&catalogue, "gpt-5").contains("$OPENAI_API_KEY"));
        assert!(why(&catalogue, "google/gemini-2.5-pro").contains("$GOOGLE_API_KEY or $GEMINI_API_KEY"));
        for name in ["", "/", "local/", "nowhere/m", "no-such-model", "elsewhere/claude-sonnet-4-6"] {
            assert!(why(&catalogue, name).contains("get_available_models"), "{name}");
        }
    }

    #[test]
    fn what_is_configured_wins_over_what_is_known() {
        let set = ModelSettings { context_window: Some(7), ..ModelSettings::default() };
        let catalogue = catalogue(&[("anthropic/claude-a", set)], &[]);
        assert_eq!(catalogue.context_window("claude-a"), Some(7));
        assert_eq!(catalogue.context_window("claude-b"), Some(200_000));
        assert_eq!(catalogue.context_window("local/x"), None);
        assert_eq!(catalogue.context_window("demo"), Some(DEMO_CONTEXT));
    }

    #[test]
    fn a_session_costs_what_all_its_models_cost_and_nothing_is_guessed() {
        let prices = Prices { input: Some(2.0), output: Some(4.0), ..Prices::default() };
        let set = ModelSettings { prices, ..ModelSettings::default() };
        let catalogue = catalogue(&[("mine/m", set)], &[]);
        let used = TurnUsage { input_tokens: 500_000, output_tokens: 250_000, ..TurnUsage::default() };
        let both = BTreeMap::from([("mine/m".to_owned(), used.clone()), ("demo".to_owned(), used.clone())]);
        assert_eq!(catalogue.cost(&both), Some(2.0));
        let unknown = BTreeMap::from([("mine/m".to_owned(), used.clone()), ("mine/n".to_owned(), used)]);
        assert_eq!(catalogue.cost(&unknown), None);
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_cannot_be_chosen() {
        let catalogue = catalogue(&[], &[]);
        let error = catalogue.check("mine/m").await.unwrap_err().to_string();
        assert!(error.contains("http://127.0.0.1:1/v1/"), "{error}");
        catalogue.check("demo").await.unwrap();
        let listed = catalogue.entries().await;
        assert_eq!(listed.len(), 1, "only the demo: {listed:?}");
    }
}
