//! The office: the mail of all sessions, and the account of which messages came through the daemon.
//!
//! A post over HTTP to the bus of a session is expected before it is written and noted before its poster is told
//! (`counter`). Whoever finds a message on the bus that is not noted waits until nothing that was expected then is
//! expected any more ([`Office::caught_up`]); if it is still not noted, it came another way.
//!
//! Invariant: what is told to anybody is on disk. Whatever waits for the disk is called from threads that may wait.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use swb_journal::registry::{Found, Registry};
use swb_proto::id::RunId;
use swb_proto::{Actor, Timestamp};
use tokio::sync::watch;

use super::kept::{Given, KeptInbox, Marks};

/// The mail of all sessions.
#[derive(Debug)]
pub(crate) struct Office {
    desks: Mutex<Desks>,
    /// Never held while the disk is waited for: whoever posts anywhere asks here.
    expecting: Mutex<Expecting>,
    /// Something has changed.
    news: watch::Sender<u64>,
}

#[derive(Debug)]
struct Desks {
    kept: Registry<KeptInbox>,
    /// Messages behind the last settled one, in the order of the bus.
    lines: HashMap<String, Vec<String>>,
    /// How many messages wait for a person, and since when.
    held: HashMap<String, (u64, Timestamp)>,
}

/// What is on its way to buses of sessions.
#[derive(Debug, Default)]
struct Expecting {
    /// The sessions that mail is taken for, and their projects.
    projects: HashMap<String, String>,
    /// Messages that are about to be written, and for which session.
    open: BTreeMap<u64, String>,
    next: u64,
}

/// What is known of a message that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It was seen before.
    Seen,
    /// It is new, and came through the daemon from this actor.
    From(Actor),
    /// It is new, and nobody knows from whom.
    Unknown,
}

impl Office {
    pub(crate) fn open(path: &Path) -> io::Result<Arc<Self>> {
        let (kept, found) = Registry::open(path, |inbox: &KeptInbox| inbox.session_id.as_str())?;
        if found != Found::default() {
            let Found { torn_bytes, damaged_lines } = found;
            tracing::warn!(path = %path.display(), torn_bytes, damaged_lines, "the mail was cut short or damaged");
        }
        let projects = kept.iter().map(|inbox| (inbox.session_id.clone(), inbox.project.clone()));
        let expecting = Mutex::new(Expecting { projects: projects.collect(), ..Expecting::default() });
        let desks = Mutex::new(Desks { kept, lines: HashMap::new(), held: HashMap::new() });
        Ok(Arc::new(Office { desks, expecting, news: watch::Sender::new(0) }))
    }

    /// Mail is taken for a session. `last` is the last message on its bus, asked only if none was taken before.
    pub(super) fn admit(
        &self,
        session: &str,
        project: &str,
        last: impl FnOnce() -> Option<String>,
    ) -> io::Result<()> {
        if self.desks().kept.get(session).is_some() {
            return Ok(());
        }
        let from = last();
        let mut desks = self.desks();
        if desks.kept.get(session).is_some() {
            return Ok(());
        }
        desks.kept.put(KeptInbox::new(session, project, from))?;
        self.expecting().projects.insert(session.to_owned(), project.to_owned());
        Ok(())
    }

    /// The session is over, and its mail with it.
    pub(super) fn forget(&self, session: &str) {
        self.expecting().projects.remove(session);
        let mut desks = self.desks();
        desks.lines.remove(session);
        desks.held.remove(session);
        if let Err(error) = desks.kept.remove(session) {
            tracing::warn!(%error, session, "the mail of a session that is over could not be forgotten");
        }
    }

    /// The mail of sessions that are over is of no use.
    pub(super) fn keep_only(&self, lives: impl Fn(&str) -> bool) {
        let over: Vec<String> = {
            let desks = self.desks();
            let sessions = desks.kept.iter().map(|inbox| inbox.session_id.clone());
            sessions.filter(|session| !lives(session)).collect()
        };
        over.iter().for_each(|session| self.forget(session));
    }

    /// A process begins to take mail: what it has already.
    pub(super) fn begin(&self, session: &str, run: &RunId, host: u32) -> io::Result<Vec<(String, Given)>> {
        let mut desks = self.desks();
        desks.lines.remove(session);
        let Some(mut inbox) = desks.kept.get(session).cloned() else { return Ok(Vec::new()) };
        if inbox.take_back(run, host) {
            desks.kept.put(inbox.clone())?;
        }
        let mut given: Vec<(String, Given)> =
            inbox.given().map(|(id, given)| (id.clone(), given.clone())).collect();
        given.sort_by_key(|(_, given)| given.write);
        Ok(given)
    }

    /// The message after which the bus of a session is to be read; `None` if mail is not taken there.
    pub(super) fn place(&self, session: &str) -> Option<Option<String>> {
        self.desks().kept.get(session).map(|inbox| inbox.from.clone())
    }

    /// The place is not on the bus any more: reading goes on from its end.
    pub(super) fn lost_place(&self, session: &str, last: Option<String>) -> io::Result<()> {
        self.change(session, |inbox, _| inbox.from = last).map(drop)
    }

