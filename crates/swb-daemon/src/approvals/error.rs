//! Why a question was not put, not answered, or not waited for; and what callers on the bus are told.

use std::io;

use swb_proto::BusError;
use swb_proto::error::{
    ERR_HANDLER, ERR_INVALID_PARAMS, ERR_INVALID_REQUEST, ERR_OVERLOADED, ERR_SHUTTING_DOWN, ERR_UNAUTHORIZED,
};
use swb_proto::id::InvalidId;
use swb_rules::approval::{Choice, Outcome, RequestError};
use thiserror::Error;

use super::view::outcome_to_wire;

/// Why a question was not put. Whatever it was, the answer is no.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AskError {
    /// The id cannot be one.
    #[error("the id of an approval: {0}")]
    BadId(#[from] InvalidId),
    /// The rules of the desk refused it.
    #[error(transparent)]
    Refused(#[from] RequestError),
    /// One agent and those below it have asked too much already.
    #[error("{limit} approvals of the same agent are pending already")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// It could not be written.
    #[error("the question could not be kept")]
    NotKept(#[source] io::Error),
    /// The daemon stops.
    #[error("the daemon is stopping")]
    Stopping,
}

/// Why there is no outcome to be told. Whatever it was, the answer is no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The deadline has passed and the disk does not take the end.
    #[error("nobody answered in time, and that could not be kept")]
    NotKept,
    /// The daemon stops. The question stays: asked again under the same id it is the same one.
    #[error("the daemon is stopping; the question stays")]
    Stopping,
}

/// Why an answer does not count.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// No such question, or its outcome is too old to be remembered.
    #[error("there is no approval {id}; approval.list names them")]
    Unknown {
        /// The id.
        id: String,
    },
    /// Somebody or the deadline was first.
    #[error("approval {id} is already resolved")]
    AlreadyResolved {
        /// The id.
        id: String,
        /// What came out.
        outcome: Box<Outcome>,
    },
    /// It is not among the options.
    #[error("approval {id} cannot be answered like that")]
    NoSuchOption {
        /// The id.
        id: String,
        /// What can be answered.
        options: Vec<Choice>,
    },
    /// Only people answer.
    #[error("approvals are answered by people")]
    NotAPerson,
    /// There is no such grant.
    #[error("there is no grant {id}; grant.list names them")]
    UnknownGrant {
        /// The id.
        id: String,
    },
    /// It could not be written.
    #[error("the answer could not be kept, so it does not count")]
    NotKept(#[source] io::Error),
}

impl From<AskError> for BusError {
    fn from(error: AskError) -> Self {
        let message = error.to_string();
        match error {
            AskError::BadId(_) => BusError::new(ERR_INVALID_PARAMS, message),
            AskError::Refused(RequestError::OtherQuestion { .. }) => {
                BusError::new(ERR_INVALID_REQUEST, message).because("OTHER_QUESTION")
            }
            AskError::Refused(_) | AskError::TooMany { .. } => {
                BusError::new(ERR_OVERLOADED, message).because("TOO_MANY_APPROVALS")
            }
            AskError::NotKept(source) => not_kept(&message, &source),
            AskError::Stopping => BusError::new(ERR_SHUTTING_DOWN, message),
        }
    }
}

impl From<WaitError> for BusError {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::NotKept => BusError::new(ERR_HANDLER, error.to_string()).because("NOT_KEPT"),
            WaitError::Stopping => BusError::new(ERR_SHUTTING_DOWN, error.to_string()),
        }
    }
}

impl From<AnswerError> for BusError {
    fn from(error: AnswerError) -> Self {
        let message = error.to_string();
        match error {
            AnswerError::Unknown { .. } => {
                BusError::new(ERR_INVALID_PARAMS, message).because("APPROVAL_NOT_FOUND")
            }
            AnswerError::AlreadyResolved { id, outcome } => {
                let told = serde_json::to_value(outcome_to_wire(&outcome)).unwrap_or_default();
                BusError::new(ERR_INVALID_REQUEST, message)
                    .because("ALREADY_RESOLVED")
                    .with("approval_id", id)
                    .with("outcome", told)
            }
            AnswerError::NoSuchOption { options, .. } => BusError::new(ERR_INVALID_REQUEST, message)
                .because("NO_SUCH_OPTION")
                .with("options", serde_json::to_value(options).unwrap_or_default()),
            AnswerError::NotAPerson => BusError::new(ERR_UNAUTHORIZED, message),
            AnswerError::UnknownGrant { .. } => {
                BusError::new(ERR_INVALID_PARAMS, message).because("GRANT_NOT_FOUND")
            }
            AnswerError::NotKept(source) => not_kept(&message, &source),
        }
    }
}

/// What the disk said is for the log; whoever asked hears its kind.
fn not_kept(message: &str, source: &io::Error) -> BusError {
    tracing::error!(error = %source, "an approval could not be written");
    BusError::new(ERR_HANDLER, format!("{message}: {}", source.kind())).because("NOT_KEPT")
}
