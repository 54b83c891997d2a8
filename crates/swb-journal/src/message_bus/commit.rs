//! Group commit: whoever comes while a commit is under way waits for the next one, and that one serves all of them.
//!
//! ```text
//!  come ─► hand in work ─► is anybody still expected? ─ no ─► lead: commit for all, wake all
//!                                     │ yes
//!                                     └─► sleep until served; one of the sleepers watches the time
//! ```
//!
//! Those whom a commit has served usually come back at once with more, and a commit costs a hundred times what a message
//! does, so it pays to wait for them: the *last* of them to come leads the group. It is awake already, so a round costs
//! everybody one sleep and one wake-up, and nobody else is woken in between. If some do not come, the one who watches leads
//! once nobody came for the time of one commit. A wait in vain is remembered, and the next few groups wait for nobody. A lone
//! writer is itself whom it expects, so it never waits.
//!
//! Invariants: a group is led exactly once; while it is open and no commit is under way, somebody watches it or is about
//! to lead it; work is done in the order in which it was handed in; what becomes of a group is told to all of it and to
//! nobody else; a leader that panics answers its group with nothing, and the next group has a leader of its own.
//!
//! What a round costs beside its commit is one sleep and one wake-up of each thread, and that is the scheduler's. Waking
//! them one by one, in a chain or as a tree, or syncing two halves at once, is slower than waking all of them with one call.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A wait in vain is followed by at most this many doublings of groups that wait for nobody.
const MOST_DOUBTS: u32 = 6;

/// Where the writers of one opened bus meet: work `W` goes in, an answer `A` comes out.
#[derive(Debug)]
pub(super) struct GroupCommit<W, A> {
    meeting: Mutex<Meeting<W, A>>,
}

#[derive(Debug)]
struct Meeting<W, A> {
    open: Option<Group<W, A>>,
    /// A commit is under way.
    busy: bool,
    /// How many of those the last commit served have not come back.
    awaited: usize,
    /// How long to wait for the next of them.
    patience: Duration,
    /// Waits in vain in a row, and how many groups do without waiting because of them.
    doubts: u32,
    hurried: u32,
}

#[derive(Debug)]
struct Group<W, A> {
    work: Vec<W>,
    served: Arc<Served<W, A>>,
}

/// Where a group sleeps, and finds its answers.
#[derive(Debug)]
struct Served<W, A> {
    outcome: Mutex<Outcome<W, A>>,
    changed: Condvar,
}

#[derive(Debug)]
enum Outcome<W, A> {
    /// None yet; `unwatched` asks one of the sleepers to watch the time.
    Open { unwatched: bool },
    /// One for each, in order; everybody takes their own. None at all after a panic.
    ///
    /// The work comes back with it: whoever made it also takes it down, on a thread that is awake anyway. A leader
    /// that did so for all would keep them waiting.
    Answers(Vec<Option<(W, A)>>),
}

impl<W, A> Default for GroupCommit<W, A> {
    fn default() -> Self {
        let patience = Duration::ZERO;
        let meeting = Meeting { open: None, busy: false, awaited: 0, patience, doubts: 0, hurried: 0 };
        Self { meeting: Mutex::new(meeting) }
    }
}

impl<W, A> GroupCommit<W, A> {
    /// Hands in work and returns its answer. `commit` does the work of a group and returns one answer for each piece,
    /// in order; somebody's is called for each group.
    ///
    /// `None` if the leader panicked: nobody knows then what became of the work.
    pub(super) fn join(&self, work: W, commit: impl FnOnce(&[W]) -> Vec<A>) -> Option<A> {
        let mut meeting = self.meeting();
        let expected = meeting.awaited.max(1);
        meeting.awaited = expected - 1;
        let group = meeting.open.get_or_insert_with(|| Group::of(expected));
        let place = group.work.len();
        group.work.push(work);
        let served = Arc::clone(&group.served);
        if !meeting.busy && meeting.awaited == 0 {
            if meeting.hurried == 0 {
                meeting.doubts = 0;
            }
            self.lead(meeting, commit);
        } else {
            // While a commit is under way nobody watches: its leader asks somebody when it is done.
            let watches = !meeting.busy && place == 0;
            drop(meeting);
            if !watches && let Some(answer) = served.sleep(place) {
                return answer.map(|(_, answer)| answer);
            }
            if let Some(meeting) = self.watch(&served) {
                self.lead(meeting, commit);
            }
        }
        served.take(place).map(|(_, answer)| answer)
    }

