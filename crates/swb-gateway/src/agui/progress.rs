//! The payload of `agent.run.progress` as the translator looks at it: borrowed from the event, nothing copied that is
//! not needed. `swb_proto::run::progress` says what it means.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use swb_proto::run::{RunUsage, SubagentState, ToolStatus};

/// Text that is borrowed unless it holds escapes.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

/// All kinds in one, because a kind that is told after its fields would have them read twice.
#[derive(Debug, Deserialize)]
pub(super) struct Progress<'a> {
    #[serde(borrow)]
    pub(super) run_id: Text<'a>,
    pub(super) step: u64,
    #[serde(borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) tool: Option<Tool<'a>>,
    #[serde(borrow, default)]
    pub(super) subagent: Option<Subagent<'a>>,
    #[serde(default)]
    pub(super) usage: Option<RunUsage>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Tool<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) call_id: Text<'a>,
    pub(super) status: ToolStatus,
    #[serde(borrow, default)]
    pub(super) delta: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) result: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Subagent<'a> {
    pub(super) path: Vec<u64>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) state: SubagentState,
    #[serde(borrow, default)]
    pub(super) preview: Option<Text<'a>>,
}

/// The run that any event of `agent.run.*` is about.
#[derive(Debug, Deserialize)]
pub(super) struct OfRun<'a> {
    #[serde(borrow)]
    pub(super) run_id: Text<'a>,
}
