//! The seed's own subsystems: agents that answer messages, and the language model behind them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::BusPayload;
use crate::method::Method;

/// A message of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommsMessage {
    /// The channel that the reply belongs to; it comes back unchanged.
    pub channel_id: String,
    /// The text.
    pub content: String,
}

/// Text for the language model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LlmRequest {
    /// The channel that the reply belongs to; it comes back unchanged.
    pub channel_id: String,
    /// The prompt.
    pub content: String,
}

/// No parameters, or nothing to report: the empty object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

macro_rules! seed_variant {
    ($ty:ident) => {
        impl From<$ty> for BusPayload {
            fn from($ty { channel_id, content }: $ty) -> Self {
                BusPayload::$ty { channel_id, content }
            }
        }
        impl TryFrom<BusPayload> for $ty {
            type Error = BusPayload;
            fn try_from(payload: BusPayload) -> Result<Self, BusPayload> {
                match payload {
                    BusPayload::$ty { channel_id, content } => Ok($ty { channel_id, content }),
                    other => Err(other),
                }
            }
        }
    };
}
seed_variant!(CommsMessage);
seed_variant!(LlmRequest);

impl From<Empty> for BusPayload {
    fn from(_: Empty) -> Self {
        BusPayload::Empty
    }
}

impl TryFrom<BusPayload> for Empty {
    type Error = BusPayload;
    fn try_from(payload: BusPayload) -> Result<Self, BusPayload> {
        match payload {
            BusPayload::Empty => Ok(Empty {}),
            other => Err(other),
        }
    }
}

/// `agents`: the default agent handles a message. `agents/<agent>/<action>` names one.
#[derive(Debug)]
pub enum Agents {}
impl Method for Agents {
    const NAME: &'static str = "agents";
    const SUMMARY: &'static str =
        "Hand a message to the default agent; agents.<agent>.<action> names an agent and what it shall do";
    type Params = CommsMessage;
    type Response = CommsMessage;
}

/// `agents/echo/handle`: the echo agent.
#[derive(Debug)]
pub enum AgentsEchoHandle {}
impl Method for AgentsEchoHandle {
    const NAME: &'static str = "agents/echo/handle";
    const SUMMARY: &'static str = "Hand a message to the echo agent, which answers with the same text";
    type Params = CommsMessage;
    type Response = CommsMessage;
}

/// `llm/complete`: one completion.
#[derive(Debug)]
pub enum LlmComplete {}
impl Method for LlmComplete {
    const NAME: &'static str = "llm/complete";
    const SUMMARY: &'static str = "Have the configured model complete a prompt, without tools and without a history; the reply carries the channel it came from";
    type Params = LlmRequest;
    type Response = CommsMessage;
}
