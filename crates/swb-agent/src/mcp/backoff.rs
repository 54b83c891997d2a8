//! How long a server that keeps failing is left alone: not at all after the first time, then 1 s, doubling up to 30 s.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// The pause after a failure that had so many before it, with no success in between.
pub(super) fn pause(failures_before: u32) -> Duration {
    match failures_before {
        0 => Duration::ZERO,
        count => FIRST.saturating_mul(2u32.saturating_pow(count - 1)).min(LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit() {
        let pauses: Vec<_> = (0..8).map(|count| pause(count).as_secs()).collect();
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(pause(u32::MAX), LONGEST);
    }
}
