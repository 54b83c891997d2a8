//! What is counted here, beside what the house counts ([`Figures`]). `text` is the form that Prometheus reads.

mod text;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

pub(crate) use text::page;
pub use text::{Family, Figures, Kind, Sample};

/// What is counted. Every field is bumped where the thing happens.
#[derive(Debug)]
pub(crate) struct Metrics {
    started: Instant,
    /// Answers by the first digit of their status.
    answers: [AtomicU64; 6],
    pub(crate) appends: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) waiting: AtomicI64,
    pub(crate) streams: AtomicI64,
    pub(crate) streams_opened: AtomicU64,
    pub(crate) lagged: AtomicU64,
    pub(crate) tailed: AtomicU64,
    pub(crate) connections: AtomicI64,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Metrics {
            started: Instant::now(),
            answers: Default::default(),
            appends: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            waiting: AtomicI64::new(0),
            streams: AtomicI64::new(0),
            streams_opened: AtomicU64::new(0),
            lagged: AtomicU64::new(0),
            tailed: AtomicU64::new(0),
            connections: AtomicI64::new(0),
        }
    }

    pub(crate) fn answered(&self, status: u16) {
        if let Some(class) = self.answers.get(usize::from(status / 100)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was counted; `tails` is how many files are followed now.
    pub(crate) fn families(&self, tails: usize) -> Vec<Family> {
        let count = |counter: &AtomicU64| as_number(counter.load(Ordering::Relaxed));
        let level = |gauge: &AtomicI64| as_number(u64::try_from(gauge.load(Ordering::Relaxed)).unwrap_or(0));
        let answers = self.answers.iter().enumerate().skip(1);
        let answers =
            answers.map(|(class, answers)| Sample::of("status", format!("{class}xx"), count(answers)));
        let help = "Requests answered, by class of status.";
        let mut families = vec![Family::counter("swb_http_requests_total", help, answers.collect())];
        // The second name is the one that dashboards of the incumbent look for.
        for name in ["swb_messagebus_appends_total", "conductor_messagebus_appends_total"] {
            families.push(Family::count(
                name,
                "Messages appended through this server.",
                count(&self.appends),
            ));
        }
        let counters = [
            (
                "swb_messagebus_writes_total",
                "Writes they took; messages that gather for one file share them.",
                &self.writes,
            ),
            ("swb_sse_streams_total", "Streams opened.", &self.streams_opened),
            ("swb_sse_lagged_total", "Times a stream fell behind and went on from the file.", &self.lagged),
            ("swb_sse_tailed_total", "Messages read by tails, each once however many read it.", &self.tailed),
        ];
        families.extend(counters.map(|(name, help, counter)| Family::count(name, help, count(counter))));
        let gauges = [
            (
                "swb_messagebus_waiting",
                "Posts that wait to be written, or for the end of their write.",
                level(&self.waiting),
            ),
            ("swb_http_connections", "Connections open.", level(&self.connections)),
            ("swb_sse_streams", "Streams open.", level(&self.streams)),
            ("swb_sse_tails", "Bus files followed.", as_number(tails as u64)),
            ("swb_uptime_seconds", "Time since the server started.", self.started.elapsed().as_secs_f64()),
        ];
        families.extend(gauges.map(|(name, help, value)| Family::gauge(name, help, value)));
        families
    }
}

/// A count as the page has it; beyond 2^53 it is not exact.
#[allow(clippy::cast_precision_loss, reason = "the text form knows no other numbers")]
fn as_number(count: u64) -> f64 {
    count as f64
}

/// Counts one more for as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted<F: Fn(&Metrics) -> &AtomicI64>(std::sync::Arc<Metrics>, F);

impl<F: Fn(&Metrics) -> &AtomicI64> Counted<F> {
    pub(crate) fn new(metrics: &std::sync::Arc<Metrics>, gauge: F) -> Self {
        gauge(metrics).fetch_add(1, Ordering::Relaxed);
        Counted(std::sync::Arc::clone(metrics), gauge)
    }
}

impl<F: Fn(&Metrics) -> &AtomicI64> Drop for Counted<F> {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(1, Ordering::Relaxed);
    }
}
