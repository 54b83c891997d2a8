//! One file per command.

pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod bus;
pub(crate) mod call;
pub(crate) mod completion;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod down;
pub(crate) mod events;
pub(crate) mod man;
pub(crate) mod models;
pub(crate) mod policy;
pub(crate) mod projects;
pub(crate) mod restart;
pub(crate) mod rpc;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod sessions;
pub(crate) mod status;
pub(crate) mod token;
pub(crate) mod trust;
pub(crate) mod up;
pub(crate) mod watch;
pub(crate) mod workspaces;
