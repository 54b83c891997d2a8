//! A parent's side of the protocol, for one task: ready, prompt, frames until the answer.

use std::sync::{Arc, Weak};

use swb_proto::agent::{
    AddedCommand, AddedEvent, AssistantEvent, Command, Event, Frame, TaskState, TaskUpdate, TurnUsage,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::process::{Process, Trouble};
use super::relay::{Put, Relay};
use super::task::{Order, Task};
use super::{Limits, Surroundings, status};
use crate::gate::Gate;
use crate::lend::lender::{self, Lender};
use crate::stdio::output::Output;
use crate::tools::Toolbox;

/// The id of the one prompt.
const TASK: &str = "task";
const THINKING: &str = "\u{1f4ad} thinking...";

/// Why a subagent did not come to its end. The text is for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    #[error("it did not get ready within {} seconds", .0.as_secs())]
    NotReady(std::time::Duration),
    #[error("it speaks version {0} of the protocol")]
    Version(u32),
    #[error("it has stopped answering")]
    Silent,
    #[error("it said more than {0} bytes in one answer")]
    Flood(usize),
    #[error("{0}")]
    Trouble(#[from] Trouble),
    /// Its turn failed, in its own words.
    #[error("{0}")]
    Turn(String),
    /// Somebody aborted its turn, and not through us.
    #[error("its turn was aborted")]
    Aborted,
}

/// The conversation with one subagent.
#[derive(Debug)]
pub(super) struct Drive {
    pub(super) process: Process,
    task: Arc<Task>,
    output: Output,
    limits: Limits,
    relay: Relay,
    lender: Lender,
    gate: Arc<Gate>,
    orders: mpsc::Receiver<Order>,
    /// The call whose arguments are still to come: its id and its tool.
    calls: Vec<(String, String)>,
    /// What it has said since its last tool call.
    pub(super) said: String,
    pub(super) usage: TurnUsage,
    complaint: Option<String>,
}

impl Drive {
    pub(super) fn new(
        process: Process,
        task: Arc<Task>,
        around: &Surroundings,
        toolbox: Weak<Toolbox>,
        orders: mpsc::Receiver<Order>,
    ) -> Self {
        Drive {
            process,
            relay: Relay::new(Arc::clone(&around.asks), task.name.clone()),
            lender: Lender::new(toolbox, task.name.clone()),
            gate: Arc::clone(&around.gate),
            task,
            output: around.output.clone(),
            limits: around.limits,
            orders,
            calls: Vec::new(),
            said: String::new(),
            usage: TurnUsage::default(),
            complaint: None,
        }
    }

    /// Gives it its task and listens until it has answered.
    pub(super) async fn run(&mut self, words: &str) -> Result<(), Failure> {
        let ready = timeout(self.limits.ready, self.ready()).await;
        let model = ready.map_err(|_| Failure::NotReady(self.limits.ready))??;
        for frame in lender::frames(self.lender.tools()) {
            self.process.send(&frame)?;
        }
        // A mode that has become narrower meanwhile holds before anything is done.
        let mut early = Vec::new();
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Mode(_) => self.pass_on(order)?,
                Order::Steer(_) => early.push(order),
            }
        }
        let message = words.to_owned();
        self.process.send(&Command::Prompt { id: TASK.to_owned(), message, attachments: Vec::new() })?;
        self.tell(TaskState::Started, |update| update.model = Some(model)).await;
        for order in early {
            self.pass_on(order)?;
        }
        let mut heard = Instant::now();
        let mut asked = false;
        loop {
            let limit = if asked { self.limits.sign_of_life } else { self.limits.silence };
            tokio::select! {
                frame = self.process.next() => {
                    (heard, asked) = (Instant::now(), false);
                    if self.hear(frame?).await? {
                        return Ok(());
                    }
                }
                Some(order) = self.orders.recv() => self.pass_on(order)?,
                answer = self.relay.answered() => self.process.send(&answer)?,
                result = self.lender.done() => self.process.send(&result)?,
                () = sleep_until(heard + limit) => {
                    if asked {
                        return Err(Failure::Silent);
                    }
                    (heard, asked) = (Instant::now(), true);
                    self.process.send(&Command::GetState { id: "alive".to_owned() })?;
                }
            }
        }
    }

    async fn ready(&mut self) -> Result<String, Failure> {
        loop {
            match self.process.next().await? {
                Frame::Contract(Event::Ready { protocol_version, .. })
                    if protocol_version != swb_proto::agent::PROTOCOL_VERSION =>
                {
                    return Err(Failure::Version(protocol_version));
                }
                Frame::Contract(Event::Ready { session_id, model, .. }) => {
                    self.task.update(|news| {
                        news.session_id = Some(session_id);
                        news.status = "working".to_owned();
                    });
                    return Ok(model);
                }
                Frame::Contract(Event::Error { message, .. }) => return Err(Failure::Turn(message)),
                _ => {}
            }
        }
    }

    fn pass_on(&mut self, order: Order) -> Result<(), Trouble> {
        match order {
            Order::Steer(message) => {
                self.process.send(&AddedCommand::Steer { id: "steer".to_owned(), message })
            }
            Order::Mode(mode) => {
                let mode = mode.name().to_owned();
                self.process.send(&AddedCommand::SetToolMode { id: "mode".to_owned(), mode })
            }
        }
    }

    /// Takes a frame; true if it was the last one.
    async fn hear(&mut self, frame: Frame) -> Result<bool, Failure> {
        match frame {
            Frame::Contract(event) => return self.hear_event(event).await,
            Frame::Added(AddedEvent::Ask { ask_id, subject, risk, options, free_text, reason, .. }) => {
                self.relay.put(Put { ask_id, subject, risk, options, free_text, reason });
            }
            Frame::Added(AddedEvent::LentCall(call)) => {
                let mode = self.task.mode(self.gate.mode());
                self.lender.call(call, mode);
            }
            Frame::Added(AddedEvent::LentCancel { call_id }) => self.lender.cancel(&call_id),
            Frame::Added(AddedEvent::AskClosed { ask_id, .. }) => self.relay.close(&ask_id),
            Frame::Added(AddedEvent::TaskUpdate(mut update)) => {
                update.path.insert(0, self.task.id);
                update.agents.insert(0, self.task.name.clone());
                self.send(&AddedEvent::TaskUpdate(update)).await;
            }
            Frame::Added(AddedEvent::Plan(mut update)) => {
                update.path.insert(0, self.task.id);
                update.agents.insert(0, self.task.name.clone());
                self.send(&AddedEvent::Plan(update)).await;
            }
            Frame::Added(_) | Frame::Unknown => {}
        }
        Ok(false)
    }

    async fn hear_event(&mut self, event: Event) -> Result<bool, Failure> {
        match event {
            Event::MessageUpdate { event } => self.hear_piece(event).await?,
            Event::AgentEnd { usage } => self.usage.add(&usage),
            Event::SubagentStart { agent_name, task_preview, .. } => {
                self.show(format!("{agent_name}: {task_preview}")).await;
            }
            Event::Error { id: Some(id), message } if id == TASK => self.complaint = Some(message),
            Event::Response { id, body, .. } if id == TASK => {
                if body.get("ok").and_then(serde_json::Value::as_bool) != Some(true) {
                    let words = body.get("error").and_then(serde_json::Value::as_str).map(str::to_owned);
                    let words =
                        words.or(self.complaint.take()).unwrap_or_else(|| "its turn failed".to_owned());
                    return Err(Failure::Turn(words));
                }
                if body.contains_key("cancelled") {
                    return Err(Failure::Aborted);
                }
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    async fn hear_piece(&mut self, piece: AssistantEvent) -> Result<(), Failure> {
        match piece {
            AssistantEvent::TextDelta { delta } => {
                if self.said.len() + delta.len() > self.limits.answer {
                    return Err(Failure::Flood(self.limits.answer));
                }
                self.said.push_str(&delta);
            }
            AssistantEvent::ThinkingDelta { .. } => self.show(THINKING.to_owned()).await,
            AssistantEvent::ToolcallStart { tool_id, tool_name } => {
                // Words before a tool call are thoughts on the way, not the answer.
                self.said.clear();
                self.task.update(|news| news.tool_calls += 1);
                let number = self.task.news().tool_calls;
                self.show(status::calling(&tool_name, number)).await;
                self.calls.push((tool_id, tool_name));
            }
            AssistantEvent::ToolcallInput { tool_id, input } => {
                let call = self.calls.iter().find(|(id, _)| *id == tool_id);
                if let Some(words) = call.and_then(|(_, name)| status::doing(name, &input)) {
                    self.show(words).await;
                }
            }
            AssistantEvent::ToolcallResult { tool_id, .. } => self.calls.retain(|(id, _)| *id != tool_id),
            AssistantEvent::ToolcallInputDelta { .. } => {}
        }
        Ok(())
    }

    /// Listens to the rest, for what it still has to say about its usage.
    pub(super) async fn listen_to_the_end(&mut self) {
        while let Ok(frame) = self.process.next().await {
            if let Frame::Contract(Event::AgentEnd { usage }) = frame {
                self.usage.add(&usage);
            }
        }
    }

    /// Shows what it does, if that is new.
    async fn show(&self, words: String) {
        if self.task.news().status == words {
            return;
        }
        self.task.update(|news| news.status.clone_from(&words));
        let (subagent_id, agent_name) = (self.task.id, self.task.name.clone());
        self.send(&Event::SubagentUpdate { subagent_id, agent_name, status: words.clone() }).await;
        self.tell(TaskState::Progress, |update| update.status = Some(words)).await;
    }

    pub(super) async fn tell(&self, state: TaskState, fill: impl FnOnce(&mut TaskUpdate)) {
        let started = state == TaskState::Started;
        let mut update = TaskUpdate {
            path: vec![self.task.id],
            agents: vec![self.task.name.clone()],
            state,
            session_id: self.task.news().session_id.filter(|_| started),
            model: None,
            background: self.task.background && started,
            status: None,
            preview: None,
            usage: None,
            duration_secs: None,
        };
        fill(&mut update);
        self.send(&AddedEvent::TaskUpdate(update)).await;
    }

    async fn send(&self, frame: &(impl serde::Serialize + Sync)) {
        // A parent that has gone is noticed by the loop.
        let _ = self.output.send(frame).await;
    }
}
