//! Where models are: providers, their addresses, their keys.
//!
//! The built-in ones are known by name, address and the variables that hold their keys; configuration adds to them and
//! moves them elsewhere. A [`Key`] is read from the environment once, is sent to its provider and to nobody else, and has
//! no form that could be printed.

use std::collections::BTreeMap;
use std::fmt;

use super::settings::ProviderSettings;

/// The protocol a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The Messages API of Anthropic.
    Anthropic,
    /// Chat Completions, as OpenAI and most others have it.
    OpenAi,
    /// `streamGenerateContent` of Google.
    Gemini,
}

impl Dialect {
    /// The dialect of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "anthropic" => Some(Dialect::Anthropic),
            "openai" => Some(Dialect::OpenAi),
            "gemini" => Some(Dialect::Gemini),
            _ => None,
        }
    }
}

/// A secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The key in this text, if there is one.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Key(text.to_owned()))
    }

    /// For the header of a request, and for finding it in texts it must not be in.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// What stands between a provider and its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is sent this key.
    Key(Key),
    /// It wants none.
    Open,
    /// It wants one that is in none of these variables.
    Missing(Vec<String>),
}

/// One provider.
#[derive(Debug, Clone)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) dialect: Dialect,
    /// Ends with a slash.
    pub(crate) base_url: String,
    pub(crate) access: Access,
    /// The user's own machine or choice: what it offers is known from asking only.
    pub(crate) local: bool,
}

impl Provider {
    /// Its key, if it has one.
    pub(crate) fn key(&self) -> Option<&Key> {
        match &self.access {
            Access::Key(key) => Some(key),
            Access::Open | Access::Missing(_) => None,
        }
    }
}

/// Variables of the environment by name.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Name, dialect, address, variables that may hold the key.
type BuiltIn = (&'static str, Dialect, &'static str, &'static [&'static str]);

const HOSTED: &[BuiltIn] = &[
    ("anthropic", Dialect::Anthropic, "https://api.anthropic.com/v1", &["ANTHROPIC_API_KEY"]),
    ("openai", Dialect::OpenAi, "https://api.openai.com/v1", &["OPENAI_API_KEY"]),
    ("gemini", Dialect::Gemini, GEMINI, &["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
    ("google", Dialect::Gemini, GEMINI, &["GOOGLE_API_KEY", "GEMINI_API_KEY"]),
    ("openrouter", Dialect::OpenAi, "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"]),
    ("groq", Dialect::OpenAi, "https://api.groq.com/openai/v1", &["GROQ_API_KEY"]),
    ("cerebras", Dialect::OpenAi, "https://api.cerebras.ai/v1", &["CEREBRAS_API_KEY"]),
    ("nvidia", Dialect::OpenAi, "https://integrate.api.nvidia.com/v1", &["NVIDIA_API_KEY"]),
    ("sambanova", Dialect::OpenAi, "https://api.sambanova.ai/v1", &["SAMBANOVA_API_KEY"]),
    (
        "deepinfra",
        Dialect::OpenAi,
        "https://api.deepinfra.com/v1/openai",
        &["DEEPINFRA_API_KEY", "DEEPINFRA_TOKEN"],
    ),
    (
        "huggingface",
        Dialect::OpenAi,
        "https://router.huggingface.co/v1",
        &["HUGGINGFACE_API_KEY", "HF_TOKEN"],
    ),
    ("fireworks", Dialect::OpenAi, "https://api.fireworks.ai/inference/v1", &["FIREWORKS_API_KEY"]),
    ("hyperbolic", Dialect::OpenAi, "https://api.hyperbolic.xyz/v1", &["HYPERBOLIC_API_KEY"]),
    ("scaleway", Dialect::OpenAi, "https://api.scaleway.ai/v1", &["SCALEWAY_API_KEY"]),
    ("siliconflow", Dialect::OpenAi, "https://api.siliconflow.cn/v1", &["SILICONFLOW_API_KEY"]),
    ("together", Dialect::OpenAi, "https://api.together.xyz/v1", &["TOGETHER_API_KEY"]),
    ("chutes", Dialect::OpenAi, "https://llm.chutes.ai/v1", &["CHUTES_API_KEY"]),
    ("codestral", Dialect::OpenAi, "https://api.mistral.ai/v1", &["CODESTRAL_API_KEY", "MISTRAL_API_KEY"]),
    ("deepseek", Dialect::OpenAi, "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"]),
    ("xai", Dialect::OpenAi, "https://api.x.ai/v1", &["XAI_API_KEY"]),
    ("kimi", Dialect::OpenAi, "https://api.moonshot.ai/v1", &["MOONSHOT_API_KEY", "KIMI_API_KEY"]),
    ("perplexity", Dialect::OpenAi, "https://api.perplexity.ai", &["PERPLEXITY_API_KEY", "PPLX_API_KEY"]),
    (
        "ovhcloud",
        Dialect::OpenAi,
        "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1",
        &["OVH_AI_ENDPOINTS_ACCESS_TOKEN"],
    ),
];
const GEMINI: &str = "https://generativelanguage.googleapis.com/v1beta";
/// Where Ollama listens, and with it most who say `local`.
const LOCAL: &str = "http://localhost:11434/v1";
/// Variables that move a provider, as other programs know them.
const MOVED_BY: &[(&str, &str)] = &[
    ("anthropic", "ANTHROPIC_BASE_URL"),
    ("anthropic", "SYNAPS_ANTHROPIC_BASE_URL"),
    ("openai", "OPENAI_BASE_URL"),
    ("local", "LOCAL_ENDPOINT"),
];

