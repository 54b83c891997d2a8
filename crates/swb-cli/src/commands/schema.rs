//! `swb schema`: the interface as documents.

use crate::args::{SchemaArgs, SchemaName};
use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;
use crate::reference;

pub(crate) fn run(args: &SchemaArgs, io: &Io) -> Result<u8, Failure> {
    io.line(
        match args.which {
            SchemaName::Openrpc => reference::openrpc(),
            SchemaName::Envelope => reference::envelope_schema(),
            SchemaName::Openapi => reference::openapi(),
            SchemaName::Config => reference::config_schema(),
        }
        .trim_end(),
    )?;
    Ok(exit_code::SUCCESS)
}
