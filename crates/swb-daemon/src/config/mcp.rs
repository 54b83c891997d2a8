//! MCP servers: tables of their own under `mcp`, each taken or refused as a whole.
//!
//! A server is not put together from several files: the later table replaces the earlier one. A project's table replaces
//! nothing, and starts nothing before the user has trusted the file. It names a program to run, and whoever can write into
//! the project is not the user; such servers are only remembered, so that it can be said why they are not there.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::layers::Trust;
use super::setting::{ConfigError, Origin, Problem, Setting, Warning};

/// One MCP server: a program that is started, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpServerConfig {
    /// Whether it is used.
    pub enabled: bool,
    /// The program to start; it speaks over its standard input and output. `${NAME}` in this and the values below is
    /// taken from the environment.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables of its environment, beside the harmless ones that it inherits.
    pub env: BTreeMap<String, String>,
    /// The folder it runs in; the agent's if not given.
    pub cwd: String,
    /// The address of a server that speaks streamable HTTP, instead of a program.
    pub url: String,
    /// Headers that go with every request.
    pub headers: BTreeMap<String, String>,
    /// Tools that may be called without asking, by the server's own names; `*` for all.
    pub allow: Vec<String>,
    /// Tools that are not offered at all, by the server's own names.
    pub hide: Vec<String>,
    /// How long it may take to start, in seconds.
    pub start_timeout_s: u64,
    /// How long a call may go without an answer or a sign of progress, in seconds.
    pub call_timeout_s: u64,
}

impl Default for McpServerConfig {
    fn default() -> Self {
        McpServerConfig {
            enabled: true,
            command: String::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: String::new(),
            url: String::new(),
            headers: BTreeMap::new(),
            allow: Vec::new(),
            hide: Vec::new(),
            start_timeout_s: 30,
            call_timeout_s: 60,
        }
    }
}

impl McpServerConfig {
    fn check(&self) -> Result<(), &'static str> {
        match (self.command.is_empty(), self.url.is_empty()) {
            (true, true) => Err("it needs a `command` or a `url`"),
            (false, false) => Err("it has a `command` and a `url`; only one can be meant"),
            _ if self.start_timeout_s == 0 || self.call_timeout_s == 0 => {
                Err("a time limit must be at least 1")
            }
            _ => Ok(()),
        }
    }
}

/// The servers of all layers.
#[derive(Debug, Default)]
pub(super) struct Servers {
    in_force: BTreeMap<String, (McpServerConfig, Origin)>,
    inert: BTreeMap<String, Origin>,
}

impl Servers {
    /// Takes the tables under `mcp` of one file.
    pub(super) fn take(
        &mut self,
        value: Value,
        origin: &Origin,
        trust: Trust,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), ConfigError> {
        let Value::Table(servers) = value else {
            return Err(wrong("mcp".to_owned(), origin, "expected tables, as in [mcp.NAME]"));
        };
        for (name, value) in servers {
            let key = format!("mcp.{name}");
            let Value::Table(table) = value else {
                return Err(wrong(key, origin, "expected a table with `command` or `url`"));
            };
            let known = known_keys();
            let unknown = table.keys().filter(|field| !known.contains_key(*field));
            warnings.extend(unknown.map(|field| Warning {
                key: format!("{key}.{field}"),
                origin: origin.clone(),
                problem: Problem::Unknown,
            }));
            let config = McpServerConfig::deserialize(Value::Table(table))
                .map_err(|error| wrong(key.clone(), origin, error.message()))?;
            config.check().map_err(|problem| wrong(key, origin, problem))?;
            match trust {
                Trust::User => drop(self.in_force.insert(name, (config, origin.clone()))),
                // Also a trusted project does not change a server of the user's.
                Trust::TrustedProject if !self.in_force.contains_key(&name) => {
                    self.in_force.insert(name, (config, origin.clone()));
                }
                Trust::Project | Trust::TrustedProject => drop(self.inert.insert(name, origin.clone())),
            }
        }
        Ok(())
    }

    pub(super) fn in_force(&self) -> BTreeMap<String, McpServerConfig> {
        self.in_force.iter().map(|(name, (config, _))| (name.clone(), config.clone())).collect()
    }

    pub(super) fn inert(&self) -> &BTreeMap<String, Origin> {
        &self.inert
    }

