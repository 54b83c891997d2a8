//! The house in figures: what was counted, and how things stand, read when somebody asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use swb_gateway::metrics::{Family, Figures, Sample};
use swb_proto::run::RunUsage;

use super::Watched;
use super::counts::Calls;
use crate::approvals::Approvals;
use crate::record::Recorder;
use crate::runs::Runs;

/// Where the figures come from.
#[derive(Debug)]
pub(crate) struct HouseFigures {
    pub(crate) runs: Runs,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) recorder: Arc<Recorder>,
    /// How traces fare, if there are any.
    pub(crate) traces: Option<Watched>,
}

impl Figures for HouseFigures {
    fn figures(&self) -> Vec<Family> {
        let mut families = self.of_runs();
        families.extend(self.of_models());
        families.extend(self.of_calls());
        families.extend(self.of_the_gate());
        families.extend(self.of_traces());
        families
    }
}

impl HouseFigures {
    fn of_runs(&self) -> Vec<Family> {
        let (mut started, mut ended, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
        for (agent, runs) in self.runs.counts().agents.read() {
            started.push(Sample::of("agent", &agent, number(runs.started)));
            seconds.push(Sample::of("agent", &agent, runs.seconds));
            for (outcome, count) in [
                ("completed", runs.completed),
                ("failed", runs.failed),
                ("cancelled", runs.cancelled),
                ("dropped", runs.dropped),
            ] {
                ended.push(Sample::of("agent", &agent, number(count)).and("outcome", outcome));
            }
        }
        let standing = self.runs.standing();
        vec![
            Family::counter("swb_runs_started_total", "Runs whose agent began to work.", started),
            Family::counter("swb_runs_ended_total", "Runs that are over; dropped: before they began.", ended),
            Family::counter("swb_run_duration_seconds_total", "Time that ended runs took.", seconds),
            Family::gauge("swb_runs_running", "Runs whose agent works.", number(standing.running)),
            Family::gauge(
                "swb_runs_queued",
                "Runs that wait, for a slot or for the one before them.",
                number(standing.queued),
            ),
            Family::gauge("swb_run_slots", "Runs that may work at once.", number(standing.slots)),
            Family::gauge("swb_run_slots_free", "Of those, how many more now.", number(standing.free)),
        ]
    }

    /// What ended runs have used, with everything they started.
    fn of_models(&self) -> Vec<Family> {
        let models = self.runs.counts().models.read();
        let by_model = |name, help, value: fn(&RunUsage) -> f64| {
            let samples = models.iter().map(|(model, used)| Sample::of("model", model, value(used)));
            Family::counter(name, help, samples.collect())
        };
        vec![
            by_model(
                "swb_model_input_tokens_total",
                "Tokens that went into the model, at the end of runs.",
                |used| number(used.input_tokens),
            ),
            by_model("swb_model_output_tokens_total", "Tokens that came out of it.", |used| {
                number(used.output_tokens)
            }),
            by_model(
                "swb_model_cache_read_tokens_total",
                "Of those that went in: read from a cache.",
                |used| number(used.cache_read_tokens),
            ),
            by_model(
                "swb_model_cache_write_tokens_total",
                "Of those that went in: written to a cache.",
                |used| number(used.cache_write_tokens),
            ),
            by_model("swb_model_cost_dollars_total", "US dollars, where the price is known.", |used| {
                used.cost_usd.unwrap_or(0.0)
            }),
            by_model("swb_model_turns_total", "Answers of the model.", |used| number(used.turns)),
        ]
    }

    fn of_calls(&self) -> Vec<Family> {
        let counts = self.runs.counts();
        let samples = |label, calls: Vec<(String, Calls)>| {
            let each = calls.into_iter().flat_map(move |(name, calls)| {
                let outcomes = [
                    ("ok", calls.ok),
                    ("failed", calls.failed),
                    ("denied", calls.denied),
                    ("cancelled", calls.cancelled),
                ];
                outcomes
                    .map(|(outcome, count)| Sample::of(label, &name, number(count)).and("outcome", outcome))
            });
            each.collect()
        };
        vec![
            Family::counter(
                "swb_tool_calls_total",
                "Calls of tools by agents under this daemon.",
                samples("tool", counts.tools.read()),
            ),
            Family::counter(
                "swb_mcp_calls_total",
                "Calls of MCP servers by the same, subagents included.",
                samples("server", counts.servers.read()),
            ),
        ]
    }

    fn of_traces(&self) -> Vec<Family> {
        let Some(Watched { counts, .. }) = &self.traces else { return Vec::new() };
        let read = |counter: &AtomicU64| number(counter.load(Ordering::Relaxed));
        vec![
            Family::count("swb_spans_exported_total", "Spans that a collector took.", read(&counts.exported)),
            Family::count("swb_spans_dropped_total", "Spans that none took in time.", read(&counts.dropped)),
        ]
    }

    fn of_the_gate(&self) -> Vec<Family> {
        let counts = self.approvals.counts();
        let outcomes =
            [("approved", &counts.approved), ("denied", &counts.denied), ("expired", &counts.expired)];
        let outcomes = outcomes
            .map(|(outcome, count)| Sample::of("outcome", outcome, number(count.load(Ordering::Relaxed))));
        let commands = self.recorder.counts();
        let labelled = |label, counts: &mut dyn Iterator<Item = (&'static str, u64)>| {
            counts.map(|(name, count)| Sample::of(label, name, number(count))).collect()
        };
        vec![
            Family::count(
                "swb_approvals_requested_total",
                "Questions put to people.",
                number(counts.requested.load(Ordering::Relaxed)),
            ),
            Family::counter("swb_approvals_resolved_total", "What came of them.", outcomes.to_vec()),
            Family::gauge(
                "swb_approvals_pending",
                "Questions that nobody has answered yet.",
                number(self.approvals.pending()),
            ),
            Family::counter(
                "swb_gate_decisions_total",
                "Decisions about commands and tool calls; needs_approval: it was needed and not given.",
                labelled("effect", &mut commands.effects()),
            ),
            Family::counter(
                "swb_commands_total",
                "Commands and tool decisions by how they ended.",
                labelled("status", &mut commands.statuses()),
            ),
        ]
    }
}

#[allow(clippy::cast_precision_loss, reason = "the text form knows no other numbers")]
fn number(count: u64) -> f64 {
    count as f64
}
