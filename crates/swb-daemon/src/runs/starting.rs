//! How the run under way gets its agent, and the agent its prompt.

use std::time::Duration;

use swb_proto::agent::Command;
use swb_proto::run::{Attended, RunState};
use tokio::time::Instant;

use super::agent::{BUILTIN, Birth};
use super::current::{Phase, failed};
use super::kept::{self, KeptRun};
use super::link::Link;
use super::session::SessionTask;
use super::telling;
use crate::records::now;

/// How long an agent may take to be there.
pub(super) const READY_PATIENCE: Duration = Duration::from_secs(30);

impl SessionTask {
    /// Sees to it that there is an agent for the run under way.
    pub(super) async fn set_out(&mut self) {
        let Some(current) = &mut self.current else { return };
        current.deadline = Some(Instant::now() + READY_PATIENCE);
        let wanted = (current.kept.run.agent.clone(), current.kept.run.attended);
        if self.link.as_ref().is_some_and(|link| link.started_for.as_ref() != Some(&wanted)) {
            // How long it waits for people, and what it is, it was told when it was started.
            self.let_go().await;
        }
        let Some(current) = &mut self.current else { return };
        if self.link.as_ref().is_some_and(|link| link.model.is_some()) {
            return self.hand_over().await;
        }
        if self.link.is_some() {
            return;
        }
        let kept = &current.kept;
        let birth = Birth {
            place: &self.place,
            agent: &kept.run.agent,
            model: kept.wanted_model.as_deref(),
            profile: kept.profile_id.as_ref().map(|profile| profile.as_str()),
            asks: kept.run.attended == Attended::Here,
            goes_on: kept.run.agent == BUILTIN && self.house.agents.has_history(&self.place.session),
            environment: self.house.environment(&self.place, kept),
        };
        let started = self.house.agents.start(&birth).await;
        let socket = self.house.agents.socket(&self.place.session);
        self.generation += 1;
        match started {
            Ok(mut host) => match Link::connect(&socket, self.generation, (0, 0)).await {
                Ok(mut link) => {
                    link.started_for = Some(wanted);
                    self.link = Some(link);
                }
                Err(error) => {
                    // Nobody can tell it to go.
                    let _ = host.start_kill();
                    self.finish(Some(failed(error.to_string(), "AGENT_NOT_STARTED"))).await;
                }
            },
            Err(error) => self.finish(Some(failed(error.to_string(), "AGENT_NOT_STARTED"))).await,
        }
    }

    /// The agent is there: it gets its prompt.
    pub(super) async fn hand_over(&mut self) {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else { return };
        let model = link.model.clone();
        if let Some(wanted) =
            current.kept.wanted_model.clone().filter(|wanted| model.as_ref() != Some(wanted))
        {
            let word = Command::SetModel { id: current.next_id("model"), model: wanted.clone() };
            if link.say(&word).await.is_ok() {
                link.model = Some(wanted);
            }
        }
        let first_time = current.kept.run.started_at.is_none();
        let message = if first_time { current.kept.prompt.clone() } else { go_on(&current.kept.prompt) };
        let prompt = prompt(&current.kept, message);
        let place = link.place();
        link.settle(place).await;
        let kept = &mut current.kept;
        kept.from = place;
        kept.run.state = RunState::Running;
        kept.run.model.clone_from(&link.model);
        kept.run.containment = Some(link.containment.clone());
        kept.run.started_at.get_or_insert_with(now);
        kept.host = link.generation;
        kept.write = link.number_of(&prompt).unwrap_or(0);
        let recorded = kept::keep(&self.house.records, kept).await;
        if let Err(error) = recorded {
            return self.finish(Some(error)).await;
        }
        if first_time {
            self.house.bus_note(&self.place, &current.kept, "RUN_START");
            let hash = self.house.recorder.hash_arguments(current.kept.prompt.as_bytes());
            telling::started(&self.house, &current.kept, hash);
        }
        current.phase = Phase::Working;
        current.deadline = None;
        current.since = now();
        current.open.insert(current.kept.id().as_str().to_owned());
        if let Err(error) = link.say(&prompt).await {
            tracing::warn!(%error, "a prompt could not be written");
        }
        self.house.hand_over_mail(link, current).await;
        self.open_inbox();
        let Some(current) = &self.current else { return };
        if current.stopping.is_some() {
            self.stop_agent().await;
        }
    }
}

pub(super) fn prompt(kept: &KeptRun, message: String) -> Command {
    Command::Prompt { id: kept.id().as_str().to_owned(), message, attachments: Vec::new() }
}

/// What an agent is told whose process has ended in the middle of its work.
pub(super) fn go_on(prompt: &str) -> String {
    format!(
        "Your process ended unexpectedly and was started again; what was under way then did not come to an end. \
         Look at how things stand and go on. The task was:\n\n{prompt}"
    )
}