    /// What stands in the tables. Values that may be secrets are not shown.
    pub(super) fn settings(&self) -> impl Iterator<Item = Setting> {
        let built_in = known_keys();
        self.in_force.iter().flat_map(move |(name, (config, origin))| {
            let table = Table::try_from(config).unwrap_or_default();
            let changed: Vec<_> =
                table.into_iter().filter(|(field, value)| built_in.get(field) != Some(value)).collect();
            changed.into_iter().map(move |(field, value)| Setting {
                key: format!("mcp.{name}.{field}"),
                value: if matches!(field.as_str(), "env" | "headers") { hidden(value) } else { value },
                origin: origin.clone(),
            })
        })
    }
}

fn known_keys() -> Table {
    Table::try_from(McpServerConfig::default()).unwrap_or_default()
}

fn hidden(value: Value) -> Value {
    match value {
        Value::Table(table) => {
            Value::Table(table.into_iter().map(|(name, _)| (name, Value::String("…".to_owned()))).collect())
        }
        other => other,
    }
}

fn wrong(key: String, origin: &Origin, problem: impl Into<String>) -> ConfigError {
    ConfigError::Value { key, origin: origin.clone(), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Layers};
    use super::*;

    fn layers(user: &str, project: &str) -> Result<Layers, ConfigError> {
        layers_with(user, project, false)
    }

    fn layers_with(user: &str, project: &str, is_trusted: bool) -> Result<Layers, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let (user_file, project_file) = (dir.path().join("user.toml"), dir.path().join("project.toml"));
        std::fs::write(&user_file, user).unwrap();
        std::fs::write(&project_file, project).unwrap();
        Layers::default().file(&user_file)?.project_file(&project_file, |bytes| {
            assert_eq!(bytes, project.as_bytes());
            is_trusted
        })
    }

    #[test]
    fn a_project_neither_starts_a_server_nor_changes_one() {
        let user = "[mcp.a]\ncommand = \"good\"\n";
        let project = "[mcp.a]\ncommand = \"evil\"\n[mcp.b]\nurl = \"http://x\"\n[log]\nkeep = 3\n";
        let layers = layers(user, project).unwrap();
        let Config { mcp, log, .. } = layers.finish().unwrap();
        assert_eq!((mcp.len(), mcp["a"].command.as_str(), log.keep), (1, "good", 3));
        assert_eq!(layers.inert_servers().keys().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_trusted_project_starts_servers_and_still_changes_none_of_the_users() {
        let user = "[mcp.a]\ncommand = \"good\"\n";
        let project =
            "[mcp.a]\ncommand = \"other\"\n[mcp.b]\nurl = \"http://x\"\n[agent]\ntool_mode = \"full\"\n";
        let layers = layers_with(user, project, true).unwrap();
        let Config { mcp, agent, .. } = layers.finish().unwrap();
        assert_eq!((mcp["a"].command.as_str(), mcp["b"].url.as_str()), ("good", "http://x"));
        assert_eq!(layers.inert_servers().keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(agent.tool_mode, "workspace", "what agents may do is not a project's to say");
    }

    #[test]
    fn a_table_that_makes_no_sense_is_named() {
        for (text, part) in [
            ("[mcp.a]\n", "`command` or a `url`"),
            ("[mcp.a]\ncommand = \"x\"\nurl = \"y\"\n", "only one"),
            ("[mcp.a]\ncommand = 3\n", "string"),
            ("[mcp.a]\ncommand = \"x\"\ncall_timeout_s = 0\n", "at least 1"),
            ("[mcp]\na = 1\n", "expected a table"),
            ("mcp = 1\n", "expected tables"),
        ] {
            let error = layers(text, "").unwrap_err().to_string();
            assert!(error.contains("mcp") && error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn unknown_keys_are_warned_about_and_secrets_are_not_shown() {
        let layers =
            layers("[mcp.a]\nurl = \"http://x\"\ncolour = 1\nheaders = { Authorization = \"s3cret\" }\n", "")
                .unwrap();
        assert_eq!(layers.warnings()[0].key, "mcp.a.colour");
        let shown = format!("{:?}", layers.settings());
        assert!(shown.contains("mcp.a.headers") && shown.contains("Authorization"), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
        assert_eq!(layers.finish().unwrap().mcp["a"].headers["Authorization"], "s3cret");
    }
}
