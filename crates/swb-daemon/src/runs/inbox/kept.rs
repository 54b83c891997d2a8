//! What is kept of the mail of a session: enough that a daemon that comes after a crash neither loses a message nor says
//! one twice.
//!
//! Up to `from`, everything is settled. Behind it, in any order, some messages were given to the agent and some are settled;
//! all others are still to be looked at. A message is kept as given, with the number of the write that gives it, before it
//! is written: the host takes each number once. Pure; `office` writes it down.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use swb_proto::Actor;
use swb_proto::id::RunId;

/// Messages of one session whose posters are remembered. Beyond, they are nobody's.
const MOST_POSTED: usize = 256;

/// The mail of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptInbox {
    pub(super) session_id: String,
    /// The project's name on the message bus.
    pub(super) project: String,
    /// The message that everything is settled up to; without one, all of the bus is looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    /// Messages that came through the daemon and are not settled.
    #[serde(default)]
    pub(super) posted: BTreeMap<String, Posted>,
    /// Messages behind `from` that were dealt with.
    #[serde(default)]
    pub(super) ahead: BTreeMap<String, Step>,
    /// Messages that reached the agent since a person last said something.
    #[serde(default)]
    pub(super) in_a_row: u32,
}

/// Who has posted a message, and what the daemon wrote for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Posted {
    pub(super) actor: Actor,
    /// Of the text and what else counts: a file can be changed by others.
    pub(super) hash: String,
}

/// How far a message has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// The agent has it, or is about to get it.
    Given(Box<Given>),
    /// Nothing is to be done about it any more.
    Settled,
}

/// A message as it was given to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Given {
    pub(super) run: RunId,
    /// Which of the processes of the session got it.
    pub(super) host: u32,
    /// The number of the write, by which its host knows it.
    pub(super) write: u64,
    pub(super) steers: bool,
    pub(super) is_data: bool,
    /// What was said, as it was agreed to.
    pub(super) text: String,
    pub(super) kind: String,
    pub(super) actor: Actor,
    /// It counts as one in a row.
    pub(super) counts: bool,
}

/// How far a reader of the bus has come.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) read: Option<String>,
    pub(super) acked: Option<String>,
}

impl KeptInbox {
    pub(super) fn new(session_id: &str, project: &str, from: Option<String>) -> Self {
        KeptInbox {
            session_id: session_id.to_owned(),
            project: project.to_owned(),
            from,
            posted: BTreeMap::new(),
            ahead: BTreeMap::new(),
            in_a_row: 0,
        }
    }

    /// A message came through the daemon.
    pub(super) fn note(&mut self, msg_id: &str, posted: Posted) {
        if self.posted.len() < MOST_POSTED {
            self.posted.insert(msg_id.to_owned(), posted);
        }
    }

    pub(super) fn given(&self) -> impl Iterator<Item = (&String, &Given)> {
        self.ahead.iter().filter_map(|(id, step)| match step {
            Step::Given(given) => Some((id, &**given)),
            Step::Settled => None,
        })
    }

    /// A message is about to be written to the agent.
    pub(super) fn give(&mut self, msg_id: &str, given: Given) {
        self.in_a_row = if given.counts { self.in_a_row.saturating_add(1) } else { 0 };
        self.ahead.insert(msg_id.to_owned(), Step::Given(Box::new(given)));
    }

    /// Another process, or another run: what it was not given is still to be said. True if there was something.
    pub(super) fn take_back(&mut self, run: &RunId, host: u32) -> bool {
        let before = self.ahead.len();
        let in_a_row = &mut self.in_a_row;
        self.ahead.retain(|_, step| match step {
            Step::Given(given) if given.run != *run || given.host != host => {
                *in_a_row = in_a_row.saturating_sub(u32::from(given.counts));
                false
            }
            _ => true,
        });
        self.ahead.len() < before
    }

