//! The way of a letter from the carrier to the session: through the gate, as whoever has posted it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use swb_bus::gate::{Admission, Command, Receipt};
use swb_proto::error::ERR_POLICY_DENIED;
use swb_proto::run::{Attended, TellParams, Told, ToldStatus};
use swb_proto::{BusError, BusPayload, Meta};
use swb_rules::inbox::Manner;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Parcel;
use super::carrier::Carrier;
use super::facts::{self, About};
use super::holding::Held;
use crate::runs::nothing_under_way;
use crate::runs::order::Order;

/// How long a letter may wait for the gate before those behind it go ahead.
const GATE_PATIENCE: Duration = Duration::from_millis(200);

impl Carrier {
    /// May it be said, as whoever has posted it?
    pub(super) async fn pass(&mut self, parcel: Parcel) {
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
    pub(super) async fn agreed(&mut self, parcel: Parcel, agreed: Result<Box<dyn Receipt>, BusError>) {
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
            Ok(()) => given.await.unwrap_or_else(|_| Err(nothing_under_way())),
            Err(_) => Err(nothing_under_way()),
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
    pub(super) async fn refused(&mut self, parcel: &Parcel, error: &BusError) {
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
}
