//! A command under way: its start is in the log, its end is owed.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use serde_json::json;
use serde_json::value::RawValue;
use swb_journal::audit::{
    Durability, Entry, Moment, Receipt, RecordedActor, RecordedDecision, Status, Ticket,
};
use swb_proto::error::{
    ERR_CANCELLED, ERR_POLICY_DENIED, ERR_SHUTTING_DOWN, ERR_TIMEOUT, ERR_UNAUTHORIZED, row,
};
use swb_proto::run::{RunBody, ToldStatus};
use swb_proto::{Actor, BusError, BusPayload, BusResult, Meta};

use super::{RecordError, Recorder, Shown, shown};
use crate::telemetry::CommandEnd;

/// A command that begins.
#[derive(Debug)]
pub struct Start<'a> {
    /// Its dotted name.
    pub method: &'a str,
    /// Who acts.
    pub actor: &'a Actor,
    /// Where, and as part of what.
    pub meta: &'a Meta,
    /// What that is part of in turn.
    pub parent_correlation_id: Option<&'a str>,
    /// The id its sender gave it.
    pub command_id: Option<&'a str>,
    /// Why it may be done, or may not.
    pub decision: Option<RecordedDecision>,
    /// What that was decided on.
    pub attributes: Option<&'a Shown>,
    /// Its arguments, as they came.
    pub args: Option<&'a RawValue>,
}

impl Recorder {
    /// Records that a command begins. With [`Durability::Written`] it is in the file when this returns; otherwise
    /// [`Started::settled`] says when it is on the disk.
    pub fn started(self: &Arc<Self>, start: Start<'_>) -> Result<Started, RecordError> {
        self.check()?;
        let began = Instant::now();
        let Meta { workspace_id, lane_id, session_id, terminal_id, correlation_id, .. } = start.meta;
        let mut entry = Entry {
            actor: Some(RecordedActor {
                kind: start.actor.kind.as_str().to_owned(),
                id: start.actor.id.as_str().to_owned(),
            }),
            workspace_id: workspace_id.as_ref().map(|id| id.as_str().to_owned()),
            lane_id: lane_id.as_ref().map(|id| id.as_str().to_owned()),
            session_id: session_id.as_ref().map(|id| id.as_str().to_owned()),
            terminal_id: terminal_id.as_ref().map(|id| id.as_str().to_owned()),
            correlation_id: correlation_id.as_ref().map(|id| id.as_str().to_owned()),
            parent_correlation_id: start.parent_correlation_id.map(str::to_owned),
            command_id: start.command_id.map(shown::foreign_id),
            decision: start.decision,
            ..Entry::start(Moment::now(), start.method)
        };
        let mut found = Vec::new();
        if let Some(args) = start.args.filter(|args| !shown::is_empty(args.get())) {
            entry.args_hash = Some(self.log.hash_arguments(args.get().as_bytes()));
            entry.args = shown::arguments(start.method, args, &mut found);
        }
        if let Some(Shown { json, found: in_attributes }) = start.attributes {
            entry.attributes = Some(json.clone());
            found.extend(in_attributes);
        }
        found.sort_unstable();
        found.dedup();
        entry.redacted = found.into_iter().map(str::to_owned).collect();
        let place = match self.durability {
            Durability::Written => Place::At(self.log.append_now(&entry)?.number),
            Durability::Synced => Place::Coming(self.log.append(&entry)?),
        };
        self.counts.decided(entry.decision.as_ref());
        // The end repeats the ids, not the arguments.
        (entry.args, entry.args_hash, entry.attributes) = (None, None, None);
        Ok(Started { recorder: Arc::clone(self), open: Some(Open { entry, place, began }) })
    }
}

/// A command whose start is recorded. Let go of without [`Started::ended`], it is recorded as interrupted.
#[must_use = "a command that began has to end"]
pub struct Started {
    recorder: Arc<Recorder>,
    open: Option<Open>,
}

struct Open {
    entry: Entry,
    place: Place,
    began: Instant,
}

/// The number of the start.
enum Place {
    At(u64),
    Coming(Ticket),
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = self.open.as_ref().and_then(|open| open.entry.method.as_deref());
        f.debug_struct("Started").field("method", &method).finish_non_exhaustive()
    }
}

/// When the end of a command is recorded.
pub enum Recorded {
    /// It is, or cannot be.
    Ready(Result<Receipt, RecordError>),
    /// As soon as the disk has it.
    Later(BoxFuture<'static, Result<Receipt, RecordError>>),
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Recorded::Ready(done) => f.debug_tuple("Ready").field(done).finish(),
            Recorded::Later(_) => f.write_str("Later"),
        }
    }
}

impl Recorded {
    /// Where the end stands, once it does.
    pub async fn settled(self) -> Result<Receipt, RecordError> {
        match self {
            Recorded::Ready(done) => done,
            Recorded::Later(done) => done.await,
        }
    }
}

