//! The line to a run of the daemon: its events become frames, commands become calls.
//!
//! The connection is made again and the events go on behind the last one that came, over as many daemons as it takes; a
//! daemon that stays away is told as an agent that went. An end that fell into a gap is looked up. Frames are made only
//! while they are taken, so that a reader who does not read costs no memory.

use std::collections::VecDeque;
use std::time::Duration;

use swb_bus::topics::Delivery;
use swb_bus::{BusHandle, EventStream};
use swb_daemon::Paths;
use swb_proto::TopicGlob;
use swb_proto::agent::{AddedCommand, Command, Frame};
use swb_proto::approval::{
    ApprovalDecision, ApprovalStatus, List, ListApprovalsParams, Resolve, ResolveParams,
};
use swb_proto::id::ApprovalId;
use swb_proto::run::{Answer, AnswerParams, Attended, Cancel, CancelRunParams, Get, RunTaken, WhichRun};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::super::link::{Ended, Incoming, Link, Word};
use super::super::screen::ALLOW_FOR_SESSION;
use super::frames::Teller;
use crate::failure::Failure;

/// Frames that may wait.
const WAITING: usize = 64;
/// How long a daemon may be away.
const AWAY: Duration = Duration::from_secs(15);
/// How often it is looked for.
const LOOK: Duration = Duration::from_secs(1);
/// How long the end of a run may take that ends with us.
const LAST_WORD: Duration = Duration::from_secs(4);
const ALLOW: &str = "allow";

/// The line to a run that was just begun.
pub(super) async fn to(handle: BusHandle, taken: RunTaken, attended: Attended) -> Result<Link, Failure> {
    let teller = Teller::new(taken.run_id, taken.session_id, attended);
    let ready = shown(teller.ready(""));
    open(handle, teller, taken.after, attended, VecDeque::from([ready])).await
}

/// The line to a run that is under way: what is asked already is asked here, too.
pub(super) async fn join(
    handle: BusHandle,
    taken: RunTaken,
    attended: Attended,
    model: &str,
) -> Result<Link, Failure> {
    let mut teller = Teller::new(taken.run_id, taken.session_id, attended);
    let status = Some(ApprovalStatus::Pending);
    let session_id = Some(teller.session.clone());
    let params = ListApprovalsParams { status, session_id, workspace_id: None };
    let open_questions = handle.call::<List>(params).await?.approvals;
    let mut pending = VecDeque::from([shown(teller.ready(model))]);
    pending.extend(open_questions.iter().filter_map(|approval| teller.ask(approval)).map(shown));
    open(handle, teller, taken.after, attended, pending).await
}

async fn open(
    handle: BusHandle,
    teller: Teller,
    after: u64,
    attended: Attended,
    pending: VecDeque<Incoming>,
) -> Result<Link, Failure> {
    let globs = ["agent.run.*", "approval.*"].map(|glob| TopicGlob::try_from(glob.to_owned()));
    let globs = globs.into_iter().collect::<Result<Vec<_>, _>>();
    let globs = globs.map_err(|error| Failure::new("the run cannot be followed").because(error))?;
    let events = handle.subscribe(globs, Some(after)).await?;
    let (commands, words) = mpsc::unbounded_channel();
    let (spoken, frames) = mpsc::channel(WAITING);
    let (told, ended) = oneshot::channel();
    let (asides, heard) = mpsc::unbounded_channel();
    let presence = Presence { paths: Paths::from_env()?, away_since: None };
    let line = Line {
        pending,
        handle,
        events,
        teller,
        ends_with_us: attended == Attended::Nobody,
        asides,
        presence,
    };
    let kill = tokio::spawn(line.serve(words, heard, spoken, told)).abort_handle();
    Ok(Link { frames, commands, ended, kill })
}

#[derive(Debug)]
struct Line {
    handle: BusHandle,
    events: EventStream,
    teller: Teller,
    pending: VecDeque<Incoming>,
    ends_with_us: bool,
    /// What calls have to say that nobody waits for.
    asides: mpsc::UnboundedSender<String>,
    presence: Presence,
}

/// Whether there is a daemon.
#[derive(Debug)]
struct Presence {
    paths: Paths,
    away_since: Option<Instant>,
}

impl Presence {
    /// Whether it has been away for too long. One that stops takes its description along.
    fn is_gone(&mut self) -> bool {
        if self.paths.description().exists() {
            self.away_since = None;
            return false;
        }
        self.away_since.get_or_insert_with(Instant::now).elapsed() > AWAY
    }
}

