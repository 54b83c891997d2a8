//! Where client and server run.
//!
//! A round trip between two idle cores costs their wake-ups (about 44 us on the machine this was written on), one on a
//! shared core a third of that, and the kernel moves each pair between the two as it likes. A figure of a run in which it
//! chose differently for the two sides compares nothing, so each placement is also measured with the choice taken away.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Who runs where.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Placement {
    /// As the kernel likes.
    Free,
    OneCore,
    TwoCores,
}

impl Placement {
    pub(crate) const ALL: [Placement; 3] = [Placement::Free, Placement::OneCore, Placement::TwoCores];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Placement::Free => "",
            Placement::OneCore => "one core, ",
            Placement::TwoCores => "two cores, ",
        }
    }

    /// The cores of client and server; `None` if this machine has not got them.
    pub(crate) fn cores(self) -> Option<(Option<usize>, Option<usize>)> {
        let allowed = sched_getaffinity(None).ok()?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        match (self, cores.next()?, cores.next()) {
            (Placement::Free, ..) => Some((None, None)),
            (Placement::OneCore, first, _) => Some((Some(first), Some(first))),
            (Placement::TwoCores, first, second) => Some((Some(first), Some(second?))),
        }
    }
}

/// Keeps this thread, and those it starts, on one core.
pub(crate) fn stay_on(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).expect("the core was among those allowed");
}

/// Runs `work` on `core`, or wherever the kernel likes, and goes back.
pub(crate) fn on<T>(core: Option<usize>, work: impl FnOnce() -> T) -> T {
    let before = sched_getaffinity(None).expect("there is a core to run on");
    if let Some(core) = core {
        stay_on(core);
    }
    let result = work();
    sched_setaffinity(None, &before).expect("it was allowed before");
    result
}
