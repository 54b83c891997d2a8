//! The carrier: takes letters from the bus, one after the other, and sees to each.
//!
//! A letter that somebody has to agree to is set aside until they do; one that waits for a person lies with `held`, and is
//! looked at again whenever something changes. Neither keeps the letters behind it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::json;
use swb_bus::gate::{Admission, Command, Receipt};
use swb_journal::message_bus::MessageBus;
use swb_proto::error::{ERR_INVALID_PARAMS, ERR_POLICY_DENIED};
use swb_proto::run::{Attended, Progress, TellParams, Told, ToldStatus};
use swb_proto::{Actor, BusError, BusPayload, Meta};
use swb_rules::inbox::{self, Head, Manner, Poster, Row, Verdict};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Parcel;
use super::facts::{self, About};
use super::letter::Letter;
use super::office::Standing;
use super::poster::{is_own, poster, unverified};
use super::reading;
use crate::runs::agent::Place;
use crate::runs::house::House;
use crate::runs::kept::KeptRun;
use crate::runs::session::Order;

/// Letters that may wait for a person.
const MOST_HELD: usize = 1000;
/// Letters that the agent may have and not be done with.
const MOST_GIVEN: usize = 32;
/// How long a letter may wait for the gate before those behind it go ahead.
const GATE_PATIENCE: Duration = Duration::from_millis(200);

type Agreed = (Parcel, Result<Box<dyn Receipt>, BusError>);

/// Carries the letters of one run.
pub(super) struct Carrier {
    house: Arc<House>,
    place: Place,
    run: KeptRun,
    bus: Arc<MessageBus>,
    held: Vec<Held>,
    asked: FuturesUnordered<BoxFuture<'static, Agreed>>,
}

/// A letter that waits. Its text stays on the bus.
struct Held {
    msg_id: String,
    kind: String,
    poster: Poster,
}

impl Carrier {
    pub(super) fn new(house: &Arc<House>, place: &Place, run: &KeptRun) -> Option<Self> {
        let bus = Arc::new(facts::bus_of(place)?);
        let (house, place, run) = (Arc::clone(house), place.clone(), run.clone());
        Some(Carrier { house, place, run, bus, held: Vec::new(), asked: FuturesUnordered::new() })
    }

    pub(super) async fn work(mut self) {
        let (office, session) = (Arc::clone(&self.house.office), self.place.session.clone());
        let mut news = office.news();
        let mut letters = reading::letters(office, session, Arc::clone(&self.bus));
        loop {
            tokio::select! {
                letter = letters.recv() => match letter {
                    Some(letter) => self.arrived(letter).await,
                    None => return,
                },
                Some((parcel, agreed)) = self.asked.next() => self.agreed(parcel, agreed).await,
                Ok(()) = news.changed() => self.look_again().await,
            }
            self.count_held();
        }
    }

    /// A letter was found on the bus.
    async fn arrived(&mut self, letter: Letter) {
        let (office, session) = (&self.house.office, &self.place.session);
        let mut standing = office.standing(session, &letter.msg_id, &letter.hash);
        if standing == Standing::Unknown {
            office.caught_up(session).await;
            standing = office.standing(session, &letter.msg_id, &letter.hash);
        }
        let actor = match standing {
            Standing::Seen => return,
            Standing::From(actor) => Some(actor),
            Standing::Unknown => None,
        };
        let (poster, is_own) = self.who(actor.as_ref(), &letter.run_id);
        let facts = inbox::Letter { kind: &letter.kind, poster, is_own, is_urgent: letter.is_urgent };
        let verdict = inbox::judge(&facts, self.row());
        if verdict == Verdict::Ignore {
            return;
        }
        office.line_up(session, &letter.msg_id);
        self.see_to(letter, poster, actor.unwrap_or_else(unverified), verdict).await;
    }