impl Line {
    async fn serve(
        mut self,
        mut words: mpsc::UnboundedReceiver<Word>,
        mut heard: mpsc::UnboundedReceiver<String>,
        frames: mpsc::Sender<Incoming>,
        told: oneshot::Sender<Ended>,
    ) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let how = loop {
            let has_room = self.pending.is_empty();
            tokio::select! {
                biased;
                word = words.recv() => match word {
                    Some(Word::Contract(Command::Shutdown)) | None => break "",
                    Some(word) => self.word(word),
                },
                permit = frames.reserve(), if !has_room => match permit {
                    Ok(permit) => if let Some(frame) = self.pending.pop_front() {
                        permit.send(frame);
                    },
                    Err(_) => break "",
                },
                Some(aside) = heard.recv() => self.pending.push_back(said(aside)),
                delivery = self.events.next(), if has_room && !self.teller.is_over() => match delivery {
                    Some(delivery) => self.delivery(&delivery).await,
                    None if self.look_up().await => {}
                    None => break "the daemon that came back does not know of the run",
                },
                _ = looks.tick(), if !self.teller.is_over() => if self.presence.is_gone() {
                    break "the daemon is gone";
                },
            }
        };
        if self.ends_with_us && !self.teller.is_over() {
            let reason = Some("whoever wanted it has gone".to_owned());
            let params =
                CancelRunParams { run_id: Some(self.teller.run.clone()), reason, ..Default::default() };
            let _ = timeout(LAST_WORD, self.handle.call::<Cancel>(params)).await;
        }
        drop(frames);
        let _ = told.send(Ended { how: how.to_owned(), code: None, said: String::new() });
    }

    fn word(&mut self, word: Word) {
        match word {
            Word::Contract(Command::Abort { .. }) => {
                let (handle, asides) = (self.handle.clone(), self.asides.clone());
                let params = CancelRunParams { run_id: Some(self.teller.run.clone()), ..Default::default() };
                tokio::spawn(async move {
                    if let Err(error) = handle.call::<Cancel>(params).await {
                        let _ = asides.send(format!("it could not be cancelled: {error}"));
                    }
                });
            }
            Word::Contract(Command::GetSessionStats { id }) => {
                self.pending.push_back(shown(self.teller.stats(id)));
            }
            Word::Added(AddedCommand::Answer { ask_id, option, .. })
                if ask_id.starts_with(ApprovalId::PREFIX) =>
            {
                self.answer(ask_id, option.as_deref());
            }
            Word::Added(AddedCommand::Answer { ask_id, option, text, declined, .. }) => {
                let run_id = Some(self.teller.run.clone());
                let params = AnswerParams { run_id, session_id: None, ask_id, option, text, declined };
                let (handle, asides) = (self.handle.clone(), self.asides.clone());
                tokio::spawn(async move {
                    if let Err(error) = handle.call::<Answer>(params).await {
                        let _ = asides.send(format!("the answer did not get there: {error}"));
                    }
                });
            }
            // Nothing else is said to a run that was begun by a call.
            Word::Contract(_) | Word::Added(_) => {}
        }
    }

    /// Somebody else may have been quicker: then this is said, and their answer holds.
    fn answer(&self, ask_id: String, option: Option<&str>) {
        let Ok(approval_id) = ApprovalId::try_from(ask_id) else { return };
        let allow_for_session = option == Some(ALLOW_FOR_SESSION);
        let decision = match option {
            Some(ALLOW | ALLOW_FOR_SESSION) => ApprovalDecision::Approve,
            _ => ApprovalDecision::Deny,
        };
        let params =
            ResolveParams { approval_id, decision, reason: None, allow_for_session, edited_args: None };
        let (handle, asides) = (self.handle.clone(), self.asides.clone());
        tokio::spawn(async move {
            if let Err(error) = handle.call::<Resolve>(params).await {
                let _ = asides.send(format!("the answer does not count: {error}"));
            }
        });
    }

    async fn delivery(&mut self, delivery: &Delivery) {
        match delivery {
            // What is missing of the run itself shows in its numbers; its end may be among it.
            Delivery::Gap(_) => {
                self.look_up().await;
            }
            Delivery::Event(event) => {
                let told = self.teller.tell(event.envelope());
                if !told.is_ours {
                    return;
                }
                let mut frames = told.frames.into_iter();
                let frame = frames.next().unwrap_or(Frame::Unknown);
                let line = event.json().as_bytes().to_vec();
                self.pending.push_back(Incoming { frame, line, aside: told.aside });
                self.pending.extend(frames.map(shown));
            }
        }
    }

    /// Whether the run is over, though nobody said so.
    async fn look_up(&mut self) -> bool {
        let which = WhichRun { run_id: Some(self.teller.run.clone()), session_id: None };
        if let Ok(view) = self.handle.call::<Get>(which).await {
            self.pending.extend(self.teller.looked_up(view.run).into_iter().map(shown));
        }
        self.teller.is_over()
    }
}

fn shown(frame: Frame) -> Incoming {
    Incoming { frame, line: Vec::new(), aside: None }
}

fn said(aside: String) -> Incoming {
    Incoming { frame: Frame::Unknown, line: Vec::new(), aside: Some(aside) }
}
