//! The story of a session: the events of its runs, as they are kept, through the same view as a run that is watched.
//!
//! Events are read a page at a time, from a little before the first that the session's transcript has; the last page may
//! be followed by the run that is still at work.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::time::Instant;

use serde::Deserialize;
use serde_json::Value;
use swb_bus::BusHandle;
use swb_daemon::Paths;
use swb_proto::agent::{Event, Frame};
use swb_proto::events::{MAX_PAGE, Read, ReadParams};
use swb_proto::id::{RunId, SessionId};
use swb_proto::run::{Attended, Run, RunTaken, TakenStatus};
use swb_proto::{EventEnvelope, TopicGlob};

use super::super::drive::{Bond, Drive};
use super::super::link::Incoming;
use super::super::screen::{Screen, Size};
use super::super::view::View;
use super::super::{Seat, draws};
use super::frames::Teller;
use super::line;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;

/// How many events before the first of a transcript the run may have begun.
const MARGIN: u64 = 1000;
/// How much is gathered before it is written.
const WRITE_BYTES: usize = 64 * 1024;

/// Shows what a session has done, and with `follow` what it does.
pub(crate) async fn show(
    handle: &BusHandle,
    session: SessionId,
    runs: &[Run],
    follow: bool,
    io: &Io,
) -> Result<u8, Failure> {
    let mut story = Story::new(&session, runs, io);
    let mut after = begin(&session)?;
    let topics = ["agent.run.*", "approval.*"].map(|glob| TopicGlob::try_from(glob.to_owned()));
    let topics = topics.into_iter().collect::<Result<Vec<_>, _>>();
    let topics = topics.map_err(|error| Failure::new("the story cannot be read").because(error))?;
    loop {
        let params = ReadParams { topics: topics.clone(), after: Some(after), limit: Some(MAX_PAGE) };
        let page = handle.call::<Read>(params).await?;
        page.events.iter().try_for_each(|event| story.event(event))?;
        after = page.next;
        if page.events.is_empty() || page.next >= page.head || story.is_whole() {
            break;
        }
    }
    let live = runs.iter().find(|run| !run.state.is_over() && !story.ended.contains(&run.run_id));
    story.finish()?;
    let Some(live) = live.filter(|_| follow) else { return Ok(exit_code::SUCCESS) };
    let seat = Seat::take(io)?;
    let attended = if seat.keyboard.is_some() { Attended::Here } else { Attended::Later };
    let run_id = live.run_id.clone();
    let taken = RunTaken { run_id, session_id: session, status: TakenStatus::Started, after };
    let link = line::join(handle.clone(), taken, attended, live.model.as_deref().unwrap_or_default()).await?;
    Ok(Drive::new(link, seat.view, seat.keyboard, seat.signals, Bond::Watch).run(None).await?.code)
}

/// Where to begin: the daemon keeps the events of all sessions in one row.
fn begin(session: &SessionId) -> Result<u64, Failure> {
    let file = Paths::from_env()?.transcripts().join(format!("{session}.jsonl"));
    let mut line = String::new();
    // Without one nothing was said yet, and the row is short or the answer is.
    if let Ok(file) = std::fs::File::open(file) {
        BufReader::new(file).read_line(&mut line)?;
    }
    let first = serde_json::from_str::<Value>(&line).ok().and_then(|event| event["seq"].as_u64());
    Ok(first.unwrap_or(0).saturating_sub(MARGIN))
}

struct Story<'a> {
    session: &'a SessionId,
    runs: &'a [Run],
    teller: Option<Teller>,
    /// Questions by their ids, until they are answered.
    asked: HashMap<String, String>,
    ended: HashSet<RunId>,
    view: View,
    /// Whoever reads it is no terminal.
    is_plain: bool,
}

#[derive(Deserialize)]
struct OfRun {
    run_id: RunId,
}

impl<'a> Story<'a> {
    fn new(session: &'a SessionId, runs: &'a [Run], io: &Io) -> Self {
        let is_plain = !io.json && !draws();
        let view = if io.json {
            View::Json(Vec::new())
        } else {
            let colour = !is_plain && io.is_colourful();
            View::Screen(Box::new(Screen::still(Size::now(), colour, Instant::now())))
        };
        Story { session, runs, teller: None, asked: HashMap::new(), ended: HashSet::new(), view, is_plain }
    }