    async fn see_to(&mut self, letter: Letter, poster: Poster, actor: Actor, verdict: Verdict) {
        let Letter { msg_id, kind, body, .. } = letter;
        match verdict {
            Verdict::Ignore => {}
            Verdict::Hold => self.hold(msg_id, kind, poster, &actor).await,
            Verdict::Deliver { manner, as_data } => {
                let name = actor.id.as_str().to_owned();
                let text = body.map(|body| {
                    let head = Head { msg_id: &msg_id, kind: &kind, poster, name: &name };
                    if as_data { inbox::as_data(&head, &body) } else { inbox::as_word(&head, &body) }
                });
                let parcel = |text| Parcel { msg_id, kind, manner, is_data: as_data, text, poster, actor };
                match text {
                    Ok(text) => self.pass(parcel(text)).await,
                    Err(bytes) => {
                        let message = format!("its text has {bytes} bytes, which is too much to be told");
                        let error = BusError::new(ERR_INVALID_PARAMS, message).because("TOO_LONG");
                        self.refused(&parcel(String::new()), &error).await;
                    }
                }
            }
        }
    }

    /// May it be said, as whoever has posted it?
    async fn pass(&mut self, parcel: Parcel) {
        let method = match parcel.manner {
            Manner::Steer => "agent/steer",
            Manner::FollowUp => "agent/follow_up",
        };
        let patience_ms = match self.run.run.attended {
            Attended::Here => None,
            Attended::Later => Some(24 * 60 * 60 * 1000),
            Attended::Nobody => Some(0),
        };
        let guest = self.house.gate.known(parcel.actor.clone());
        let caller = Arc::new(guest.caller(Meta { timeout_ms: patience_ms, ..self.run.scope() }));
        let tell = TellParams {
            run_id: Some(self.run.id().clone()),
            session_id: Some(self.run.run.session_id.clone()),
            text: parcel.text.clone(),
        };
        let params = json!({
            "run_id": tell.run_id, "session_id": tell.session_id, "text": tell.text, "msg_id": parcel.msg_id,
        });
        let params = serde_json::value::to_raw_value(&params).ok();
        let payload: BusPayload = tell.into();
        let command = Command {
            id: Some(&parcel.msg_id),
            method,
            params: params.as_deref(),
            payload: &payload,
            can_wait: true,
        };
        let agreed = match guest.admit(&caller, &command) {
            Admission::Go(receipt) => Ok(receipt),
            Admission::Refused(error) => Err(error),
            Admission::Wait(mut agreed) => match timeout(GATE_PATIENCE, &mut agreed).await {
                Ok(agreed) => agreed,
                Err(_) => {
                    self.asked.push(Box::pin(async move { (parcel, agreed.await) }));
                    return;
                }
            },
        };
        self.agreed(parcel, agreed).await;
    }

    /// The gate has answered.
    async fn agreed(&mut self, parcel: Parcel, agreed: Result<Box<dyn Receipt>, BusError>) {
        let receipt = match agreed {
            Ok(receipt) => receipt,
            Err(error) if error.code == ERR_POLICY_DENIED => return self.refused(&parcel, &error).await,
            Err(error) => {
                // Nobody has said no: it stays where it is.
                tracing::warn!(
                    error = error.message,
                    msg_id = parcel.msg_id,
                    "a message could not pass the gate"
                );
                let Parcel { msg_id, kind, poster, .. } = parcel;
                return self.held.push(Held { msg_id, kind, poster });
            }
        };
        let (done, given) = oneshot::channel();
        let Parcel { msg_id, kind, poster, .. } = parcel.clone();
        let order = Order::Give { parcel: Box::new(parcel), done };
        let ordered = self.house.order(&self.place.session, order).await;
        let told = match ordered {
            Ok(()) => given.await.unwrap_or_else(|_| Err(crate::runs::nothing_under_way())),
            Err(_) => Err(crate::runs::nothing_under_way()),
        };
        if told.is_err() {
            self.held.push(Held { msg_id, kind, poster });
        }
        let session_id = self.run.run.session_id.clone();
        let result = told.map(|run_id| Told { run_id, session_id, status: ToldStatus::Delivered }.into());
        if let Err(error) = receipt.close(result).settled().await {
            tracing::debug!(error = error.message, "a message did not reach its agent");
        }
    }

