use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread::{self, ThreadId};

use super::*;

type Numbers = GroupCommit<u32, u32>;

fn doubled(work: &[u32]) -> Vec<u32> {
    work.iter().map(|number| number * 2).collect()
}

/// Returns once so many are waiting in the open group.
fn wait_for<W, A>(commit: &GroupCommit<W, A>, waiting: usize) {
    while commit.meeting().open.as_ref().map_or(0, |group| group.work.len()) < waiting {
        thread::yield_now();
    }
}

/// Holds a commit of one open while `during` runs.
fn during_a_commit<'s>(scope: &'s thread::Scope<'s, '_>, commit: &'s Numbers, during: impl FnOnce()) {
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    scope.spawn(move || {
        commit.join(0, move |work| {
            begun.send(()).unwrap();
            may_go_on.recv().unwrap();
            doubled(work)
        })
    });
    has_begun.recv().unwrap();
    during();
    go_on.send(()).unwrap();
}

#[test]
fn those_who_come_during_a_commit_share_the_next_one() {
    let commit = &Numbers::default();
    let commits = &Mutex::new(Vec::new());
    thread::scope(|scope| {
        during_a_commit(scope, commit, || {
            for number in 1..=20 {
                scope.spawn(move || {
                    let answer = commit.join(number, |work| {
                        commits.lock().unwrap().push(work.to_vec());
                        doubled(work)
                    });
                    assert_eq!(answer, Some(number * 2));
                });
                wait_for(commit, number as usize);
            }
        });
    });
    assert_eq!(*commits.lock().unwrap(), [(1..=20).collect::<Vec<_>>()], "together and in order");
}

#[test]
fn the_last_of_those_who_are_expected_leads_and_nobody_waits_for_the_clock() {
    let commit = &Numbers::default();
    {
        let mut meeting = commit.meeting();
        (meeting.awaited, meeting.patience) = (5, Duration::from_secs(3600));
    }
    let leaders = &Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..5 {
            scope.spawn(move || {
                let answer = commit.join(number, |work| {
                    leaders.lock().unwrap().push((number, work.len()));
                    doubled(work)
                });
                assert_eq!(answer, Some(number * 2));
            });
            if number < 4 {
                wait_for(commit, number as usize + 1);
            }
        }
    });
    assert_eq!(*leaders.lock().unwrap(), [(4, 5)]);
}

#[test]
fn who_does_not_come_is_waited_for_a_little_and_then_not_expected_for_a_while() {
    let commit = &Numbers::default();
    let expect_another = |doubts: u32| {
        let mut meeting = commit.meeting();
        (meeting.awaited, meeting.patience) = (2, Duration::from_millis(1));
        assert_eq!((meeting.doubts, meeting.hurried), (doubts, 0));
    };
    let mut doubts = 0;
    for in_vain in 0..4 {
        expect_another(doubts);
        assert_eq!(commit.join(7, doubled), Some(14), "led by the one who watches");
        doubts = in_vain + 1;
        for left in (0..(1 << doubts) - 1).rev() {
            let meeting = commit.meeting();
            assert_eq!((meeting.awaited, meeting.hurried), (0, left + 1));
            drop(meeting);
            commit.join(7, doubled);
        }
    }
    assert_eq!(commit.join(7, doubled), Some(14));
    assert_eq!(commit.meeting().doubts, 0, "one that was expected came");
}

#[test]
fn a_lone_one_waits_for_nobody() {
    let commit = Numbers::default();
    for _ in 0..3 {
        commit.meeting().patience = Duration::from_secs(3600);
        assert_eq!(commit.join(7, doubled), Some(14));
    }
}

#[test]
fn a_leader_that_panics_strands_nobody() {
    let commit = &Numbers::default();
    let panics = |_: &[u32]| -> Vec<u32> { panic!("as the test wants it") };
    thread::scope(|scope| {
        let mut group = Vec::new();
        during_a_commit(scope, commit, || {
            for number in 1..5_u32 {
                let lead =
                    move || catch_unwind(AssertUnwindSafe(|| commit.join(number, panics))).unwrap_or(None);
                group.push(scope.spawn(lead));
                wait_for(commit, number as usize);
            }
        });
        group.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), None));
    });
    assert_eq!(commit.join(7, doubled), Some(14), "the next group has a leader of its own");
}

