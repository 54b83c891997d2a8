//! The loop: one place that takes commands, starts work, notices its end and answers.
//!
//! Turns, compactions and single tool calls are tasks; the loop only waits for whichever of its sources speaks next, so
//! every command is answered at any time. It alone knows what is running, and it learns of an end from the task itself:
//! a turn that fails before anybody looked is over all the same.
//!
//! ```text
//!  stdin thread ─► requests ─┐                  ┌─► turn ────────┐
//!  signals, end of stdin ────┼─► Agent::run ────┼─► compaction ──┼─► Output ─► stdout thread
//!  ends of tasks ────────────┘     │ answers ───┴─► tool calls ──┘
//! ```
//!
//! Invariants: one answer per id and no other frame with it but its `error`; `agent_end` once per turn, right before the
//! turn's response; what an abort ended is answered before the abort. Proof: `crates/swb-cli/tests/rpc/`.

mod abort;
mod commands;
mod compaction;
mod jobs;
mod listing;
mod reply;
mod subagents;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use swb_proto::agent::{Event, PROTOCOL_VERSION};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cancel::Cancel;
use crate::history::Sessions;
use crate::model::Thinking;
use crate::model::catalogue::{Catalogue, Entry};
use crate::stdio::input::{Incoming, Input};
use crate::stdio::output::{Gone, Output};
use crate::tools::{Ran, Toolbox};
use crate::turn::queue::{Queue, Waiting};
use crate::turn::{SharedHistory, locked};
use jobs::{CompactionJob, TurnJob, finished};
use listing::Lists;
use subagents::Autos;

/// How long a turn may go on after `shutdown`. Parents lose patience after five seconds.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(4);

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// `shutdown`, and nothing runs any more.
    Shutdown,
    /// The parent has closed stdin.
    InputEnded,
    /// The parent has closed stdout.
    ParentGone,
    /// Somebody outside wants it.
    Told,
}

/// The agent: its session, what it is doing, and its way to the parent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) output: Output,
    pub(crate) sessions: Sessions,
    pub(crate) history: SharedHistory,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) models: Arc<Catalogue>,
    pub(crate) system: Arc<str>,
    pub(crate) thinking: Thinking,
    /// The model that summarises, if it is not the one in use.
    pub(crate) compaction_model: Option<String>,
    queue: Queue,
    turn: Option<TurnJob>,
    compaction: Option<CompactionJob>,
    /// Single tool calls, with the ids they are answered to.
    calls: JoinSet<(String, Ran)>,
    calls_cancel: Cancel,
    /// Lists of models that are being asked for, with the ids they are answered to.
    listings: JoinSet<(String, Vec<Entry>)>,
    /// Requests for the list of tools that wait for servers.
    lists: Lists,
    /// Aborts that wait for what they ended.
    aborts: Vec<String>,
    /// What an abort took out of the queue.
    dropped: Vec<Waiting>,
    autos: Autos,
    /// When a turn that goes on after `shutdown` is cut short.
    deadline: Option<Instant>,
}

impl Agent {
    pub(crate) fn new(
        output: Output,
        sessions: Sessions,
        history: SharedHistory,
        toolbox: Arc<Toolbox>,
        models: Arc<Catalogue>,
        system: Arc<str>,
    ) -> Self {
        toolbox.subagents.settle_in(Arc::clone(&history));
        Agent {
            output,
            sessions,
            history,
            toolbox,
            models,
            system,
            thinking: Thinking::default(),
            compaction_model: None,
            queue: Queue::default(),
            turn: None,
            compaction: None,
            calls: JoinSet::new(),
            calls_cancel: Cancel::new(),
            listings: JoinSet::new(),
            lists: Lists::default(),
            aborts: Vec::new(),
            dropped: Vec::new(),
            autos: Autos::default(),
            deadline: None,
        }
    }

    /// Says `ready` and serves until there is a reason to end.
    /// `heard` becomes true when the end of stdin was noticed and is no reason to end.
    pub(crate) async fn run(&mut self, input: &mut Input, told: &Cancel, heard: &AtomicBool) -> Why {
        self.serve(input, told, heard).await.unwrap_or(Why::ParentGone)
    }

    async fn serve(&mut self, input: &mut Input, told: &Cancel, heard: &AtomicBool) -> Result<Why, Gone> {
        let (session_id, model) = {
            let history = locked(&self.history);
            (history.id.clone(), history.model.clone())
        };
        self.output.send(&Event::Ready { session_id, model, protocol_version: PROTOCOL_VERSION }).await?;
        let toolbox = Arc::clone(&self.toolbox);
        toolbox.mcp.begin().await;
        let mut open = true;
        loop {
            if self.deadline.is_some() && self.is_idle() && self.listings.is_empty() {
                self.answer_lists().await?;
                return Ok(Why::Shutdown);
            }
            let deadline = self.deadline;
            tokio::select! {
                biased;
                () = self.output.gone() => return Ok(Why::ParentGone),
                () = told.cancelled() => return Ok(Why::Told),
                ended = finished(&mut self.turn) => self.turn_ended(ended).await?,
                summary = finished(&mut self.compaction) => self.compaction_ended(summary).await?,
                Some(ran) = self.calls.join_next() => self.call_ended(ran).await?,
                () = toolbox.subagents.one_ended() => self.subagent_ended().await?,
                Some(listed) = self.listings.join_next() => self.listed(listed).await?,
                () = self.lists.due(&toolbox.mcp) => self.answer_lists().await?,
                () = until(deadline) => {
                    self.deadline = Some(Instant::now() + SHUTDOWN_PATIENCE);
                    self.cancel_all();
                }
                incoming = input.requests.recv(), if open => match incoming {
                    Some(Incoming::Request(request)) => self.handle(request).await?,
                    Some(Incoming::Bad(bad)) => self.fail(bad.id, bad.message).await?,
                    // Whoever asked for a shutdown has asked for the end of the turn, too.
                    None if self.deadline.is_some() => {
                        open = false;
                        heard.store(true, Ordering::Relaxed);
                    }
                    None => return Ok(Why::InputEnded),
                },
            }
        }
    }

    /// Ends what is running, as an abort does, but not for longer than this.
    pub(crate) async fn wind_up(&mut self, patience: Duration) {
        self.dropped.extend(self.queue.clear());
        self.cancel_all();
        let ended = async {
            while !self.is_idle() || !self.listings.is_empty() {
                let told = tokio::select! {
                    ended = finished(&mut self.turn) => self.turn_ended(ended).await,
                    summary = finished(&mut self.compaction) => self.compaction_ended(summary).await,
                    Some(ran) = self.calls.join_next() => self.call_ended(ran).await,
                    Some(listed) = self.listings.join_next() => self.listed(listed).await,
                };
                // The work is what matters now, not who hears of it.
                let _ = told;
            }
            self.toolbox.subagents.end_of_cancelled().await;
            let _ = self.settle().await;
            let _ = self.answer_lists().await;
        };
        let _ = tokio::time::timeout(patience, ended).await;
        // The turn has synced; anything else is in the file, and a failure can be told nobody any more.
        let _ = locked(&self.history).sync();
    }

    fn is_idle(&self) -> bool {
        self.turn.is_none() && self.compaction.is_none() && self.calls.is_empty()
    }

    fn begin_shutdown(&mut self) {
        self.dropped.extend(self.queue.clear());
        if let Some(compaction) = &self.compaction {
            compaction.cancel.cancel();
        }
        self.deadline.get_or_insert_with(|| Instant::now() + SHUTDOWN_PATIENCE);
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