impl Started {
    /// Whether the start is where it has to be, so that [`Started::settled`] would not wait.
    pub fn is_settled(&self) -> bool {
        !matches!(&self.open, Some(Open { place: Place::Coming(_), .. }))
    }

    /// Waits until the start is as safe as the configuration wants it: before the command is carried out.
    pub async fn settled(&mut self) -> Result<(), RecordError> {
        if let Some(Open { place, .. }) = &mut self.open
            && let Place::Coming(ticket) = place
        {
            *place = Place::At(ticket.await?.number);
        }
        Ok(())
    }

    /// Records how the command ended.
    pub fn ended(self, result: &BusResult) -> Recorded {
        match result {
            Ok(BusPayload::Run(answer)) => {
                let run = self.recorder.ends.get().and_then(|_| started_run(answer));
                self.close_with(Status::Ok, run, |_| {})
            }
            Ok(_) => self.close(Status::Ok, |_| {}),
            Err(error) => self.ended_as(status_of(error), error),
        }
    }

    /// The same for an error whose status is known better than its code tells.
    pub fn ended_as(self, status: Status, error: &BusError) -> Recorded {
        self.close(status, |end| tell(error, end))
    }

    fn close(self, status: Status, tell: impl FnOnce(&mut Entry)) -> Recorded {
        self.close_with(status, None, tell)
    }

    fn close_with(mut self, status: Status, run: Option<String>, tell: impl FnOnce(&mut Entry)) -> Recorded {
        let Some(Open { entry, place, began }) = self.open.take() else {
            return Recorded::Ready(Err(RecordError(swb_journal::audit::AppendError::Closed)));
        };
        let duration_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let recorder = Arc::clone(&self.recorder);
        recorder.counts.ended(status);
        let mut end = Entry { duration_us: Some(duration_us), ..entry.into_end(Moment::now(), 0, status) };
        tell(&mut end);
        if let Some(ends) = recorder.ends.get() {
            ends.tell(CommandEnd::new(&end, run));
        }
        match (place, recorder.durability) {
            (Place::At(number), Durability::Written) => {
                end.of = Some(number);
                let receipt = recorder.log.append_now(&end);
                Recorded::Ready(
                    receipt.map_err(RecordError).inspect(|at| recorder.announcer.recorded(&end, at)),
                )
            }
            (place, _) => Recorded::Later(Box::pin(async move {
                end.of = Some(match place {
                    Place::At(number) => number,
                    Place::Coming(ticket) => ticket.await?.number,
                });
                let receipt = recorder.log.append(&end)?.await?;
                recorder.announcer.recorded(&end, &receipt);
                Ok(receipt)
            })),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let Some(Open { entry, place, began }) = self.open.take() else { return };
        let number = match place {
            Place::At(number) => number,
            // Whoever waits for it is gone, and it is not long.
            Place::Coming(ticket) => match ticket.wait() {
                Ok(receipt) => receipt.number,
                // There is no start that would need an end.
                Err(_) => return,
            },
        };
        let end = Entry {
            duration_us: Some(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)),
            ..entry.into_end(Moment::now(), number, Status::Interrupted)
        };
        self.recorder.counts.ended(Status::Interrupted);
        if let Some(ends) = self.recorder.ends.get() {
            ends.tell(CommandEnd::new(&end, None));
        }
        // Nobody waits; but it is written, or the next daemon writes it.
        if let Err(error) = self.recorder.log.append(&end) {
            tracing::error!(%error, "the end of an abandoned command was not recorded");
        }
    }
}

/// The run that a command has started.
fn started_run(answer: &RunBody) -> Option<String> {
    match answer {
        RunBody::Taken(taken) => Some(taken.run_id.as_str().to_owned()),
        RunBody::Told(told) if told.status != ToldStatus::Delivered => Some(told.run_id.as_str().to_owned()),
        _ => None,
    }
}

fn status_of(error: &BusError) -> Status {
    match error.code {
        // Who did not answer in time did not say no.
        ERR_POLICY_DENIED if error.reason().ends_with("TIMED_OUT") => Status::TimedOut,
        ERR_POLICY_DENIED | ERR_UNAUTHORIZED => Status::Denied,
        ERR_TIMEOUT => Status::TimedOut,
        ERR_CANCELLED => Status::Cancelled,
        ERR_SHUTTING_DOWN => Status::Interrupted,
        _ => Status::Error,
    }
}

/// What is kept of an error: its name, its finest reason, its words without secrets and places.
fn tell(error: &BusError, end: &mut Entry) {
    let name = serde_json::to_value(row(error.code).name).unwrap_or_default();
    end.error_code = name.as_str().map(str::to_owned);
    end.result = Some(json!({ "reason": shown::foreign_id(error.reason()) }).into());
    let (message, found) = shown::message(&error.message);
    end.message = Some(message);
    for secret in found {
        if !end.redacted.iter().any(|rule| rule == secret) {
            end.redacted.push(secret.to_owned());
        }
    }
}
