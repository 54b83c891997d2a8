//! What a parent gives an agent so that a daemon judges its tool calls.
//!
//! It lies in the environment, so that subagents inherit it:
//!
//! | variable | meaning |
//! |---|---|
//! | `SWB_CONTROL_SOCKET` | the control socket. With it the rules of the daemon judge every call, without it the local mode |
//! | `SWB_SESSION_ID` | as which agent: the daemon's session. Needed with the socket; below a host it must be the host's |
//! | `SWB_CORRELATION_ID` | what the calls are part of, such as a run; stands on approvals and in the record. May be absent |
//! | `SWB_ASK_TIMEOUT_MS` | how long a person is waited for, 0 for not at all. Absent: 15 minutes |
//! | `SWB_SUBAGENTS` | set by an agent for its subagents: the names from the session down to it, parted by `/` |
//!
//! None of it is a secret, and none of it gives a right: below a host a connection is that host's agent whatever it claims,
//! and elsewhere whoever claims to be an agent gets less than a person. What cannot be used is an error at the start: an
//! agent that was to be judged by a daemon does not run without one.

use std::path::PathBuf;
use std::time::Duration;

use swb_proto::id::{self, CorrelationId, InvalidId, SessionId};

const SOCKET: &str = "SWB_CONTROL_SOCKET";
const SESSION: &str = "SWB_SESSION_ID";
const CORRELATION: &str = "SWB_CORRELATION_ID";
const TIMEOUT: &str = "SWB_ASK_TIMEOUT_MS";
/// Where a subagent finds its place below the session.
pub(crate) const SUBAGENTS: &str = "SWB_SUBAGENTS";
/// How long a person is waited for if nobody says otherwise.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// The daemon waits no longer either.
const LONGEST_PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// How the daemon is reached, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// The control socket.
    pub socket: PathBuf,
    /// The session of the daemon, which is the agent's name there.
    pub session_id: SessionId,
    /// What the calls are part of.
    pub correlation_id: Option<CorrelationId>,
    /// How long a person is waited for.
    pub patience: Duration,
    /// The subagents from the session down to this process; none if it is the session's own.
    pub subagents: Vec<String>,
}

/// What was given cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// A socket in a folder that depends on who looks.
    #[error("SWB_CONTROL_SOCKET must be an absolute path")]
    Relative,
    /// Nobody in particular cannot be judged.
    #[error(
        "SWB_CONTROL_SOCKET needs SWB_SESSION_ID beside it: the session that the daemon knows this agent as"
    )]
    NoSession,
    /// An id that is none.
    #[error("{0}: {1}")]
    Id(&'static str, InvalidId),
    /// A time that is none.
    #[error("SWB_ASK_TIMEOUT_MS must be a number of milliseconds")]
    Timeout,
}

impl Control {
    /// What the environment says; `None` if it names no daemon.
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, ControlError> {
        let env = |name: &str| env(name).filter(|value| !value.is_empty());
        let Some(socket) = env(SOCKET).map(PathBuf::from) else { return Ok(None) };
        if !socket.is_absolute() {
            return Err(ControlError::Relative);
        }
        let session_id = SessionId::try_from(env(SESSION).ok_or(ControlError::NoSession)?);
        let correlation_id = env(CORRELATION).map(CorrelationId::try_from).transpose();
        let patience = match env(TIMEOUT) {
            Some(text) => Duration::from_millis(text.parse().map_err(|_| ControlError::Timeout)?),
            None => PATIENCE,
        };
        let below = env(SUBAGENTS).unwrap_or_default();
        let subagents: Vec<_> = below.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        for name in &subagents {
            id::check(name).map_err(|error| ControlError::Id(SUBAGENTS, error))?;
        }
        Ok(Some(Control {
            socket,
            session_id: session_id.map_err(|error| ControlError::Id(SESSION, error))?,
            correlation_id: correlation_id.map_err(|error| ControlError::Id(CORRELATION, error))?,
            patience: patience.min(LONGEST_PATIENCE),
            subagents,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(env: &[(&str, &str)]) -> Result<Option<Control>, ControlError> {
        Control::from_env(|name| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn without_a_socket_there_is_no_daemon() {
        assert_eq!(control(&[(SESSION, "sess_1"), (SUBAGENTS, "a")]), Ok(None));
        assert_eq!(control(&[(SOCKET, ""), (SESSION, "sess_1")]), Ok(None));
    }

    #[test]
    fn with_one_everything_has_to_be_right() {
        let right = [(SOCKET, "/run/control.sock"), (SESSION, "sess_1")];
        let plain = control(&right).unwrap().unwrap();
        assert_eq!(
            (plain.session_id.as_str(), plain.patience, plain.subagents.len()),
            ("sess_1", PATIENCE, 0)
        );
        let with = |more: (&'static str, &'static str)| control(&[right[0], right[1], more]);
        let sub = with((SUBAGENTS, "scout/helper")).unwrap().unwrap();
        assert_eq!(sub.subagents, ["scout", "helper"]);
        assert_eq!(with((TIMEOUT, "0")).unwrap().unwrap().patience, Duration::ZERO);
        assert_eq!(with((TIMEOUT, "999999999999")).unwrap().unwrap().patience, LONGEST_PATIENCE);
        assert_eq!(control(&right[..1]), Err(ControlError::NoSession));
        assert_eq!(control(&[(SOCKET, "control.sock"), right[1]]), Err(ControlError::Relative));
        assert_eq!(with((TIMEOUT, "soon")), Err(ControlError::Timeout));
        for (name, value) in [(CORRELATION, "a b"), (SUBAGENTS, "a/b c")] {
            assert_eq!(with((name, value)), Err(ControlError::Id(name, InvalidId::BadByte)));
        }
    }
}
