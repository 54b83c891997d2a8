//! What is said when nothing can be recorded: then nothing is done either.

use std::borrow::Cow;

use swb_journal::audit::AppendError;
use swb_proto::BusError;
use swb_proto::error::{ERR_INTERNAL, ERR_OVERLOADED};
use swb_rules::redact::{redact, redact_json, without_paths};

/// Why something was not recorded.
#[derive(Debug, Clone, thiserror::Error)]
#[error("not recorded: {0}")]
pub struct RecordError(#[source] pub(super) AppendError);

impl From<AppendError> for RecordError {
    fn from(error: AppendError) -> Self {
        RecordError(error)
    }
}

/// An error as it may leave the house: without secrets, and without saying where anything lies.
#[must_use]
pub fn presentable(mut error: BusError) -> BusError {
    let message = redact(&error.message);
    if !message.matches.is_empty() {
        error.message = message.text;
    }
    if let Cow::Owned(message) = without_paths(&error.message) {
        error.message = message;
    }
    for (name, value) in error.data.iter_mut().flatten() {
        if name != "reason" {
            redact_json(value);
        }
    }
    error
}

impl From<RecordError> for BusError {
    /// The cause is for the log; whoever asks is told what to do, and no path.
    fn from(RecordError(error): RecordError) -> Self {
        let (code, reason, message, next) = match &error {
            AppendError::Full { .. } => (
                ERR_OVERLOADED,
                "AUDIT_BUSY",
                "too much waits to be recorded, so this was not done".to_owned(),
                "try again a little later",
            ),
            AppendError::Poisoned(failure) => (
                ERR_INTERNAL,
                "AUDIT_UNAVAILABLE",
                format!(
                    "the record cannot be written ({}), so commands are not carried out",
                    failure.source.kind()
                ),
                "make room on the disk or mend it, then `swb restart`; `swb audit verify` checks what was recorded",
            ),
            AppendError::TooLong { .. } => (
                ERR_INTERNAL,
                "AUDIT_UNAVAILABLE",
                "this is too long to be recorded, so it was not done".to_owned(),
                "say it in fewer words",
            ),
            _ => (
                ERR_INTERNAL,
                "AUDIT_UNAVAILABLE",
                "the record is closed, so commands are not carried out".to_owned(),
                "the daemon is stopping: connect again",
            ),
        };
        BusError::new(code, message).because(reason).with("next", next)
    }
}