    /// Every run is told to its end.
    fn is_whole(&self) -> bool {
        self.runs.iter().all(|run| self.ended.contains(&run.run_id))
    }

    fn event(&mut self, event: &EventEnvelope) -> Result<(), Failure> {
        if event.session_id.as_ref() != Some(self.session) {
            return Ok(());
        }
        if matches!(self.view, View::Json(_)) {
            let line = serde_json::to_vec(event).map_err(std::io::Error::from)?;
            self.view.frame(&Incoming { frame: Frame::Unknown, line, aside: None });
            self.note_end(event);
            return self.write(WRITE_BYTES);
        }
        if let Some(what) = event.topic.as_str().strip_prefix("approval.") {
            self.approval(what, event);
            return Ok(());
        }
        let Ok(OfRun { run_id }) = serde_json::from_str(event.payload.get()) else { return Ok(()) };
        if self.teller.as_ref().is_none_or(|teller| teller.run != run_id) {
            let title = self.runs.iter().find(|run| run.run_id == run_id).map(|run| run.title.clone());
            self.say(format!("❯ {}", title.unwrap_or_default()));
            self.teller = Some(Teller::new(run_id, self.session.clone(), Attended::Later));
        }
        self.note_end(event);
        let Some(teller) = &mut self.teller else { return Ok(()) };
        let told = teller.tell(event);
        let mut aside = told.aside;
        for frame in told.frames {
            if let Frame::Contract(Event::Response { body, .. }) = &frame {
                aside = Some(end_in_words(body));
                continue;
            }
            self.view.frame(&Incoming { frame, line: Vec::new(), aside: None });
        }
        if let Some(aside) = aside {
            self.say(aside);
        }
        self.write(WRITE_BYTES)
    }

    fn note_end(&mut self, event: &EventEnvelope) {
        let ends = ["agent.run.completed", "agent.run.failed", "agent.run.dropped"];
        if ends.contains(&event.topic.as_str())
            && let Ok(OfRun { run_id }) = serde_json::from_str(event.payload.get())
        {
            self.ended.insert(run_id);
        }
    }

    /// What was asked stands where it was answered.
    fn approval(&mut self, what: &str, event: &EventEnvelope) {
        let payload: Value = serde_json::from_str(event.payload.get()).unwrap_or_default();
        let id = payload["approval_id"].as_str().unwrap_or_default().to_owned();
        if what == "requested" {
            let action = payload["action"].as_str().unwrap_or_default();
            let about = payload["subject"]["command"].as_str();
            let about = about.map_or_else(|| payload["subject"].to_string(), str::to_owned);
            self.asked.insert(id, format!("{}: {about}", action.trim_start_matches("tool.")));
        } else if what == "resolved" {
            let asked = self.asked.remove(&id).unwrap_or(id);
            let status = payload["status"].as_str().unwrap_or_default().replace('_', " ");
            let by = payload["resolved_by"].as_str().map(|by| format!(" by {by}")).unwrap_or_default();
            self.say(format!("? {asked} → {status}{by}"));
        }
    }

    fn say(&mut self, aside: String) {
        self.view.frame(&Incoming { frame: Frame::Unknown, line: Vec::new(), aside: Some(aside) });
    }

    /// Writes what there is, once it is worth it.
    fn write(&mut self, least: usize) -> Result<(), Failure> {
        if self.view.waiting() < least {
            return Ok(());
        }
        let bytes = self.view.output();
        let mut out = std::io::stdout().lock();
        if self.is_plain {
            let parts = anstream::adapter::strip_bytes(&bytes);
            return Ok(parts.into_iter().try_for_each(|part| out.write_all(part))?);
        }
        Ok(out.write_all(&bytes)?)
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.view.leave();
        self.write(0)
    }
}

fn end_in_words(body: &std::collections::BTreeMap<String, Value>) -> String {
    let is = |key: &str| body.get(key).and_then(Value::as_bool).unwrap_or(false);
    match body.get("error").and_then(Value::as_str) {
        _ if is("cancelled") => "■ cancelled".to_owned(),
        Some(error) => format!("✗ {error}"),
        None => "✓ done".to_owned(),
    }
}
