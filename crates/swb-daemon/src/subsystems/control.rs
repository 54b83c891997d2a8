//! `bus`: greeting, state, stopping.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use swb_bus::transport::ServerLimits;
use swb_bus::{Bus, BusHandler, CallContext};
use swb_proto::control::{
    ControlBody, Counters, HelloParams, HelloResponse, Limits, PolicyStatus, Program, ShutdownResponse,
    StatusResponse, TracesStatus,
};
use swb_proto::error::ERR_INVALID_REQUEST;
use swb_proto::{
    AGUI_NAMESPACE, BusError, BusPayload, BusResult, LOCALBUS_NAMESPACE, MAX_PAYLOAD_BYTES, Timestamp,
};
use tokio::sync::{oneshot, watch};

use super::{no_method, wrong_payload};
use crate::http::HttpState;
use crate::policy::{Health, Policy};
use crate::record::Recorder;
use crate::runs::Runs;
use crate::telemetry::Watched;

/// What the daemon is, fixed at its start.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) started_at: Timestamp,
    pub(crate) started: Instant,
    pub(crate) socket: String,
    pub(crate) http: Arc<OnceLock<HttpState>>,
    pub(crate) traces: Arc<OnceLock<Watched>>,
    /// The process that restarts the daemon; 0 when there is none.
    pub(crate) watch_pid: Arc<AtomicU32>,
    pub(crate) limits: ServerLimits,
    pub(crate) recorder: Arc<Recorder>,
}

/// Serves `bus/*`.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) identity: Identity,
    pub(crate) policy: Policy,
    pub(crate) runs: Runs,
    /// Set to the reason when the daemon shall stop.
    pub(crate) stop: watch::Sender<Option<String>>,
}

impl BusHandler for Control {
    fn prefix(&self) -> &'static str {
        "bus"
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let bus = ctx.spine();
        let result = match (method, payload) {
            ("bus/hello", BusPayload::Control(ControlBody::Hello(hello))) => self.welcome(bus, &hello),
            ("bus/status", BusPayload::Empty) => Ok(self.status(bus).into()),
            ("bus/shutdown", BusPayload::Control(ControlBody::Shutdown(params))) => {
                let in_flight = (bus.in_flight() as u64).saturating_sub(1);
                let answer = ShutdownResponse { pid: std::process::id(), in_flight };
                let (runs, stop) = (self.runs.clone(), self.stop.clone());
                tokio::spawn(async move {
                    if params.end_agents {
                        runs.end_all().await;
                    }
                    let _ = reply_tx.send(Ok(answer.into()));
                    stop.send_replace(Some(params.reason.unwrap_or_else(|| "asked to".to_owned())));
                });
                return;
            }
            ("bus/hello" | "bus/status" | "bus/shutdown", other) => Err(wrong_payload(method, &other)),
            _ => Err(no_method(method)),
        };
        let _ = reply_tx.send(result);
    }
}

impl Control {
    fn welcome(&self, bus: &Bus, hello: &HelloParams) -> BusResult {
        let namespaces = [LOCALBUS_NAMESPACE, AGUI_NAMESPACE];
        if let Some(wanted) = hello.namespace.as_deref().filter(|wanted| !namespaces.contains(wanted)) {
            let message = format!("the namespace {wanted:?} is not spoken here; {LOCALBUS_NAMESPACE} is");
            return Err(BusError::new(ERR_INVALID_REQUEST, message).because("UNSUPPORTED_NAMESPACE"));
        }
        let limits = &self.identity.limits;
        Ok(HelloResponse {
            namespace: LOCALBUS_NAMESPACE.to_owned(),
            namespaces: namespaces.map(str::to_owned).to_vec(),
            dialects: ["jsonrpc-2.0", "envelope"].map(str::to_owned).to_vec(),
            server: Program { name: "switchboard".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            limits: Limits {
                max_payload_bytes: MAX_PAYLOAD_BYTES as u64,
                max_line_bytes: limits.line_bytes as u64,
                max_in_flight: limits.in_flight as u64,
                max_subscriptions: limits.subscriptions as u64,
            },
            head: bus.topics().head(),
        }
        .into())
    }

    fn status(&self, bus: &Bus) -> StatusResponse {
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (stats, topics) = (bus.stats(), bus.topics());
        let http = self.identity.http.get();
        StatusResponse {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.identity.started_at.clone(),
            uptime_ms: u64::try_from(self.identity.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            socket: self.identity.socket.clone(),
            http: http.and_then(HttpState::url),
            http_error: http.and_then(HttpState::error),
            traces: self.identity.traces.get().map(|traces| TracesStatus {
                endpoint: traces.endpoint.clone(),
                exported: read(&traces.counts.exported),
                dropped: read(&traces.counts.dropped),
                failure: traces.counts.failure(),
            }),
            watch_pid: Some(self.identity.watch_pid.load(Ordering::Relaxed)).filter(|pid| *pid != 0),
            policy: Some(told(&self.policy.health())),
            audit: Some(self.identity.recorder.status(topics.keep_failures())),
            subsystems: bus.prefixes(),
            head: topics.head(),
            oldest: topics.oldest(),
            counters: Counters {
                connections: read(&stats.connections),
                subscriptions: topics.subscriptions() as u64,
                // The question itself is in flight too.
                in_flight: (bus.in_flight() as u64).saturating_sub(1),
                requests: read(&stats.requests),
                notifications: read(&stats.notifications),
                notifications_dropped: read(&stats.notifications_dropped),
                notifications_unrouted: read(&stats.notifications_unrouted),
                cancelled: read(&stats.cancelled),
                panics: read(&stats.panics),
                refused: read(&stats.refused),
                reservation_failures: topics.reservation_failures(),
            },
        }
    }
}

fn told(health: &Health) -> PolicyStatus {
    PolicyStatus {
        rules: health.rules as u64,
        denies_everything: health.denies_everything,
        problems: health.problems.iter().map(ToString::to_string).collect(),
    }
}
