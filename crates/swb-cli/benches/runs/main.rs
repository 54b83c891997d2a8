//! Runs of agents through the whole house: the real daemon, hosts, agents in cells, a subscriber on the socket.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

#[path = "../../../swb-bus/benches/figures/mod.rs"]
mod figures;
mod relay;
mod talker;
mod talkers;

use std::io::Read;
use std::process::Stdio;
use std::time::Instant;

use figures::{Unit, Wanted, figure, heading, is_quick, median, row, take_turns};
use relay::Relay;
use talkers::Talkers;
use testkit::World;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some(talker::TALKER) => return talker::run(),
        Some(relay::PASSER) => return relay::pass(&arguments[2]),
        Some(relay::REWRITER) => return relay::rewrite(&arguments[2], &arguments[3]),
        _ => {}
    }
    heading("runs");
    first_words();
    flood();
    many_at_once();
}

/// From the call of `swb run` to the first thing the agent says.
fn first_words() {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    let first = || {
        let mut command = world.command(["run", "!say hello there"]);
        let begun = Instant::now();
        let mut run = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("swb runs");
        let mut out = run.stdout.take().expect("a pipe");
        out.read_exact(&mut [0]).expect("a first word");
        let millis = begun.elapsed().as_secs_f64() * 1e3;
        out.read_to_end(&mut Vec::new()).expect("the rest");
        assert!(run.wait().expect("an end").success());
        millis
    };
    let down = || drop(world.swb(["down", "--yes"]));
    let rounds = if is_quick() { 2 } else { 15 };
    // The first start of a home makes its files.
    first();
    let warm: Vec<f64> = (0..rounds).map(|_| first()).collect();
    let cold = (0..rounds).map(|_| {
        down();
        first()
    });
    let cold: Vec<f64> = cold.collect();
    down();
    for (what, millis, most) in [("a running daemon", warm, 80.0), ("nothing running", cold, 250.0)] {
        let millis = median(millis.into_iter());
        let verdict = if millis <= most { "met" } else { "MISSED" };
        let what = format!("swb run, to the first words, with {what}, p50");
        figure(&what, &format!("{millis:.0} ms"), &format!("<= {most} ms ({verdict})"));
    }
}

/// As many words as can be.
fn flood() {
    let (words, rounds) = if is_quick() { (1000, 1) } else { (20_000, 9) };
    let prompt = talker::prompt(words, None);
    let mut house = Talkers::start();
    let session = house.check(words);
    let folder = tempfile::tempdir().expect("a folder");
    let mut bare = Relay::start(folder.path());
    let each = |begun: Instant| begun.elapsed().as_secs_f64() * 1e9 / f64::from(words);
    let mut our_round = || {
        let begun = Instant::now();
        house.round(&session, &prompt);
        each(begun)
    };
    let mut bare_round = || {
        let begun = Instant::now();
        assert_eq!(bare.round(&prompt), words);
        each(begun)
    };
    let [our_samples, bare_samples] = take_turns(rounds, [&mut our_round, &mut bare_round]);
    row(
        "deltas from an agent to a subscriber vs bare relay",
        Unit::PerSecond,
        &our_samples,
        &bare_samples,
        Wanted::RateAtLeast(0.4),
    );
}

/// Fifty agents, each of which says two hundred words a second.
fn many_at_once() {
    const EACH_SECOND: u32 = 200;
    let (runs, seconds) = if is_quick() { (5, 1) } else { (50, 10) };
    let mut house = Talkers::start();
    let begun = Instant::now();
    let (whole, took) = house.all_at_once(runs, EACH_SECOND * seconds, EACH_SECOND);
    let verdict = if whole == runs { "nothing lost (met)" } else { "nothing lost (MISSED)" };
    let what = format!("{runs} runs at once, {EACH_SECOND} deltas/s each, for {seconds} s");
    let told = format!("{whole} whole");
    figure(&what, &told, verdict);
    let behind = took.as_secs_f64() - f64::from(seconds);
    let what = "  the longest of them took longer than its agent by";
    figure(what, &format!("{behind:.2} s"), &format!("all in {:.1} s", begun.elapsed().as_secs_f64()));
}
