//! What comes along the line to the agent of a session, and what it means for the run under way.

use swb_proto::agent::Command;
use swb_proto::run::{Progress, RunUsage, Source, ToolStatus};
use tokio::time::Instant;

use super::current::{Current, Phase, USED, failed};
use super::hearing::{Answer, Heard};
use super::link::Came;
use super::session::SessionTask;
use super::{kept, telling};
use crate::records::now;

/// How long an agent may take to say what it has used.
const CLOSING_PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

impl SessionTask {
    pub(super) async fn came(&mut self, came: Came) {
        match came {
            Came::Heard(heard) => {
                for heard in heard {
                    if !is_told_later(&heard) {
                        self.tell_progress();
                    }
                    self.heard(heard).await;
                }
                self.tell_progress();
            }
            Came::Complained { upto } => {
                if let Some(link) = &mut self.link {
                    link.noted(upto).await;
                }
            }
            Came::Exited(exit) => self.exited(Some(exit)).await,
            Came::Lost => self.exited(None).await,
            Came::Nothing => {}
        }
    }

    async fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Progress(progress) => self.progress(progress).await,
            Heard::Ready { model } => {
                if let Some(link) = &mut self.link {
                    link.model = Some(model);
                }
                if self.current.as_ref().is_some_and(|current| current.phase == Phase::Starting) {
                    self.hand_over().await;
                }
            }
            Heard::Answered { id, body } => self.answered(&id, body).await,
            Heard::Refused { id, message } => {
                let error = Some(message);
                match id {
                    Some(id) => self.answered(&id, Answer { error, ..Answer::default() }).await,
                    None => tracing::debug!(error, "an agent complains"),
                }
            }
            Heard::Turn(usage) => {
                if let Some(current) = &mut self.current {
                    let used = &mut current.kept.run.usage;
                    used.turns += 1;
                    // Until the totals of the session say it better.
                    if used.input_tokens == 0 && used.output_tokens == 0 {
                        kept::add(used, &usage);
                    }
                }
            }
            Heard::Below(usage) => {
                if let Some(current) = &mut self.current {
                    kept::add(&mut current.below, &usage);
                }
            }
            Heard::Place { end, at_rest } => {
                if at_rest && let Some(link) = &mut self.link {
                    link.settle(end).await;
                }
            }
        }
    }

    async fn progress(&mut self, progress: Progress) {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else { return };
        let answers = note_calls(current, &progress);
        if answers {
            current.kept.run.usage.turns += 1;
        }
        link.nth += 1;
        if link.told > 0 {
            // A daemon before us has told it.
            link.told -= 1;
            return;
        }
        current.step += 1;
        let source = Source { host: link.generation, offset: link.rest, nth: link.nth };
        if let Progress::Mcp { call } = &progress {
            telling::progressed(&self.house, current);
            telling::mcp_call(&self.house, &current.kept, &current.agent, call);
        }
        let told = telling::progress(&self.house, &current.kept, current.step, Some(source), progress);
        current.untold.extend(told);
        if answers {
            // Its model is asked next: time to look at what was used so far.
            let word = Command::GetSessionStats { id: current.next_id(USED) };
            let _ = link.say(&word).await;
        }
    }

    /// Tells what has gathered.
    fn tell_progress(&mut self) {
        if let Some(current) = &mut self.current {
            telling::progressed(&self.house, current);
        }
    }

    async fn answered(&mut self, id: &str, answer: Answer) {
        self.mail_answered(id, &answer).await;
        let Some(current) = &mut self.current else { return };
        if let Some((totals, cost)) = &answer.totals {
            if !id.starts_with(current.kept.id().as_str()) {
                return;
            }
            current.used(self.before.as_ref(), totals, *cost);
            let mut total = RunUsage { cost_usd: *cost, ..RunUsage::default() };
            kept::add(&mut total, totals);
            current.kept.session_total = Some(total);
            let usage = current.kept.run.usage.clone();
            if current.phase == Phase::Closing {
                return self.finish(None).await;
            }
            if let Some(excess) = current.excess() {
                self.stop(excess, true).await;
            } else {
                self.remark(Progress::Usage { usage }).await;
            }
            return;
        }
        if let Some(is_busy) = answer.is_busy {
            if !is_busy && current.open.is_empty() {
                current.is_recovered = false;
                self.close().await;
            }
            return;
        }
        if answer.error.is_some() && current.phase == Phase::Closing && current.asked_what_was_used(id) {
            // It does not know the question: what it has told by itself is all there is.
            return self.finish(None).await;
        }
        if answer.error.is_some() && id == current.state_id() {
            // It does not know the question, so it has no queue either: what it was told is done.
            current.is_recovered = false;
            return self.close().await;
        }
        // Of what was said under a daemon before us only the ids tell whose it is.
        let is_ours = current.is_recovered && id.starts_with(current.kept.id().as_str());
        if !(current.open.remove(id) || is_ours) {
            return;
        }
        let is_prompt = id == current.kept.id().as_str();
        current.cancelled |= answer.cancelled;
        if let Some(error) = answer.error.filter(|_| is_prompt) {
            current.error = Some(failed(error, "AGENT_FAILED"));
        }
        if current.open.is_empty() {
            self.close().await;
        }
    }

    /// The agent is done: what has it used?
    async fn close(&mut self) {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else { return };
        if current.is_recovered {
            let word = Command::GetState { id: current.state_id() };
            let _ = link.say(&word).await;
            return;
        }
        current.phase = Phase::Closing;
        current.deadline = Some(Instant::now() + CLOSING_PATIENCE);
        let word = Command::GetSessionStats { id: current.next_id(USED) };
        if link.say(&word).await.is_err() {
            self.finish(None).await;
        }
    }

    /// Says something about the run that its agent did not say.
    pub(super) async fn remark(&mut self, progress: Progress) {
        let Some(current) = &mut self.current else { return };
        if self.link.as_ref().is_some_and(|link| link.told > 0) {
            return;
        }
        current.step += 1;
        let told = telling::progress(&self.house, &current.kept, current.step, None, progress);
        current.untold.extend(told);
        self.tell_progress();
    }
}

/// What an agent does gathers while nothing else comes: told and kept together, a thousand words cost little more than
/// one. Whatever else comes finds told what came before it.
fn is_told_later(heard: &Heard) -> bool {
    matches!(heard, Heard::Progress(_) | Heard::Place { at_rest: false, .. })
}

/// Keeps account of calls; true if the last one that was open is over.
fn note_calls(current: &mut Current, progress: &Progress) -> bool {
    let Progress::Tool { tool } = progress else { return false };
    match tool.status {
        ToolStatus::Started => current.calls.push((tool.call_id.clone(), tool.name.clone(), now())),
        ToolStatus::Done => {
            current.calls.retain(|(id, ..)| *id != tool.call_id);
            return current.calls.is_empty();
        }
        _ => {}
    }
    false
}
