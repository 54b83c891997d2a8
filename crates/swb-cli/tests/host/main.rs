//! Hosts of the real binary, with shells as their children.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod cell;
mod fence;
mod hosted;
mod keeping;
mod tree;
