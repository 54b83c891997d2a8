//! How a command fails: what happened, why, and what to do next.

use std::error::Error;

use swb_bus::BusCallError;
use swb_bus::transport::client::{ConnectError, ConnectErrorKind};
use swb_daemon::config::ConfigError;
use swb_daemon::paths::NoHome;
use swb_proto::BusError;

use crate::exit_code;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
    pub(crate) cause: Option<String>,
    pub(crate) hint: Option<String>,
    /// Whoever read our output has gone: no failure of ours.
    pub(crate) reader_gone: bool,
    /// The daemon's own error, for `--json`.
    pub(crate) error: Option<Box<BusError>>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Failure {
            code: exit_code::FAILURE,
            message: message.into(),
            cause: None,
            hint: None,
            reader_gone: false,
            error: None,
        }
    }

    pub(crate) fn code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// The cause, with the causes behind it, each once.
    pub(crate) fn because(mut self, cause: impl Error) -> Self {
        let mut text = cause.to_string();
        let mut next = cause.source();
        while let Some(source) = next {
            let deeper = source.to_string();
            if !text.contains(&deeper) {
                text = format!("{text}: {deeper}");
            }
            next = source.source();
        }
        self.cause = Some(text);
        self
    }

    /// A cause that is known in words only.
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        let cause = cause.into();
        self.cause = Some(match self.cause.take() {
            Some(before) => format!("{before}\n  {cause}"),
            None => cause,
        });
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn not_running() -> Self {
        Failure::new("the daemon is not running").code(exit_code::NOT_RUNNING).hint("start it with `swb up`")
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        use std::io::ErrorKind::{ConnectionRefused, NotADirectory, NotFound};
        match &error.kind {
            ConnectErrorKind::Io(io) if matches!(io.kind(), NotFound | NotADirectory | ConnectionRefused) => {
                Failure::not_running()
            }
            _ => {
                Failure::new(error.to_string()).because(error.kind).hint("`swb doctor` looks for the reason")
            }
        }
    }
}

impl From<BusCallError> for Failure {
    fn from(error: BusCallError) -> Self {
        Failure::new("the daemon went away before it answered")
            .because(error)
            .code(exit_code::NOT_RUNNING)
            .hint("`swb status` tells whether it is back")
    }
}

impl From<BusError> for Failure {
    fn from(error: BusError) -> Self {
        let message = format!("{} ({} {})", error.message, error.code, error.reason());
        let hint = match error.code {
            swb_proto::error::ERR_METHOD_NOT_FOUND => {
                Some("`swb schema openrpc` lists the methods".to_owned())
            }
            _ if error.retryable() => Some("the same call may succeed a little later".to_owned()),
            _ => None,
        };
        Failure {
            code: exit_code::CALL_FAILED,
            message,
            cause: None,
            hint,
            reader_gone: false,
            error: Some(Box::new(error)),
        }
    }
}

impl From<swb_bus::CallError> for Failure {
    fn from(error: swb_bus::CallError) -> Self {
        match error {
            swb_bus::CallError::Call(error) => error.into(),
            swb_bus::CallError::Bus(error) => error.into(),
            other @ swb_bus::CallError::Type(_) => Failure::new(other.to_string())
                .hint("daemon and command are of different versions: try `swb restart`"),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::new("the configuration cannot be used")
            .because(error)
            .code(exit_code::CONFIG)
            .hint("`swb config` shows every setting and where it comes from")
    }
}

impl From<NoHome> for Failure {
    fn from(error: NoHome) -> Self {
        Failure::new(error.to_string()).code(exit_code::CONFIG)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let reader_gone = error.kind() == std::io::ErrorKind::BrokenPipe;
        Failure { reader_gone, ..Failure::new("input or output failed").because(error) }
    }
}
