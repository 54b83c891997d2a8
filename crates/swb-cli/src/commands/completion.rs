//! `swb completion`: a script for a shell, made from the tree of arguments.

use crate::args::CompletionArgs;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;

pub(crate) fn run(args: &CompletionArgs, io: &Io) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "swb", &mut script);
    io.line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(exit_code::SUCCESS)
}
