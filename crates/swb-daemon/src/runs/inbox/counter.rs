//! The counter: every post over HTTP to the bus of a session is expected before it is written, and noted before its
//! poster is told.

use std::sync::Arc;

use swb_gateway::{Expected, Postmaster};
use swb_journal::message_bus::Draft;
use swb_proto::Actor;

use super::kept::Posted;
use super::letter::hash_of_draft;
use super::office::Office;

/// The account that the HTTP server keeps.
#[derive(Debug)]
pub(super) struct Counter(pub(super) Arc<Office>);

impl Postmaster for Counter {
    fn expect(&self, project: &str, task: &str) -> Option<Box<dyn Expected>> {
        let number = self.0.expect(project, task)?;
        Some(Box::new(Ticket { office: Arc::clone(&self.0), session: task.to_owned(), number }))
    }
}

#[derive(Debug)]
struct Ticket {
    office: Arc<Office>,
    session: String,
    number: u64,
}

impl Expected for Ticket {
    fn posted(self: Box<Self>, msg_id: &str, draft: &Draft, actor: &Actor) {
        let posted = Posted { actor: actor.clone(), hash: hash_of_draft(draft) };
        let noted = self.office.change(&self.session, |inbox, _| inbox.note(msg_id, posted));
        if let Err(error) = noted {
            tracing::error!(%error, "who has posted a message could not be kept; it is nobody's");
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.office.expect_no_more(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::super::letter::hash;
    use super::super::office::Standing;
    use super::*;

    fn office() -> (tempfile::TempDir, Arc<Office>) {
        let folder = tempfile::tempdir().unwrap();
        let office = Office::open(&folder.path().join("inboxes.jsonl")).unwrap();
        office.admit("sess_a", "p", || Some("m0".to_owned())).unwrap();
        (folder, office)
    }

    fn post(office: &Arc<Office>, msg_id: &str, body: &str) {
        let expected = Counter(Arc::clone(office)).expect("p", "sess_a").unwrap();
        expected.posted(msg_id, &Draft::new("USER", "p", body), &Actor::local_user());
    }

    #[test]
    fn who_posted_a_message_is_known_only_of_what_the_daemon_wrote() {
        let (folder, office) = office();
        post(&office, "m1", "hello");
        // As the next daemon finds it.
        let office = Office::open(&folder.path().join("inboxes.jsonl")).unwrap();
        let of = |body: &[u8], urgent: bool| office.standing("sess_a", "m1", &hash("USER", urgent, body));
        assert_eq!(of(b"hello", false), Standing::From(Actor::local_user()));
        assert_eq!(of(b"hallo", false), Standing::Unknown, "somebody has changed the file");
        assert_eq!(of(b"hello", true), Standing::Unknown);
        assert_eq!(office.standing("sess_a", "m2", &hash("USER", false, b"hello")), Standing::Unknown);
        let counter = Counter(Arc::clone(&office));
        assert!(counter.expect("q", "sess_a").is_none() && counter.expect("p", "sess_b").is_none());
    }

    #[tokio::test]
    async fn whoever_finds_a_message_waits_for_those_that_are_on_their_way() {
        let (_folder, office) = office();
        let counter = Counter(Arc::clone(&office));
        let (first, other) = (counter.expect("p", "sess_a").unwrap(), counter.expect("p", "sess_a").unwrap());
        let finder = Arc::clone(&office);
        let waiting = tokio::spawn(async move { finder.caught_up("sess_a").await });
        drop(other);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        first.posted("m1", &Draft::new("USER", "p", "x"), &Actor::local_user());
        waiting.await.unwrap();
        assert_eq!(
            office.standing("sess_a", "m1", &hash("USER", false, b"x")),
            Standing::From(Actor::local_user())
        );
        // One that comes later is not waited for.
        let (next, finder) = (counter.expect("p", "sess_a"), Arc::clone(&office));
        office.caught_up("sess_b").await;
        drop(next);
        finder.caught_up("sess_a").await;
    }

    #[test]
    fn a_session_that_is_over_has_no_mail() {
        let (_folder, office) = office();
        post(&office, "m1", "x");
        office.forget("sess_a");
        assert_eq!(office.place("sess_a"), None);
        assert!(Counter(office).expect("p", "sess_a").is_none());
    }
}