/// All providers by name: the built-in ones, and what configuration makes of them and adds.
pub(crate) fn all(
    settings: &BTreeMap<String, ProviderSettings>,
    environment: Environment<'_>,
) -> BTreeMap<String, Provider> {
    let mut providers = BTreeMap::new();
    let mut add = |name: &str, dialect: Dialect, base_url: &str, access: Access, local: bool| {
        let base_url = with_slash(base_url);
        providers
            .insert(name.to_owned(), Provider { name: name.to_owned(), dialect, base_url, access, local });
    };
    for (name, dialect, base_url, variables) in HOSTED {
        let moved = moved(name, environment).unwrap_or_else(|| (*base_url).to_owned());
        // Anthropic's own variable has no version in it; the address of ours has.
        let moved = if *dialect == Dialect::Anthropic { versioned(&moved) } else { moved };
        add(name, *dialect, &moved, wanted(variables, environment), false);
    }
    for name in ["local", "ollama"] {
        let moved = moved(name, environment).unwrap_or_else(|| LOCAL.to_owned());
        let key = (name == "local").then(|| environment("LOCAL_API_KEY")).flatten();
        let access = key.as_deref().and_then(Key::new).map_or(Access::Open, Access::Key);
        add(name, Dialect::OpenAi, &moved, access, true);
    }
    for (name, settings) in settings {
        let known = providers.get(name);
        let Some(base_url) = settings.base_url.clone().or_else(|| known.map(|known| known.base_url.clone()))
        else {
            continue;
        };
        let access = match &settings.key_env {
            Some(variable) => wanted(&[variable], environment),
            None => known.map_or(Access::Open, |known| known.access.clone()),
        };
        // A variable of the environment wins over a file.
        let access = match (access, &settings.key) {
            (Access::Missing(_) | Access::Open, Some(key)) => Access::Key(key.clone()),
            (access, _) => access,
        };
        let dialect = settings.dialect.or(known.map(|known| known.dialect)).unwrap_or(Dialect::OpenAi);
        let provider = Provider {
            name: name.clone(),
            dialect,
            base_url: with_slash(&base_url),
            access,
            local: known.is_none_or(|known| known.local),
        };
        providers.insert(name.clone(), provider);
    }
    providers
}

