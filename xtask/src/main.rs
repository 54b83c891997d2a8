//! The habits of the house as commands: `cargo xtask check` is what CI runs, and nothing about it is secret.
//!
//! One file per command. Each runs other programs at the root of the workspace and stops at the first that fails.
#![expect(clippy::print_stdout, reason = "these commands talk to the person who runs them")]

mod agent;
mod bench;
mod cargo;
mod figures;
mod host;
mod lint;
mod model;
#[cfg(test)]
mod rooms;
mod schema;
mod start;
mod test;

use clap::{Parser, Subcommand};

/// The habits of the house.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Xtask {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Lint, then test: what CI runs.
    Check,
    /// Run every test, with cargo-nextest if it is installed.
    Test(test::TestArgs),
    /// A real language model on loopback, for trying things out.
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Check formatting, clippy, documentation and, if cargo-deny is installed, licences and advisories.
    Lint,
    /// Run every bench of the workspace in release and print its figures.
    Bench(bench::BenchArgs),
    /// Write the files that are generated from the code: schemas, error codes, command reference, manual pages.
    Schema(schema::SchemaArgs),
}

fn main() -> anyhow::Result<()> {
    match Xtask::parse().command {
        Command::Check => {
            lint::run()?;
            test::run(&test::TestArgs::default())
        }
        Command::Test(args) => test::run(&args),
        Command::Model(command) => model::run(&command),
        Command::Lint => lint::run(),
        Command::Bench(args) => bench::run(&args),
        Command::Schema(args) => schema::run(&args),
    }
}
