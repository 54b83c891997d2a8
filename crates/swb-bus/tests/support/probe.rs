//! Subsystems for tests. `agents/<behaviour>/…` behaves as its second segment says.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use swb_bus::{BusHandler, CallContext};
use swb_proto::control::{HelloParams, HelloResponse, Limits, Program};
use swb_proto::error::{ERR_HANDLER, ERR_METHOD_NOT_FOUND};
use swb_proto::{BusError, BusPayload, BusResult, LOCALBUS_NAMESPACE};
use tokio::sync::{oneshot, watch};

/// What the probe saw, and the switch that lets its waiting work finish.
#[derive(Debug)]
pub(crate) struct Record {
    /// Work that began.
    pub(crate) started: AtomicUsize,
    /// Work whose future was dropped, finished or not.
    pub(crate) dropped: AtomicUsize,
    /// Work that got to its end.
    pub(crate) finished: AtomicUsize,
    pub(crate) notices: Mutex<Vec<(String, BusPayload)>>,
    /// Names of waiting work that may go on; `*` for all.
    pub(crate) released: watch::Sender<HashSet<String>>,
    kept: Mutex<Vec<oneshot::Sender<BusResult>>>,
}

impl Default for Record {
    fn default() -> Self {
        Record {
            started: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            notices: Mutex::default(),
            released: watch::Sender::new(HashSet::new()),
            kept: Mutex::default(),
        }
    }
}

impl Record {
    pub(crate) fn release(&self, name: &str) {
        self.released.send_modify(|released| {
            released.insert(name.to_owned());
        });
    }

    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    pub(crate) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }

    pub(crate) fn finished(&self) -> usize {
        self.finished.load(Ordering::SeqCst)
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        self.notices.lock().unwrap().iter().map(|(method, _)| method.clone()).collect()
    }
}

/// Counts the end of a piece of work, however it ends.
struct AtWork(Arc<Record>);

