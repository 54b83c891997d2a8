//! Exit codes are an interface: scripts depend on them. New ones are added, none is changed.

/// It worked.
pub const SUCCESS: u8 = 0;
/// It did not work, for a reason that has no code of its own.
pub const FAILURE: u8 = 1;
/// The arguments make no sense.
pub const USAGE: u8 = 2;
/// The daemon is not running.
pub const NOT_RUNNING: u8 = 3;
/// The daemon did not start.
pub const START_FAILED: u8 = 4;
/// The daemon answered with an error.
pub const CALL_FAILED: u8 = 5;
/// The configuration cannot be used.
pub const CONFIG: u8 = 6;

/// The agent's turn failed.
pub const TURN_FAILED: u8 = 7;
/// The agent went away in the middle of a turn.
pub const AGENT_GONE: u8 = 8;
/// The turn came to its end, but something was denied because nobody was there to ask.
pub const NOBODY_TO_ASK: u8 = 9;
/// The terminal went away (128 and the number of SIGHUP).
pub const HUNG_UP: u8 = 129;
/// Somebody has aborted it (128 and the number of SIGINT).
pub const ABORTED: u8 = 130;
/// Somebody has ended it (128 and the number of SIGTERM).
pub const TERMINATED: u8 = 143;

/// All of them, for the manual.
pub const TABLE: &[(u8, &str)] = &[
    (SUCCESS, "it worked"),
    (FAILURE, "it did not work"),
    (USAGE, "the arguments make no sense"),
    (NOT_RUNNING, "the daemon is not running"),
    (START_FAILED, "the daemon did not start"),
    (CALL_FAILED, "the daemon answered with an error"),
    (CONFIG, "the configuration cannot be used"),
    (TURN_FAILED, "the agent's turn failed"),
    (AGENT_GONE, "the agent went away in the middle of a turn"),
    (NOBODY_TO_ASK, "the turn ended, but a call was denied because nobody was there to ask"),
    (HUNG_UP, "the terminal went away during `swb run`"),
    (ABORTED, "`swb run` was aborted"),
    (TERMINATED, "`swb run` was terminated"),
];
