//! What travels on the bus inside the process (seed 000).
//!
//! The seed's four variants stay as they are. Every subsystem that joins adds one variant holding an enum of its own, so
//! that no enum here grows past what a person can keep in mind. On the wire a payload is the bare object that its method
//! types ([`BusPayload::write_bare`]); the tagged form that `serde` derives is for stores and tests.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::approval::ApprovalBody;
use crate::audit::AuditBody;
use crate::control::ControlBody;
use crate::error::BusError;
use crate::events::EventsBody;
use crate::grant::GrantBody;
use crate::policy::PolicyBody;
use crate::project::ProjectBody;
use crate::rpc::RpcBody;
use crate::run::RunBody;
use crate::session::SessionBody;
use crate::workspace::WorkspaceBody;

/// How every request is answered.
pub type BusResult = Result<BusPayload, BusError>;

/// The body of a message on the bus.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum BusPayload {
    /// A message of a channel, on its way to an agent or back.
    CommsMessage {
        /// The channel that the reply belongs to.
        channel_id: String,
        /// The text.
        content: String,
    },
    /// Text for a language model; the reply carries the same channel.
    LlmRequest {
        /// The channel that the reply belongs to.
        channel_id: String,
        /// The prompt.
        content: String,
    },
    /// Asks for the end of a request in flight.
    CancelRequest {
        /// The request's id.
        id: Uuid,
    },
    /// Nothing to say.
    Empty,
    /// The bus about itself: `bus/*` and `$/ping`.
    Control(ControlBody),
    /// Streams of events: `events/*`.
    Events(EventsBody),
    /// The interface about itself: `rpc/*`.
    Rpc(RpcBody),
    /// Workspaces: `workspace/*`.
    Workspace(WorkspaceBody),
    /// Projects: `project/*`.
    Project(ProjectBody),
    /// Sessions: `session/*`.
    Session(SessionBody),
    /// Questions that people answer: `approval/*`.
    Approval(ApprovalBody),
    /// Standing answers: `grant/*`.
    Grant(GrantBody),
    /// What changes the record: `audit/*`.
    Audit(AuditBody),
    /// What rules say: `policy/*`.
    Policy(PolicyBody),
    /// Runs of agents: `agent/*`.
    Run(RunBody),
}

impl BusPayload {
    /// Appends the bare JSON object of this payload: what stands in `params`, `payload` and `result`.
    pub fn write_bare(&self, out: &mut Vec<u8>) {
        match self {
            BusPayload::CommsMessage { channel_id, content }
            | BusPayload::LlmRequest { channel_id, content } => {
                write_json(out, &ChannelText { channel_id, content });
            }
            BusPayload::CancelRequest { id } => write_json(out, &serde_json::json!({ "id": id })),
            BusPayload::Empty => out.extend_from_slice(b"{}"),
            BusPayload::Control(body) => body.write_bare(out),
            BusPayload::Events(body) => body.write_bare(out),
            BusPayload::Rpc(body) => body.write_bare(out),
            BusPayload::Workspace(body) => body.write_bare(out),
            BusPayload::Project(body) => body.write_bare(out),
            BusPayload::Session(body) => body.write_bare(out),
            BusPayload::Approval(body) => body.write_bare(out),
            BusPayload::Grant(body) => body.write_bare(out),
            BusPayload::Audit(body) => body.write_bare(out),
            BusPayload::Policy(body) => body.write_bare(out),
            BusPayload::Run(body) => body.write_bare(out),
        }
    }

    /// The variant's name, for logs and for errors about a payload of the wrong kind.
    pub fn kind(&self) -> &'static str {
        match self {
            BusPayload::CommsMessage { .. } => "CommsMessage",
            BusPayload::LlmRequest { .. } => "LlmRequest",
            BusPayload::CancelRequest { .. } => "CancelRequest",
            BusPayload::Empty => "Empty",
            BusPayload::Control(_) => "Control",
            BusPayload::Events(_) => "Events",
            BusPayload::Rpc(_) => "Rpc",
            BusPayload::Workspace(_) => "Workspace",
            BusPayload::Project(_) => "Project",
            BusPayload::Session(_) => "Session",
            BusPayload::Approval(_) => "Approval",
            BusPayload::Grant(_) => "Grant",
            BusPayload::Audit(_) => "Audit",
            BusPayload::Policy(_) => "Policy",
            BusPayload::Run(_) => "Run",
        }
    }
}

#[derive(Serialize)]
struct ChannelText<'a> {
    channel_id: &'a str,
    content: &'a str,
}

/// Appends `value` as JSON. The words of this room always serialise: string keys only, no maps of other things.
pub(crate) fn write_json(out: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(out, value).expect("words serialise into memory");
}

/// Declares how the structs of a room become variants of a body enum and come back out of a [`BusPayload`].
macro_rules! body {
    ($(#[$doc:meta])* $body:ident in $variant:ident { $($(#[$wdoc:meta])* $word:ident($ty:ty),)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        pub enum $body { $($(#[$wdoc])* $word(Box<$ty>),)* }

        impl $body {
            pub(crate) fn write_bare(&self, out: &mut Vec<u8>) {
                match self { $($body::$word(word) => crate::payload::write_json(out, word),)* }
            }
        }
        $(
            impl From<$ty> for crate::BusPayload {
                fn from(word: $ty) -> Self { crate::BusPayload::$variant($body::$word(Box::new(word))) }
            }
            impl TryFrom<crate::BusPayload> for $ty {
                type Error = crate::BusPayload;
                fn try_from(payload: crate::BusPayload) -> Result<Self, crate::BusPayload> {
                    match payload {
                        crate::BusPayload::$variant($body::$word(word)) => Ok(*word),
                        other => Err(other),
                    }
                }
            }
        )*
    };
}
pub(crate) use body;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_variants_keep_their_bytes() {
        let id = Uuid::from_u128(7);
        let cases = [
            (
                BusPayload::CommsMessage { channel_id: "c".into(), content: "x".into() },
                r#"{"CommsMessage":{"channel_id":"c","content":"x"}}"#,
                r#"{"channel_id":"c","content":"x"}"#,
            ),
            (
                BusPayload::LlmRequest { channel_id: "c".into(), content: "x".into() },
                r#"{"LlmRequest":{"channel_id":"c","content":"x"}}"#,
                r#"{"channel_id":"c","content":"x"}"#,
            ),
            (
                BusPayload::CancelRequest { id },
                r#"{"CancelRequest":{"id":"00000000-0000-0000-0000-000000000007"}}"#,
                r#"{"id":"00000000-0000-0000-0000-000000000007"}"#,
            ),
            (BusPayload::Empty, r#""Empty""#, "{}"),
        ];
        for (payload, tagged, bare) in cases {
            assert_eq!(serde_json::to_string(&payload).unwrap(), tagged);
            assert_eq!(serde_json::from_str::<BusPayload>(tagged).unwrap(), payload);
            let mut out = Vec::new();
            payload.write_bare(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), bare);
        }
    }

    #[test]
    fn a_payload_is_no_larger_than_two_strings_and_a_tag() {
        assert!(size_of::<BusPayload>() <= 56, "{}", size_of::<BusPayload>());
        assert!(size_of::<BusResult>() <= 64, "{}", size_of::<BusResult>());
    }
}
