//! The audit log through its public door: appending, reading, damage, kills, full disks, purges, export.

#![expect(clippy::unwrap_used, reason = "in a test, also in its helpers, a panic is the report")]

mod append;
mod damage;
mod disk;
mod export;
mod fixtures;
mod processes;
mod purge;
mod read;
mod support;
