//! The program that was there before: where it keeps its settings, and what they mean in our words.
//!
//! Whoever comes from it finds model, limits, keys and system prompt where they were. Its folder is `$SYNAPS_BASE_DIR` or
//! `~/.synaps-cli`; a profile is a folder in it, and of a profile's file and the common one only the profile's is read.
//! Ours always wins. Keys are handed to the agent and are shown nowhere. What cannot be understood is passed over.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Its folder.
pub(crate) fn base(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("SYNAPS_BASE_DIR").or_else(|| Some(set("HOME")?.join(".synaps-cli")))
}

/// The file of this name, of the profile if it has one.
pub(crate) fn file(base: &Path, profile: Option<&str>, name: &str) -> PathBuf {
    let of_profile = profile.map(|profile| base.join(profile).join(name));
    of_profile.filter(|file| file.is_file()).unwrap_or_else(|| base.join(name))
}

/// What its file of settings says.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) path: PathBuf,
    /// Our keys, and values as text.
    pub(crate) values: Vec<(String, String)>,
    /// Keys by provider.
    pub(crate) keys: BTreeMap<String, String>,
}

impl Settings {
    /// Those of this environment and profile.
    pub(crate) fn read(profile: Option<&str>) -> Self {
        let variable = |name: &str| std::env::var_os(name);
        let Some(base) = base(variable) else { return Settings::default() };
        let path = file(&base, profile, "config");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let mut settings = parse(&text);
        if variable("LOCAL_ENDPOINT").is_some() {
            // The environment wins over files.
            settings.values.retain(|(key, _)| key != "providers.local.base_url");
        }
        Settings { path, ..settings }
    }
}

fn parse(text: &str) -> Settings {
    let mut theirs = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some((key, value)) = line.split_once('=') {
            let value = value.trim().trim_matches(['"', '\'']);
            if !value.is_empty() {
                theirs.insert(key.trim(), value);
            }
        }
    }
    let mut settings = Settings::default();
    let mut say = |key: &str, value: String| settings.values.push((key.to_owned(), value));
    let number = |key: &str| theirs.get(key)?.parse::<u64>().ok().filter(|number| *number > 0);
    for (key, ours) in [
        ("model", "agent.model"),
        ("compaction_model", "agent.compaction_model"),
        ("disabled_tools", "agent.disabled_tools"),
    ] {
        if let Some(value) = theirs.get(key) {
            say(ours, (*value).to_owned());
        }
    }
    let thinking = match theirs.get("thinking").copied() {
        Some("none" | "off" | "0") => Some("off"),
        Some(level @ ("low" | "medium" | "high")) => Some(level),
        Some("xhigh" | "max") => Some("high"),
        _ => None,
    };
    if let Some(level) = thinking {
        say("agent.thinking", level.to_owned());
    }
    if let Some(chars) = number("max_tool_output") {
        say("agent.max_tool_output", chars.max(1000).to_string());
    }
    if let Some(seconds) = number("bash_timeout") {
        say("agent.bash_timeout_s", seconds.to_string());
    }
    let usual = number("bash_timeout");
    if let Some(seconds) = number("bash_max_timeout").max(usual.filter(|usual| *usual > 300)) {
        // Ours is never below the usual time, which is 30 s where nobody says otherwise.
        say("agent.bash_max_timeout_s", seconds.max(usual.unwrap_or(30)).to_string());
    }
    if let Some(seconds) = number("subagent_timeout") {
        say("agent.subagent_timeout_s", seconds.to_string());
    }
    if let Some(retries) = theirs.get("api_retries").and_then(|count| count.parse::<u32>().ok()) {
        say("model.retries", retries.to_string());
    }
    if let (Some(model), Some(tokens)) = (theirs.get("model"), number("context_window")) {
        say(&format!("models.{model:?}.context_window"), tokens.to_string());
    }
    if let Some(url) = theirs.get("provider.local.url").filter(|url| url.starts_with("http")) {
        say("providers.local.base_url", (*url).to_owned());
    }
    for (key, value) in &theirs {
        if let Some(provider) = key.strip_prefix("provider.").filter(|provider| !provider.contains('.')) {
            settings.keys.insert(provider.to_owned(), (*value).to_owned());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use swb_daemon::config::Layers;

    #[test]
    fn its_settings_are_said_in_our_words() {
        let text = "# comment\nmodel = groq/llama\nthinking = xhigh\nbash_timeout = 400\napi_retries = 0\n\
                    context_window = 8000\nmax_tool_output = 5\nprovider.groq = \"k1\"\nprovider.local.url = http://box/v1\n\
                    telemetry = off\nnonsense\nsubagent_timeout = soon\n";
        let settings = parse(text);
        assert_eq!(settings.keys, BTreeMap::from([("groq".to_owned(), "k1".to_owned())]));
        let layers = Layers::default().foreign(Path::new("/x"), settings.values);
        assert!(layers.warnings().is_empty(), "{:?}", layers.warnings());
        let config = layers.finish().unwrap();
        assert_eq!((config.agent.model.as_str(), config.agent.thinking.as_str()), ("groq/llama", "high"));
        assert_eq!((config.agent.bash_timeout_s, config.agent.bash_max_timeout_s), (400, 400));
        assert_eq!((config.agent.max_tool_output, config.agent.subagent_timeout_s), (1000, 600));
        assert_eq!(config.model.retries, 0);
        assert_eq!(config.models["groq/llama"].context_window, Some(8000));
        assert_eq!(config.providers["local"].base_url.as_deref(), Some("http://box/v1"));
    }

    #[test]
    fn whatever_stands_there_makes_no_settings_that_cannot_be_used() {
        for text in [
            "bash_max_timeout = 1",
            "bash_timeout = 99999999999999999999",
            "model =",
            "thinking = a lot",
            "= x",
            "provider.local.url = ftp://x",
            "provider. = k",
            "api_retries = -1",
            "context_window = 5",
        ] {
            let layers = Layers::default().foreign(Path::new("/x"), parse(text).values);
            layers.finish().unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }

    #[test]
    fn its_folder_is_where_the_environment_says() {
        let base = |name: &str, value: &str| {
            base(|asked| (asked == name).then(|| OsString::from(value)))
                .map(|base| base.display().to_string())
        };
        assert_eq!(base("SYNAPS_BASE_DIR", "/s").as_deref(), Some("/s"));
        assert_eq!(base("HOME", "/h").as_deref(), Some("/h/.synaps-cli"));
        assert_eq!(base("SYNAPS_BASE_DIR", ""), None);
    }
}
