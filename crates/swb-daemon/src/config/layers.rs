//! The layers, and where each value came from.
//!
//! What is built in is spelled out only once somebody sets or asks for something: most daemons run with nothing set, and
//! the code that turns a configuration into a table and back would stay in their memory for good.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::mcp::Servers;
use super::{Config, agent, key, models};

/// Variables of the environment that are no settings.
const NOT_SETTINGS: &[&str] = &[
    "SWB_HOME",
    "SWB_MODEL",
    "SWB_CONTROL_SOCKET",
    "SWB_SESSION_ID",
    "SWB_CORRELATION_ID",
    "SWB_ASK_TIMEOUT_MS",
    "SWB_SUBAGENTS",
];

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// It is built in.
    Default,
    /// The user's or the project's file.
    File {
        /// Which.
        path: PathBuf,
    },
    /// The environment.
    Env {
        /// Which variable.
        name: String,
    },
    /// The command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path } => path.display().fmt(f),
            Origin::Env { name } => f.write_str(name),
            Origin::Flag => f.write_str("command line"),
        }
    }
}

/// One value in force.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// Its dotted key.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

/// A key that is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Its dotted key.
    pub key: String,
    /// Where it stands.
    pub origin: Origin,
    /// Why it is ignored.
    pub problem: Problem,
}

/// Why a key is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// It means nothing.
    Unknown,
    /// A project's file has no right to say it.
    NotForProjects,
    /// Its value, in the file of another program, is none that we could use.
    Unfit,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            Problem::Unknown => write!(f, "unknown setting {} in {}; it is ignored", self.key, self.origin),
            Problem::NotForProjects => write!(
                f,
                "setting {} in {} is ignored: a project must not say where keys are sent or what agents may do; \
                 set it in your own file",
                self.key, self.origin
            ),
            Problem::Unfit => {
                write!(f, "setting {} in {} cannot be used; it is ignored", self.key, self.origin)
            }
        }
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
    /// A file is not TOML.
    #[error("{} is not valid TOML: {source}", path.display())]
    Syntax {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<toml::de::Error>,
    },
    /// A value does not fit its key.
    #[error("{key} in {origin}: {problem}")]
    Value {
        /// Which key.
        key: String,
        /// Where it stands.
        origin: Origin,
        /// What is wrong with it.
        problem: String,
    },
    /// A flag is not `key=value`.
    #[error("{0:?} is not of the form key=value")]
    Flag(String),
}

/// Who wrote a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    User,
    Project,
    /// A project whose file the user has trusted as it is: what it names may be run.
    TrustedProject,
}

/// What is built in, by dotted key.
static BUILT_IN: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let mut values = BTreeMap::new();
    let table = Table::try_from(Config::default()).unwrap_or_default();
    flatten(&table, &[], &mut |key, value| {
        values.insert(key, value.clone());
    });
    values
});

/// Settings as they pile up, layer by layer.
#[derive(Debug, Default)]
pub struct Layers {
    /// What somebody said, by dotted key.
    said: BTreeMap<String, (Value, Origin)>,
    servers: Servers,
    warnings: Vec<Warning>,
}

impl Layers {
    /// Adds a file. One that does not exist says nothing.
    pub fn file(self, path: &Path) -> Result<Self, ConfigError> {
        self.read(path, |_| Trust::User)
    }

    /// Adds a project's file. Whoever wrote it is not the one whose keys are used, so it cannot say where they go; and what
    /// it would have run is run only if the user has trusted these very bytes.
    pub fn project_file(
        self,
        path: &Path,
        is_trusted: impl FnOnce(&[u8]) -> bool,
    ) -> Result<Self, ConfigError> {
        self.read(path, |bytes| if is_trusted(bytes) { Trust::TrustedProject } else { Trust::Project })
    }

