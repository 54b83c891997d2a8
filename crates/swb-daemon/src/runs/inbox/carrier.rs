//! The carrier: takes letters from the bus, one after the other, and sees to each.
//!
//! A letter that somebody has to agree to is set aside until they do; one that waits for a person lies with `held`, and is
//! looked at again whenever something changes. Neither keeps the letters behind it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use swb_bus::gate::Receipt;
use swb_journal::message_bus::MessageBus;
use swb_proto::error::ERR_INVALID_PARAMS;
use swb_proto::{Actor, BusError};
use swb_rules::inbox::{self, Head, Poster, Row, Verdict};

use super::Parcel;
use super::facts;
use super::holding::Held;
use super::letter::Letter;
use super::office::Standing;
use super::poster::{is_own, poster, unverified};
use super::reading;
use crate::runs::agent::Place;
use crate::runs::house::House;
use crate::runs::kept::KeptRun;

/// Letters that the agent may have and not be done with.
const MOST_GIVEN: usize = 32;

type Agreed = (Parcel, Result<Box<dyn Receipt>, BusError>);

/// Carries the letters of one run.
pub(super) struct Carrier {
    pub(super) house: Arc<House>,
    pub(super) place: Place,
    pub(super) run: KeptRun,
    pub(super) bus: Arc<MessageBus>,
    pub(super) held: Vec<Held>,
    pub(super) asked: FuturesUnordered<BoxFuture<'static, Agreed>>,
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

    pub(super) async fn see_to(&mut self, letter: Letter, poster: Poster, actor: Actor, verdict: Verdict) {
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

    pub(super) fn who(&self, actor: Option<&Actor>, run: &str) -> (Poster, bool) {
        let estate = self.house.records.look();
        let session = &self.place.session;
        (poster(&estate, session, actor), is_own(&estate, session, actor, run))
    }

    pub(super) fn row(&self) -> Row {
        let (so_far, given) = self.house.office.row(&self.place.session);
        Row { so_far, limit: self.house.in_a_row, is_full: given >= MOST_GIVEN }
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.house.office.hold(&self.place.session, 0);
    }
}
