//! Traces, where the configuration wants them: two tasks that look on.
//!
//! ```text
//! events of runs and questions ┐
//! ends of commands (try_send)  ├─► translator ─ spans (try_send) ─► exporter ─► collector
//! ```
//!
//! Nothing that works waits for them. Without a collector in the configuration there is neither task nor queue, and the one
//! place that commands pass asks one atomic whether somebody looks on.
//!
//! A daemon that comes after a crash reads the events of runs under way again: what ended before it was there is only
//! remembered, so that each span is told by the daemon that saw its end.

use std::sync::Arc;
use std::time::Duration;

use swb_bus::topics::{Delivery, Subscription, Topics};
use swb_proto::TopicGlob;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::command_spans::{CommandEnd, CommandSpans};
use super::export::{Exporter, QUEUE, SpanCounts};
use super::run_spans::RunSpans;
use super::span::Span;
use crate::config::TelemetryConfig;
use crate::record::Recorder;

/// What is listened to.
const TOPICS: [&str; 2] = ["agent.run.*", "approval.*"];

/// Traces under way.
#[derive(Debug)]
pub(crate) struct Traces {
    translator: JoinHandle<()>,
    exporter: JoinHandle<()>,
    watched: Watched,
}

/// How traces fare, for whoever asks.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub(crate) endpoint: String,
    pub(crate) counts: Arc<SpanCounts>,
}

/// Where ends of commands are told.
#[derive(Debug)]
pub(crate) struct CommandEnds {
    ends: mpsc::Sender<CommandEnd>,
    counts: Arc<SpanCounts>,
}

impl CommandEnds {
    pub(crate) fn tell(&self, end: CommandEnd) {
        if self.ends.try_send(end).is_err() {
            self.counts.drop_one();
        }
    }
}

/// What a daemon finds when it starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    /// The last event of the daemons before it.
    pub(crate) head: u64,
    /// Where the oldest run that is under way begins.
    pub(crate) after: Option<u64>,
}

impl Traces {
    /// Begins, if there is a collector. One that cannot be used is told of in the log.
    pub(crate) fn start(
        config: &TelemetryConfig,
        topics: &Arc<Topics>,
        recorder: &Recorder,
        before: Before,
    ) -> Option<Self> {
        if !config.is_on() {
            return None;
        }
        let counts = Arc::new(SpanCounts::default());
        let exporter = match Exporter::new(config, Arc::clone(&counts)) {
            Ok(exporter) => exporter,
            Err(error) => {
                tracing::error!(%error, "no traces");
                return None;
            }
        };
        let globs = TOPICS.into_iter().filter_map(|glob| TopicGlob::try_from(glob.to_owned()).ok()).collect();
        let after = before.after.unwrap_or(before.head).min(before.head);
        let events = topics.subscribe(globs, Some(after)).ok()?;
        let (ends, ends_rx) = mpsc::channel(QUEUE);
        let (spans, spans_rx) = mpsc::channel(QUEUE);
        recorder.tell_ends(CommandEnds { ends, counts: Arc::clone(&counts) });
        let translator = Translator {
            runs: RunSpans::new(config.capture_content),
            commands: CommandSpans::default(),
            ratio: config.sample_ratio,
            seen: before.head,
            spans,
            counts: Arc::clone(&counts),
        };
        let watched = Watched { endpoint: config.traces_endpoint(), counts };
        tracing::info!(endpoint = watched.endpoint, "traces are exported");
        Some(Traces {
            translator: tokio::spawn(translator.run(events, ends_rx, Arc::clone(topics))),
            exporter: tokio::spawn(exporter.run(spans_rx)),
            watched,
        })
    }

    pub(crate) fn watched(&self) -> &Watched {
        &self.watched
    }

    /// The bus is closed: what is left is sent, as far as the time allows.
    pub(crate) async fn stop(mut self, patience: Duration) {
        let rest = async {
            let _ = (&mut self.translator).await;
            let _ = (&mut self.exporter).await;
        };
        if tokio::time::timeout(patience, rest).await.is_err() {
            tracing::warn!("the collector was not waited for any longer; the last traces are lost");
            self.translator.abort();
            self.exporter.abort();
        }
    }
}

struct Translator {
    runs: RunSpans,
    commands: CommandSpans,
    ratio: f64,
    seen: u64,
    spans: mpsc::Sender<Span>,
    counts: Arc<SpanCounts>,
}

impl Translator {
    async fn run(
        mut self,
        mut events: Subscription,
        mut ends: mpsc::Receiver<CommandEnd>,
        topics: Arc<Topics>,
    ) {
        loop {
            tokio::select! {
                // Events first: a question was answered before what it was about could end.
                biased;
                event = events.next() => match event {
                    Some(event) => self.event(&event, &topics),
                    None => break,
                },
                Some(end) = ends.recv() => self.command(end),
            }
        }
        while let Ok(end) = ends.try_recv() {
            self.command(end);
        }
    }

    fn event(&mut self, event: &Delivery, topics: &Topics) {
        let event = event.to_envelope(topics.now());
        self.commands.event(&event);
        let mut out = Vec::new();
        self.runs.event(&event, &mut out);
        if event.seq > self.seen {
            out.into_iter().for_each(|span| self.tell(span));
        }
    }

    fn command(&mut self, end: CommandEnd) {
        let span = self.commands.ended(end, &self.runs);
        self.tell(span);
    }

    fn tell(&self, span: Span) {
        if span.trace.is_kept(self.ratio) && self.spans.try_send(span).is_err() {
            self.counts.drop_one();
        }
    }
}