    fn read(mut self, path: &Path, whose: impl FnOnce(&[u8]) -> Trust) -> Result<Self, ConfigError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(self),
            Err(source) => return Err(ConfigError::Read { path: path.to_owned(), source }),
        };
        let trust = whose(text.as_bytes());
        let mut table: Table = text
            .parse()
            .map_err(|source| ConfigError::Syntax { path: path.to_owned(), source: Box::new(source) })?;
        let origin = Origin::File { path: path.to_owned() };
        if let Some(servers) = table.remove("mcp") {
            self.servers.take(servers, &origin, trust, &mut self.warnings)?;
        }
        let mut found = Vec::new();
        flatten(&table, &[], &mut |key, value| found.push((key, value.clone())));
        for (key, value) in found {
            let forbidden = key.starts_with("providers.") || agent::is_the_users_alone(&key);
            if trust == Trust::User || !forbidden {
                self.set(key, value, origin.clone())?;
            } else {
                let problem = Problem::NotForProjects;
                self.warnings.push(Warning { key, origin: origin.clone(), problem });
            }
        }
        Ok(self)
    }

    /// Adds what the file of another program says, in our words. A value that does not fit is reported and passed over:
    /// that file was not written for us.
    pub fn foreign(mut self, path: &Path, values: Vec<(String, String)>) -> Self {
        let origin = Origin::File { path: path.to_owned() };
        for (key, text) in values {
            if self.set_text(&key, &text, origin.clone()).is_err() {
                self.warnings.push(Warning { key, origin: origin.clone(), problem: Problem::Unfit });
            }
        }
        self
    }

    /// Adds the variables `SWB_<KEY>`, e.g. `SWB_LOG_LEVEL` for `log.level`.
    pub fn env(mut self, variables: impl Iterator<Item = (String, String)>) -> Result<Self, ConfigError> {
        let is_setting = |name: &str| name.starts_with("SWB_") && !NOT_SETTINGS.contains(&name);
        let mut variables = variables.filter(|(name, _)| is_setting(name)).peekable();
        if variables.peek().is_none() {
            return Ok(self);
        }
        let by_name: BTreeMap<String, String> =
            self.said.keys().chain(BUILT_IN.keys()).map(|key| (env_name(key), key.clone())).collect();
        for (name, text) in variables {
            let origin = Origin::Env { name: name.clone() };
            match by_name.get(&name) {
                Some(key) => self.set_text(key, &text, origin)?,
                None => self.warnings.push(Warning { key: name, origin, problem: Problem::Unknown }),
            }
        }
        Ok(self)
    }

    /// Adds `key=value` from the command line. Here an unknown key is an error: the one who typed it is still there.
    pub fn flags(mut self, flags: &[String]) -> Result<Self, ConfigError> {
        for flag in flags {
            let (key, text) = flag.split_once('=').ok_or_else(|| ConfigError::Flag(flag.clone()))?;
            if self.known(key).is_none() {
                let problem = "there is no such setting; `swb config` lists them".to_owned();
                return Err(ConfigError::Value { key: key.to_owned(), origin: Origin::Flag, problem });
            }
            self.set_text(key, text, Origin::Flag)?;
        }
        Ok(self)
    }

    /// The settings in force.
    pub fn finish(&self) -> Result<Config, ConfigError> {
        let mut config = if self.said.is_empty() { Config::default() } else { self.spelled_out()? };
        config.check().map_err(|(key, problem)| ConfigError::Value {
            origin: self.said.get(&key).map_or(Origin::Default, |(_, origin)| origin.clone()),
            key,
            problem,
        })?;
        config.mcp = self.servers.in_force();
        Ok(config)
    }

    /// What was said over what is built in.
    fn spelled_out(&self) -> Result<Config, ConfigError> {
        let mut table = Table::new();
        let said = self.said.iter().map(|(key, (value, _))| (key, value));
        for (key, value) in BUILT_IN.iter().chain(said) {
            insert(&mut table, &key::split(key), value.clone());
        }
        Config::deserialize(Value::Table(table)).map_err(|error| ConfigError::Value {
            key: "configuration".to_owned(),
            origin: Origin::Default,
            problem: error.to_string(),
        })
    }

    /// MCP servers that a project names and that are not started, with the place they are named in.
    pub fn inert_servers(&self) -> &BTreeMap<String, Origin> {
        self.servers.inert()
    }

    /// Every value with its origin, by key.
    pub fn settings(&self) -> Vec<Setting> {
        let built_in = BUILT_IN.iter().map(|(key, value)| (key, (value, &Origin::Default)));
        let said = self.said.iter().map(|(key, (value, origin))| (key, (value, origin)));
        let in_force: BTreeMap<&String, (&Value, &Origin)> = built_in.chain(said).collect();
        let setting = |(key, (value, origin)): (&String, (&Value, &Origin))| Setting {
            key: key.clone(),
            value: value.clone(),
            origin: origin.clone(),
        };
        in_force.into_iter().map(setting).chain(self.servers.settings()).collect()
    }

    /// Keys that mean nothing.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn set(&mut self, key: String, value: Value, origin: Origin) -> Result<(), ConfigError> {
        let Some(known) = self.known(&key) else {
            self.warnings.push(Warning { key, origin, problem: Problem::Unknown });
            return Ok(());
        };
        let value = match value {
            #[expect(clippy::cast_precision_loss, reason = "nobody asks a price of 2^52 dollars")]
            Value::Integer(whole) if known.is_float() => Value::Float(whole as f64),
            value => value,
        };
        let negative = value.as_integer().is_some_and(|number| number < 0)
            || value.as_float().is_some_and(|number| number < 0.0 || !number.is_finite());
        if known.same_type(&value) && !negative {
            self.said.insert(key, (value, origin));
            return Ok(());
        }
        let expected = match known {
            Value::Integer(_) => "a whole number, not negative",
            Value::Float(_) => "a number, not negative",
            ref other => other.type_str(),
        };
        let problem = format!("expected {expected}, found {value}");
        Err(ConfigError::Value { key, origin, problem })
    }

    /// A value of the type that the key has; `None` if there is no such key.
    fn known(&self, key: &str) -> Option<Value> {
        if let Some(value) = self.said.get(key).map(|(value, _)| value).or_else(|| BUILT_IN.get(key)) {
            return Some(value.clone());
        }
        match key::split(key).as_slice() {
            [table, _name, setting] => models::sample(table, setting),
            _ => None,
        }
    }

    /// Sets a known key from text, read as the type that the key has.
    fn set_text(&mut self, key: &str, text: &str, origin: Origin) -> Result<(), ConfigError> {
        let value = match self.known(key) {
            Some(Value::Float(_)) => text.parse().map(Value::Float).ok(),
            Some(Value::Integer(_)) => text.parse().map(Value::Integer).ok(),
            Some(Value::Boolean(_)) => text.parse().map(Value::Boolean).ok(),
            _ => None,
        };
        self.set(key.to_owned(), value.unwrap_or_else(|| Value::String(text.to_owned())), origin)
    }
}

