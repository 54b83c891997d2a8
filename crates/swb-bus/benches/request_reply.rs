//! A request inside the process, with context, cancellation and panic isolation, against the least that any queue-based
//! bus could cost: one bounded channel to a server task and one oneshot back, with the same payload.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod figures;

use std::sync::Arc;
use std::time::Instant;

use figures::{Unit, Wanted};
use swb_bus::topics::{Retention, Topics};
use swb_bus::{Bus, BusHandle, BusHandler, CallContext};
use swb_proto::{BusPayload, BusResult};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

const CALLERS: usize = 64;

/// Answers at once under `echo`, from a task of its own under `later`.
struct Echo(&'static str);

impl BusHandler for Echo {
    fn prefix(&self) -> &str {
        self.0
    }
    fn handle_request(&self, _: &str, payload: BusPayload, reply_tx: oneshot::Sender<BusResult>) {
        let _ = reply_tx.send(Ok(payload));
    }
    fn handle_call(
        &self,
        ctx: CallContext,
        method: &str,
        payload: BusPayload,
        reply_tx: oneshot::Sender<BusResult>,
    ) {
        if self.0 == "later" {
            ctx.spawn(reply_tx, async move { Ok(payload) });
        } else {
            self.handle_request(method, payload, reply_tx);
        }
    }
}

type Question = (BusPayload, oneshot::Sender<BusResult>);

fn payload() -> BusPayload {
    BusPayload::CommsMessage {
        channel_id: "pty0".to_owned(),
        content: "a message of about as many bytes as people type".to_owned(),
    }
}

async fn ask_bus(bus: &BusHandle, method: &str) {
    let reply = bus.request(method, payload()).await;
    assert!(matches!(reply, Ok(Ok(BusPayload::CommsMessage { .. }))));
}

async fn ask_channel(questions: &mpsc::Sender<Question>) {
    let (reply_tx, reply_rx) = oneshot::channel();
    assert!(questions.send((payload(), reply_tx)).await.is_ok(), "the server task lives");
    assert!(matches!(reply_rx.await, Ok(Ok(BusPayload::CommsMessage { .. }))));
}

/// Nanoseconds per request when `callers` tasks share the work. Callers are spawned: a caller in `block_on` would pay
/// for waking the main thread each time, which is a cost of the runtime.
fn measure<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    callers: usize,
    calls: usize,
    caller: impl Fn(usize) -> F,
) -> f64 {
    let each = calls / callers;
    let started = Instant::now();
    let tasks: Vec<_> = (0..callers).map(|_| runtime.spawn(caller(each))).collect();
    for task in tasks {
        runtime.block_on(task).expect("callers do not panic");
    }
    started.elapsed().as_secs_f64() * 1e9 / (each * callers) as f64
}

fn main() {
    let (rounds, calls) = if figures::is_quick() { (3, 6_400) } else { (15, 192_000) };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let topics = Topics::in_memory(Retention::default());
    let bus = runtime
        .block_on(async { Bus::builder(topics).register(Echo("echo")).register(Echo("later")).build() });
    let handle = bus.handle();
    let (questions, mut server) = mpsc::channel::<Question>(64);
    runtime.spawn(async move {
        while let Some((payload, reply_tx)) = server.recv().await {
            let _ = reply_tx.send(Ok(payload));
        }
    });

    let through_bus = |method: &'static str, callers| {
        measure(&runtime, callers, calls, |each| {
            let handle = handle.clone();
            async move {
                for _ in 0..each {
                    ask_bus(&handle, method).await;
                }
            }
        })
    };
    let through_channel = |callers| {
        let questions = Arc::new(questions.clone());
        measure(&runtime, callers, calls, |each| {
            let questions = Arc::clone(&questions);
            async move {
                for _ in 0..each {
                    ask_channel(&questions).await;
                }
            }
        })
    };

    figures::heading("request/reply in process, limit: tokio mpsc(64) + oneshot");
    for (callers, place) in [(1, "sequential"), (CALLERS, "64 in flight")] {
        let [ours, later, limit] = figures::take_turns(
            rounds,
            [
                &mut || through_bus("echo/handle", callers),
                &mut || through_bus("later/handle", callers),
                &mut || through_channel(callers),
            ],
        );
        let wanted = Wanted::TimeAtMost(2.5);
        figures::row(&format!("{place}, handler answers at once"), Unit::Time, &ours, &limit, wanted);
        figures::row(
            &format!("{place}, handler answers from a task"),
            Unit::Time,
            &later,
            &limit,
            Wanted::Time,
        );
    }
}