#[test]
fn those_who_came_during_a_commit_that_panicked_are_served() {
    let commit = &Numbers::default();
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let panics = move |_: &[u32]| -> Vec<u32> {
                begun.send(()).unwrap();
                may_go_on.recv().unwrap();
                panic!("as the test wants it")
            };
            assert!(catch_unwind(AssertUnwindSafe(|| commit.join(0, panics))).is_err());
        });
        has_begun.recv().unwrap();
        let others: Vec<_> = (1..4).map(|number| scope.spawn(move || commit.join(number, doubled))).collect();
        wait_for(commit, 3);
        go_on.send(()).unwrap();
        let mut answers: Vec<_> = others.into_iter().map(|other| other.join().unwrap().unwrap()).collect();
        answers.sort_unstable();
        assert_eq!(answers, [2, 4, 6]);
    });
}

#[test]
fn many_threads_all_get_their_own_answers() {
    let commit = &Numbers::default();
    thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for number in (0..500).map(|n| thread * 1000 + n) {
                    assert_eq!(commit.join(number, doubled), Some(number * 2));
                }
            });
        }
    });
    assert!(commit.meeting().open.is_none());
}

/// Work that knows who made it, and notes who took it down.
struct Made<'a> {
    number: u32,
    by: ThreadId,
    taken_down_by_others: &'a Mutex<Vec<u32>>,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if thread::current().id() != self.by {
            self.taken_down_by_others.lock().unwrap().push(self.number);
        }
    }
}

#[test]
fn work_goes_back_to_whoever_handed_it_in() {
    let taken_down_by_others = &Mutex::new(Vec::new());
    let commit = &GroupCommit::<Made<'_>, u32>::default();
    let largest = &Mutex::new(0);
    thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for number in (0..200).map(|n| thread * 1000 + n) {
                    let made = Made { number, by: thread::current().id(), taken_down_by_others };
                    let answer = commit.join(made, |work| {
                        let mut largest = largest.lock().unwrap();
                        if *largest == 0 {
                            // So that the next group is one of several, whoever is how fast.
                            wait_for(commit, 2);
                        }
                        *largest = work.len().max(*largest);
                        work.iter().map(|made| made.number * 2).collect()
                    });
                    assert_eq!(answer, Some(number * 2));
                }
            });
        }
    });
    assert!(*largest.lock().unwrap() > 1, "nobody ever did somebody else's work");
    assert_eq!(*taken_down_by_others.lock().unwrap(), [0; 0]);
}

/// What became of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    Failed(usize),
    Panicked,
}

#[test]
fn what_becomes_of_a_group_is_told_to_all_of_it_and_to_nobody_else() {
    let commit = &GroupCommit::<u32, Result<u32, usize>>::default();
    // By number: the fate of the group it was in.
    let fates = &Mutex::new((0, HashMap::new()));
    let told = &Mutex::new(HashMap::new());
    thread::scope(|scope| {
        for thread in 0..16 {
            scope.spawn(move || {
                for number in (0..300).map(|n| thread * 1000 + n) {
                    let decide = |work: &[u32]| {
                        let mut fates = fates.lock().unwrap();
                        if fates.0 == 0 {
                            wait_for(commit, 2);
                        }
                        fates.0 += 1;
                        let fate = match fates.0 {
                            group if group % 11 == 0 => Fate::Panicked,
                            group if group % 3 == 0 => Fate::Failed(group),
                            _ => Fate::Done,
                        };
                        for number in work {
                            assert_eq!(fates.1.insert(*number, fate), None, "{number} is in two groups");
                        }
                        drop(fates);
                        let answer = |number: &u32| match fate {
                            Fate::Done => Ok(*number),
                            Fate::Failed(group) => Err(group),
                            Fate::Panicked => panic!("as the test wants it"),
                        };
                        work.iter().map(answer).collect()
                    };
                    let answer =
                        catch_unwind(AssertUnwindSafe(|| commit.join(number, decide))).unwrap_or(None);
                    let fate = match answer {
                        Some(Ok(own)) => {
                            assert_eq!(own, number);
                            Fate::Done
                        }
                        Some(Err(group)) => Fate::Failed(group),
                        None => Fate::Panicked,
                    };
                    told.lock().unwrap().insert(number, fate);
                }
            });
        }
    });
    let (fates, told) = (fates.lock().unwrap(), told.lock().unwrap());
    assert_eq!(told.len(), 16 * 300);
    assert_eq!(*told, fates.1);
    assert!(fates.0 < told.len(), "groups were of more than one");
    assert!(!commit.meeting().busy);
}