    /// What is known of a message that was found on the bus.
    pub(super) fn standing(&self, session: &str, msg_id: &str, hash: &str) -> Standing {
        let mut desks = self.desks();
        let Some(inbox) = desks.kept.get(session) else { return Standing::Seen };
        let step = inbox.ahead.contains_key(msg_id);
        let posted = inbox.posted.get(msg_id).filter(|posted| posted.hash == hash);
        let actor = posted.map(|posted| posted.actor.clone());
        let line = desks.lines.entry(session.to_owned()).or_default();
        if line.iter().any(|seen| seen == msg_id) {
            return Standing::Seen;
        }
        if step {
            line.push(msg_id.to_owned());
            return Standing::Seen;
        }
        actor.map_or(Standing::Unknown, Standing::From)
    }

    /// Who has posted a message, if it came through the daemon and is still as it was.
    pub(super) fn poster_of(&self, session: &str, msg_id: &str, hash: &str) -> Option<Actor> {
        let desks = self.desks();
        let posted = desks.kept.get(session)?.posted.get(msg_id).filter(|posted| posted.hash == hash)?;
        Some(posted.actor.clone())
    }

    /// A message that was found is for the agent.
    pub(super) fn line_up(&self, session: &str, msg_id: &str) {
        let mut desks = self.desks();
        desks.lines.entry(session.to_owned()).or_default().push(msg_id.to_owned());
    }

    /// Waits until all messages that were about to be written to the bus of a session are noted, or were not written.
    pub(super) async fn caught_up(&self, session: &str) {
        let mut news = self.news.subscribe();
        let next = self.expecting().next;
        let is_open = || self.expecting().open.range(..next).any(|(_, of)| of == session);
        while is_open() {
            if news.changed().await.is_err() {
                return;
            }
        }
    }

    /// A message is about to be written to the bus of a session. Its number, if mail is taken there.
    pub(super) fn expect(&self, project: &str, session: &str) -> Option<u64> {
        let mut expecting = self.expecting();
        expecting.projects.get(session).filter(|of| *of == project)?;
        let number = expecting.next;
        expecting.next += 1;
        expecting.open.insert(number, session.to_owned());
        Some(number)
    }

    /// A message that was expected is noted, or was not written.
    pub(super) fn expect_no_more(&self, number: u64) {
        self.expecting().open.remove(&number);
        self.tell();
    }

    /// Messages in a row that reached the agent without a person, and those it is not done with.
    pub(super) fn row(&self, session: &str) -> (u32, usize) {
        let desks = self.desks();
        desks.kept.get(session).map_or((0, 0), |inbox| (inbox.in_a_row, inbox.given().count()))
    }

    /// A message is about to be written to the agent.
    pub(super) fn give(&self, session: &str, msg_id: &str, given: Given) -> io::Result<Marks> {
        self.change(session, |inbox, line| {
            inbox.give(msg_id, given);
            inbox.advance(line)
        })
        .map(Option::unwrap_or_default)
    }

    /// Nothing is to be done about a message any more. What was given, if that is news.
    pub(super) fn settle(&self, session: &str, msg_id: &str) -> io::Result<(Option<Given>, Marks)> {
        let done = self.change(session, |inbox, line| {
            // One that is behind the last settled message, or in the line.
            if !inbox.ahead.contains_key(msg_id) && !line.iter().any(|seen| seen == msg_id) {
                return (None, Marks::default());
            }
            (inbox.settle(msg_id), inbox.advance(line))
        });
        done.map(Option::unwrap_or_default)
    }

    /// A person has said something to the agent of a session.
    pub(super) fn person_spoke(&self, session: &str) -> io::Result<()> {
        if self.desks().kept.get(session).is_none_or(|inbox| inbox.in_a_row == 0) {
            return Ok(());
        }
        self.change(session, |inbox, _| inbox.in_a_row = 0).map(drop)
    }

    /// So many messages wait for a person.
    pub(super) fn hold(&self, session: &str, count: u64) {
        let mut desks = self.desks();
        if count == 0 {
            desks.held.remove(session);
            return;
        }
        let since = crate::records::now();
        desks.held.entry(session.to_owned()).or_insert((count, since)).0 = count;
    }

    /// How many messages wait for a person, and since when.
    pub(in crate::runs) fn held(&self, session: &str) -> Option<(u64, Timestamp)> {
        self.desks().held.get(session).cloned()
    }

    /// Tells of changes.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Changes the mail of a session; nothing where none is taken.
    pub(super) fn change<T>(
        &self,
        session: &str,
        change: impl FnOnce(&mut KeptInbox, &mut Vec<String>) -> T,
    ) -> io::Result<Option<T>> {
        let mut desks = self.desks();
        let Some(before) = desks.kept.get(session) else { return Ok(None) };
        let mut inbox = before.clone();
        let mut line = desks.lines.get(session).cloned().unwrap_or_default();
        let changed = change(&mut inbox, &mut line);
        if desks.kept.get(session) != Some(&inbox) {
            desks.kept.put(inbox)?;
        }
        desks.lines.insert(session.to_owned(), line);
        drop(desks);
        self.tell();
        Ok(Some(changed))
    }

    fn tell(&self) {
        self.news.send_modify(|news| *news += 1);
    }

    fn expecting(&self) -> MutexGuard<'_, Expecting> {
        self.expecting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn desks(&self) -> MutexGuard<'_, Desks> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
