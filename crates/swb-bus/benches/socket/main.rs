//! A request over the control socket, between two processes, against a bare JSON-line echo and against NATS.
//!
//! Everything that is compared takes turns within one run and carries the same message: about 200 bytes of JSON, parsed
//! into typed structs and written again at both ends. The servers are this program, started again (`--serve`); they
//! end when their standard input closes, so none outlives a bench that was interrupted.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod cores;
#[path = "../figures/mod.rs"]
mod figures;
mod nats;
mod raw_client;
mod servers;
mod words;

use std::time::Instant;

use cores::Placement;
use figures::{Unit, Wanted};
use raw_client::RawClient;
use servers::{Kind, Server};
use swb_bus::BusHandle;
use tokio::runtime::Runtime;

const WINDOW: usize = 64;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--serve") {
        return servers::serve(&args[at + 1], &args[at + 2], args.get(at + 3).map(String::as_str));
    }
    // A current-thread runtime: the client's share of a round trip must not wander between cores.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    println!("\nbytes of a request: {}", words::sizes());
    figures::heading("request/reply over a Unix socket, limit: the better of two bare JSON-line echoes");
    for placement in Placement::ALL {
        let Some((client, server)) = placement.cores() else { continue };
        cores::on(client, || measure(&runtime, placement, server));
    }
}

fn measure(runtime: &Runtime, placement: Placement, core: Option<usize>) {
    let folder = tempfile::tempdir().expect("there is a place for sockets");
    let start = |kind: Kind, name: &str| Server::start(kind, core, &folder.path().join(name));
    let one_thread = start(Kind::EchoOneThread, "one.sock");
    let two_workers = start(Kind::EchoTwoWorkers, "two.sock");
    let control = start(Kind::Control, "control.sock");
    let connect =
        |server: &Server| runtime.block_on(RawClient::connect(server.address())).expect("it listens");
    let mut bench = Bench {
        runtime,
        placement,
        quick: figures::is_quick(),
        one_thread: connect(&one_thread),
        two_workers: connect(&two_workers),
        control: connect(&control),
        handle: runtime.block_on(BusHandle::connect(control.address())).expect("it listens"),
        nats: (placement == Placement::Free).then(|| runtime.block_on(nats::Nats::start())).flatten(),
    };
    bench.sequential();
    if placement == Placement::Free {
        bench.in_flight();
        if bench.nats.is_none() {
            println!("nats-server not installed: row skipped (apt-get install nats-server)");
        }
    }
}

struct Bench<'r> {
    runtime: &'r Runtime,
    placement: Placement,
    quick: bool,
    one_thread: RawClient,
    two_workers: RawClient,
    control: RawClient,
    handle: BusHandle,
    nats: Option<nats::Nats>,
}

impl Bench<'_> {
    fn sequential(&mut self) {
        let (rounds, calls) = if self.quick { (3, 500) } else { (15, 4_000) };
        let Bench { runtime, placement, one_thread, two_workers, control, handle, nats, .. } = self;
        // Two dialects share one connection, so they share one client.
        let control = std::cell::RefCell::new(control);
        let samples = figures::take_turns(
            rounds,
            [
                &mut || runtime.block_on(one_thread.sequential(&words::ECHO, calls)),
                &mut || runtime.block_on(two_workers.sequential(&words::ECHO, calls)),
                &mut || runtime.block_on(control.borrow_mut().sequential(&words::JSON_RPC, calls)),
                &mut || runtime.block_on(control.borrow_mut().sequential(&words::ENVELOPE, calls)),
                &mut || runtime.block_on(handle_sequential(handle, calls)),
                &mut || nats.as_mut().map_or(f64::NAN, |nats| runtime.block_on(nats.sequential(calls))),
            ],
        );
        print(&format!("{}sequential p50", placement.name()), Unit::Time, &samples, nats.is_some());
    }

    fn in_flight(&mut self) {
        let (rounds, calls) = if self.quick { (3, 6_400) } else { (15, 128_000) };
        let Bench { runtime, one_thread, two_workers, control, handle, nats, .. } = self;
        let control = std::cell::RefCell::new(control);
        let samples = figures::take_turns(
            rounds,
            [
                &mut || runtime.block_on(one_thread.in_flight(&words::ECHO, calls, WINDOW)),
                &mut || runtime.block_on(two_workers.in_flight(&words::ECHO, calls, WINDOW)),
                &mut || runtime.block_on(control.borrow_mut().in_flight(&words::JSON_RPC, calls, WINDOW)),
                &mut || runtime.block_on(control.borrow_mut().in_flight(&words::ENVELOPE, calls, WINDOW)),
                &mut || runtime.block_on(handle_in_flight(handle, calls)),
                &mut || {
                    nats.as_mut().map_or(f64::NAN, |nats| runtime.block_on(nats.in_flight(calls, WINDOW)))
                },
            ],
        );
        print("64 in flight", Unit::PerSecond, &samples, nats.is_some());
    }
}

fn print(place: &str, unit: Unit, samples: &[Vec<f64>; 6], with_nats: bool) {
    let [one_thread, two_workers, json_rpc, envelope, handle, nats] = samples;
    let median = |samples: &[f64]| figures::median(samples.iter().copied());
    let (limit, which) = if median(one_thread) <= median(two_workers) {
        (one_thread, "one-thread echo")
    } else {
        (two_workers, "two-worker echo")
    };
    let wanted = Wanted::TimeAtMost(1.6);
    for (who, ours) in [("JSON-RPC", json_rpc), ("envelope", envelope), ("BusHandle", handle)] {
        figures::row(&format!("{place}, {who} : {which}"), unit, ours, limit, wanted);
    }
    if with_nats {
        for (who, ours) in [("JSON-RPC", json_rpc), ("envelope", envelope), ("BusHandle", handle)] {
            figures::row(&format!("{place}, {who} : NATS core"), unit, ours, nats, Wanted::TimeAtMost(1.0));
        }
    }
}

async fn handle_sequential(handle: &BusHandle, calls: usize) -> f64 {
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let started = Instant::now();
        words::ask(handle).await;
        times.push(started.elapsed().as_secs_f64() * 1e9);
    }
    figures::median(times.into_iter())
}

/// Many callers share one connection, as the parts of a program do.
async fn handle_in_flight(handle: &BusHandle, calls: usize) -> f64 {
    let started = Instant::now();
    let callers: Vec<_> = (0..WINDOW)
        .map(|_| {
            let handle = handle.clone();
            tokio::spawn(async move {
                for _ in 0..calls / WINDOW {
                    words::ask(&handle).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("callers do not panic");
    }
    started.elapsed().as_secs_f64() * 1e9 / calls as f64
}
