//! What a server offers: its tools, asked for page by page, within limits.

use std::sync::Arc;

use rmcp::model::{PaginatedRequestParams, Tool as Offered};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::{Map, Value, json};

use super::options::ServerSpec;

const MAX_TOOLS: usize = 500;
const MAX_PAGES: usize = 100;
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
const MAX_DESCRIPTION_CHARS: usize = 4 * 1024;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Listed {
    /// The server's own name for it.
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input_schema: Value,
    pub(super) hints: Hints,
}

/// What a server says about its tool. It may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Hints {
    /// It changes nothing.
    pub(super) read_only: bool,
    /// It may destroy something.
    pub(super) destructive: bool,
    /// It reaches nothing beyond the server itself.
    pub(super) closed_world: bool,
}

/// The tools of a server, and how many it has that cannot be offered.
#[derive(Debug, Clone, Default)]
pub(super) struct Listing {
    pub(super) tools: Vec<Arc<Listed>>,
    pub(super) left_out: usize,
}

/// Asks the server for its tools.
pub(super) async fn list(peer: &Peer<RoleClient>, spec: &ServerSpec) -> Result<Listing, ServiceError> {
    // A server without tools need not know the question.
    let tools = peer.peer_info().is_none_or(|info| info.capabilities.tools.is_some());
    let mut listing = Listing::default();
    let mut cursor = None;
    for _ in 0..if tools { MAX_PAGES } else { 0 } {
        let page = peer.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        for offered in page.tools {
            match listed(offered) {
                Some(tool) if spec.hides(&tool.name) => {}
                Some(tool) if listing.tools.len() < MAX_TOOLS => listing.tools.push(Arc::new(tool)),
                _ => listing.left_out += 1,
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() || listing.tools.len() >= MAX_TOOLS {
            break;
        }
    }
    Ok(listing)
}

/// The tool in a form that models can be given; `None` if there is none.
fn listed(offered: Offered) -> Option<Listed> {
    let Offered { name, title, description, input_schema, annotations, .. } = offered;
    let schema = schema(&input_schema);
    if name.is_empty() || schema.to_string().len() > MAX_SCHEMA_BYTES {
        return None;
    }
    let description = description.map(|text| text.into_owned()).or(title).unwrap_or_default();
    let annotations = annotations.unwrap_or_default();
    let read_only = annotations.read_only_hint == Some(true);
    Some(Listed {
        name: name.into_owned(),
        description: description.chars().take(MAX_DESCRIPTION_CHARS).collect(),
        input_schema: schema,
        hints: Hints {
            read_only,
            destructive: !read_only && annotations.destructive_hint == Some(true),
            closed_world: annotations.open_world_hint == Some(false),
        },
    })
}

/// The schema as providers want it: of an object, with properties.
fn schema(given: &Map<String, Value>) -> Value {
    let mut schema = given.clone();
    schema.insert("type".to_owned(), json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(value: Value) -> Offered {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_schema_is_always_that_of_an_object() {
        let tool = listed(offered(json!({ "name": "a", "title": "A", "inputSchema": {} }))).unwrap();
        assert_eq!(tool.input_schema, json!({ "type": "object", "properties": {} }));
        assert_eq!((tool.description.as_str(), tool.hints), ("A", Hints::default()));
    }

    #[test]
    fn what_no_model_could_be_given_is_left_out() {
        let huge = json!({ "type": "object", "description": "x".repeat(MAX_SCHEMA_BYTES) });
        assert!(listed(offered(json!({ "name": "a", "inputSchema": huge }))).is_none());
        assert!(listed(offered(json!({ "name": "", "inputSchema": {} }))).is_none());
        let long = "é".repeat(MAX_DESCRIPTION_CHARS + 1);
        let tool = listed(offered(json!({ "name": "a", "description": long, "inputSchema": {} }))).unwrap();
        assert_eq!(tool.description.chars().count(), MAX_DESCRIPTION_CHARS);
    }

    #[test]
    fn hints_count_only_when_they_are_given() {
        let hints = |annotations: Value| {
            let value = json!({ "name": "a", "inputSchema": {}, "annotations": annotations });
            listed(offered(value)).unwrap().hints
        };
        let (read_only, destructive, closed_world) = (true, true, true);
        assert_eq!(hints(json!({})), Hints::default());
        assert_eq!(
            hints(json!({ "readOnlyHint": true, "destructiveHint": true, "openWorldHint": false })),
            Hints { read_only, destructive: false, closed_world }
        );
        assert_eq!(hints(json!({ "destructiveHint": true })), Hints { destructive, ..Hints::default() });
    }
}
