//! How a daemon takes over what the one before it had under way.
//!
//! Hosts are found by their sockets. A run whose host is there goes on from the last piece of progress that its session's
//! transcript has; one whose host is gone has failed, and what that host left behind is ended first. What was kept and not told is told. Nothing is told twice: the
//! transcript and the record know what was.

use std::sync::Arc;
use std::time::Duration;

use swb_host::HostClient;
use swb_host::wire::Stream;
use swb_journal::audit::Moment;
use swb_proto::EventEnvelope;
use swb_proto::id::SessionId;
use swb_proto::run::{Progress, RunProgress, RunState, RunUsage};
use tokio::time::Instant;

use super::current::{Current, Phase, failed};
use super::kept::{self, KeptRun};
use super::link::Link;
use super::session::SessionTask;
use super::starting::{go_on, prompt};
use super::{House, Runs, telling};

/// What a transcript knows of a run.
#[derive(Debug, Default)]
struct Past {
    /// The number of the last piece of progress.
    step: u64,
    /// Where the last piece of the agent's own was made from, and how many were from there on.
    source: Option<(u64, u64)>,
    usage: Option<RunUsage>,
    /// What it has said since its last call of a tool.
    said: String,
}

impl Runs {
    /// Takes over. Returns when everything that was under way is in somebody's hands.
    pub(crate) async fn recover(&self) {
        let house = &self.0;
        house.sweep().await;
        let (untold, live): (Vec<KeptRun>, Vec<KeptRun>) = {
            let estate = house.records.look();
            let open = estate.runs.iter().filter(|kept| kept::is_live(kept) || !kept.end_is_told).cloned();
            open.partition(|kept| kept.run.state.is_over())
        };
        house.forget_mail_of_the_past();
        for kept in untold {
            house.tell_end(kept).await;
        }
        let mut sessions: Vec<SessionId> = live.iter().map(|kept| kept.run.session_id.clone()).collect();
        sessions.extend(house.hosts());
        sessions.sort();
        sessions.dedup();
        for session in sessions {
            let runs = live.iter().filter(|kept| kept.run.session_id == session).cloned().collect();
            house.take_over(&session, runs).await;
        }
    }
}

impl House {
    /// The sessions that have a host.
    fn hosts(&self) -> Vec<SessionId> {
        let Ok(entries) = std::fs::read_dir(self.paths.hosts()) else { return Vec::new() };
        let with_socket =
            entries.filter_map(Result::ok).filter(|entry| entry.path().join("host.sock").exists());
        with_socket.filter_map(|entry| entry.file_name().into_string().ok()?.try_into().ok()).collect()
    }

    /// A run is over, and whether that was told only the record knows.
    async fn tell_end(&self, mut kept: KeptRun) {
        let (_, ended) = telling::told(&self.paths.audit(), &kept);
        if !ended {
            let said = self.past(&kept).said;
            telling::ended(self, &kept, &said);
        }
        kept.end_is_told = true;
        if let Err(error) = kept::keep(&self.records, &kept).await {
            tracing::error!(?error, run = kept.id().as_str(), "a run could not be kept");
        }
    }

    async fn take_over(self: &Arc<Self>, session: &SessionId, runs: Vec<KeptRun>) {
        let socket = self.agents.socket(session.as_str());
        let Ok(mut task) = self.new_task(session) else {
            // Its session has ended, or nobody knows it: nothing is left to do for its agent.
            if let Ok(link) = Link::connect(&socket, 0, (0, 0)).await {
                link.end().await;
            }
            for mut kept in runs {
                kept.run.error = Some(failed("its session has ended", "SESSION_ENDED").into());
                self.over(kept, RunState::Failed, "").await;
            }
            return;
        };
        for kept in runs {
            if kept.run.state == RunState::Running {
                self.resume(&mut task, kept).await;
            } else {
                task.waiting.push_back(kept);
            }
        }
        if task.link.is_none() && socket.exists() {
            task.link = self.at_rest(&socket, task.generation).await;
        }
        self.at_work().begin(task);
    }

