//! What people and programs say to the run under way.

use swb_proto::BusError;
use swb_proto::agent::{AddedCommand, Command};
use swb_proto::id::RunId;
use swb_proto::run::{AnswerParams, Progress};

use super::current::{Phase, failed};
use super::nothing_under_way;
use super::order::How;
use super::session::SessionTask;

impl SessionTask {
    pub(super) async fn tell(&mut self, how: How, text: String, from: String) -> Result<RunId, BusError> {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else {
            return Err(nothing_under_way());
        };
        if current.phase == Phase::Starting || current.stopping.is_some() {
            return Err(nothing_under_way());
        }
        let id = current.next_id("said");
        let message = text.clone();
        let said = match how {
            How::Steer => link.say(&AddedCommand::Steer { id: id.clone(), message }).await,
            How::FollowUp => link.say(&Command::FollowUp { id: id.clone(), message }).await,
        };
        said.map_err(|error| failed(error.to_string(), "AGENT_GONE"))?;
        current.phase = Phase::Working;
        current.deadline = None;
        current.open.insert(id);
        let run = current.kept.id().clone();
        let how = if how == How::Steer { "steer" } else { "follow_up" }.to_owned();
        let text = swb_rules::redact::redact(&text).text;
        self.remark(Progress::Input { text, how, from }).await;
        Ok(run)
    }

    pub(super) async fn answer(&mut self, answer: AnswerParams) -> Result<RunId, BusError> {
        let (Some(current), Some(link)) = (&mut self.current, &mut self.link) else {
            return Err(nothing_under_way());
        };
        let AnswerParams { ask_id, option, text, declined, .. } = answer;
        let id = current.next_id("answer");
        let word = AddedCommand::Answer { id, ask_id, option, text, declined };
        link.say(&word).await.map_err(|error| failed(error.to_string(), "AGENT_GONE"))?;
        Ok(current.kept.id().clone())
    }
}