impl AtWork {
    fn begin(record: &Arc<Record>) -> Self {
        record.started.fetch_add(1, Ordering::SeqCst);
        AtWork(Arc::clone(record))
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// The subsystem `agents`.
pub(crate) struct Probe {
    record: Arc<Record>,
}

impl Probe {
    pub(crate) fn new(record: &Arc<Record>) -> Self {
        Probe { record: Arc::clone(record) }
    }
}

fn message(channel_id: String, content: impl Into<String>) -> BusResult {
    Ok(BusPayload::CommsMessage { channel_id, content: content.into() })
}

impl BusHandler for Probe {
    fn prefix(&self) -> &str {
        "agents"
    }

    fn handle_request(&self, _: &str, _: BusPayload, _: oneshot::Sender<BusResult>) {
        unreachable!("handle_call does not forward")
    }

    fn handle_notification(&self, method: &str, payload: BusPayload) {
        assert!(method != "agents/panic", "a notification that panics");
        self.record.notices.lock().unwrap().push((method.to_owned(), payload));
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let BusPayload::CommsMessage { channel_id, content } = payload else {
            let _ = reply_tx.send(Err(BusError::new(ERR_HANDLER, "not a message")));
            return;
        };
        let now = |result: BusResult, reply_tx: oneshot::Sender<BusResult>| drop(reply_tx.send(result));
        match method.split('/').nth(1).unwrap_or("echo") {
            "echo" => now(message(channel_id, content), reply_tx),
            "method" => now(message(channel_id, method), reply_tx),
            "id" => now(message(channel_id, ctx.id().to_string()), reply_tx),
            "refuse" => now(Err(BusError::new(ERR_HANDLER, content).because("REFUSED")), reply_tx),
            "drop" => drop(reply_tx),
            "leak" => self.record.kept.lock().unwrap().push(reply_tx),
            "panic" => panic!("a handler that panics"),
            "panic_later" => ctx.spawn(reply_tx, async { panic!("a task that panics") }),
            "big" => {
                let bytes: usize = content.parse().unwrap();
                now(message(channel_id, "x".repeat(bytes)), reply_tx);
            }
            "publish" => {
                let seq = ctx.publish(&content, &serde_json::json!({})).unwrap();
                now(message(channel_id, seq.to_string()), reply_tx);
            }
            "who" => now(message(channel_id, who(&ctx)), reply_tx),
            // Waits until the test releases its content; the future is dropped when the caller goes away.
            "wait" => {
                let record = Arc::clone(&self.record);
                ctx.spawn(reply_tx, async move {
                    let _at_work = AtWork::begin(&record);
                    let mut released = record.released.subscribe();
                    let _ = released.wait_for(|names| names.contains(&content) || names.contains("*")).await;
                    record.finished.fetch_add(1, Ordering::SeqCst);
                    message(channel_id, content)
                });
            }
            // Passes the message on to the method in its content, on behalf of its caller.
            "relay" => {
                let bus = ctx.bus();
                let record = Arc::clone(&self.record);
                ctx.spawn(reply_tx, async move {
                    let _at_work = AtWork::begin(&record);
                    let (next, rest) = content.split_once(' ').unwrap_or((&content, ""));
                    let payload = BusPayload::CommsMessage { channel_id, content: rest.to_owned() };
                    bus.request(next, payload).await.map_err(|e| BusError::new(ERR_HANDLER, e.to_string()))?
                });
            }
            // Calls itself until the bus refuses; the error says how deep that was.
            "loop" => {
                let bus = ctx.bus();
                let depth = ctx.caller().depth();
                ctx.spawn(reply_tx, async move {
                    let payload = BusPayload::CommsMessage { channel_id, content };
                    let result = bus.request("agents/loop", payload).await.unwrap();
                    result.map_err(|error| match error.data {
                        None => error.with("deepest", u64::from(depth)),
                        Some(_) => error,
                    })
                });
            }
            // The seed's example: an agent that asks the model and threads the channel through.
            "chat" => {
                let bus = ctx.bus();
                ctx.spawn(reply_tx, async move {
                    let payload = BusPayload::LlmRequest { channel_id, content };
                    bus.request("llm/complete", payload).await.unwrap()
                });
            }
            _ => now(Err(BusError::new(ERR_METHOD_NOT_FOUND, format!("no such agent: {method}"))), reply_tx),
        }
    }
}

/// Who calls, as JSON.
fn who(ctx: &CallContext) -> String {
    let (actor, meta) = (ctx.caller().actor(), ctx.caller().meta());
    serde_json::json!({
        "actor": format!("{}:{}", actor.kind.as_str(), actor.id),
        "workspace": meta.workspace_id.as_ref().map(ToString::to_string),
        "correlation": meta.correlation_id.as_ref().map(ToString::to_string),
        "depth": ctx.caller().depth(),
        "deadline": ctx.deadline().is_some(),
    })
    .to_string()
}

/// The subsystem `llm`, with the seed's plain `handle_request`.
pub(crate) struct Llm;

impl BusHandler for Llm {
    fn prefix(&self) -> &str {
        "llm"
    }

    fn handle_request(&self, method: &str, payload: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
        let result = match payload {
            BusPayload::LlmRequest { channel_id, content } if method == "llm/complete" => {
                message(channel_id, format!("completed: {content}"))
            }
            _ => Err(BusError::new(ERR_METHOD_NOT_FOUND, method)),
        };
        let _ = reply_tx.send(result);
    }
}

/// The subsystem `bus`: greets, and keeps the clients `late` and `late and unwelcome` waiting for a release.
pub(crate) struct Desk(pub(crate) Arc<Record>);

impl BusHandler for Desk {
    fn prefix(&self) -> &str {
        "bus"
    }

    fn handle_request(&self, _: &str, _: BusPayload, _: oneshot::Sender<BusResult>) {
        unreachable!("handle_call does not forward")
    }

    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        let hello = HelloParams::try_from(payload);
        let client = hello.as_ref().ok().and_then(|hello| hello.client.clone()).map(|client| client.name);
        let result = match hello {
            Ok(_) if client.as_deref() == Some("late and unwelcome") => {
                Err(BusError::new(ERR_HANDLER, "not you"))
            }
            Ok(_) => Ok(HelloResponse {
                namespace: LOCALBUS_NAMESPACE.into(),
                namespaces: vec![LOCALBUS_NAMESPACE.into()],
                dialects: vec!["jsonrpc-2.0".into()],
                server: Program { name: "test".into(), version: "0".into() },
                limits: Limits {
                    max_payload_bytes: 0,
                    max_line_bytes: 0,
                    max_in_flight: 0,
                    max_subscriptions: 0,
                },
                head: 0,
            }
            .into()),
            Err(_) => Err(BusError::new(ERR_METHOD_NOT_FOUND, method)),
        };
        let Some(name) = client.filter(|name| name.starts_with("late")) else {
            let _ = reply_tx.send(result);
            return;
        };
        let mut released = self.0.released.subscribe();
        ctx.spawn(reply_tx, async move {
            let _ = released.wait_for(|names| names.contains(&name)).await;
            result
        });
    }
}
