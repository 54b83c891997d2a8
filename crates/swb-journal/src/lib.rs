//! What is kept: files, their locking and their recovery. No decisions, no protocols.

pub mod sequence;
