//! A tool of a server, as one of the agent's tools.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::call::CallError;
use super::listing::Listed;
use super::server::Server;
use crate::gate::{Effect, Foreign};
use crate::tools::{Call, Place, Tool, ToolError};

/// The tool.
#[derive(Debug)]
pub(super) struct McpTool {
    pub(super) name: String,
    pub(super) server: Arc<Server>,
    pub(super) listed: Arc<Listed>,
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.listed.description
    }

    fn input_schema(&self) -> Value {
        self.listed.input_schema.clone()
    }

    fn server(&self) -> Option<&str> {
        Some(&self.server.spec.name)
    }

    fn effect(&self, _arguments: &Value, _place: &Place) -> Result<Effect, ToolError> {
        let hints = self.listed.hints;
        Ok(Effect::Foreign(Foreign {
            server: self.server.spec.name.clone(),
            allowed: self.server.spec.allows(&self.listed.name),
            read_only: hints.read_only,
            destructive: hints.destructive,
            closed_world: hints.closed_world,
        }))
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        async move {
            let arguments = match call.arguments {
                Value::Object(arguments) => arguments,
                Value::Null => serde_json::Map::new(),
                _ => return Err(CallError::Arguments.into()),
            };
            Ok(self.server.call(&self.listed.name, arguments, &call.printer).await?)
        }
        .boxed()
    }
}
