//! The bus about itself: greeting, state, stopping, pinging, cancelling.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::comms::Empty;
use crate::method::Method;
use crate::payload::body;
use crate::{BusPayload, Meta, Timestamp};

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// `bus.hello`: who the client is, and the context its JSON-RPC calls have unless they say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HelloParams {
    /// The protocol namespace the client speaks; one that the daemon does not know is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The client, for the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Program>,
    /// The context of this connection's calls.
    #[serde(flatten)]
    pub context: Meta,
}

/// What the daemon answers to `bus.hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HelloResponse {
    /// The namespace of the envelopes.
    pub namespace: String,
    /// Every namespace that is spoken.
    pub namespaces: Vec<String>,
    /// The dialects of one line.
    pub dialects: Vec<String>,
    /// The daemon.
    pub server: Program,
    /// What a client must stay within.
    pub limits: Limits,
    /// The `seq` of the newest event: subscribe with `after` set to it to miss nothing from here on.
    pub head: u64,
}

/// The limits of one connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// The largest payload, in bytes of JSON.
    pub max_payload_bytes: u64,
    /// The longest line.
    pub max_line_bytes: u64,
    /// How many requests may be unanswered; beyond that the daemon stops reading until one is.
    pub max_in_flight: u64,
    /// How many subscriptions one connection may hold.
    pub max_subscriptions: u64,
}

/// The state of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusResponse {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// When it became ready.
    pub started_at: Timestamp,
    /// How long ago that was, in milliseconds.
    pub uptime_ms: u64,
    /// The path of the control socket.
    pub socket: String,
    /// The HTTP server, as the beginning of an URL; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Why there is no HTTP server although there should be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_error: Option<String>,
    /// The process that restarts the daemon should it crash; absent when none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_pid: Option<u32>,
    /// The rules for what may be done; absent when the daemon is older than they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyStatus>,
    /// The record; absent when the daemon is older than it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditStatus>,
    /// Traces on their way to a collector; absent when none are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<TracesStatus>,
    /// Subsystems that serve methods.
    pub subsystems: Vec<String>,
    /// The `seq` of the newest event; 0 before the first.
    pub head: u64,
    /// The `seq` of the oldest event that can still be replayed; one more than `head` when none can.
    pub oldest: u64,
    /// What happened since the start.
    pub counters: Counters,
}

/// How traces fare.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TracesStatus {
    /// Where they go.
    pub endpoint: String,
    /// Spans that the collector took.
    pub exported: u64,
    /// Spans that it did not take in time.
    pub dropped: u64,
    /// Why it did not take the last ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// How the rules stand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyStatus {
    /// Rules in force, the user's and those everyone starts with.
    pub rules: u64,
    /// There were never rules that could be used, so nothing is permitted.
    pub denies_everything: bool,
    /// What is wrong with rule files as they are now; the rules that were in force before still are.
    pub problems: Vec<String>,
}

/// How the record stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditStatus {
    /// Which log.
    pub chain: String,
    /// The number of the last record; 0 if there is none.
    pub number: u64,
    /// Its hash.
    pub hash: String,
    /// Segments on disk.
    pub segments: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// `written` or `synced`.
    pub durability: String,
    /// How long records are kept.
    pub retention_days: u32,
    /// Why nothing can be recorded, and no command is carried out; absent when all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// Events of weight that were told and could not be recorded.
    pub events_not_recorded: u64,
    /// The last record whose hash was told to a place outside; absent if none was since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchored: Option<u64>,
    /// Why the anchor command failed the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor_failure: Option<String>,
}

