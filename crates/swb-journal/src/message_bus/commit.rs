//! Group commit: whoever comes while a commit is under way waits for the next one, and that one serves all of them.
//!
//! The first to come opens a group and leads it; those who come after it only hand in their work and sleep. The leader
//! waits for its turn (a lock that is the caller's), closes the group, does the work of all and hands out the answers.
//! So a commit costs one lock, one write and one sync however many wait for it, and a lone writer waits for nobody.
//!
//! Invariants: a group has exactly one leader from its first moment to its last, so nobody waits for a wake-up that was
//! given before; work is done in the order in which it was handed in; a leader that panics answers its group with
//! nothing, and the next to come opens another one.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How often a leader looks in vain for those it expects. Together that is less than a tenth of a sync.
const PATIENCE: u32 = 4;

/// Where the writers of one opened bus meet: work `W` goes in, an answer `A` comes out.
#[derive(Debug)]
pub(super) struct GroupCommit<W, A> {
    meeting: Mutex<Meeting<W, A>>,
}

#[derive(Debug)]
struct Meeting<W, A> {
    open: Option<Group<W, A>>,
    /// How many the last two groups had.
    company: [usize; 2],
}

#[derive(Debug)]
struct Group<W, A> {
    work: Vec<W>,
    answers: Arc<Answers<A>>,
}

/// Set once, for the whole group; everybody takes their own out of it. Sleeping on it needs no lock to wake up under,
/// so a large group does not queue a second time when it is served.
type Answers<A> = OnceLock<Vec<Mutex<Option<A>>>>;

impl<W, A> Default for GroupCommit<W, A> {
    fn default() -> Self {
        Self { meeting: Mutex::new(Meeting { open: None, company: [1; 2] }) }
    }
}

impl<W, A> GroupCommit<W, A> {
    /// Hands in work and returns its answer, after leading the group if nobody else does. A leader waits for its turn
    /// within `lead`, then takes the group's work and returns one answer for each piece, in order.
    ///
    /// `None` if the leader panicked: nobody knows then what became of the work.
    pub(super) fn join(&self, work: W, lead: impl FnOnce(&Leader<'_, W, A>) -> Vec<A>) -> Option<A> {
        let (place, answers) = self.enter(work);
        if place == 0 {
            let leader = Leader { commit: self, answers: &answers };
            let given = lead(&leader);
            let _ = answers.set(given.into_iter().map(|answer| Mutex::new(Some(answer))).collect());
        }
        let answer = answers.wait().get(place)?;
        answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn enter(&self, work: W) -> (usize, Arc<Answers<A>>) {
        let mut meeting = self.meeting();
        let group = meeting.open.get_or_insert_with(|| Group { work: Vec::new(), answers: Arc::default() });
        group.work.push(work);
        (group.work.len() - 1, Arc::clone(&group.answers))
    }

    fn meeting(&self) -> MutexGuard<'_, Meeting<W, A>> {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The duty to serve a group.
#[derive(Debug)]
pub(super) struct Leader<'a, W, A> {
    commit: &'a GroupCommit<W, A>,
    answers: &'a Arc<Answers<A>>,
}

impl<W, A> Leader<'_, W, A> {
    /// Closes the group and takes its work. Whoever comes from now on opens the next one.
    pub(super) fn close(&self) -> Vec<W> {
        let (mut seen, mut in_vain) = (0, 0);
        loop {
            let mut meeting = self.commit.meeting();
            let Some(group) = self.own(&meeting) else { return Vec::new() };
            let here = group.work.len();
            in_vain = if here == seen { in_vain + 1 } else { 0 };
            if here >= meeting.expected() || in_vain > PATIENCE {
                meeting.company = [here, meeting.company[0]];
                return meeting.open.take().map(|group| group.work).unwrap_or_default();
            }
            seen = here;
            drop(meeting);
            // Those the last commit has just woken come back within microseconds, and a sync takes a hundred times as
            // long: let them in as long as they keep coming.
            std::thread::yield_now();
        }
    }

    fn own<'m>(&self, meeting: &'m Meeting<W, A>) -> Option<&'m Group<W, A>> {
        meeting.open.as_ref().filter(|group| Arc::ptr_eq(&group.answers, self.answers))
    }
}

