//! The daemon's side of the line: it notices the death of its watch and starts another.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::line::{self, Line, Word};

/// Between attempts to start a watch, should that fail.
const PAUSE: Duration = Duration::from_secs(1);

/// Holds the line to whichever watch there is.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    line: Arc<Mutex<Option<UnixStream>>>,
    watch_pid: Arc<AtomicU32>,
}

impl Keeper {
    /// Begins with the watch that started this process. Without one there is nothing to keep.
    pub(crate) fn start(line: Line, watch_pid: Arc<AtomicU32>, flags: Vec<String>) -> Self {
        let line = line.into_stream();
        let keeper = Keeper { line: Arc::new(Mutex::new(line)), watch_pid };
        if let (Some(copy), Ok(program)) = (keeper.copy(), std::env::current_exe()) {
            let parent =
                rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs());
            keeper.watch_pid.store(parent, Ordering::Relaxed);
            tokio::spawn(keeper.clone().keep(copy, program, flags));
        }
        keeper
    }

    /// Says goodbye: the watch shall not start another daemon.
    pub(crate) fn goodbye(&self) {
        if let Some(line) = self.lock().as_mut() {
            let _ = line.write_all(&line::encode(&Word::Bye));
        }
    }

    async fn keep(self, mut line: UnixStream, program: PathBuf, flags: Vec<String>) {
        loop {
            // A watch never speaks, so anything but waiting is its end.
            if let Ok(mut stream) = listen(&line) {
                line::hear(&mut stream).await;
            }
            self.watch_pid.store(0, Ordering::Relaxed);
            tracing::warn!("the watch is gone; starting another");
            line = loop {
                match self.replace(&program, &flags) {
                    Ok(line) => break line,
                    Err(error) => tracing::error!(%error, "cannot start a watch"),
                }
                tokio::time::sleep(PAUSE).await;
            };
        }
    }

    fn replace(&self, program: &PathBuf, flags: &[String]) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        let copy = ours.try_clone()?;
        let mut command = Command::new(program);
        command.args(["watch", "--adopt", &std::process::id().to_string()]);
        command.args(flags.iter().flat_map(|flag| ["--set", flag.as_str()]));
        let watch =
            command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        self.watch_pid.store(watch.id(), Ordering::Relaxed);
        *self.lock() = Some(ours);
        reap(watch);
        Ok(copy)
    }

    fn copy(&self) -> Option<UnixStream> {
        self.lock().as_ref().and_then(|line| line.try_clone().ok())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<UnixStream>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch outlives the daemon as a rule; if it does not, it must not stay as a zombie.
fn reap(mut watch: std::process::Child) {
    tokio::task::spawn_blocking(move || watch.wait());
}

fn listen(line: &UnixStream) -> io::Result<tokio::net::UnixStream> {
    let copy = line.try_clone()?;
    copy.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(copy)
}
