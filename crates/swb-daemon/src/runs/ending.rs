//! How runs end: because somebody wants it, because something is used up, because the agent is gone, or because it is done.

use swb_host::wire::Exit;
use swb_proto::BusError;
use swb_proto::agent::{AddedCommand, Command};
use swb_proto::id::RunId;
use swb_proto::run::{Progress, RunState};
use tokio::time::Instant;

use super::agent::BUILTIN;
use super::current::{CANCEL_PATIENCE, Phase, cancelled, failed, over_budget};
use super::kept;
use super::order::Order;
use super::session::SessionTask;
use super::starting::READY_PATIENCE;

/// How often an agent that ends in the middle of a run is started again.
const RESTARTS: u32 = 1;

impl SessionTask {
    pub(super) async fn cancel(&mut self, run: &RunId, reason: Option<String>) {
        if let Some(at) = self.waiting.iter().position(|kept| kept.id() == run) {
            if let Some(mut kept) = self.waiting.remove(at) {
                kept.run.error = Some(cancelled(reason).into());
                self.house.over(kept, RunState::Cancelled, "").await;
            }
            return;
        }
        if self.current.as_ref().is_some_and(|current| current.kept.id() == run) {
            self.stop(cancelled(reason), false).await;
        }
    }

    /// Ends the run under way, with a reason. The agent is asked first.
    pub(super) async fn stop(&mut self, error: BusError, is_failure: bool) {
        let Some(current) = &mut self.current else { return };
        if current.stopping.is_some() {
            return;
        }
        current.stopping = Some((error, is_failure));
        self.inbox = None;
        if current.phase == Phase::Starting {
            self.kill().await;
        } else {
            self.stop_agent().await;
        }
    }

    pub(super) async fn stop_agent(&mut self) {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else { return };
        current.deadline = Some(Instant::now() + CANCEL_PATIENCE);
        // First what waits, so that it does not begin when what is under way ends.
        let id = current.next_id("clear");
        let _ = link.say(&AddedCommand::ClearQueue { id }).await;
        let id = current.next_id("abort");
        let _ = link.say(&Command::Abort { id }).await;
    }

    /// Patience is at an end.
    pub(super) async fn overdue(&mut self) {
        let Some(current) = &mut self.current else { return };
        let at = Instant::now();
        if current.time_is_up.is_some_and(|up| up <= at) {
            current.time_is_up = None;
            let limit = current.kept.run.budget.wall_ms.unwrap_or_default();
            return self.stop(over_budget(format!("its {limit} ms are over")), true).await;
        }
        if current.deadline.is_none_or(|deadline| deadline > at) {
            return;
        }
        match current.phase {
            Phase::Closing => self.finish(None).await,
            Phase::Working => self.kill().await,
            Phase::Starting => {
                let message =
                    format!("the agent did not get ready within {} seconds", READY_PATIENCE.as_secs());
                current.stopping.get_or_insert((failed(message, "AGENT_NOT_READY"), true));
                self.kill().await;
            }
        }
    }

    /// Ends the agent with everything it has started. Its end comes along the line.
    async fn kill(&mut self) {
        if let Some(current) = &mut self.current {
            current.deadline = Some(Instant::now() + CANCEL_PATIENCE);
        }
        match &mut self.link {
            Some(link) => link.kill().await,
            None => self.finish(None).await,
        }
    }

    /// The agent is gone, or its host is.
    pub(super) async fn exited(&mut self, exit: Option<Exit>) {
        self.inbox = None;
        let Some(link) = self.link.take() else { return };
        let complaints = link.complaints();
        if exit.is_some() {
            link.release().await;
        } else {
            // It did not come to end what its agent had started.
            self.house.sweep().await;
        }
        let Some(current) = &mut self.current else { return };
        if current.phase == Phase::Closing || current.stopping.is_some() {
            return self.finish(None).await;
        }
        let how = match exit {
            None => "its host ended".to_owned(),
            Some(Exit::Code(code)) => format!("it ended with code {code}"),
            Some(Exit::Signal(signal)) => format!("signal {signal} ended it"),
        };
        let words = last_line(&complaints).map(|line| format!(": {line}")).unwrap_or_default();
        let is_working = current.phase == Phase::Working;
        if exit.is_some()
            && is_working
            && current.kept.restarts < RESTARTS
            && current.kept.run.agent == BUILTIN
        {
            current.kept.restarts += 1;
            current.phase = Phase::Starting;
            current.open.clear();
            current.calls.clear();
            let message = format!("{how}; it is started again and goes on from its history");
            self.remark(Progress::Notice { name: "restarted".to_owned(), message }).await;
            return self.set_out().await;
        }
        let reason = if is_working { "AGENT_CRASHED" } else { "AGENT_NOT_READY" };
        self.finish(Some(failed(format!("the agent is gone: {how}{words}"), reason))).await;
    }

    /// The run under way is over.
    pub(super) async fn finish(&mut self, error: Option<BusError>) {
        self.inbox = None;
        let Some(current) = self.current.take() else { return };
        let result = self.link.as_ref().map(|link| link.ear.said().to_owned()).unwrap_or_default();
        let mut kept = current.kept;
        let (stopped, stop_is_failure) = current.stopping.map_or((None, false), |(why, is)| (Some(why), is));
        let was_cancelled =
            (stopped.is_some() && !stop_is_failure) || (current.cancelled && stopped.is_none());
        let error = stopped.or(error).or(current.error).or_else(|| was_cancelled.then(|| cancelled(None)));
        let state = kept::end_state(was_cancelled, error.is_some());
        kept.run.error = error.map(Into::into);
        self.before.clone_from(&kept.session_total);
        if let Some(link) = &mut self.link {
            link.ear.clear();
            link.told = 0;
        }
        let kind = if state == RunState::Failed { "RUN_CRASH" } else { "RUN_STOP" };
        if kept.run.started_at.is_some() {
            self.house.bus_note(&self.place, &kept, kind);
        }
        self.house.over(kept, state, &result).await;
    }

    /// Lets the agent go.
    pub(super) async fn let_go(&mut self) {
        if let Some(link) = self.link.take() {
            link.end().await;
        }
    }

    /// The session is over: so is everything in it.
    pub(super) async fn end(&mut self) {
        for order in self.last_orders().await {
            // Whoever gave another one hears that nobody took it.
            if let Order::Run(kept) = order {
                self.waiting.push_back(*kept);
            }
        }
        let why = || cancelled(Some("its session has ended".to_owned()));
        for mut kept in std::mem::take(&mut self.waiting) {
            kept.run.error = Some(why().into());
            self.house.over(kept, RunState::Cancelled, "").await;
        }
        if let Some(current) = &mut self.current {
            current.stopping = Some((why(), false));
        }
        self.let_go().await;
        self.finish(None).await;
    }
}

fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(swb_rules::redact::without_paths(&swb_rules::redact::redact(line.trim()).text).into_owned())
}
