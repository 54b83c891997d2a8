//! What a subagent calls of ours.

use std::collections::HashMap;
use std::sync::Weak;

use swb_proto::agent::{AddedCommand, LentCall, LentTool};
use tokio::task::JoinSet;

use crate::cancel::Cancel;
use crate::gate::Mode;
use crate::tools::{Caller, Printer, Ran, Toolbox};

/// How many calls of one subagent may be under way.
const MAX_OPEN: usize = 16;
/// A frame with tools is not longer than this; the borrower takes no longer ones than 1 MiB.
const FRAME_BYTES: usize = 512 * 1024;

/// The tools in frames that a borrower takes. One that fits into no frame is left out.
pub(crate) fn frames(tools: Vec<LentTool>) -> Vec<AddedCommand> {
    let mut frames: Vec<Vec<LentTool>> = Vec::new();
    let mut room = 0;
    for tool in tools {
        // Escaped, a character beyond ASCII takes at most three times its bytes.
        let bytes = serde_json::to_vec(&tool)
            .map_or(usize::MAX, |json| json.iter().map(|byte| if byte.is_ascii() { 1 } else { 3 }).sum());
        if bytes > FRAME_BYTES {
            continue;
        }
        match frames.last_mut() {
            Some(frame) if bytes <= room => {
                room -= bytes;
                frame.push(tool);
            }
            _ => {
                room = FRAME_BYTES - bytes;
                frames.push(vec![tool]);
            }
        }
    }
    let frame = |(at, tools)| AddedCommand::Lend { id: "lend".to_owned(), tools, add: at > 0 };
    frames.into_iter().enumerate().map(frame).collect()
}

/// The calls of one subagent that are under way.
#[derive(Debug)]
pub(crate) struct Lender {
    toolbox: Weak<Toolbox>,
    name: String,
    running: JoinSet<(String, Ran)>,
    open: HashMap<String, Cancel>,
}

impl Lender {
    pub(crate) fn new(toolbox: Weak<Toolbox>, name: String) -> Self {
        Lender { toolbox, name, running: JoinSet::new(), open: HashMap::new() }
    }

    /// What can be lent.
    pub(crate) fn tools(&self) -> Vec<LentTool> {
        self.toolbox.upgrade().map(|toolbox| toolbox.lendable()).unwrap_or_default()
    }

    /// Runs a call for a subagent whose mode is this.
    pub(crate) fn call(&mut self, call: LentCall, mode: Mode) {
        let LentCall { call_id, name, input, session_id, mode: claimed, agents } = call;
        let toolbox = self.toolbox.upgrade().filter(|_| self.open.len() < MAX_OPEN);
        // Whatever it claims, it may not do more than it was started with.
        let mode = Mode::from_name(&claimed).unwrap_or(Mode::ReadOnly).min(mode);
        let mut path = vec![self.name.clone()];
        path.extend(agents);
        let (id, cancel) = (call_id.clone(), Cancel::new());
        self.open.insert(call_id, cancel.clone());
        self.running.spawn(async move {
            let Some(toolbox) = toolbox else {
                return (id, Ran::failed("Tool execution failed: too many calls are under way".to_owned()));
            };
            let caller = Caller { session_id, agents: path, mode };
            let ran = toolbox.run_lent(&caller, &name, input, &cancel, Printer::mute(&id)).await;
            (id, ran)
        });
    }

    /// Nobody waits for this one any more.
    pub(crate) fn cancel(&mut self, call_id: &str) {
        if let Some(cancel) = self.open.remove(call_id) {
            cancel.cancel();
        }
    }

    /// The next result, as the command that brings it. Waits for ever while nothing is under way.
    pub(crate) async fn done(&mut self) -> AddedCommand {
        loop {
            let Some(joined) = self.running.join_next().await else {
                return std::future::pending().await;
            };
            let Ok((call_id, Ran { result, failed })) = joined else { continue };
            if self.open.remove(&call_id).is_none() {
                continue;
            }
            return AddedCommand::LentResult { id: "lent".to_owned(), call_id, result: cut(result), failed };
        }
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        // They come to their end by themselves, so that what has to be noted about them is noted.
        self.open.values().for_each(Cancel::cancel);
        self.running.detach_all();
    }
}

/// A result that fits into a frame.
fn cut(mut result: String) -> String {
    let mut bytes = 0;
    let escaped = |character: char| match character {
        '"' | '\\' => 2,
        character if character.is_control() => 6,
        character => {
            if character.is_ascii() {
                1
            } else {
                6 * character.len_utf16()
            }
        }
    };
    let end = result.char_indices().find(|(_, character)| {
        bytes += escaped(*character);
        bytes > FRAME_BYTES
    });
    if let Some((end, _)) = end {
        let total = result.len();
        result.truncate(end);
        result.push_str(&format!("\n[{} more bytes were dropped]", total - end));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use swb_proto::agent::{MAX_FRAME_BYTES, encode};

    fn length(frame: &AddedCommand) -> usize {
        let mut line = Vec::new();
        encode(frame, &mut line).unwrap();
        line.len()
    }

    #[test]
    fn tools_are_parted_into_frames_that_a_borrower_takes() {
        let tool = |name: &str, size: usize| LentTool {
            name: name.to_owned(),
            description: "é".repeat(size),
            input_schema: json!({ "type": "object" }),
        };
        let frames = frames(vec![tool("a", 10_000), tool("b", 80_000), tool("huge", 200_000), tool("c", 10)]);
        assert!(frames.iter().all(|frame| length(frame) < MAX_FRAME_BYTES));
        let shape: Vec<_> = frames
            .iter()
            .map(|frame| match frame {
                AddedCommand::Lend { tools, add, .. } => {
                    (tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), *add)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(shape, [(vec!["a"], false), (vec!["b", "c"], true)]);
    }

    #[test]
    fn a_result_is_cut_to_a_frame() {
        for text in ["é", "\u{1}", "\"", "\u{1f600}", "x"] {
            let result = cut(text.repeat(1_000_000));
            let frame =
                AddedCommand::LentResult { id: "lent".into(), call_id: "c".into(), result, failed: false };
            assert!(length(&frame) < MAX_FRAME_BYTES, "{text:?}: {}", length(&frame));
        }
        assert_eq!(cut("é".to_owned()), "é");
    }
}
