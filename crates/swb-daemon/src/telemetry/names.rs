//! The names that spans go by: the conventions of OpenTelemetry for generative AI and MCP, which are still being worked on,
//! and our own. Nobody else in the house spells one.

// Conventions for generative AI.
pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const AGENT: &str = "gen_ai.agent.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const TOOL: &str = "gen_ai.tool.name";
pub(super) const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub(super) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const TOOL_RESULT: &str = "gen_ai.tool.call.result";

/// Values of [`OPERATION`], and the first words of the names of spans.
pub(super) const INVOKE_AGENT: &str = "invoke_agent";
pub(super) const EXECUTE_TOOL: &str = "execute_tool";
pub(super) const CHAT: &str = "chat";

// Conventions for MCP, RPC and errors.
pub(super) const MCP_METHOD: &str = "mcp.method.name";
pub(super) const MCP_CALL: &str = "tools/call";
pub(super) const RPC_SYSTEM: &str = "rpc.system";
pub(super) const RPC_METHOD: &str = "rpc.method";
pub(super) const JSON_RPC: &str = "jsonrpc";
pub(super) const ERROR_TYPE: &str = "error.type";

// Our own.
pub(super) const RUN: &str = "swb.run.id";
pub(super) const WORKSPACE: &str = "swb.workspace.id";
pub(super) const CORRELATION: &str = "swb.correlation.id";
pub(super) const COST: &str = "swb.run.cost_dollars";
pub(super) const TURNS: &str = "swb.run.turns";
pub(super) const RESULT: &str = "swb.run.result";
pub(super) const OUTCOME: &str = "swb.outcome";
pub(super) const MCP_SERVER: &str = "swb.mcp.server";
pub(super) const ACTOR_KIND: &str = "swb.actor.kind";
pub(super) const ACTOR: &str = "swb.actor.id";
pub(super) const DECISION: &str = "swb.decision";
pub(super) const RULES: &str = "swb.decision.rules";
pub(super) const APPROVAL: &str = "swb.approval.id";

/// Events within spans.
pub(super) const ASKED: &str = "approval.requested";
pub(super) const ANSWERED: &str = "approval.resolved";
