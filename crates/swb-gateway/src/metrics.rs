//! Counts, in the text form that Prometheus reads.

use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

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

    /// The page; `tails` is how many files are followed now.
    pub(crate) fn page(&self, tails: usize) -> String {
        let mut page = String::with_capacity(2048);
        metric(&mut page, "swb_http_requests_total", "counter", "Requests answered, by class of status.");
        for (class, count) in self.answers.iter().enumerate().skip(1) {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(page, "swb_http_requests_total{{status=\"{class}xx\"}} {count}");
        }
        let appends = self.appends.load(Ordering::Relaxed);
        // The second name is the one that dashboards of the incumbent look for.
        for name in ["swb_messagebus_appends_total", "conductor_messagebus_appends_total"] {
            metric(&mut page, name, "counter", "Messages appended through this server.");
            let _ = writeln!(page, "{name} {appends}");
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
        for (name, help, count) in counters {
            metric(&mut page, name, "counter", help);
            let _ = writeln!(page, "{name} {}", count.load(Ordering::Relaxed));
        }
        let gauges = [
            (
                "swb_messagebus_waiting",
                "Posts that wait to be written, or for the end of their write.",
                self.waiting.load(Ordering::Relaxed),
            ),
            ("swb_http_connections", "Connections open.", self.connections.load(Ordering::Relaxed)),
            ("swb_sse_streams", "Streams open.", self.streams.load(Ordering::Relaxed)),
            ("swb_sse_tails", "Bus files followed.", i64::try_from(tails).unwrap_or(i64::MAX)),
        ];
        for (name, help, value) in gauges {
            metric(&mut page, name, "gauge", help);
            let _ = writeln!(page, "{name} {value}");
        }
        metric(&mut page, "swb_uptime_seconds", "gauge", "Time since the server started.");
        let _ = writeln!(page, "swb_uptime_seconds {:.3}", self.started.elapsed().as_secs_f64());
        page
    }
}

fn metric(page: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
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
