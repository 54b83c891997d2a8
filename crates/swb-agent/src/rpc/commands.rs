//! Every command, in one place.

use std::sync::{Arc, Mutex};

use swb_proto::agent::{AddedCommand, Attachment, Command, LentTool, Message, Request};

use super::reply::{
    Cleared, Lent, Messages, ModeSet, ModelSet, Nothing, Outcome, Queued, QueuedItem, Session, State, Stats,
    ThinkingSet,
};
use super::{Agent, Gone};
use crate::gate::Mode;
use crate::gate::ask::Answer;
use crate::model::Thinking;
use crate::tools::Ran;
use crate::turn::locked;
use crate::turn::queue::{STEER, Waiting};

const BUSY: &str = "another prompt is in flight; abort first";
const STOPPING: &str = "the agent is shutting down";

impl Agent {
    pub(super) async fn handle(&mut self, request: Request) -> Result<(), Gone> {
        match request {
            Request::Contract(command) => self.contract(command).await,
            Request::Added(command) => self.added(command).await,
        }
    }

    async fn contract(&mut self, command: Command) -> Result<(), Gone> {
        match command {
            // A turn that began by itself is no reason to send a parent away.
            Command::Prompt { id, attachments, .. }
                if self.turn.is_some() && !(self.is_auto_turn() && attachments.is_empty()) =>
            {
                self.fail(Some(id), BUSY).await
            }
            Command::Prompt { id, message, attachments } => {
                self.say(Waiting { id, command: "prompt", message }, attachments).await
            }
            Command::FollowUp { id, message } => {
                self.say(Waiting { id, command: "follow_up", message }, Vec::new()).await
            }
            Command::Compact { id } if self.deadline.is_some() => self.fail(Some(id), STOPPING).await,
            Command::Compact { id } => self.compact(id).await,
            Command::NewSession { id } => self.new_session(id).await,
            Command::GetMessages { id } => {
                let messages = locked(&self.history).messages().to_vec();
                let messages: Vec<&Message> = messages.iter().map(AsRef::as_ref).collect();
                self.respond(&id, "get_messages", &Messages { messages, ok: true }).await
            }
            Command::SetModel { id, model } => self.set_model(id, model).await,
            Command::GetAvailableModels { id } => {
                self.list_models(id);
                Ok(())
            }
            Command::Abort { id } => self.abort(id).await,
            Command::GetSessionStats { id } => {
                let body = self.stats();
                self.respond(&id, "get_session_stats", &body).await
            }
            Command::GetState { id } => {
                let body = self.state();
                self.respond(&id, "get_state", &body).await
            }
            Command::ToolsList { id } => self.list_tools(id.unwrap_or_default()).await,
            Command::Shutdown => {
                self.begin_shutdown();
                self.settle().await
            }
        }
    }

    async fn added(&mut self, command: AddedCommand) -> Result<(), Gone> {
        match command {
            AddedCommand::Steer { id, message } => {
                self.say(Waiting { id, command: STEER, message }, Vec::new()).await
            }
            AddedCommand::Queue { id } => {
                let item = |Waiting { id, command, message }| QueuedItem { command, id, message };
                let queue = self.queue.list().into_iter().map(item).collect();
                self.respond(&id, "queue", &Queued { ok: true, queue }).await
            }
            AddedCommand::ClearQueue { id } => {
                let dropped = self.queue.clear();
                for waiting in &dropped {
                    self.respond(&waiting.id, waiting.command, &Outcome::cancelled()).await?;
                }
                self.respond(&id, "clear_queue", &Cleared { cleared: dropped.len(), ok: true }).await
            }
            AddedCommand::ToolCall { id, .. } if self.deadline.is_some() => self.fail(id, STOPPING).await,
            AddedCommand::ToolCall { id, name, args } => {
                self.start_call(id.unwrap_or_default(), name, args);
                Ok(())
            }
            AddedCommand::SetThinkingLevel { id, level } => match Thinking::from_name(&level) {
                Some(thinking) => {
                    self.thinking = thinking;
                    self.respond(&id, "set_thinking_level", &ThinkingSet { level: &level, ok: true }).await
                }
                None => self.fail(Some(id), "the levels are `off`, `low`, `medium` and `high`").await,
            },
            AddedCommand::SetToolMode { id, mode } => match Mode::from_name(&mode) {
                Some(known) => {
                    self.toolbox.gate.set_mode(known);
                    self.toolbox.subagents.narrow(known);
                    self.respond(&id, "set_tool_mode", &ModeSet { mode: &mode, ok: true }).await
                }
                None => self.fail(Some(id), "the modes are `read-only`, `workspace` and `full`").await,
            },
            AddedCommand::Lend { id, tools, add } => self.lend(id, tools, add).await,
            AddedCommand::LentResult { id, call_id, result, failed } => {
                match self.toolbox.borrowed.answer(&call_id, Ran { result, failed }) {
                    Ok(()) => self.respond(&id, "lent_result", &Nothing::default()).await,
                    Err(error) => self.fail(Some(id), error.to_string()).await,
                }
            }
            AddedCommand::Answer { id, ask_id, option, text, declined } => {
                match self.toolbox.asks.answer(&ask_id, Answer { option, text, declined }) {
                    Ok(()) => self.respond(&id, "answer", &Nothing::default()).await,
                    Err(error) => self.fail(Some(id), error.to_string()).await,
                }
            }
        }
    }

