//! Settings, in layers: built-in values, the user's file, the project's file, `SWB_*`, flags. The later one wins.
//!
//! Every key is known from the built-in values; a key that is not is reported with its path and the place it stands in,
//! and otherwise ignored, so that a file written for a newer version still works. A value of the wrong type is an error.
//! The daemon serves all projects and therefore reads no project file. A project's file cannot say where keys are
//! sent or what agents may do.

mod agent;
mod audit;
mod key;
mod layers;
mod llm;
mod mcp;
mod models;
mod runs;
mod setting;
mod telemetry;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use agent::AgentConfig;
pub use audit::AuditConfig;
pub use layers::Layers;
pub use llm::LlmConfig;
pub use mcp::McpServerConfig;
pub use models::{ModelConfig, ModelEntry, ProviderConfig};
pub use runs::{RunnerConfig, RunsConfig};
pub use setting::{ConfigError, Origin, Problem, Setting, Warning};
pub use telemetry::TelemetryConfig;

/// All settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// The bus and its socket.
    pub bus: BusConfig,
    /// The daemon's process.
    pub daemon: DaemonConfig,
    /// Diagnostics of the daemon.
    pub log: LogConfig,
    /// The record of what happened.
    pub audit: AuditConfig,
    /// Message buses.
    pub messages: MessagesConfig,
    /// Projects.
    pub projects: ProjectsConfig,
    /// The rules for what may be done.
    pub policy: PolicyConfig,
    /// The HTTP server.
    pub http: HttpConfig,
    /// Traces for a collector.
    pub telemetry: TelemetryConfig,
    /// The commands.
    pub cli: CliConfig,
    /// The agents that `swb rpc` and `swb run` start.
    pub agent: AgentConfig,
    /// Runs of agents under the daemon.
    pub runs: RunsConfig,
    /// Agents of one's own by name: programs that speak the protocol of `swb rpc`. Not read from a project's file.
    pub agents: BTreeMap<String, RunnerConfig>,
    /// Completions that the daemon has a model make.
    pub llm: LlmConfig,
    /// How models are called.
    pub model: ModelConfig,
    /// Models by `provider/model`: what they can do and cost.
    pub models: BTreeMap<String, ModelEntry>,
    /// Providers of models by name. Not read from a project's file.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// MCP servers whose tools agents can use, by name. Those of a project's file are started once it is trusted.
    pub mcp: BTreeMap<String, McpServerConfig>,
}

/// The bus and its socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BusConfig {
    /// Events kept for replay.
    pub replay_events: usize,
    /// Bytes of payloads kept for replay.
    pub replay_bytes: usize,
    /// Connections at once.
    pub max_connections: usize,
    /// Unanswered requests of one connection.
    pub max_in_flight: usize,
    /// Subscriptions of one connection.
    pub max_subscriptions: usize,
    /// How long a request may take, in milliseconds, when its caller does not say; 0 for as long as it takes.
    pub request_timeout_ms: u64,
}

impl Default for BusConfig {
    fn default() -> Self {
        BusConfig {
            replay_events: 16_384,
            replay_bytes: 16 * 1024 * 1024,
            max_connections: 1024,
            max_in_flight: 1024,
            max_subscriptions: 64,
            request_timeout_ms: 0,
        }
    }
}

/// The daemon's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DaemonConfig {
    /// How long a stopping daemon waits for requests in flight, in milliseconds.
    pub drain_ms: u64,
    /// Threads that serve the bus.
    pub workers: usize,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        DaemonConfig { drain_ms: 5000, workers: 2 }
    }
}

/// Diagnostics of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LogConfig {
    /// `error`, `warn`, `info`, `debug`, `trace` or `off`.
    pub level: String,
    /// The size at which the file is rotated.
    pub max_bytes: u64,
    /// Rotated files kept.
    pub keep: u32,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig { level: "info".to_owned(), max_bytes: 8 * 1024 * 1024, keep: 4 }
    }
}

/// Message buses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MessagesConfig {
    /// The folder that projects lie in; empty for the usual place among the user's data.
    pub root: String,
}

