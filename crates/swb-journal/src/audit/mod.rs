//! The record of what happened: an append-only log in which nothing can be changed unnoticed.
//!
//! A log is a folder of segments. A segment is a header and records, one JSON object per line; every line carries the
//! hash of the line before it, and every header also that of the header before it. One process writes, under a lock; any
//! number of readers need none.
//!
//! ```text
//! Entry ─► append ─► queue ─► writer ─► 00000001-000000000001.jsonl  00000002-000000027513.jsonl …   key  lock
//!            │                                        │
//!            └─► ticket                               ├─► read (after a number, after an event, the last ones)
//!                                                     ├─► verify (offline, against anchors)
//!                                                     ├─► export (a session as a bundle that proves itself)
//!                                                     └─► crate::ledger (search)
//! ```
//!
//! - `entry`, `json`, `record`, `moment`, `hash`, `key`: the words; `members`: an entry as text.
//! - `line`, `header`: the layout, without I/O. `segment`, `lines`, `seek`: files, streaming, halving.
//! - `append`, `queue`, `ticket`, `writer`, `log`, `open`, `recover`: the writer's side.
//! - `read`, `records`, `follow`, `points`, `verify`, `export`, `bundle`: the reader's side. `hold`, `purge`, `retention`: what is kept and for how long.
//!
//! Invariants. Numbers rise by one, whatever the clock does. An append that was acknowledged is in the file. A failed
//! write stops the log; it never goes on with a record missing. Opening cuts a torn tail, never a middle. Any changed,
//! removed, inserted or moved record is found by `verify`; so is a cut end or a chain written anew, against a head that
//! was kept elsewhere. A purge leaves a proof of what it removed.
//!
//! What is recorded has been redacted by the caller, and what is recorded about the log itself (a repair, a hold, a
//! purge) is no event: writing a record never causes another one.
//!
//! Proof: tests beside the code, `tests/audit/` (damage, kills, full disks, purges), frozen files in `fixtures/audit/`.

mod append;
mod bundle;
mod entry;
mod export;
mod follow;
mod hash;
mod header;
mod hold;
mod json;
mod key;
mod line;
mod lines;
mod log;
mod members;
mod moment;
mod open;
mod options;
mod points;
mod purge;
mod queue;
mod read;
mod record;
mod records;
mod recover;
mod retention;
mod seek;
mod segment;
mod ticket;
mod verify;
mod writer;

pub use append::{AppendError, WriteFailure};
pub use bundle::{BundleFault, check_bundle};
pub use entry::{Entry, Kind, RecordedActor, RecordedDecision, Status};
pub use export::{ExportError, Manifest, Redaction, export};
pub use follow::{AuditFollower, FollowEnd};
pub use hash::{ChainHash, InvalidHash};
pub use header::Damage;
pub use hold::{Hold, HoldScope};
pub use json::Json;
pub use key::ArgumentsHash;
pub use log::{AuditLog, Head};
pub use moment::Moment;
pub use open::{OpenError, Opened};
pub use options::{AuditOptions, Durability};
pub(crate) use points::Points;
pub use purge::{MIN_RETENTION_DAYS, PurgeError, PurgeOrder, PurgeProof, Purged, PurgedSpan};
pub use read::{AuditReadError, AuditReader};
pub use record::Record;
pub use records::{Events, Looked, Records};
pub use recover::Cut;
pub use ticket::{Receipt, Ticket};
pub use verify::{AnchorSeen, AnchorState, Finding, FindingKind, Report, TornTail, Verdict, verify};
