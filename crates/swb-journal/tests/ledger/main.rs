//! The ledger through its public door: searches against reading everything, damage, several processes, purges.

#![expect(clippy::unwrap_used, reason = "in a test, also in its helpers, a panic is the report")]

mod damage;
mod search;
mod support;
