//! MCP servers: programs and services whose tools the agent can use.
//!
//! * [`options`], [`json_file`] – which servers there are; `expand` fills in variables.
//! * `link` – one connection: `program` and `pipes` for those we start, `http` for those we call; `flow` and `fault`
//!   bound what either may do to us; `client` is our end of the protocol.
//! * `server` – the life of one server: started once, restarted with pauses (`backoff`), its tools (`listing`).
//! * `tool`, `call`, `answer` – a tool as the model sees it (`names`), one call of it, and the answer in words.
//! * `record`, `key` – the record that each call leaves.
//!
//! Only the root of a tree of agents has servers; others borrow its tools. Servers start beside everything else: nobody
//! waits for them but a turn that is about to ask the model, and that not for long. Whatever one of them does, it costs
//! nothing but its own tools.
//!
//! Invariants: no byte of a server reaches the protocol's stdout or grows our memory without limit; every call passes the
//! gate and leaves one record; the end of the agent is the end of what it started.
//! Proof: unit tests beside the parts; `crates/swb-cli/tests/rpc/mcp/` with a real server over both transports and one that
//! misbehaves in every way we could think of.

mod answer;
mod backoff;
mod call;
mod client;
mod expand;
mod fault;
mod flow;
mod http;
pub mod json_file;
mod key;
mod link;
mod listing;
mod names;
pub mod options;
mod pipes;
mod program;
mod record;
mod server;
mod tool;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use swb_proto::agent::{AddedEvent, McpCall, McpServer};

pub(crate) use call::CallError;
pub use json_file::{JsonFileError, parse_json_file, read_json_file};
pub use options::{McpOptions, Reach, ServerSpec};
pub(crate) use record::Record;

use crate::cancel::Cancel;
use crate::stdio::output::Output;
use crate::tools::{Caller, Tool};
use record::Records;
use server::Server;
use tool::McpTool;

/// How long the end of all servers is waited for.
const GOODBYE: Duration = Duration::from_millis(400);

/// All servers of an agent.
#[derive(Debug)]
pub(crate) struct Mcp {
    servers: Vec<Arc<Server>>,
    notices: Vec<McpServer>,
    output: Option<Output>,
    records: Records,
    told: Cancel,
}

impl Mcp {
    /// Nothing is started yet. Without an output nobody is told anything.
    pub(crate) fn new(options: McpOptions, root: &Path, output: Option<Output>) -> Self {
        let told = Cancel::new();
        let mut names = HashSet::new();
        let servers = options
            .servers
            .into_iter()
            .filter(|spec| names.insert(spec.name.clone()))
            .map(|spec| Arc::new(Server::new(spec, root.to_owned(), output.clone(), told.clone())))
            .collect();
        let records = Records::new(options.key_file);
        Mcp { servers, notices: options.notices, output, records, told }
    }

    /// Starts all servers, and says what there is to say about others.
    pub(crate) async fn begin(&self) {
        for server in &self.servers {
            server.wake();
        }
        for notice in &self.notices {
            if let Some(output) = &self.output {
                // A parent that has gone is noticed by the loop.
                let _ = output.send(&AddedEvent::McpServer(notice.clone())).await;
            }
        }
    }

    /// Gives another chance to servers that never came so far as to have tools that could be called.
    pub(crate) fn revive(&self) {
        for server in self.servers.iter().filter(|server| server.listing().tools.is_empty()) {
            server.wake();
        }
    }

    /// Whether some server is still starting.
    pub(crate) fn is_starting(&self) -> bool {
        self.servers.iter().any(|server| server.is_starting())
    }

    /// Returns once no server is starting any more, or patience is over.
    pub(crate) async fn settled(&self, patience: Duration) {
        let started = join_all(self.servers.iter().map(|server| server.started()));
        let _ = tokio::time::timeout(patience, started).await;
    }

    /// The tools of all servers.
    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut found = Vec::new();
        for server in &self.servers {
            found.extend(server.listing().tools.iter().map(|tool| (Arc::clone(server), Arc::clone(tool))));
        }
        let names = names::names(found.iter().map(|(server, tool)| (&*server.spec.name, &*tool.name)));
        let tool = |(name, (server, listed))| Arc::new(McpTool { name, server, listed }) as Arc<dyn Tool>;
        names.into_iter().zip(found).map(tool).collect()
    }

    /// Begins the record of a call.
    pub(crate) fn record(
        &self,
        tool: &str,
        server: &str,
        caller: &Caller,
        tool_id: &str,
        arguments: &Value,
    ) -> Record {
        Record::begin(&self.records, tool, server, caller, tool_id, arguments)
    }

    /// Tells the parent about a call.
    pub(crate) async fn tell(&self, call: McpCall) {
        if let Some(output) = &self.output {
            // A parent that has gone is noticed by the loop.
            let _ = output.send(&AddedEvent::McpCall(call)).await;
        }
    }

    /// Ends all servers, but does not wait for them for ever.
    pub(crate) async fn end(&self) {
        self.told.cancel();
        let gone = join_all(self.servers.iter().map(|server| server.gone()));
        let _ = tokio::time::timeout(GOODBYE, gone).await;
    }
}
