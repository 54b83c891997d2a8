//! The life of one subagent, from its start to its outcome.

use std::process::ExitStatus;
use std::sync::{Arc, Weak};
use std::time::Duration;

use swb_proto::agent::{AddedEvent, Command, Event, TaskState, TaskUpdate, TurnUsage};
use swb_rules::redact::redact;
use tokio::sync::mpsc;

use super::drive::{Drive, Failure};
use super::launch::Birth;
use super::process::{Process, Trouble};
use super::status::preview;
use super::task::{Ended, Order, Outcome, Task};
use super::{Subagents, Surroundings};
use crate::tools::Toolbox;
use crate::turn::{SharedHistory, locked};

const TASK_PREVIEW_CHARS: usize = 80;
const RESULT_PREVIEW_CHARS: usize = 120;

/// What a subagent is started for.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) task: String,
    pub(crate) name: String,
    /// Its model; that of the session if not given.
    pub(crate) model: Option<String>,
    /// The widest mode it shall have; never wider than ours.
    pub(crate) mode: Option<crate::gate::Mode>,
    pub(crate) background: bool,
    pub(crate) time: Duration,
}

/// Why it is over.
enum Over {
    Done,
    Failed(Failure),
    TimeUp(Duration),
    Cancelled,
}

pub(super) async fn work(
    subagents: Arc<Subagents>,
    task: Arc<Task>,
    wish: Wish,
    orders: mpsc::Receiver<Order>,
    home: SharedHistory,
) {
    let Some(around) = &subagents.around else { return };
    let (subagent_id, agent_name) = (task.id, task.name.clone());
    let task_preview = preview(&wish.task, TASK_PREVIEW_CHARS);
    let start = Event::SubagentStart { subagent_id, agent_name, task_preview };
    // Here and below: a parent that has gone is noticed by the loop.
    let _ = around.output.send(&start).await;
    let (outcome, usage) = live(around, &task, &wish, subagents.toolbox(), orders, &home).await;
    let ended = Ended { outcome, usage, took: task.age() };
    tell(around, &task, &ended).await;
    subagents.finish(&task, &home, ended);
}

async fn live(
    around: &Surroundings,
    task: &Arc<Task>,
    wish: &Wish,
    toolbox: Weak<Toolbox>,
    orders: mpsc::Receiver<Order>,
    home: &SharedHistory,
) -> (Outcome, TurnUsage) {
    let process = {
        let home = locked(home);
        let birth = Birth {
            parent: &home.id,
            depth: around.depth + 1,
            model: wish.model.as_deref().unwrap_or(&home.model),
            mode: task.mode(around.gate.mode()),
            asks: around.asks.anybody(),
            below: around.gate.house.as_ref().map(|house| house.below(&task.name)),
            workspace: &around.workspace,
        };
        Process::start(&mut around.launch.command(&birth))
    };
    let mut drive = match process {
        Ok(process) => Drive::new(process, Arc::clone(task), around, toolbox, orders),
        Err(error) => {
            let reason = format!("it could not be started: {error}");
            return (Outcome::Failed { reason, said: String::new() }, TurnUsage::default());
        }
    };
    let over = tokio::select! {
        biased;
        () = task.cancelled() => Over::Cancelled,
        () = tokio::time::sleep(wish.time) => Over::TimeUp(wish.time),
        result = drive.run(&wish.task) => result.map_or_else(Over::Failed, |()| Over::Done),
    };
    let status = end(&mut drive, &over, around.limits.ending).await;
    let said = std::mem::take(&mut drive.said);
    let outcome = match over {
        Over::Done => Outcome::Done(said),
        Over::Cancelled => Outcome::Cancelled { said },
        Over::TimeUp(time) => {
            Outcome::Failed { reason: format!("it was not done after {} seconds", time.as_secs()), said }
        }
        Over::Failed(failure) => {
            Outcome::Failed { reason: reason(&failure, status, &drive.process.complaint()), said }
        }
    };
    (outcome, drive.usage)
}

/// Ends the process, whatever it does. Its turn is cut short if it still runs.
async fn end(drive: &mut Drive, over: &Over, patience: Duration) -> Option<ExitStatus> {
    if matches!(over, Over::Done) {
        // One that does not read its end is killed below.
        let _ = drive.process.send(&Command::Shutdown);
    }
    drive.process.close();
    let begun = tokio::time::Instant::now();
    // One that does not keep to the protocol is not listened to any more.
    if !matches!(over, Over::Failed(Failure::Trouble(_) | Failure::Flood(_))) {
        let _ = tokio::time::timeout(patience, drive.listen_to_the_end()).await;
    }
    drive.process.end(patience.saturating_sub(begun.elapsed())).await
}

fn reason(failure: &Failure, status: Option<ExitStatus>, complaint: &str) -> String {
    use std::os::unix::process::ExitStatusExt;
    let mut text = match (failure, status.map(|status| (status.code(), status.signal()))) {
        (Failure::Trouble(Trouble::Gone), Some((_, Some(signal)))) => {
            format!("it died before it was done (signal {signal})")
        }
        (Failure::Trouble(Trouble::Gone), Some((Some(code), _))) => {
            format!("it ended before it was done (exit code {code})")
        }
        _ => failure.to_string(),
    };
    if !complaint.is_empty() {
        text = format!("{text}; it complained: {complaint}");
    }
    redact(&text).text
}

async fn tell(around: &Surroundings, task: &Task, ended: &Ended) {
    let (state, words) = match &ended.outcome {
        Outcome::Done(result) => (TaskState::Done, preview(result, RESULT_PREVIEW_CHARS)),
        Outcome::Failed { reason, .. } => {
            (TaskState::Failed, format!("ERROR: {}", preview(reason, RESULT_PREVIEW_CHARS)))
        }
        Outcome::Cancelled { .. } => (TaskState::Cancelled, "ERROR: it was cancelled".to_owned()),
    };
    let duration_secs = ended.took.as_secs_f64();
    let done = Event::SubagentDone {
        subagent_id: task.id,
        agent_name: task.name.clone(),
        result_preview: words.clone(),
        duration_secs,
    };
    let _ = around.output.send(&done).await;
    let update = TaskUpdate {
        path: vec![task.id],
        agents: vec![task.name.clone()],
        state,
        session_id: task.news().session_id,
        model: None,
        background: task.background,
        status: None,
        preview: Some(words),
        usage: Some(ended.usage.clone()),
        duration_secs: Some(duration_secs),
    };
    let _ = around.output.send(&AddedEvent::TaskUpdate(update)).await;
}
