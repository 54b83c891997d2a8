//! Telling of runs: their events, in an order that a crash does not disturb.
//!
//! A run is kept as it is before its event is told. What was kept and not told, because a daemon died in between, is told
//! by the next one; the record knows which events were told.

use serde_json::value::{RawValue, to_raw_value};
use swb_bus::topics::{PublishError, Topics};
use swb_journal::audit::{AuditReader, Json, Looked, Moment};
use swb_proto::agent::McpCall;
use swb_proto::error::ErrorEnvelope;
use swb_proto::id::RunId;
use swb_proto::run::{Progress, RunCompleted, RunFailed, RunProgress, RunStarted, RunState, Source};
use swb_proto::{Actor, Timestamp};

use super::House;
use super::current::Current;
use super::kept::KeptRun;

pub(super) const STARTED: &str = "agent.run.started";
pub(crate) const PROGRESS: &str = "agent.run.progress";
const COMPLETED: &str = "agent.run.completed";
const FAILED: &str = "agent.run.failed";
const MCP_CALL: &str = "agent.mcp.called";
const QUEUED: &str = "agent.run.queued";
const DROPPED: &str = "agent.run.dropped";
/// How a run may end.
pub(super) const ENDS: [&str; 3] = [COMPLETED, FAILED, DROPPED];
/// How many records one look passes over.
const RECORDS: usize = 1024;

/// A run waits.
pub(super) fn queued(topics: &Topics, kept: &KeptRun) {
    let payload = serde_json::json!({ "run_id": kept.id(), "agent": kept.run.agent });
    said(QUEUED, topics.publish(QUEUED, &kept.scope(), Some(&kept.actor), &payload));
}

/// A run's agent works.
pub(super) fn started(house: &House, kept: &KeptRun, prompt_hash: String) {
    let payload = RunStarted {
        run_id: kept.id().clone(),
        profile_id: kept.profile_id.clone(),
        prompt_hash,
        agent: kept.run.agent.clone(),
        model: kept.run.model.clone(),
        parent_run_id: kept.run.parent_run_id.clone(),
    };
    house.counts.started(&kept.run);
    said(STARTED, house.topics.publish(STARTED, &kept.scope(), Some(&kept.actor), &payload));
}

/// What a run does, as it will be told.
pub(super) fn progress(
    house: &House,
    kept: &KeptRun,
    step: u64,
    source: Option<Source>,
    progress: Progress,
) -> Option<Box<RawValue>> {
    house.counts.told(&progress);
    let payload = RunProgress { run_id: kept.id().clone(), step, progress, source };
    let told = to_raw_value(&payload);
    told.inspect_err(|error| tracing::error!(%error, "what a run does cannot be told")).ok()
}

/// A run did something, or several things: tells what has gathered.
pub(super) fn progressed(house: &House, current: &mut Current) {
    let told = std::mem::take(&mut current.untold);
    if !told.is_empty() {
        let (scope, agent) = (current.kept.scope(), Some(&current.agent));
        said(PROGRESS, house.topics.publish_all(PROGRESS, &scope, agent, told));
    }
}

/// A call of an MCP server is over: that goes into the record.
pub(super) fn mcp_call(house: &House, kept: &KeptRun, agent: &Actor, call: &McpCall) {
    let payload = serde_json::json!({ "run_id": kept.id(), "call": call });
    house.counts.called(call);
    said(MCP_CALL, house.topics.publish(MCP_CALL, &kept.scope(), Some(agent), &payload));
}

/// A run is over, as it says itself.
pub(super) fn ended(house: &House, kept: &KeptRun, result: &str) {
    let (run_id, usage) = (kept.id().clone(), kept.run.usage.clone());
    let (topics, duration_ms) = (&house.topics, duration_ms(kept));
    house.counts.ended(&kept.run, duration_ms);
    let (topic, told) = match kept.run.state {
        RunState::Completed => {
            let payload = RunCompleted { run_id, result: result.to_owned(), usage, duration_ms };
            (COMPLETED, topics.publish(COMPLETED, &kept.scope(), Some(&kept.agent()), &payload))
        }
        // Its lifecycle never began.
        _ if kept.run.started_at.is_none() => {
            let payload = serde_json::json!({ "run_id": run_id, "error": kept.run.error });
            (DROPPED, topics.publish(DROPPED, &kept.scope(), Some(&kept.actor), &payload))
        }
        _ => {
            let error = kept.run.error.clone().unwrap_or_else(unknown);
            let cancelled = kept.run.state == RunState::Cancelled;
            let payload = RunFailed { run_id, error, cancelled, usage, duration_ms };
            (FAILED, topics.publish(FAILED, &kept.scope(), Some(&kept.agent()), &payload))
        }
    };
    said(topic, told);
}

/// Which of a run's two events are in the record: its beginning and its end.
pub(super) fn told(audit: &std::path::Path, kept: &KeptRun) -> (bool, bool) {
    let (mut began, mut ended) = (false, false);
    let Ok(mut events) = AuditReader::new(audit).events_after(kept.after) else { return (began, ended) };
    loop {
        match events.look(RECORDS) {
            Ok(Looked::Found(record)) if is_of(record.entry.payload.as_ref(), kept.id()) => {
                match record.entry.topic.as_deref() {
                    Some(STARTED) => began = true,
                    Some(COMPLETED | FAILED | DROPPED) => ended = true,
                    _ => {}
                }
            }
            Ok(Looked::Found(_) | Looked::NotYet) => {}
            Ok(Looked::End) | Err(_) => return (began, ended),
        }
    }
}

fn is_of(payload: Option<&Json>, run: &RunId) -> bool {
    payload.and_then(|payload| payload.text("run_id")).is_some_and(|id| id == run.as_str())
}

fn unknown() -> ErrorEnvelope {
    swb_proto::BusError::new(swb_proto::error::ERR_INTERNAL, "nobody knows what became of it").into()
}

fn duration_ms(kept: &KeptRun) -> u64 {
    let millis = |stamp: &Option<Timestamp>| {
        stamp.as_ref().and_then(|stamp| Moment::parse(stamp.as_str())).map(Moment::unix_millis)
    };
    let duration = millis(&kept.run.started_at).zip(millis(&kept.run.ended_at));
    duration.and_then(|(began, ended)| u64::try_from(ended - began).ok()).unwrap_or(0)
}

fn said(topic: &str, told: Result<u64, PublishError>) {
    if let Err(error) = told {
        tracing::warn!(%error, topic, "not published");
    }
}
