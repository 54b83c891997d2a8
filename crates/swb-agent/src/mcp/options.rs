//! Which servers there are, and how each is reached.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use swb_proto::agent::McpServer;

/// What an agent is told about MCP.
#[derive(Debug, Clone, Default)]
pub struct McpOptions {
    /// The servers to start. Of two with one name the first is meant.
    pub servers: Vec<ServerSpec>,
    /// What is to be said about servers that are not among them.
    pub notices: Vec<McpServer>,
    /// Where the key lies that arguments are hashed with; made if it is not there.
    pub key_file: PathBuf,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// Its name, which is the first part of the names of its tools.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// Tools that may be called without asking, by the server's own names; `*` for all.
    pub allow: Vec<String>,
    /// Tools that are not offered, by the server's own names.
    pub hide: Vec<String>,
    /// How long it may take to start.
    pub start_timeout: Duration,
    /// How long a call may go without an answer or a sign of progress.
    pub call_timeout: Duration,
}

impl ServerSpec {
    /// A server with the usual limits.
    pub fn new(name: &str, reach: Reach) -> Self {
        ServerSpec {
            name: name.to_owned(),
            reach,
            allow: Vec::new(),
            hide: Vec::new(),
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(60),
        }
    }

    pub(super) fn allows(&self, tool: &str) -> bool {
        self.allow.iter().any(|allowed| allowed == "*" || allowed == tool)
    }

    pub(super) fn hides(&self, tool: &str) -> bool {
        self.hide.iter().any(|hidden| hidden == "*" || hidden == tool)
    }
}

/// How a server is reached. `${NAME}` in the values stands for a variable of our environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// A program that is started and speaks over its standard input and output.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables of its environment, beside the harmless ones that it inherits.
        env: BTreeMap<String, String>,
        /// The folder it runs in; the agent's if not given.
        folder: Option<PathBuf>,
    },
    /// A server that speaks streamable HTTP.
    Address {
        /// Where it is.
        url: String,
        /// What goes with every request.
        headers: BTreeMap<String, String>,
    },
}