/// Every variable that may hold the key of a provider.
pub(crate) fn key_variables(settings: &BTreeMap<String, ProviderSettings>) -> Vec<String> {
    let known = HOSTED.iter().flat_map(|(.., variables)| *variables).chain(&["LOCAL_API_KEY"]);
    let set = settings.values().filter_map(|settings| settings.key_env.clone());
    known.map(|name| (*name).to_owned()).chain(set).collect()
}

fn moved(name: &str, environment: Environment<'_>) -> Option<String> {
    let variables = MOVED_BY.iter().filter(|(moved, _)| *moved == name);
    variables.filter_map(|(_, variable)| environment(variable)).find(|url| !url.trim().is_empty())
}

fn wanted(variables: &[impl AsRef<str>], environment: Environment<'_>) -> Access {
    let key = variables.iter().find_map(|variable| Key::new(&environment(variable.as_ref())?));
    let missing = || Access::Missing(variables.iter().map(|variable| variable.as_ref().to_owned()).collect());
    key.map_or_else(missing, Access::Key)
}

fn with_slash(url: &str) -> String {
    format!("{}/", url.trim().trim_end_matches('/'))
}

fn versioned(url: &str) -> String {
    let url = url.trim().trim_end_matches('/');
    if url.ends_with("/v1") { url.to_owned() } else { format!("{url}/v1") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn providers(
        settings: &[(&str, ProviderSettings)],
        variables: &[(&str, &str)],
    ) -> BTreeMap<String, Provider> {
        let settings =
            settings.iter().map(|(name, settings)| ((*name).to_owned(), settings.clone())).collect();
        let find = |wanted: &str| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
        };
        all(&settings, &find)
    }

    #[test]
    fn a_key_comes_from_the_first_variable_that_holds_one() {
        let found = providers(
            &[],
            &[("GEMINI_API_KEY", " \n"), ("GOOGLE_API_KEY", "k1\n"), ("OPENAI_API_KEY", "k2")],
        );
        assert_eq!(found["gemini"].key().unwrap().expose(), "k1");
        assert_eq!(found["openai"].key().unwrap().expose(), "k2");
        assert_eq!(found["anthropic"].access, Access::Missing(vec!["ANTHROPIC_API_KEY".into()]));
        assert_eq!(found["local"].access, Access::Open);
    }

    #[test]
    fn a_key_cannot_be_printed() {
        let found = providers(&[], &[("OPENAI_API_KEY", "sk-very-secret")]);
        assert!(!format!("{:?}", found["openai"]).contains("very-secret"));
    }

    #[test]
    fn variables_and_settings_move_providers_and_settings_win() {
        let moved = ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
        assert_eq!(providers(&[], &[moved])["anthropic"].base_url, "http://127.0.0.1:1/v1/");
        let local = [("LOCAL_ENDPOINT", "http://box:8080/v1/"), ("LOCAL_API_KEY", "k")];
        let found = providers(&[], &local);
        assert_eq!(found["local"].base_url, "http://box:8080/v1/");
        assert_eq!(found["local"].key().unwrap().expose(), "k");
        let elsewhere =
            ProviderSettings { base_url: Some("http://proxy/anthropic".into()), ..Default::default() };
        let found = providers(&[("anthropic", elsewhere)], &[moved]);
        assert_eq!(found["anthropic"].base_url, "http://proxy/anthropic/");
        assert_eq!(found["anthropic"].dialect, Dialect::Anthropic);
    }

    #[test]
    fn a_provider_of_ones_own_needs_an_address_and_may_need_a_key() {
        let mine = ProviderSettings {
            base_url: Some("http://box/v1".into()),
            key_env: Some("MINE".into()),
            ..Default::default()
        };
        let nowhere = ProviderSettings { key_env: Some("MINE".into()), ..Default::default() };
        let found = providers(&[("mine", mine), ("nowhere", nowhere)], &[]);
        assert_eq!(found["mine"].access, Access::Missing(vec!["MINE".into()]));
        assert_eq!((found["mine"].dialect, found["mine"].local), (Dialect::OpenAi, true));
        assert!(!found.contains_key("nowhere"));
    }
}
