//! When a daemon that ended is started again, and when to give up.
//!
//! A daemon that was ready has proven that it can run: it is always started again, at once the first time and with a
//! growing pause when it keeps dying young. A daemon that dies before it is ready is probably misconfigured: after
//! three such starts in a row there is no point in a fourth, and the watch gives up and says why.

use std::time::Duration;

/// Starts in a row that may die before they are ready.
pub const MAX_FAILED_STARTS: u32 = 3;
/// A daemon that lived this long is in good health, whatever ended it.
pub const HEALTHY_LIFE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The memory of a watch: how often in a row the daemon failed, and how.
#[derive(Debug, Clone, Default)]
pub struct RestartRule {
    failed_starts: u32,
    short_lives: u32,
}

/// What to do about a daemon that ended without being asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Start it again after a pause.
    Restart {
        /// The pause.
        after: Duration,
    },
    /// Leave it.
    GiveUp {
        /// How many starts in a row failed.
        failed_starts: u32,
    },
}

impl RestartRule {
    /// A daemon ended: had it become ready, and how long did it live?
    pub fn on_crash(&mut self, was_ready: bool, lived: Duration) -> Verdict {
        if was_ready {
            self.failed_starts = 0;
            self.short_lives = if lived >= HEALTHY_LIFE { 0 } else { self.short_lives + 1 };
            // The first short life costs nothing: whoever is connected notices a second at most.
            return Verdict::Restart { after: pause(self.short_lives.saturating_sub(1)) };
        }
        self.failed_starts += 1;
        if self.failed_starts >= MAX_FAILED_STARTS {
            Verdict::GiveUp { failed_starts: self.failed_starts }
        } else {
            Verdict::Restart { after: pause(self.failed_starts) }
        }
    }
}

fn pause(repetitions: u32) -> Duration {
    match repetitions {
        0 => Duration::ZERO,
        n => FIRST_PAUSE.saturating_mul(1 << (n - 1).min(16)).min(LONGEST_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const YOUNG: Duration = Duration::from_millis(1);

    #[test]
    fn a_first_crash_is_repaired_at_once() {
        assert_eq!(RestartRule::default().on_crash(true, YOUNG), Verdict::Restart { after: Duration::ZERO });
    }

    #[test]
    fn three_starts_that_never_get_ready_are_the_end() {
        let mut rule = RestartRule::default();
        assert!(matches!(rule.on_crash(false, YOUNG), Verdict::Restart { .. }));
        assert!(matches!(rule.on_crash(false, YOUNG), Verdict::Restart { .. }));
        assert_eq!(rule.on_crash(false, YOUNG), Verdict::GiveUp { failed_starts: 3 });
    }

    #[test]
    fn one_good_start_forgives_the_failed_ones() {
        let mut rule = RestartRule::default();
        rule.on_crash(false, YOUNG);
        rule.on_crash(false, YOUNG);
        rule.on_crash(true, YOUNG);
        assert!(matches!(rule.on_crash(false, YOUNG), Verdict::Restart { .. }));
    }

    #[test]
    fn a_daemon_that_keeps_dying_young_is_started_ever_more_slowly_but_always() {
        let mut rule = RestartRule::default();
        let pauses: Vec<_> = (0..20).map(|_| rule.on_crash(true, YOUNG)).collect();
        assert_eq!(pauses[1], Verdict::Restart { after: FIRST_PAUSE });
        assert_eq!(pauses[19], Verdict::Restart { after: LONGEST_PAUSE });
        assert_eq!(rule.on_crash(true, HEALTHY_LIFE), Verdict::Restart { after: Duration::ZERO });
    }

    proptest! {
        #[test]
        fn giving_up_needs_three_failures_in_a_row(history in proptest::collection::vec((any::<bool>(), 0u64..30), 0..60)) {
            let mut rule = RestartRule::default();
            let mut in_a_row = 0;
            for (ready, seconds) in history {
                in_a_row = if ready { 0 } else { in_a_row + 1 };
                let gave_up = matches!(rule.on_crash(ready, Duration::from_secs(seconds)), Verdict::GiveUp { .. });
                prop_assert_eq!(gave_up, in_a_row >= MAX_FAILED_STARTS);
            }
        }
    }
}