/// Counts since the start, and what is open right now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// Connections open now.
    pub connections: u64,
    /// Subscriptions open now, inside and outside the process.
    pub subscriptions: u64,
    /// Requests unanswered now.
    pub in_flight: u64,
    /// Requests taken.
    pub requests: u64,
    /// Notifications delivered to a subsystem's queue.
    pub notifications: u64,
    /// Notifications dropped because that queue was full.
    pub notifications_dropped: u64,
    /// Notifications for which no subsystem is registered.
    pub notifications_unrouted: u64,
    /// Requests cancelled.
    pub cancelled: u64,
    /// Handlers that panicked.
    pub panics: u64,
    /// Connections refused: another user, or too many.
    pub refused: u64,
    /// Times a sequence range could not be reserved on disk. Not zero: `seq` may repeat after a crash.
    pub reservation_failures: u64,
}

/// `bus.shutdown`: why the daemon shall stop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShutdownParams {
    /// For the log and for the last event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Agents are ended too. Without it they work on, and the next daemon finds them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end_agents: bool,
}

/// The daemon will stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShutdownResponse {
    /// The process that is about to end.
    pub pid: u32,
    /// Requests it will still wait for.
    pub in_flight: u64,
}

/// `$/ping` answers with the daemon's clock and the newest event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PingResponse {
    /// The daemon's clock.
    pub ts: Timestamp,
    /// The `seq` of the newest event.
    pub head: u64,
}

body! {
    /// Words of `bus/*` and `$/ping`.
    ControlBody in Control {
        /// A greeting.
        Hello(HelloParams),
        /// Its answer.
        Welcome(HelloResponse),
        /// The daemon's state.
        Status(StatusResponse),
        /// A wish to stop.
        Shutdown(ShutdownParams),
        /// Its answer.
        Stopping(ShutdownResponse),
        /// An answer to a ping.
        Pong(PingResponse),
    }
}

/// `bus/hello`.
#[derive(Debug)]
pub enum Hello {}
impl Method for Hello {
    const NAME: &'static str = "bus/hello";
    const SUMMARY: &'static str =
        "Introduce a client, set the context of its calls, learn namespaces, versions and limits";
    type Params = HelloParams;
    type Response = HelloResponse;
}

/// `bus/status`.
#[derive(Debug)]
pub enum Status {}
impl Method for Status {
    const NAME: &'static str = "bus/status";
    const SUMMARY: &'static str = "The state of the daemon: process, socket, subsystems, cursors, counters";
    type Params = Empty;
    type Response = StatusResponse;
}

/// `bus/shutdown`.
#[derive(Debug)]
pub enum Shutdown {}
impl Method for Shutdown {
    const NAME: &'static str = "bus/shutdown";
    const SUMMARY: &'static str = "Stop the daemon: finish what is in flight, then end";
    type Params = ShutdownParams;
    type Response = ShutdownResponse;
}

/// `$/ping`.
#[derive(Debug)]
pub enum Ping {}
impl Method for Ping {
    const NAME: &'static str = "$/ping";
    const SUMMARY: &'static str = "Is anybody there? Answers with the daemon's clock and the newest seq";
    type Params = Empty;
    type Response = PingResponse;
}

/// Which request shall end. On a socket `id` is the wire id of a request of the same connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelParams {
    /// The id the request was sent with.
    #[schemars(with = "WireIdSchema")]
    pub id: Uuid,
}

/// The schema of a JSON-RPC id.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum WireIdSchema {
    Text(String),
    Number(i64),
}

impl From<CancelParams> for BusPayload {
    fn from(params: CancelParams) -> Self {
        BusPayload::CancelRequest { id: params.id }
    }
}

impl TryFrom<BusPayload> for CancelParams {
    type Error = BusPayload;
    fn try_from(payload: BusPayload) -> Result<Self, BusPayload> {
        match payload {
            BusPayload::CancelRequest { id } => Ok(CancelParams { id }),
            other => Err(other),
        }
    }
}

/// `$/cancel`.
#[derive(Debug)]
pub enum Cancel {}
impl Method for Cancel {
    const NAME: &'static str = "$/cancel";
    const SUMMARY: &'static str =
        "Cancel a request of this connection that is still in flight; unknown ids are ignored";
    type Params = CancelParams;
    type Response = Empty;
}
