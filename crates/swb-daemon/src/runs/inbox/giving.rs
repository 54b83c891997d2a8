//! The session's side: a message is given to its agent, and what the agent says to it.

use std::sync::Arc;

use serde::Serialize;
use swb_proto::BusError;
use swb_proto::agent::{AddedCommand, Command};
use swb_proto::error::ERR_INTERNAL;
use swb_proto::id::RunId;
use swb_proto::run::Progress;
use swb_rules::inbox::{Manner, Poster};

use super::facts::{self, About};
use super::kept::Given;
use super::{Inbox, Parcel};
use crate::records::not_kept;
use crate::runs::current::{Current, Phase, failed};
use crate::runs::hearing::Answer;
use crate::runs::house::House;
use crate::runs::link::Link;
use crate::runs::nothing_under_way;
use crate::runs::session::SessionTask;

/// What stands between the run and the message in the id under which a message is said.
const MAIL: &str = ".mail.";

/// A message in the words of the agent protocol.
#[derive(Serialize)]
#[serde(untagged)]
enum Word {
    Steer(AddedCommand),
    FollowUp(Command),
}

impl Given {
    fn word(&self, id: &str) -> Word {
        let (id, message) = (id.to_owned(), self.text.clone());
        if self.steers {
            Word::Steer(AddedCommand::Steer { id, message })
        } else {
            Word::FollowUp(Command::FollowUp { id, message })
        }
    }

    fn input(&self) -> Progress {
        let how = if self.steers { "steer" } else { "follow_up" }.to_owned();
        let text = swb_rules::redact::redact(&self.text).text;
        Progress::Input { text, how, from: self.actor.id.as_str().to_owned() }
    }
}

/// The id under which a message is said to a run.
fn id_of(run: &RunId, msg_id: &str) -> String {
    format!("{run}{MAIL}{msg_id}")
}

impl SessionTask {
    /// From here on the run under way gets its mail.
    pub(in crate::runs) fn open_inbox(&mut self) {
        let is_working = |current: &&Current| current.phase != Phase::Starting && current.stopping.is_none();
        let current = self.current.as_ref().filter(is_working);
        self.inbox = current.and_then(|current| Inbox::open(&self.house, &self.place, &current.kept));
    }

    /// Gives a message to the agent: kept, said, told.
    pub(in crate::runs) async fn give(&mut self, parcel: Parcel) -> Result<RunId, BusError> {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else {
            return Err(nothing_under_way());
        };
        if current.phase == Phase::Starting || current.stopping.is_some() {
            return Err(nothing_under_way());
        }
        let Parcel { msg_id, kind, manner, is_data, text, poster, actor } = parcel;
        let run = current.kept.id().clone();
        let mut given = Given {
            run: run.clone(),
            host: link.generation,
            write: 0,
            steers: manner == Manner::Steer,
            is_data,
            text,
            kind,
            actor,
            counts: poster != Poster::Person,
        };
        let id = id_of(&run, &msg_id);
        let word = given.word(&id);
        given.write =
            link.number_of(&word).map_err(|error| BusError::new(ERR_INTERNAL, error.to_string()))?;
        let (house, session) = (Arc::clone(&self.house), self.place.session.clone());
        let (kept_id, kept) = (msg_id.clone(), given.clone());
        let keeping = move || house.office.give(&session, &kept_id, kept);
        let marks = match tokio::task::spawn_blocking(keeping).await {
            Ok(marks) => marks.map_err(not_kept)?,
            Err(_) => return Err(nothing_under_way()),
        };
        link.say(&word).await.map_err(|error| failed(error.to_string(), "AGENT_GONE"))?;
        current.phase = Phase::Working;
        current.deadline = None;
        current.open.insert(id);
        let about = About { run: &current.kept, msg_id: &msg_id, kind: &given.kind, actor: &given.actor };
        about.delivered(&self.house.topics, given.steers, given.is_data);
        self.remark(given.input()).await;
        self.note_marks(marks);
        Ok(run)
    }

    /// The agent has answered what was said to it under an id, which may have been a message.
    pub(in crate::runs) async fn mail_answered(&mut self, id: &str, answer: &Answer) {
        let Some(current) = &self.current else { return };
        let Some(msg_id) = id.strip_prefix(current.kept.id().as_str()).and_then(|id| id.strip_prefix(MAIL))
        else {
            return;
        };
        if answer.cancelled {
            // It was not heard; the next run gets it.
            return;
        }
        let (house, session, answered) =
            (Arc::clone(&self.house), self.place.session.clone(), msg_id.to_owned());
        let settling = move || house.office.settle(&session, &answered);
        let (given, marks) = match tokio::task::spawn_blocking(settling).await {
            Ok(Ok(settled)) => settled,
            Ok(Err(error)) => return tracing::error!(%error, "that a message was heard could not be kept"),
            Err(_) => return,
        };
        if let Some(given) = given {
            let about = About { run: &current.kept, msg_id, kind: &given.kind, actor: &given.actor };
            match &answer.error {
                None => about.accepted(&self.house.topics),
                Some(error) => about.refused(&self.house.topics, &failed(error.clone(), "AGENT_REFUSED")),
            }
        }
        self.note_marks(marks);
    }

    /// Notes beside the bus how far its messages came. Nobody waits for it.
    fn note_marks(&self, marks: super::kept::Marks) {
        let place = self.place.clone();
        tokio::task::spawn_blocking(move || {
            if let Some(bus) = facts::bus_of(&place) {
                facts::mark(&bus, &place.session, &marks);
            }
        });
    }
}

impl House {
    /// A process works on a run: what another one was given is still to be said, and what this one was given by a daemon
    /// before us is said again, which changes nothing if its host has it.
    pub(in crate::runs) async fn hand_over_mail(self: &Arc<Self>, link: &mut Link, current: &mut Current) {
        let (house, kept) = (Arc::clone(self), current.kept.clone());
        let beginning = move || {
            let (session, run) = (kept.run.session_id.as_str(), kept.id());
            let given = house.office.begin(session, run, kept.host)?;
            let audit = house.paths.audit();
            let told = |(msg_id, given): (String, Given)| {
                let about = About { run: &kept, msg_id: &msg_id, kind: &given.kind, actor: &given.actor };
                let is_told = about.is_told(&audit);
                (msg_id, given, is_told)
            };
            Ok::<_, std::io::Error>(given.into_iter().map(told).collect::<Vec<_>>())
        };
        let given = match tokio::task::spawn_blocking(beginning).await {
            Ok(Ok(given)) => given,
            Ok(Err(error)) => return tracing::error!(%error, "the mail of a run cannot be read"),
            Err(_) => return,
        };
        for (msg_id, given, is_told) in given {
            let id = id_of(current.kept.id(), &msg_id);
            if let Err(error) = link.say_again(&given.word(&id), given.write).await {
                tracing::warn!(%error, "a message could not be written");
            }
            current.open.insert(id);
            if !is_told {
                let about =
                    About { run: &current.kept, msg_id: &msg_id, kind: &given.kind, actor: &given.actor };
                about.delivered(&self.topics, given.steers, given.is_data);
            }
        }
    }
}