fn env_name(key: &str) -> String {
    format!("SWB_{}", key.replace('.', "_").to_uppercase())
}

/// Calls `each` for every value that is not a table, with its dotted key.
fn flatten(table: &Table, prefix: &[&str], each: &mut impl FnMut(String, &Value)) {
    for (name, value) in table {
        let parts = [prefix, &[name.as_str()]].concat();
        match value {
            Value::Table(inner) => flatten(inner, &parts, each),
            value => each(key::join(&parts), value),
        }
    }
}

fn insert(table: &mut Table, parts: &[String], value: Value) {
    match parts {
        [] => {}
        [last] => {
            table.insert(last.clone(), value);
        }
        [first, rest @ ..] => {
            let inner = table.entry(first.clone()).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_file(text: &str) -> Result<Layers, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        Layers::default().file(&path)
    }

    fn env(pairs: &[(&str, &str)]) -> std::vec::IntoIter<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<Vec<_>>()
            .into_iter()
    }

    #[test]
    fn the_later_layer_wins_and_each_value_knows_its_origin() {
        let layers = with_file("[log]\nlevel = \"warn\"\nkeep = 2\n").unwrap();
        let layers =
            layers.env(env(&[("SWB_LOG_LEVEL", "debug"), ("SWB_HOME", "/x"), ("PATH", "/bin")])).unwrap();
        let layers = layers.flags(&["bus.max_in_flight=7".to_owned()]).unwrap();
        let config = layers.finish().unwrap();
        assert_eq!((config.log.level.as_str(), config.log.keep, config.bus.max_in_flight), ("debug", 2, 7));
        let origin =
            |key: &str| layers.settings().into_iter().find(|setting| setting.key == key).unwrap().origin;
        assert_eq!(origin("log.level"), Origin::Env { name: "SWB_LOG_LEVEL".into() });
        assert!(matches!(origin("log.keep"), Origin::File { .. }));
        assert_eq!(origin("bus.max_in_flight"), Origin::Flag);
        assert_eq!(origin("cli.color"), Origin::Default);
        assert!(layers.warnings().is_empty(), "{:?}", layers.warnings());
    }

    #[test]
    fn nothing_said_is_what_spelling_everything_out_gives() {
        let layers = Layers::default().env(env(&[("SWB_HOME", "/x"), ("PATH", "/bin")])).unwrap();
        assert_eq!(layers.finish().unwrap(), layers.spelled_out().unwrap());
        let settings = layers.settings();
        assert!(settings.len() > 20 && settings.iter().all(|setting| setting.origin == Origin::Default));
        assert!(settings.is_sorted_by(|one, next| one.key < next.key));
    }

    #[test]
    fn unknown_keys_are_reported_by_their_path_and_ignored() {
        let layers = with_file("colour = 1\n[log]\nlevle = \"warn\"\n[future.part]\nx = 1\n").unwrap();
        let layers = layers.env(env(&[("SWB_LOG_LEVLE", "x")])).unwrap();
        let keys: Vec<_> = layers.warnings().iter().map(|warning| warning.key.as_str()).collect();
        assert_eq!(keys, ["colour", "future.part.x", "log.levle", "SWB_LOG_LEVLE"]);
        assert_eq!(layers.finish().unwrap(), Config::default());
    }

    #[test]
    fn a_wrong_value_names_its_key_and_its_place() {
        for (text, key) in [
            ("[log]\nkeep = \"two\"", "log.keep"),
            ("[bus]\nreplay_bytes = -1", "bus.replay_bytes"),
            ("log = 3", ""),
        ] {
            match with_file(text) {
                Err(ConfigError::Value { key: found, origin: Origin::File { .. }, .. }) => {
                    assert_eq!(found, key);
                }
                Err(other) => panic!("{other}"),
                Ok(layers) => assert_eq!(
                    layers.warnings()[0].key,
                    "log",
                    "a scalar in the place of a table means nothing"
                ),
            }
        }
        assert!(matches!(with_file("[log\n"), Err(ConfigError::Syntax { .. })));
        let level = with_file("[log]\nlevel = \"loud\"").unwrap().finish().unwrap_err().to_string();
        assert!(level.contains("log.level") && level.contains("config.toml"), "{level}");
        assert!(
            Layers::default()
                .env(env(&[("SWB_LOG_KEEP", "many")]))
                .unwrap_err()
                .to_string()
                .contains("SWB_LOG_KEEP")
        );
        assert!(Layers::default().flags(&["nonsense".to_owned()]).is_err());
        assert!(Layers::default().flags(&["no.such=1".to_owned()]).is_err());
    }

    #[test]
    fn entries_of_ones_own_are_read_and_what_they_cannot_have_is_reported() {
        let layers = with_file(
            "[providers.mine]\nbase_url = \"http://box/v1\"\nbase_ulr = \"x\"\n\
             [models.\"mine/qwen2.5\"]\ncontext_window = 32768\ninput_price = 3\nprice = 1\n",
        )
        .unwrap();
        let layers = layers.flags(&["models.\"mine/qwen2.5\".output_price=1.5".to_owned()]).unwrap();
        let keys: Vec<_> = layers.warnings().iter().map(|warning| warning.key.as_str()).collect();
        assert_eq!(keys, ["models.\"mine/qwen2.5\".price", "providers.mine.base_ulr"]);
        let config = layers.finish().unwrap();
        assert_eq!(config.providers["mine"].base_url.as_deref(), Some("http://box/v1"));
        let model = &config.models["mine/qwen2.5"];
        assert_eq!(
            (model.context_window, model.input_price, model.output_price),
            (Some(32768), Some(3.0), Some(1.5))
        );
        for (text, part) in [
            ("[models.m]\ninput_price = -1", "not negative"),
            ("[models.m]\ninput_price = nan", "not negative"),
            ("[models.m]\nimages = 1", "boolean"),
            ("[providers.p]\ndialect = \"french\"", "gemini"),
            ("[providers.p]\nbase_url = \"box\"", "http://"),
            ("[providers.p]\nkey_env = \"sk-123-456\"", "not a key"),
        ] {
            let error = with_file(text).and_then(|layers| layers.finish()).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("sk-123"), "{text}: {error}");
        }
    }

    #[test]
    fn a_project_cannot_say_where_keys_are_sent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, "[providers.anthropic]\nbase_url = \"http://evil/v1\"\n[log]\nkeep = 3\n")
            .unwrap();
        let layers = Layers::default().project_file(&path, |_| true).unwrap();
        let config = layers.finish().unwrap();
        assert!(config.providers.is_empty());
        assert_eq!(config.log.keep, 3);
        assert_eq!(layers.warnings()[0].problem, Problem::NotForProjects);
        assert!(layers.warnings()[0].to_string().contains("providers.anthropic.base_url"));
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_taken_or_refused_without_a_panic(text in "(\\[(log|bus|x)\\]\n)?([a-z.]{1,12} ?= ?(-?[0-9]{1,22}|\"[a-z]{0,5}\"|true|\\[\\])\n){0,6}\\PC{0,20}") {
            if let Ok(layers) = with_file(&text) {
                let _ = layers.finish();
            }
        }
    }

    #[test]
    fn a_missing_file_says_nothing() {
        assert_eq!(
            Layers::default().file(Path::new("/nowhere/config.toml")).unwrap().finish().unwrap(),
            Config::default()
        );
    }
}
