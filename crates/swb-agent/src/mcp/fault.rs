//! Why a connection has no future.
//!
//! Whoever sees it first (the reader of a flood, the writer to a server that does not read, a call that nobody answers)
//! says so here; the task that holds the connection hears of it and ends it.

use std::sync::{Arc, OnceLock};

use crate::cancel::Cancel;

/// Shared by everything that belongs to one connection.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    cause: Arc<OnceLock<String>>,
    happened: Cancel,
}

impl Fault {
    pub(super) fn new() -> Self {
        Fault { cause: Arc::default(), happened: Cancel::new() }
    }

    /// Gives the connection up. The first cause counts.
    pub(super) fn raise(&self, cause: impl ToString) {
        let _ = self.cause.set(cause.to_string());
        self.happened.cancel();
    }

    pub(super) fn cause(&self) -> Option<&str> {
        self.cause.get().map(String::as_str)
    }

    /// Returns once it was raised.
    pub(super) async fn happened(&self) {
        self.happened.cancelled().await;
    }
}
