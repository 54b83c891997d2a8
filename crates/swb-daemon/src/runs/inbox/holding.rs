//! Letters that wait: for a person to say something, or for the agent to get on.

use std::sync::Arc;

use swb_proto::error::ERR_POLICY_DENIED;
use swb_proto::run::Progress;
use swb_proto::{Actor, BusError};
use swb_rules::inbox::{self, Manner, Poster, Verdict};

use super::Parcel;
use super::carrier::Carrier;
use super::facts::About;
use super::letter::Letter;
use super::poster::unverified;
use crate::runs::order::Order;

/// Letters that may wait for a person.
const MOST_HELD: usize = 1000;

/// A letter that waits. Its text stays on the bus.
pub(super) struct Held {
    pub(super) msg_id: String,
    pub(super) kind: String,
    pub(super) poster: Poster,
}

impl Carrier {
    /// It waits.
    pub(super) async fn hold(&mut self, msg_id: String, kind: String, poster: Poster, actor: &Actor) {
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
    pub(super) async fn look_again(&mut self) {
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

    /// How many wait for a person, for those who ask.
    pub(super) fn count_held(&self) {
        let row = self.row();
        let waits = |held: &&Held| held.poster != Poster::Person && row.so_far >= row.limit;
        let count = self.held.iter().filter(waits).count() as u64;
        self.house.office.hold(&self.place.session, count);
    }
}
