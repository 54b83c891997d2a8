//! What is counted, bumped where the thing is told.

use std::sync::atomic::{AtomicU64, Ordering};

use swb_journal::audit::{RecordedDecision, Status};
use swb_proto::agent::{McpCall, McpOutcome};
use swb_proto::run::{Progress, Run, RunState, RunUsage, ToolProgress, ToolStatus};

use super::tally::Tally;

/// What a tool that could not do what it was asked answers, and those that were not let; the words are the contract's.
const FAILED: [&str; 2] = ["Tool execution failed:", "Unknown tool:"];
const DENIED: [&str; 2] = ["Denied:", "Tool call blocked"];
const CANCELLED: &str = "Canceled by user";

/// Runs of one agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct AgentRuns {
    pub(super) started: u64,
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
    /// Ended before they began.
    pub(super) dropped: u64,
    pub(super) seconds: f64,
}

/// Calls, by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Calls {
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) denied: u64,
    pub(super) cancelled: u64,
}

impl Calls {
    fn count(&mut self, outcome: McpOutcome) {
        *match outcome {
            McpOutcome::Ok => &mut self.ok,
            McpOutcome::Failed => &mut self.failed,
            McpOutcome::Denied => &mut self.denied,
            McpOutcome::Cancelled => &mut self.cancelled,
        } += 1;
    }
}

/// What runs do.
#[derive(Debug, Default)]
pub(crate) struct RunCounts {
    pub(super) agents: Tally<AgentRuns>,
    /// What was used, by model.
    pub(super) models: Tally<RunUsage>,
    pub(super) tools: Tally<Calls>,
    pub(super) servers: Tally<Calls>,
}

impl RunCounts {
    /// A run has begun.
    pub(crate) fn started(&self, run: &Run) {
        self.agents.count(&run.agent, |runs| runs.started += 1);
    }

    /// A run is over. What it has used is counted here and not while it works: so a run that outlives a daemon is counted
    /// once, with all of it.
    pub(crate) fn ended(&self, run: &Run, duration_ms: u64) {
        self.agents.count(&run.agent, |runs| {
            *match run.state {
                RunState::Completed => &mut runs.completed,
                _ if run.started_at.is_none() => &mut runs.dropped,
                RunState::Cancelled => &mut runs.cancelled,
                _ => &mut runs.failed,
            } += 1;
            runs.seconds += std::time::Duration::from_millis(duration_ms).as_secs_f64();
        });
        if run.started_at.is_none() {
            return;
        }
        let usage = &run.usage;
        self.models.count(run.model.as_deref().unwrap_or("unknown"), |used| {
            used.input_tokens += usage.input_tokens;
            used.output_tokens += usage.output_tokens;
            used.cache_read_tokens += usage.cache_read_tokens;
            used.cache_write_tokens += usage.cache_write_tokens;
            used.turns += usage.turns;
            used.cost_usd = Some(used.cost_usd.unwrap_or(0.0) + usage.cost_usd.unwrap_or(0.0));
        });
    }

    /// A run does something.
    pub(crate) fn told(&self, progress: &Progress) {
        if let Progress::Tool { tool: ToolProgress { name, status: ToolStatus::Done, result, .. } } = progress
        {
            let outcome = tool_outcome(result.as_deref().unwrap_or_default());
            self.tools.count(name, |calls| calls.count(outcome));
        }
    }

    /// A call of an MCP server is over.
    pub(crate) fn called(&self, call: &McpCall) {
        self.servers.count(&call.server, |calls| calls.count(call.outcome));
    }
}

/// What became of a call, as its result tells.
pub(crate) fn tool_outcome(result: &str) -> McpOutcome {
    let begins = |words: [&str; 2]| words.iter().any(|word| result.starts_with(word));
    if result == CANCELLED {
        McpOutcome::Cancelled
    } else if begins(DENIED) {
        McpOutcome::Denied
    } else if begins(FAILED) {
        McpOutcome::Failed
    } else {
        McpOutcome::Ok
    }
}

/// What was asked of people, and what they said.
#[derive(Debug, Default)]
pub(crate) struct ApprovalCounts {
    pub(crate) requested: AtomicU64,
    pub(crate) approved: AtomicU64,
    pub(crate) denied: AtomicU64,
    pub(crate) expired: AtomicU64,
}

impl ApprovalCounts {
    pub(crate) fn requested(&self) {
        self.requested.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn resolved(&self, status: swb_rules::approval::Status) {
        use swb_rules::approval::Status;
        let counter = match status {
            Status::Approved => &self.approved,
            Status::Denied => &self.denied,
            Status::TimedOut => &self.expired,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// What the gate decides, and how commands end. Two additions per command.
#[derive(Debug, Default)]
pub(crate) struct CommandCounts {
    decisions: [AtomicU64; EFFECTS.len()],
    ends: [AtomicU64; STATUSES.len()],
}

/// What a decision may be. The last is that of commands that were not even judged.
const EFFECTS: [&str; 5] = ["allow", "approved", "needs_approval", "deny", "turned_away"];
const STATUSES: [(&str, Status); 6] = [
    ("ok", Status::Ok),
    ("error", Status::Error),
    ("denied", Status::Denied),
    ("timed_out", Status::TimedOut),
    ("cancelled", Status::Cancelled),
    ("interrupted", Status::Interrupted),
];

impl CommandCounts {
    pub(crate) fn decided(&self, decision: Option<&RecordedDecision>) {
        let effect = decision.map_or("turned_away", |decision| decision.outcome.as_str());
        if let Some(at) = EFFECTS.iter().position(|known| *known == effect) {
            self.decisions[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn ended(&self, status: Status) {
        if let Some(at) = STATUSES.iter().position(|(_, known)| *known == status) {
            self.ends[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn effects(&self) -> impl Iterator<Item = (&'static str, u64)> {
        EFFECTS.into_iter().zip(self.decisions.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    pub(super) fn statuses(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.ends.iter().map(|count| count.load(Ordering::Relaxed));
        STATUSES.into_iter().map(|(name, _)| name).zip(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contracts_words_tell_what_became_of_a_call() {
        for (result, outcome) in [
            ("two lines\n", McpOutcome::Ok),
            ("", McpOutcome::Ok),
            ("It says: Tool execution failed: no", McpOutcome::Ok),
            ("Tool execution failed: there is no such file", McpOutcome::Failed),
            ("Unknown tool: fly", McpOutcome::Failed),
            ("Denied: rm is not allowed", McpOutcome::Denied),
            ("Canceled by user", McpOutcome::Cancelled),
        ] {
            assert_eq!(tool_outcome(result), outcome, "{result}");
        }
    }

    #[test]
    fn decisions_and_ends_are_counted_under_the_words_of_the_record() {
        let counts = CommandCounts::default();
        let decided = |outcome: &str| RecordedDecision {
            id: "d".to_owned(),
            outcome: outcome.to_owned(),
            rules: Vec::new(),
            approval_id: None,
        };
        counts.decided(Some(&decided("allow")));
        counts.decided(Some(&decided("allow")));
        counts.decided(Some(&decided("deny")));
        counts.decided(None);
        counts.ended(Status::TimedOut);
        let effects: Vec<_> = counts.effects().filter(|(_, count)| *count > 0).collect();
        assert_eq!(effects, [("allow", 2), ("deny", 1), ("turned_away", 1)]);
        assert_eq!(counts.statuses().find(|(_, count)| *count > 0), Some(("timed_out", 1)));
    }
}
