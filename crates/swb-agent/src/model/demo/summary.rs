//! A summary without a model: the task, the latest words, the files touched, the tools used.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use swb_proto::agent::{Block, Message};

use super::script::{Act, Step};

/// What the demo model does when it is to summarise. `!summary stall` and `!summary fail` in the last prompt change it.
pub(super) fn step(messages: &[Arc<Message>]) -> Step {
    let latest = messages.iter().rev().find_map(|message| message.user_text()).unwrap_or_default();
    let told = latest.lines().find_map(|line| line.trim().strip_prefix("!summary "));
    match told.map(str::trim) {
        Some("stall") => Step { acts: vec![Act::Stall], cut_off: false },
        Some("fail") => {
            Step { acts: vec![Act::Fail("the demo model was told to fail".to_owned())], cut_off: false }
        }
        _ => Step::saying(text(messages)),
    }
}

fn text(messages: &[Arc<Message>]) -> String {
    let mut said = messages.iter().filter_map(|message| message.user_text());
    let short = |text: &str| text.chars().take(200).collect::<String>();
    let mut summary = format!("Summary of {} messages.", messages.len());
    if let Some(first) = said.next() {
        let _ = write!(summary, "\nTask: {}", short(first));
    }
    if let Some(last) = said.next_back() {
        let _ = write!(summary, "\nLatest: {}", short(last));
    }
    let mut tools = BTreeMap::<&str, usize>::new();
    let mut files = Vec::new();
    for block in messages.iter().flat_map(|message| message.blocks()) {
        if let Block::ToolUse { name, input, .. } = block {
            *tools.entry(name).or_default() += 1;
            files.extend(input["path"].as_str().filter(|_| matches!(name.as_str(), "write" | "edit")));
        }
    }
    files.sort_unstable();
    files.dedup();
    if !files.is_empty() {
        let _ = write!(summary, "\nFiles touched: {}", files.join(", "));
    }
    if !tools.is_empty() {
        let tools: Vec<_> = tools.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let _ = write!(summary, "\nTools used: {}", tools.join(", "));
    }
    summary
}
