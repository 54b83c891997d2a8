//! What is kept: message-bus files, registries of records, files of events, transcripts, the audit log and its ledger, sequence
//! reservations; locking, recovery, rotation.
//!
//! Everything here is synchronous and knows no protocol: files, locks and the rules that keep them whole.

pub mod audit;
pub mod event_file;
pub mod ledger;
pub mod message_bus;
pub mod registry;
pub mod sequence;
pub mod transcript;
pub mod watch;
