//! The layers, the later over the earlier.
//!
//! What is built in is spelled out only once somebody sets or asks for something: most daemons run with nothing set, and
//! the code that turns a configuration into a table and back would stay in their memory for good.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;
use toml::{Table, Value};

use super::mcp::Servers;
use super::setting::{ConfigError, Origin, Problem, Setting, Warning};
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
mod tests;
