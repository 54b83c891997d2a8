//! The words: wire types of the contracts that meet in Switchboard, their ids and their error codes.
//!
//! One file per resource. Everything here is a value: no I/O, no clock, no runtime. Time and randomness are handed in,
//! so that a recorded line always decodes to the same words.
//!
//! * [`payload`] – what travels on the bus inside the process ([`BusPayload`], [`BusError`], [`BusResult`]).
//! * [`mod@line`] – one line of the control socket, in either of its two dialects, decoded and judged well formed or not.
//! * [`method`] – the table of methods: names, parameter and result types, documentation. `rpc.discover` is made from it.
//! * [`message`] – a message of the message bus, as lists, streams and the command line show it.
//! * [`agent`] – the lines between an agent process and its parent.
//! * [`event`], [`envelope`] – the `helios.localbus.v1` envelopes.
//!
//! Proof: golden bytes in `fixtures/wire/`, schema drift in `schema/`, property tests beside each decoder.

pub mod actor;
pub mod agent;
pub mod approval;
pub mod audit;
pub mod comms;
pub mod control;
pub mod envelope;
pub mod error;
pub mod event;
pub mod events;
pub mod grant;
pub mod id;
pub mod line;
pub mod message;
pub mod meta;
pub mod method;
pub mod openrpc;
pub mod payload;
pub mod policy;
pub mod project;
pub mod reply;
pub mod rpc;
pub mod run;
pub mod session;
pub mod timestamp;
pub mod topic;
pub mod trace;
pub mod workspace;

pub use actor::Actor;
pub use error::{BusError, ErrorCode};
pub use event::EventEnvelope;
pub use meta::Meta;
pub use payload::{BusPayload, BusResult};
pub use timestamp::Timestamp;
pub use topic::{Topic, TopicGlob};

/// The namespace of the control bus envelopes (seed 004, section 11).
pub const LOCALBUS_NAMESPACE: &str = "helios.localbus.v1";
/// The namespace of the AG-UI mapping of the same events.
pub const AGUI_NAMESPACE: &str = "helios.agui.v1";
/// The largest payload of one command, in bytes of its JSON text. Exactly this many pass.
pub const MAX_PAYLOAD_BYTES: usize = 1_048_576;
/// What one line may add around its payload: ids, method, actor.
pub const MAX_ENVELOPE_OVERHEAD: usize = 64 * 1024;
