//! How long an answer is waited for.

use std::time::Duration;

/// A run that people look at.
pub const INTERACTIVE: Duration = Duration::from_secs(15 * 60);
/// A run that nobody looks at now but somebody will: detached, or behind AG-UI.
pub const DETACHED: Duration = Duration::from_secs(24 * 60 * 60);
/// What is left at least when the daemon comes back.
pub const AT_LEAST_AFTER_RESTART: Duration = Duration::from_secs(30);
/// The longest that "for this session" lasts, however long the session does.
pub const LONGEST_GRANT: Duration = Duration::from_secs(12 * 60 * 60);

/// How long somebody is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// 15 minutes.
    Interactive,
    /// 24 hours.
    Detached,
    /// Not at all: a foreground run without a person.
    Nobody,
    /// Shorter than that; never longer than a detached run waits.
    Within(Duration),
}

impl Patience {
    /// The moment of a question asked at `now` past which the answer is no.
    #[must_use]
    pub fn deadline(self, now: u64) -> u64 {
        let patience = match self {
            Self::Interactive => INTERACTIVE,
            Self::Detached => DETACHED,
            Self::Nobody => Duration::ZERO,
            Self::Within(patience) => patience.min(DETACHED),
        };
        now.saturating_add(millis(patience))
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