    /// Waits for those who are expected, as long as they keep coming. Returns with the duty to lead, or with nothing if
    /// somebody else has it.
    fn watch(&self, served: &Arc<Served<W, A>>) -> Option<MutexGuard<'_, Meeting<W, A>>> {
        let mut seen = 0;
        loop {
            let mut meeting = self.meeting();
            let here = meeting.open.as_ref().filter(|group| Arc::ptr_eq(&group.served, served))?.work.len();
            if meeting.awaited == 0 || here == seen {
                // All are here, or none came since the last look.
                if meeting.awaited > 0 {
                    meeting.doubts = (meeting.doubts + 1).min(MOST_DOUBTS);
                    meeting.hurried = 1 << meeting.doubts;
                }
                return Some(meeting);
            }
            seen = here;
            let patience = meeting.patience;
            drop(meeting);
            served.sleep_for(patience);
        }
    }

    /// Serves the open group.
    fn lead(&self, mut meeting: MutexGuard<'_, Meeting<W, A>>, commit: impl FnOnce(&[W]) -> Vec<A>) {
        let Some(group) = meeting.open.take() else { return };
        meeting.busy = true;
        drop(meeting);
        let mut duty =
            Duty { commit: self, served: &group.served, took: Duration::ZERO, answers: Vec::new() };
        let begun = Instant::now();
        let answers = commit(&group.work);
        duty.took = begun.elapsed();
        duty.answers = group.work.into_iter().zip(answers).map(Some).collect();
    }

    fn meeting(&self) -> MutexGuard<'_, Meeting<W, A>> {
        lock(&self.meeting)
    }
}

/// What a leader owes, whether it gets through or panics: answers to its group, and somebody to watch the next one.
struct Duty<'a, W, A> {
    commit: &'a GroupCommit<W, A>,
    served: &'a Served<W, A>,
    took: Duration,
    answers: Vec<Option<(W, A)>>,
}

impl<W, A> Drop for Duty<'_, W, A> {
    fn drop(&mut self) {
        let mut meeting = self.commit.meeting();
        meeting.busy = false;
        meeting.hurried = meeting.hurried.saturating_sub(1);
        meeting.awaited = if meeting.hurried > 0 { 0 } else { self.answers.len() };
        meeting.patience = self.took;
        let next = meeting.open.as_ref().map(|group| Arc::clone(&group.served));
        drop(meeting);
        if let Some(next) = next {
            next.ask_one_to_watch();
        }
        *lock(&self.served.outcome) = Outcome::Answers(std::mem::take(&mut self.answers));
        self.served.changed.notify_all();
    }
}

impl<W, A> Served<W, A> {
    fn ask_one_to_watch(&self) {
        // It may have been led and served in the meantime.
        if let Outcome::Open { unwatched } = &mut *lock(&self.outcome) {
            *unwatched = true;
        }
        self.changed.notify_one();
    }

    /// Until there are answers: then one's own. `None` if somebody must watch, and it is this one.
    fn sleep(&self, place: usize) -> Option<Option<(W, A)>> {
        let quiet = |outcome: &mut Outcome<W, A>| matches!(outcome, Outcome::Open { unwatched: false });
        let mut outcome =
            self.changed.wait_while(lock(&self.outcome), quiet).unwrap_or_else(PoisonError::into_inner);
        match &mut *outcome {
            Outcome::Answers(answers) => Some(answers.get_mut(place).and_then(Option::take)),
            Outcome::Open { unwatched } => {
                *unwatched = false;
                None
            }
        }
    }

    /// Until there are answers, or for this long.
    fn sleep_for(&self, time: Duration) {
        let asleep = |outcome: &mut Outcome<W, A>| matches!(outcome, Outcome::Open { .. });
        drop(self.changed.wait_timeout_while(lock(&self.outcome), time, asleep));
    }

    /// The answer of one, waited for.
    fn take(&self, place: usize) -> Option<(W, A)> {
        let asleep = |outcome: &mut Outcome<W, A>| matches!(outcome, Outcome::Open { .. });
        let mut outcome =
            self.changed.wait_while(lock(&self.outcome), asleep).unwrap_or_else(PoisonError::into_inner);
        match &mut *outcome {
            Outcome::Answers(answers) => answers.get_mut(place)?.take(),
            Outcome::Open { .. } => None,
        }
    }
}

impl<W, A> Group<W, A> {
    /// Nobody yet, with room for so many: where it grows, others wait for the lock.
    fn of(expected: usize) -> Self {
        let outcome = Mutex::new(Outcome::Open { unwatched: false });
        let served = Arc::new(Served { outcome, changed: Condvar::new() });
        Self { work: Vec::with_capacity(expected), served }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
