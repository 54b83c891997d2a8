//! `cargo xtask test`: every test there is.

use anyhow::Context;

use crate::cargo::{self, cargo};
use crate::model;

#[derive(Default, clap::Args)]
pub(crate) struct TestArgs {
    /// Only those with a real language model: it is installed, served, and talked to through `swb rpc`.
    #[arg(long)]
    real_model: bool,
    /// With --real-model: give up installing it after so many minutes.
    #[arg(long, value_name = "MINUTES", requires = "real_model")]
    within: Option<u64>,
    /// With --real-model: say why and succeed if it cannot be installed here, or not in time.
    #[arg(long, requires = "real_model")]
    if_possible: bool,
}

pub(crate) fn run(args: &TestArgs) -> anyhow::Result<()> {
    if args.real_model {
        return real_model(args);
    }
    if cargo::has("nextest") {
        // The one kind of test that nextest leaves out. First, so that the run closes with the count that matters.
        cargo::run(&mut cargo(&["test", "--quiet", "--workspace", "--doc"]))?;
        return cargo::run(&mut cargo(&["nextest", "run", "--workspace"]));
    }
    println!("cargo-nextest is not installed: cargo test does the same, more slowly");
    cargo::run(&mut cargo(&["test", "--workspace"]))
}

fn real_model(args: &TestArgs) -> anyhow::Result<()> {
    let folder = model::folder()?;
    if let Err(error) = model::install(&folder, args.within.map(model::minutes)) {
        if args.if_possible {
            println!("the tests with a real model are left out: {error}");
            return Ok(());
        }
        return Err(error).context("there is no real model to test with");
    }
    let server = model::Server::start(&folder, 0)?;
    println!("{} serves {}", server.endpoint(), model::NAME);
    // One at a time: the server has one model, and it thinks slowly.
    // Of the workspace, though they are of one package: so they are built as all other tests are, and not once more.
    let mut tests = cargo(&["test", "--workspace", "--test", "real_model", "--", "--ignored"]);
    tests.args(["--test-threads", "1"]).env("REAL_MODEL_ENDPOINT", server.endpoint());
    cargo::run(&mut tests)
}
