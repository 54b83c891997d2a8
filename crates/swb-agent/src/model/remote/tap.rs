//! A look at the raw frames of a stream, for what `genai` does not pass on.
//!
//! It tells usage at the end only, gives no sign where one thought ends and the next begins, and keeps redacted thoughts
//! to itself. Its callback sees every frame before it is decoded, comments included, so it also shows whether a provider
//! is alive.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use serde_json::Value;
use swb_proto::agent::TurnUsage;

use super::usage;
use crate::model::Delta;
use crate::model::provider::Dialect;

/// What marks the seal of a thought that only the provider can read.
pub(super) const REDACTED: &str = "redacted:";

/// Shared by the stream, which fills it, and its reader.
#[derive(Debug, Clone)]
pub(super) struct Tap(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    dialect: Dialect,
    noticed: Mutex<Noticed>,
}

#[derive(Debug, Default)]
struct Noticed {
    frames: u64,
    /// Whether one of them had something in it.
    told: bool,
    usage: TurnUsage,
    /// What stands before the next decoded event.
    deltas: Vec<Delta>,
}

impl Tap {
    pub(super) fn new(dialect: Dialect) -> Self {
        Tap(Arc::new(Shared { dialect, noticed: Mutex::default() }))
    }

    /// How many frames there were.
    pub(super) fn frames(&self) -> u64 {
        self.noticed().frames
    }

    /// Whether there was anything in the frames; a page of HTML has none of it.
    pub(super) fn told(&self) -> bool {
        self.noticed().told
    }

    /// What stands before the event that was just decoded.
    pub(super) fn take(&self, into: &mut impl Extend<Delta>) {
        let mut noticed = self.noticed();
        if !noticed.deltas.is_empty() {
            into.extend(noticed.deltas.drain(..));
        }
    }

    fn noticed(&self) -> MutexGuard<'_, Noticed> {
        self.0.noticed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatFrameSink for Tap {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut noticed = self.noticed();
        noticed.frames += 1;
        noticed.told |= !frame.data.is_empty();
        if usage::take(self.0.dialect, frame.data, &mut noticed.usage) {
            let usage = noticed.usage.clone();
            noticed.deltas.push(Delta::Usage(usage));
        }
        if self.0.dialect == Dialect::Anthropic && frame.event == Some("content_block_start") {
            noticed.deltas.extend(thought_start(frame.data).into_iter().flatten());
        }
    }
}

fn thought_start(frame: &str) -> Option<Vec<Delta>> {
    if !frame.contains("thinking") {
        return None;
    }
    let frame: Value = serde_json::from_str(frame).ok()?;
    let block = frame.get("content_block")?;
    match block.get("type")?.as_str()? {
        "thinking" => Some(vec![Delta::ThoughtStart]),
        "redacted_thinking" => {
            let seal = format!("{REDACTED}{}", block.get("data")?.as_str()?);
            Some(vec![Delta::ThoughtStart, Delta::Signature(seal)])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_told_apart() {
        let plain = r#"{"type":"content_block_start","content_block":{"type":"thinking","thinking":""}}"#;
        assert_eq!(thought_start(plain), Some(vec![Delta::ThoughtStart]));
        let redacted = r#"{"content_block":{"type":"redacted_thinking","data":"xyz"}}"#;
        assert_eq!(
            thought_start(redacted),
            Some(vec![Delta::ThoughtStart, Delta::Signature("redacted:xyz".into())])
        );
        assert_eq!(thought_start(r#"{"content_block":{"type":"text","text":"thinking"}}"#), None);
        assert_eq!(thought_start("thinking"), None);
    }
}
