//! Stdin and stdout for the protocol alone.
//!
//! The two descriptors move to numbers that no child inherits; in their old places stand `/dev/null` and stderr. So
//! nothing that a tool, a library or a child process prints can ever stand between two frames, and nothing can eat a
//! command that was meant for us.

use std::fs::File;
use std::io;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

/// The ends of the protocol.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) input: File,
    pub(crate) output: File,
}

/// Takes them. Once per process.
pub(crate) fn take() -> io::Result<Pipes> {
    // Above the three that everybody knows.
    let input = fcntl_dupfd_cloexec(stdin(), 3)?;
    let output = fcntl_dupfd_cloexec(stdout(), 3)?;
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(stderr())?;
    Ok(Pipes { input: input.into(), output: output.into() })
}
