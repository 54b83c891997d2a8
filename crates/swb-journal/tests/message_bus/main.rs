//! The message bus through its public door: files on disk, several processes, damage, rotation, following.

#![expect(clippy::unwrap_used, reason = "in a test, also in its helpers, a panic is the report")]

mod append;
mod cursors;
mod damage;
mod fixtures;
mod follow;
mod interchange;
mod processes;
mod read;
mod rotation;
mod support;