    /// An agent that had nothing to do.
    async fn at_rest(&self, socket: &std::path::Path, generation: u32) -> Option<Link> {
        let (_, status) = HostClient::connect(socket).await.ok()?;
        let kept = status.out.iter().find(|out| out.stream == Stream::Stdout).map_or(0, |out| out.kept_from);
        Link::connect(socket, generation, (kept, 0)).await.ok()
    }

    /// A run that was under way.
    async fn resume(self: &Arc<Self>, task: &mut SessionTask, kept: KeptRun) {
        let past = self.past(&kept);
        let (began, _) = telling::told(&self.paths.audit(), &kept);
        if !began {
            let hash = self.recorder.hash_arguments(kept.prompt.as_bytes());
            telling::started(self, &kept, hash);
        }
        let slot = match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(slot) => slot,
            // It works already, whatever the number of slots is now.
            Err(_) => {
                self.slots.add_permits(1);
                super::session::slot_of(&self.slots).await
            }
        };
        let socket = self.agents.socket(task.place.session.as_str());
        let from = past.source.unwrap_or((kept.from, 0));
        let link = Link::connect(&socket, kept.host, from).await;
        let mut current = Current::new(kept, slot);
        current.step = past.step;
        current.phase = Phase::Working;
        current.is_recovered = true;
        current.time_is_up = remaining(&current.kept).map(|left| Instant::now() + left);
        current.open.insert(current.kept.id().as_str().to_owned());
        if let Some(usage) = past.usage {
            current.kept.run.usage = usage;
        }
        match link {
            Ok(mut link) => {
                link.model.clone_from(&current.kept.run.model);
                link.started_for = Some((current.kept.run.agent.clone(), current.kept.run.attended));
                let message = match current.kept.restarts {
                    0 => current.kept.prompt.clone(),
                    _ => go_on(&current.kept.prompt),
                };
                let word = prompt(&current.kept, message);
                if let Err(error) = link.say_again(&word, current.kept.write).await {
                    tracing::warn!(%error, "a prompt could not be written");
                }
                self.take_mail(&current.kept.run.session_id).await;
                self.hand_over_mail(&mut link, &mut current).await;
                tracing::info!(
                    run = current.kept.id().as_str(),
                    from = from.0,
                    told = from.1,
                    "a run goes on"
                );
                task.link = Some(link);
                task.current = Some(current);
            }
            Err(error) => {
                tracing::warn!(%error, run = current.kept.id().as_str(), "the host of a run is gone");
                let mut kept = current.kept;
                let message = "its host ended while the daemon was away, and the agent with it";
                kept.run.error = Some(failed(message, "AGENT_CRASHED").into());
                self.bus_note(&task.place, &kept, "RUN_CRASH");
                self.over(kept, RunState::Failed, "").await;
            }
        }
    }

    /// What the transcript knows of a run.
    fn past(&self, kept: &KeptRun) -> Past {
        let mut past = Past::default();
        let mut lines = match self.transcripts.of(kept.run.session_id.as_str()) {
            Ok(lines) => lines,
            Err(error) => {
                tracing::error!(%error, "a transcript cannot be read");
                return past;
            }
        };
        while let Ok(Some((_, line))) = lines.next_line() {
            let Ok(event) = serde_json::from_str::<EventEnvelope>(&line) else { continue };
            let Ok(told) = serde_json::from_str::<RunProgress>(event.payload.get()) else { continue };
            if told.run_id != *kept.id() {
                continue;
            }
            past.step = told.step;
            if let Some(source) = told.source.filter(|source| source.host == kept.host) {
                past.source = Some((source.offset, source.nth));
            }
            match told.progress {
                Progress::Usage { usage } => past.usage = Some(usage),
                Progress::Text { delta } => past.said.push_str(&delta),
                Progress::Tool { .. } => past.said.clear(),
                _ => {}
            }
        }
        past
    }
}

/// What is left of a run's time: it ran on while no daemon was there.
fn remaining(kept: &KeptRun) -> Option<Duration> {
    let budget = Duration::from_millis(kept.run.budget.wall_ms?);
    let began = Moment::parse(kept.run.started_at.as_ref()?.as_str())?.unix_millis();
    let gone = u64::try_from(Moment::now().unix_millis() - began).unwrap_or(0);
    Some(budget.saturating_sub(Duration::from_millis(gone)))
}
