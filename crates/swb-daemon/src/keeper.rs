//! Which file keeps which event: what became of something goes into the record, what runs do while they work into the
//! transcript of their session.

use std::sync::Arc;

use serde_json::value::RawValue;
use swb_bus::topics::{Event, Keeper, Kept, KeptEvents};
use swb_journal::transcript::{Lines, Transcripts};
use swb_proto::EventEnvelope;

use crate::record::Recorder;
use crate::runs::PROGRESS;

/// Keeps all events that are kept.
#[derive(Debug)]
pub(crate) struct HouseKeeper {
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) transcripts: Arc<Transcripts>,
}

impl Keeper for HouseKeeper {
    fn show(&self, topic: &str, payload: Box<RawValue>) -> Box<RawValue> {
        // Whoever makes it leaves secrets out, which may come in two pieces.
        if topic == PROGRESS { payload } else { self.recorder.show(topic, payload) }
    }

    fn keeps(&self, topic: &str) -> bool {
        topic == PROGRESS || self.recorder.keeps(topic)
    }

    fn keep(&self, events: &[Arc<Event>]) -> usize {
        let Some(last) = events.last() else { return 0 };
        if last.topic() != PROGRESS {
            return self.recorder.keep(events);
        }
        let Some(session) = &last.envelope().session_id else { return events.len() };
        let mut lines = String::new();
        for event in events {
            lines.push_str(event.json());
            lines.push('\n');
        }
        match self.transcripts.append(session.as_str(), last.seq(), lines.as_bytes()) {
            Ok(()) => 0,
            Err(error) => {
                tracing::error!(%error, session = session.as_str(), "a transcript could not be written");
                events.len()
            }
        }
    }

    fn last_kept(&self) -> u64 {
        self.recorder.last_kept().max(self.transcripts.last())
    }

    fn kept_after(&self, seq: u64) -> Option<Box<dyn KeptEvents>> {
        let recorded = self.recorder.kept_after(seq)?;
        let told = match self.transcripts.after(seq) {
            Ok(told) => told,
            Err(error) => {
                tracing::error!(%error, "transcripts cannot be read");
                return Some(recorded);
            }
        };
        Some(Box::new(Both { recorded, next_recorded: None, recorded_ended: false, told, next_told: None }))
    }
}

/// Two streams as one, in the order of their numbers.
#[derive(Debug)]
struct Both {
    recorded: Box<dyn KeptEvents>,
    next_recorded: Option<Box<EventEnvelope>>,
    recorded_ended: bool,
    told: Lines,
    next_told: Option<Box<EventEnvelope>>,
}

impl KeptEvents for Both {
    fn next(&mut self) -> Kept {
        if self.next_recorded.is_none() && !self.recorded_ended {
            match self.recorded.next() {
                Kept::Event(event) => self.next_recorded = Some(event),
                Kept::KeepLooking => return Kept::KeepLooking,
                Kept::End => self.recorded_ended = true,
            }
        }
        if self.next_told.is_none() {
            match self.told.next_line() {
                Ok(Some((_, line))) => match serde_json::from_str(&line) {
                    Ok(event) => self.next_told = Some(Box::new(event)),
                    // Written by a version whose words this one does not know.
                    Err(_) => return Kept::KeepLooking,
                },
                Ok(None) => {}
                Err(error) => tracing::error!(%error, "a transcript cannot be read on"),
            }
        }
        let told_first = match (&self.next_recorded, &self.next_told) {
            (Some(recorded), Some(told)) => told.seq < recorded.seq,
            (None, told) => told.is_some(),
            (Some(_), None) => false,
        };
        let next = if told_first { self.next_told.take() } else { self.next_recorded.take() };
        next.map_or(Kept::End, Kept::Event)
    }
}