    /// Nothing is to be done about a message any more. What was given, if it was.
    pub(super) fn settle(&mut self, msg_id: &str) -> Option<Given> {
        match self.ahead.insert(msg_id.to_owned(), Step::Settled) {
            Some(Step::Given(given)) => Some(*given),
            _ => None,
        }
    }

    /// Moves on along the messages in the order of the bus, which lose those that are settled for good.
    pub(super) fn advance(&mut self, line: &mut Vec<String>) -> Marks {
        let dealt_with = line.iter().take_while(|id| self.ahead.contains_key(*id)).count();
        let read = dealt_with.checked_sub(1).map(|last| line[last].clone());
        let settled = line.iter().take_while(|id| self.ahead.get(*id) == Some(&Step::Settled)).count();
        let mut acked = None;
        for id in line.drain(..settled) {
            self.ahead.remove(&id);
            self.posted.remove(&id);
            acked = Some(id);
        }
        if acked.is_some() {
            self.from.clone_from(&acked);
        }
        Marks { read, acked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn given(run: &str, counts: bool) -> Given {
        Given {
            run: run.to_owned().try_into().unwrap(),
            host: 1,
            write: 1,
            steers: false,
            is_data: false,
            text: "x".to_owned(),
            kind: "USER".to_owned(),
            actor: Actor::local_user(),
            counts,
        }
    }

    fn inbox() -> KeptInbox {
        KeptInbox::new("sess_a", "p", None)
    }

    #[test]
    fn a_reader_has_come_as_far_as_nothing_before_is_open() {
        let mut inbox = inbox();
        let mut line: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        inbox.give("a", given("run_1", true));
        inbox.settle("b");
        inbox.settle("c");
        let marks = inbox.advance(&mut line);
        assert_eq!((marks.read.as_deref(), marks.acked), (Some("c"), None), "a is not done with");
        assert_eq!(inbox.settle("a").map(|given| given.text), Some("x".to_owned()));
        let marks = inbox.advance(&mut line);
        assert_eq!((marks.acked.as_deref(), inbox.from.as_deref()), (Some("c"), Some("c")));
        assert!(line.is_empty() && inbox.ahead.is_empty());
        assert_eq!(inbox.settle("a"), None, "a second answer is no news");
    }

    #[test]
    fn what_another_process_was_given_is_still_to_be_said() {
        let mut inbox = inbox();
        let run: RunId = "run_1".to_owned().try_into().unwrap();
        inbox.give("a", given("run_1", true));
        inbox.give("b", given("run_1", true));
        inbox.settle("a");
        assert!(!inbox.take_back(&run, 1), "the same process has it");
        assert!(inbox.take_back(&run, 2));
        assert_eq!((inbox.in_a_row, inbox.given().count()), (1, 0), "it is counted when it is said again");
        assert!(inbox.ahead.contains_key("a"), "what is settled stays so");
    }

    #[test]
    fn only_so_many_posters_are_remembered() {
        let mut inbox = inbox();
        for number in 0..2 * MOST_POSTED {
            let posted = Posted { actor: Actor::local_user(), hash: String::new() };
            inbox.note(&format!("m{number}"), posted);
        }
        assert_eq!(inbox.posted.len(), MOST_POSTED);
    }

    proptest! {
        /// In whatever order messages are settled: every one is passed once, in the order of the bus, and only when all
        /// before it are settled.
        #[test]
        fn the_reader_moves_on_in_the_order_of_the_bus(order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle()) {
            let mut inbox = inbox();
            let all: Vec<String> = (0..8).map(|number| format!("m{number}")).collect();
            let mut line = all.clone();
            let mut settled = std::collections::BTreeSet::new();
            for number in order {
                inbox.settle(&all[number]);
                settled.insert(number);
                inbox.advance(&mut line);
                let passed = (0..8).take_while(|number| settled.contains(number)).count();
                prop_assert_eq!(&line[..], &all[passed..]);
                prop_assert_eq!(inbox.from.as_ref(), passed.checked_sub(1).map(|last| &all[last]));
            }
            prop_assert!(inbox.ahead.is_empty());
        }
    }
}
