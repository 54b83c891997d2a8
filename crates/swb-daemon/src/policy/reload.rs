//! The thread that reads rules again when their files may have changed.
//!
//! It sleeps until the system tells of a change, waits for the writer to come to rest, and then looks at every folder:
//! a look at files that did not change costs little, and changes are rare. Where a folder cannot be watched (the system
//! has only so many watches), it looks twice a second instead.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use swb_journal::watch::Signal;

use super::decide::Shared;

/// Nothing happened for so long: whoever wrote is done.
const REST: Duration = Duration::from_millis(60);
/// A writer that never rests is not waited for longer.
const LONGEST_WAIT: Duration = Duration::from_millis(400);
/// How often to look where the system does not tell.
const POLL: Duration = Duration::from_millis(500);

/// Starts it; it ends with the last of those who decide.
pub(super) fn start(shared: &Arc<Shared>, bell: &Arc<Signal>) -> std::io::Result<()> {
    let (shared, bell) = (Arc::downgrade(shared), Arc::clone(bell));
    std::thread::Builder::new().name("policy-reload".to_owned()).spawn(move || follow(&shared, &bell))?;
    Ok(())
}

fn follow(shared: &Weak<Shared>, bell: &Signal) {
    let mut poll = shared.upgrade().is_some_and(|shared| shared.is_deaf()).then_some(POLL);
    loop {
        bell.wait(poll);
        let began = Instant::now();
        loop {
            if bell.is_stopped() {
                return;
            }
            bell.clear();
            if !bell.wait(Some(REST)) || began.elapsed() > LONGEST_WAIT {
                break;
            }
        }
        let Some(shared) = shared.upgrade() else { return };
        shared.read_again();
        poll = shared.is_deaf().then_some(POLL);
    }
}
