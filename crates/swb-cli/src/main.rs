//! `swb`: parse, run, say how it ended.

use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all: the way into a cell must be walked before there is a thread, and a host, of which there are many,
    // touches nothing that it has no use for.
    match swb_host::entry::run(std::env::args_os().collect()) {
        Some(code) => code,
        None => swb_cli::main(),
    }
}