impl<W, A> Meeting<W, A> {
    /// How many may come at once. Writers tend to fall into two groups that take turns, so it is the sum of the last
    /// two. One who has been alone expects nobody and does not wait.
    fn expected(&self) -> usize {
        let [last, before] = self.company;
        if last.max(before) == 1 { 1 } else { last + before }
    }
}

impl<W, A> Drop for Leader<'_, W, A> {
    fn drop(&mut self) {
        let mut meeting = self.commit.meeting();
        if self.own(&meeting).is_some() {
            meeting.open = None;
        }
        drop(meeting);
        // Only after a panic is there no answer yet.
        if self.answers.get().is_none() {
            let _ = self.answers.set(Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    use super::*;

    type Numbers = GroupCommit<u32, u32>;

    fn doubled(leader: &Leader<'_, u32, u32>) -> Vec<u32> {
        leader.close().into_iter().map(|number| number * 2).collect()
    }

    /// Returns once so many are waiting in the open group.
    fn wait_for(commit: &Numbers, waiting: usize) {
        while commit.meeting().open.as_ref().map_or(0, |group| group.work.len()) < waiting {
            std::thread::yield_now();
        }
    }

    #[test]
    fn those_who_come_during_a_commit_share_the_next_one() {
        let commit = Numbers::default();
        let turn = Mutex::new(());
        let commits = Mutex::new(Vec::new());
        let lead = |leader: &Leader<'_, u32, u32>| {
            let _turn = turn.lock();
            let work = leader.close();
            commits.lock().unwrap().push(work.len());
            work.into_iter().map(|number| number * 2).collect()
        };
        std::thread::scope(|scope| {
            let busy = turn.lock();
            for number in 0..20 {
                let (commit, lead) = (&commit, &lead);
                scope.spawn(move || assert_eq!(commit.join(number, lead), Some(number * 2)));
            }
            wait_for(&commit, 20);
            drop(busy);
        });
        assert_eq!(*commits.lock().unwrap(), [20]);
        assert_eq!(commit.join(7, doubled), Some(14), "a lone one waits for nobody");
    }

    #[test]
    fn a_leader_that_panics_strands_nobody() {
        for closes_first in [false, true] {
            let commit = &Numbers::default();
            let (go, gone) = mpsc::channel::<()>();
            let lead = move |leader: &Leader<'_, u32, u32>| -> Vec<u32> {
                gone.recv().unwrap();
                if closes_first {
                    leader.close();
                }
                panic!("as the test wants it");
            };
            std::thread::scope(|scope| {
                let leader =
                    scope.spawn(move || catch_unwind(AssertUnwindSafe(|| commit.join(0, lead))).is_err());
                wait_for(commit, 1);
                let followers: Vec<_> =
                    (1..5).map(|number| scope.spawn(move || commit.join(number, doubled))).collect();
                wait_for(commit, 5);
                go.send(()).unwrap();
                assert!(leader.join().unwrap());
                followers.into_iter().for_each(|follower| assert_eq!(follower.join().unwrap(), None));
            });
            assert_eq!(commit.join(7, doubled), Some(14), "the next group has a leader of its own");
        }
    }

    #[test]
    fn many_threads_all_get_their_own_answers() {
        let commit = Numbers::default();
        let turn = Mutex::new(());
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (commit, turn) = (&commit, &turn);
                scope.spawn(move || {
                    for number in (0..500).map(|n| thread * 1000 + n) {
                        let answer = commit.join(number, |leader| {
                            let _turn = turn.lock();
                            doubled(leader)
                        });
                        assert_eq!(answer, Some(number * 2));
                    }
                });
            }
        });
    }
}