    async fn lend(&mut self, id: String, tools: Vec<LentTool>, add: bool) -> Result<(), Gone> {
        let toolbox = &self.toolbox;
        let (lent, refused) = toolbox.borrowed.take(tools, add, |name| toolbox.is_own(name));
        self.respond(&id, "lend", &Lent { lent, ok: true, refused }).await
    }

    /// Begins a turn with this, or lets it wait for the one that is running. Only what need not wait may have files.
    async fn say(&mut self, waiting: Waiting, attachments: Vec<Attachment>) -> Result<(), Gone> {
        if self.deadline.is_some() {
            return self.fail(Some(waiting.id), STOPPING).await;
        }
        self.autos.heard_of_parent();
        if self.turn.is_none() {
            return self.start_turn(waiting, attachments).await;
        }
        let id = waiting.id.clone();
        match self.queue.add(waiting) {
            Ok(()) => Ok(()),
            Err(full) => self.fail(Some(id), full.to_string()).await,
        }
    }

    async fn new_session(&mut self, id: String) -> Result<(), Gone> {
        if !self.is_idle() {
            return self.fail(Some(id), BUSY).await;
        }
        let (model, system, parent) = {
            let mut history = locked(&self.history);
            // A failure here says nothing about the new session.
            let _ = history.sync();
            (history.model.clone(), history.system.clone(), history.parent.clone())
        };
        match self.sessions.create(&model, system, parent) {
            Ok(history) => {
                let session_id = history.id.clone();
                self.history = Arc::new(Mutex::new(history));
                self.toolbox.subagents.settle_in(Arc::clone(&self.history));
                self.respond(&id, "new_session", &Session { ok: true, session_id: &session_id }).await
            }
            Err(error) => self.fail(Some(id), error.to_string()).await,
        }
    }

    async fn set_model(&mut self, id: String, model: String) -> Result<(), Gone> {
        let set = match self.models.check(&model).await {
            Ok(()) => locked(&self.history).set_model(&model).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match set {
            Ok(()) => self.respond(&id, "set_model", &ModelSet { model: &model, ok: true }).await,
            Err(error) => self.fail(Some(id), error).await,
        }
    }

    fn stats(&self) -> Stats {
        let history = locked(&self.history);
        let totals = history.totals();
        Stats {
            cache_creation_input_tokens: totals.cache_creation_input_tokens,
            cache_read_input_tokens: totals.cache_read_input_tokens,
            context_tokens: history.context_tokens(),
            context_window: self.models.context_window(&history.model),
            cost: self.models.cost(history.used_by_model()),
            estimated: totals.estimated,
            input_tokens: totals.input_tokens,
            message_count: history.messages().len(),
            model: history.model.clone(),
            ok: true,
            output_tokens: totals.output_tokens,
            session_id: history.id.clone(),
        }
    }

    fn state(&self) -> State {
        let history = locked(&self.history);
        State {
            compacting: self.compaction.is_some(),
            context_tokens: history.context_tokens(),
            context_window: self.models.context_window(&history.model),
            message_count: history.messages().len(),
            model: history.model.clone(),
            ok: true,
            queued: self.queue.len(),
            session_id: history.id.clone(),
            streaming: self.turn.is_some(),
            thinking_level: self.thinking.name(),
            tool_mode: self.toolbox.gate.mode().name(),
        }
    }
}
