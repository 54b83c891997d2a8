//! The speed of the doors, each beside the bare thing: the same server library doing nothing but the HTTP.
//!
//! Server and clients share the machine's cores, in both cases alike, so only the ratios mean anything.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

#[path = "../../../swb-bus/benches/figures/mod.rs"]
mod figures;
mod load;
mod servers;

use std::sync::Barrier;
use std::time::{Duration, Instant};

use figures::{Unit, Wanted, figure, heading, is_quick, median, row, take_turns};
use load::{Crowd, Poster};
use servers::{Bare, House, Ours};

fn main() {
    if std::env::args().any(|arg| arg == servers::CHILD) {
        return servers::serve_until_stdin_closes();
    }
    load::allow_many_files();
    heading("HTTP");
    fan_out();
    latency();
    posting();
    crowded_posting();
    memory();
}

/// One poster, a thousand clients.
fn fan_out() {
    let (clients, messages, rounds) = if is_quick() { (100, 50, 1) } else { (1000, 200, 5) };
    let (ours, bare) = (Ours::start(), Bare::start());
    let mut our_crowd = Crowd::join(ours.address, &ours.stream_path("?tail=0"), clients);
    let mut bare_crowd = Crowd::join(bare.address, "/stream", clients);
    let deliveries = f64::from(u32::try_from(clients * messages).expect("a number of deliveries is small"));
    let mut our_round = || {
        let begun = Instant::now();
        ours.append(messages);
        our_crowd.wait_for(messages);
        nanos(begun.elapsed()) / deliveries
    };
    let mut bare_round = || {
        let begun = Instant::now();
        bare.broadcast(messages);
        bare_crowd.wait_for(messages);
        nanos(begun.elapsed()) / deliveries
    };
    let [our_samples, bare_samples] = take_turns(rounds, [&mut our_round, &mut bare_round]);
    row(
        &format!("SSE: one poster to {clients} clients vs bare broadcast"),
        Unit::PerSecond,
        &our_samples,
        &bare_samples,
        Wanted::RateAtLeast(0.7),
    );
}

/// From the first byte of a post to its event at each of ten clients, on a bus with a past.
fn latency() {
    let posts = if is_quick() { 20 } else { 300 };
    let ours = Ours::start();
    ours.append(5000);
    let mut crowd = Crowd::join(ours.address, &ours.stream_path("?tail=0"), 10);
    let mut poster = Poster::connect(ours.address, &ours.post_path());
    let mut samples = Vec::new();
    for _ in 0..posts {
        let begun = Instant::now();
        poster.post();
        crowd.wait_for(1);
        samples.push(nanos(begun.elapsed()));
    }
    let p50 = median(samples.iter().copied()) / 1e6;
    let verdict = if p50 <= 5.0 { "<= 5 ms (met)" } else { "<= 5 ms (MISSED)" };
    figure("SSE: post to the last of 10 clients, 5,000 records, p50", &format!("{p50:.2} ms"), verdict);
}

/// Posts one after another on one connection.
fn posting() {
    let (posts, rounds) = if is_quick() { (50, 1) } else { (1000, 7) };
    let (ours, bare, house) = (Ours::start(), Bare::start(), House::start());
    let mut to_ours = Poster::connect(ours.address, &ours.post_path());
    let mut to_house = Poster::connect(house.address, &house.post_path);
    let mut to_bare = Poster::connect(bare.address, "/echo");
    let mut to_kept = Poster::connect(bare.address, "/kept");
    let round = |poster: &mut Poster| {
        let begun = Instant::now();
        (0..posts).for_each(|_| poster.post());
        nanos(begun.elapsed()) / f64::from(posts)
    };
    let [ours, house, bare, kept] = take_turns(
        rounds,
        [&mut || round(&mut to_ours), &mut || round(&mut to_house), &mut || round(&mut to_bare), &mut || {
            round(&mut to_kept)
        }],
    );
    let rate = |what: &str, ours: &[f64], limit: &[f64], wanted| {
        row(&format!("REST: POST, sequential, {what}"), Unit::PerSecond, ours, limit, wanted);
    };
    rate("vs bare JSON echo", &ours, &bare, Wanted::RateAtLeast(0.5));
    rate("judged and recorded, vs an echo that writes as much", &house, &kept, Wanted::RateAtLeast(0.5));
    rate("judged and recorded, vs bare JSON echo", &house, &bare, Wanted::RateAtLeast(0.5));
    rate("an echo that writes as much, vs bare JSON echo", &kept, &bare, Wanted::Rate);
}

/// Posts of many connections at once to one bus, where those that gather share a write.
fn crowded_posting() {
    const POSTERS: u32 = 64;
    let (posts, rounds) = if is_quick() { (20, 3) } else { (200, 7) };
    let (ours, bare) = (Ours::start(), Bare::start());
    let connect = |address, path: &str| -> Vec<Poster> {
        (0..POSTERS).map(|_| Poster::connect(address, path)).collect()
    };
    let (mut to_ours, mut to_bare) =
        (connect(ours.address, &ours.post_path()), connect(bare.address, "/echo"));
    let round = |posters: &mut [Poster]| {
        let ready = Barrier::new(posters.len() + 1);
        let begun = std::thread::scope(|scope| {
            for poster in posters {
                let ready = &ready;
                scope.spawn(move || {
                    ready.wait();
                    (0..posts).for_each(|_| poster.post());
                });
            }
            ready.wait();
            Instant::now()
        });
        nanos(begun.elapsed()) / f64::from(posts * POSTERS)
    };
    let [our_samples, bare_samples] =
        take_turns(rounds, [&mut || round(&mut to_ours), &mut || round(&mut to_bare)]);
    row(
        "REST: POST, 64 connections at once, vs bare JSON echo",
        Unit::PerSecond,
        &our_samples,
        &bare_samples,
        Wanted::RateAtLeast(0.5),
    );
}

/// What a client that only listens costs the server, measured in a process of its own.
fn memory() {
    let clients = if is_quick() { 100 } else { 1000 };
    let child = servers::Child::start();
    // One stream first, so that what all share is there.
    let first = Crowd::join(child.address, &child.stream_path, 1);
    let before = child.resident_kib();
    let crowd = Crowd::join(child.address, &child.stream_path, clients);
    let after = child.resident_kib();
    let each = (after - before) / f64::from(u32::try_from(clients).expect("a number of clients is small"));
    let verdict = if each <= 40.0 { "<= 40 kB (met)" } else { "<= 40 kB (MISSED)" };
    figure(&format!("memory per idle client, {clients} clients"), &format!("{each:.1} kB"), verdict);
    drop((first, crowd));
}

fn nanos(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}