    /// It will not be said.
    async fn refused(&mut self, parcel: &Parcel, error: &BusError) {
        let (house, bus) = (Arc::clone(&self.house), Arc::clone(&self.bus));
        let (session, msg_id) = (self.place.session.clone(), parcel.msg_id.clone());
        let settled = move || {
            let (_, marks) = house.office.settle(&session, &msg_id)?;
            facts::mark(&bus, &session, &marks);
            Ok::<_, std::io::Error>(())
        };
        if let Ok(Err(error)) = tokio::task::spawn_blocking(settled).await {
            tracing::error!(%error, "that a message was refused could not be kept");
        }
        let Parcel { msg_id, kind, actor, .. } = parcel;
        About { run: &self.run, msg_id, kind, actor }.refused(&self.house.topics, error);
    }

    /// It waits.
    async fn hold(&mut self, msg_id: String, kind: String, poster: Poster, actor: &Actor) {
        if self.held.len() >= MOST_HELD {
            let message = format!("{MOST_HELD} messages wait for a person already");
            let error = BusError::new(ERR_POLICY_DENIED, message).because("TOO_MANY_WAITING");
            let parcel = Parcel {
                msg_id,
                kind,
                manner: Manner::FollowUp,
                is_data: true,
                text: String::new(),
                poster,
                actor: actor.clone(),
            };
            return self.refused(&parcel, &error).await;
        }
        let row = self.row();
        if poster != Poster::Person && row.so_far >= row.limit {
            let about = About { run: &self.run, msg_id: &msg_id, kind: &kind, actor };
            about.held(&self.house.topics, row.so_far);
            if !self.held.iter().any(|held| held.poster != Poster::Person) {
                let message = format!(
                    "{} messages came in a row without a person; others wait until somebody says something",
                    row.so_far
                );
                let notice = Progress::Notice { name: "messages_held".to_owned(), message };
                let _ = self.house.order(&self.place.session, Order::Remark(Box::new(notice))).await;
            }
        }
        self.held.push(Held { msg_id, kind, poster });
    }

    /// Something has changed: who waits may go now.
    async fn look_again(&mut self) {
        let mut at = 0;
        while let Some(Held { msg_id, kind, poster }) = self.held.get(at) {
            let facts = inbox::Letter { kind, poster: *poster, is_own: false, is_urgent: false };
            if inbox::judge(&facts, self.row()) == Verdict::Hold {
                at += 1;
                continue;
            }
            let (bus, id) = (Arc::clone(&self.bus), msg_id.clone());
            self.held.remove(at);
            let found = tokio::task::spawn_blocking(move || bus.find(&id)).await;
            let Ok(Ok(Some(message))) = found else { continue };
            if let Some(letter) = Letter::of(&message) {
                self.reconsider(letter).await;
            }
        }
    }

    /// A letter that has waited. What was found out about it is found out again: files change.
    async fn reconsider(&mut self, letter: Letter) {
        let actor = self.house.office.poster_of(&self.place.session, &letter.msg_id, &letter.hash);
        let (poster, is_own) = self.who(actor.as_ref(), &letter.run_id);
        let facts = inbox::Letter { kind: &letter.kind, poster, is_own, is_urgent: letter.is_urgent };
        let verdict = inbox::judge(&facts, self.row());
        self.see_to(letter, poster, actor.unwrap_or_else(unverified), verdict).await;
    }

    fn who(&self, actor: Option<&Actor>, run: &str) -> (Poster, bool) {
        let estate = self.house.records.look();
        let session = &self.place.session;
        (poster(&estate, session, actor), is_own(&estate, session, actor, run))
    }

    fn row(&self) -> Row {
        let (so_far, given) = self.house.office.row(&self.place.session);
        Row { so_far, limit: self.house.in_a_row, is_full: given >= MOST_GIVEN }
    }

    /// How many wait for a person, for those who ask.
    fn count_held(&self) {
        let row = self.row();
        let waits = |held: &&Held| held.poster != Poster::Person && row.so_far >= row.limit;
        let count = self.held.iter().filter(waits).count() as u64;
        self.house.office.hold(&self.place.session, count);
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.house.office.hold(&self.place.session, 0);
    }
}