/// Projects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProjectsConfig {
    /// The git to use: a name on the path, or a path.
    pub git_program: String,
    /// How long git may take, in milliseconds.
    pub git_timeout_ms: u64,
}

impl Default for ProjectsConfig {
    fn default() -> Self {
        ProjectsConfig { git_program: "git".to_owned(), git_timeout_ms: 120_000 }
    }
}

/// The rules for what may be done. They stand in `policy/*.cedar` beside this file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PolicyConfig {
    /// Whether the rules everyone starts with hold beside one's own. Not read from a project's file.
    pub defaults: bool,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        PolicyConfig { defaults: true }
    }
}

/// The HTTP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HttpConfig {
    /// Whether there is one.
    pub enabled: bool,
    /// The address or name to listen on. One that other machines can reach needs `key_file` too.
    pub host: String,
    /// The port; the next free one if it is taken, any if it is 0.
    pub port: u16,
    /// A file with a key, readable for this user alone; empty for none.
    pub key_file: String,
    /// How often a stream says that it is alive, in seconds.
    pub heartbeat_s: u64,
    /// Connections at once, streams included.
    pub max_connections: usize,
}

impl Default for HttpConfig {
    fn default() -> Self {
        HttpConfig {
            enabled: true,
            host: "127.0.0.1".to_owned(),
            port: 14355,
            key_file: String::new(),
            heartbeat_s: 30,
            max_connections: 4096,
        }
    }
}

/// The commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CliConfig {
    /// `auto`, `always` or `never`.
    pub color: String,
}

impl Default for CliConfig {
    fn default() -> Self {
        CliConfig { color: "auto".to_owned() }
    }
}

impl Config {
    /// Values that have the right type and still make no sense.
    fn check(&self) -> Result<(), (String, String)> {
        for (name, provider) in &self.providers {
            models::check_provider(provider)
                .map_err(|(setting, problem)| (key::join(&["providers", name, setting]), problem))?;
        }
        self.agent.check().map_err(|(key, problem)| (key.to_owned(), problem))?;
        for (name, runner) in &self.agents {
            if runner.command.is_empty() {
                let problem = "must name a program".to_owned();
                return Err((key::join(&["agents", name, "command"]), problem));
            }
        }
        self.runs.check().map_err(|(key, problem)| (key.to_owned(), problem))?;
        self.telemetry.check().map_err(|(key, problem)| (key.to_owned(), problem))?;
        self.audit.check().map_err(|(key, problem)| (key.to_owned(), problem))?;
        self.check_values().map_err(|(key, problem)| (key.to_owned(), problem))
    }

    fn check_values(&self) -> Result<(), (&'static str, String)> {
        let at_least_one = [
            ("bus.replay_events", self.bus.replay_events),
            ("bus.max_connections", self.bus.max_connections),
            ("bus.max_in_flight", self.bus.max_in_flight),
            ("daemon.workers", self.daemon.workers),
            ("llm.at_once", self.llm.at_once),
            ("llm.timeout_s", usize::from(self.llm.timeout_s > 0)),
            ("http.heartbeat_s", usize::from(self.http.heartbeat_s > 0)),
            ("http.max_connections", self.http.max_connections),
            ("model.connect_timeout_ms", usize::from(self.model.connect_timeout_ms > 0)),
            ("model.first_byte_timeout_ms", usize::from(self.model.first_byte_timeout_ms > 0)),
            ("model.silence_timeout_ms", usize::from(self.model.silence_timeout_ms > 0)),
            ("model.list_timeout_ms", usize::from(self.model.list_timeout_ms > 0)),
        ];
        for (key, value) in at_least_one {
            if value == 0 {
                return Err((key, "must be at least 1".to_owned()));
            }
        }
        if !matches!(self.log.level.as_str(), "off" | "error" | "warn" | "info" | "debug" | "trace") {
            return Err(("log.level", "must be off, error, warn, info, debug or trace".to_owned()));
        }
        if !matches!(self.cli.color.as_str(), "auto" | "always" | "never") {
            return Err(("cli.color", "must be auto, always or never".to_owned()));
        }
        Ok(())
    }
}
