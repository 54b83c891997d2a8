//! `swb watch`: what `swb up` leaves behind.

use std::io::Write;

use swb_daemon::Paths;
use swb_daemon::watch::{self, Outcome, WatchOptions, Word};

use crate::args::WatchArgs;
use crate::exit_code;
use crate::failure::Failure;

/// Watches in the background. The first words go to standard output, where `swb up` waits for them.
pub(crate) fn run(args: &WatchArgs, set: &[String]) -> Result<u8, Failure> {
    // A session of its own: closing the terminal that ran `swb up` must not end the daemon.
    let _ = rustix::process::setsid();
    let paths = Paths::from_env()?;
    watch::start_log(&paths);
    let options = WatchOptions {
        program: std::env::current_exe()?,
        flags: set.to_vec(),
        adopt: args.adopt,
        inherit_stderr: false,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome =
        runtime.block_on(watch::run(&paths, options, |description| tell(&Word::Ready(description.clone()))));
    Ok(match outcome {
        Outcome::Stopped => exit_code::SUCCESS,
        Outcome::AlreadyRunning { pid } => {
            tell(&Word::AlreadyRunning { pid });
            exit_code::SUCCESS
        }
        Outcome::GaveUp { why } => {
            tell(&Word::Failed { why });
            exit_code::START_FAILED
        }
    })
}

/// Whoever started the watch may have gone; then nobody hears it.
fn tell(word: &Word) {
    let mut stdout = std::io::stdout();
    let _ = serde_json::to_writer(&mut stdout, word);
    let _ = stdout.write_all(b"\n");
    let _ = stdout.flush();
}
