//! `cargo xtask test`: every test there is.

use crate::cargo::{self, cargo};

pub(crate) fn run() -> anyhow::Result<()> {
    if cargo::has("nextest") {
        // The one kind of test that nextest leaves out. First, so that the run closes with the count that matters.
        cargo::run(&mut cargo(&["test", "--quiet", "--workspace", "--doc"]))?;
        return cargo::run(&mut cargo(&["nextest", "run", "--workspace"]));
    }
    println!("cargo-nextest is not installed: cargo test does the same, more slowly");
    cargo::run(&mut cargo(&["test", "--workspace"]))
}
