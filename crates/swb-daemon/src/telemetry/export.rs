//! Spans on their way to a collector: OTLP over HTTP, in batches, from a task of its own.
//!
//! Nobody waits for a collector. What does not fit into the queue, and what a collector does not take in time, is dropped
//! and counted; `/metrics` and the status tell how much. That a collector fails is said once, and once that it works again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{Event, SpanContext, SpanId, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{SpanExporter as Otlp, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter, SpanLinks};
use reqwest::redirect::Policy;
use tokio::sync::mpsc;

use super::span::{Micros, Span};
use crate::config::TelemetryConfig;

/// Spans that may wait.
pub(super) const QUEUE: usize = 2048;
/// Spans that are sent together.
const BATCH: usize = 256;
/// How long a batch waits for more.
const GATHER: Duration = Duration::from_secs(1);
/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What became of spans.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    pub(crate) exported: AtomicU64,
    pub(crate) dropped: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl SpanCounts {
    pub(super) fn drop_one(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Why the collector takes nothing, if it did not take the last batch.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes how the last batch fared; true if that is news.
    fn fared(&self, failure: Option<String>) -> bool {
        let mut last = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = last.is_some() != failure.is_some();
        *last = failure;
        is_news
    }
}

/// Why nothing can be exported at all.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExportError {
    #[error("cannot read the headers in {path}: {source}")]
    Headers { path: String, source: std::io::Error },
    #[error("no client for HTTP: {0}")]
    Client(#[from] reqwest::Error),
    #[error(transparent)]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// Sends spans.
#[derive(Debug)]
pub(super) struct Exporter {
    otlp: Otlp,
    counts: Arc<SpanCounts>,
    scope: InstrumentationScope,
}

impl Exporter {
    pub(super) fn new(config: &TelemetryConfig, counts: Arc<SpanCounts>) -> Result<Self, ExportError> {
        // It fails if there is one already, which is just as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder()
            .user_agent(concat!("swb/", env!("CARGO_PKG_VERSION")))
            // A key in a header must not go along to wherever it is sent.
            .redirect(Policy::none())
            .timeout(PATIENCE)
            .pool_max_idle_per_host(1);
        if config.is_local() {
            client = client.no_proxy();
        }
        let headers = config
            .headers()
            .map_err(|source| ExportError::Headers { path: config.headers_file.clone(), source })?;
        let mut otlp = Otlp::builder()
            .with_http()
            .with_http_client(client.build()?)
            .with_endpoint(config.traces_endpoint())
            .with_headers(headers.into_iter().collect())
            .with_timeout(PATIENCE)
            .build()?;
        let resource = Resource::builder()
            .with_service_name(config.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        otlp.set_resource(&resource);
        let scope =
            InstrumentationScope::builder("switchboard").with_version(env!("CARGO_PKG_VERSION")).build();
        Ok(Exporter { otlp, counts, scope })
    }

    /// Sends until nothing more will come, and everything has been tried.
    pub(super) async fn run(self, mut spans: mpsc::Receiver<Span>) {
        loop {
            let mut batch = Vec::new();
            if spans.recv_many(&mut batch, BATCH).await == 0 {
                return;
            }
            let full = tokio::time::sleep(GATHER);
            tokio::pin!(full);
            while batch.len() < BATCH {
                let room = BATCH - batch.len();
                tokio::select! {
                    more = spans.recv_many(&mut batch, room) => if more == 0 { break },
                    () = &mut full => break,
                }
            }
            self.send(batch).await;
        }
    }

    async fn send(&self, batch: Vec<Span>) {
        let count = batch.len() as u64;
        let batch = batch.into_iter().map(|span| self.data(span)).collect();
        let sent = tokio::time::timeout(2 * PATIENCE, self.otlp.export(batch)).await;
        let failure = match sent {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("it took too long".to_owned()),
        };
        let counter = if failure.is_none() { &self.counts.exported } else { &self.counts.dropped };
        counter.fetch_add(count, Ordering::Relaxed);
        let works = failure.is_none();
        if let Some(why) = &failure {
            tracing::debug!(why, count, "spans were dropped");
        }
        if self.counts.fared(failure.clone()) {
            match failure {
                Some(why) => tracing::warn!(why, "the collector does not take traces; they are dropped"),
                None => tracing::info!(works, "the collector takes traces again"),
            }
        }
    }

    fn data(&self, span: Span) -> SpanData {
        let Span { trace, id, parent, kind, name, start, end, attributes, events, error } = span;
        let mut happened = SpanEvents::default();
        happened.events.extend(
            events.into_iter().map(|event| Event::new(event.name, time(event.at), event.attributes, 0)),
        );
        SpanData {
            span_context: SpanContext::new(trace.id, id, TraceFlags::SAMPLED, false, TraceState::default()),
            parent_span_id: parent.unwrap_or(SpanId::INVALID),
            parent_span_is_remote: parent.is_some() && parent == trace.above,
            span_kind: kind,
            name: name.into(),
            start_time: time(start),
            end_time: time(end),
            attributes,
            dropped_attributes_count: 0,
            events: happened,
            links: SpanLinks::default(),
            status: error.map_or(Status::Unset, Status::error),
            instrumentation_scope: self.scope.clone(),
        }
    }
}

fn time(micros: Micros) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
