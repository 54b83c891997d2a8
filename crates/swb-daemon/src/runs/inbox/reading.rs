//! Reading the bus of a task: a task that follows its file, woken by changes, and hands on letters in their order.

use std::sync::Arc;
use std::time::Duration;

use swb_journal::message_bus::{FollowEvent, FollowFrom, Follower, MessageBus, Polled, ReadError};
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use super::letter::Letter;
use super::office::Office;

/// Messages that are read at a time: one may be large.
const BATCH: usize = 8;
/// When to try again what has failed.
const LATER: Duration = Duration::from_secs(1);
/// How far the end of a bus is searched for a message with an id.
const LAST: usize = 32;

/// Letters of a session's bus, from the place on that the office knows. Ends with the receiver.
pub(super) fn letters(office: Arc<Office>, session: String, bus: Arc<MessageBus>) -> mpsc::Receiver<Letter> {
    let (letters, receiver) = mpsc::channel(BATCH);
    tokio::spawn(async move {
        let closed = letters.clone();
        tokio::select! {
            () = closed.closed() => {}
            () = read(office, session, bus, letters) => {}
        }
    });
    receiver
}

/// The last message on a bus. Waits for the disk.
pub(super) fn last_of(bus: &MessageBus) -> Option<String> {
    let last = match bus.read_last(LAST) {
        Ok(last) => last,
        Err(error) => {
            tracing::warn!(%error, "the end of a bus cannot be read");
            return None;
        }
    };
    last.iter().rev().map(|message| message.id.trim()).find(|id| !id.is_empty()).map(str::to_owned)
}

async fn read(office: Arc<Office>, session: String, bus: Arc<MessageBus>, letters: mpsc::Sender<Letter>) {
    loop {
        let Some(place) = office.place(&session) else { return };
        let (beginning, opened) = (Arc::clone(&bus), Arc::clone(&office));
        let session_id = session.clone();
        let opening = move || open(&opened, &session_id, &beginning, place);
        let followed = match tokio::task::spawn_blocking(opening).await {
            Ok(Ok(follower)) => follow(follower, &letters).await,
            Ok(Err(error)) => Err(error),
            Err(_) => return,
        };
        match followed {
            // Somebody has changed the file other than by appending: what was seen before is known by its id.
            Ok(Seen::Rewritten) => tracing::warn!(session, "the bus of a task was rewritten"),
            Ok(Seen::Gone) => return,
            Err(error) => {
                tracing::warn!(%error, session, "the bus of a task cannot be read; it is tried again");
                sleep(LATER).await;
            }
        }
    }
}

/// Why a file is not followed any more.
enum Seen {
    Rewritten,
    Gone,
}

fn open(
    office: &Office,
    session: &str,
    bus: &MessageBus,
    place: Option<String>,
) -> Result<Follower, ReadError> {
    let from = place.map_or(FollowFrom::Beginning, FollowFrom::After);
    match bus.follow(&from) {
        Err(error) if error.is_unknown_cursor() => {
            tracing::warn!(session, "the last message that was dealt with is not on the bus any more");
            let last = last_of(bus);
            let from = last.clone().map_or(FollowFrom::Beginning, FollowFrom::After);
            let follower = bus.follow(&from)?;
            if let Err(error) = office.lost_place(session, last) {
                tracing::warn!(%error, session, "the place on a bus could not be kept");
            }
            Ok(follower)
        }
        opened => opened,
    }
}

async fn follow(mut follower: Follower, letters: &mpsc::Sender<Letter>) -> Result<Seen, ReadError> {
    let changed = Arc::new(Notify::new());
    let waker = Arc::clone(&changed);
    follower.set_waker(move || waker.notify_one());
    loop {
        let polling = move || {
            let polled = follower.poll_at_most(BATCH).map(thinned);
            (follower, polled)
        };
        let Ok((back, polled)) = tokio::task::spawn_blocking(polling).await else { return Ok(Seen::Gone) };
        follower = back;
        let (found, rewritten, more, recheck) = polled?;
        for letter in found {
            if letters.send(letter).await.is_err() {
                return Ok(Seen::Gone);
            }
        }
        if rewritten {
            return Ok(Seen::Rewritten);
        }
        match (more, recheck) {
            (true, _) => {}
            (false, Some(pause)) => drop(timeout(pause, changed.notified()).await),
            (false, None) => changed.notified().await,
        }
    }
}

/// What counts of what was read: large texts do not wait in memory.
fn thinned(polled: Polled) -> (Vec<Letter>, bool, bool, Option<Duration>) {
    let mut rewritten = false;
    let mut letters = Vec::new();
    for event in polled.events {
        match event {
            FollowEvent::Message(message) => letters.extend(Letter::of(&message)),
            _ => rewritten = true,
        }
    }
    (letters, rewritten, polled.more, polled.recheck)
}
