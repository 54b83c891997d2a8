//! Waiting for what is named, and failing with the name.

use std::time::{Duration, Instant};

/// How long anything may take on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Returns once `condition` holds.
///
/// # Panics
/// With the name of what was waited for, if it takes longer than [`PATIENCE`].
#[track_caller]
pub fn wait(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Returns what `found` finds.
///
/// # Panics
/// With the name of what was waited for, if it takes longer than [`PATIENCE`].
#[track_caller]
pub fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where tests pause, between two looks at a named condition"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}
