//! Tools that a parent lends to its child: they run where the parent is, and the child's model calls them like its own.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool, as the borrower's model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LentTool {
    /// What the model calls it.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its arguments, as JSON Schema.
    pub input_schema: Value,
}

/// The call of a lent tool. The lender judges it, runs it, and answers with `lent_result`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LentCall {
    /// What `lent_result` names.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: Value,
    /// The session that calls it.
    pub session_id: String,
    /// What that may do: `read-only`, `workspace` or `full`. The lender allows at most that.
    pub mode: String,
    /// The names of the subagents that lead from the borrower to the one that calls; none if that is the borrower itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
}
