//! The guard itself.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::End;
use crate::descendants::{adopt_orphans, end_all, living, reap_ended};
use crate::group::Group;

/// How long those who are asked to end may take.
const GRACE: Duration = Duration::from_millis(100);
/// How often the starter is looked for where the kernel does not tell.
const LOOK: Duration = Duration::from_millis(200);

/// Guards a command for the process of this number.
pub(crate) fn keep(starter: &OsStr, command: &[OsString]) -> io::Result<ExitCode> {
    adopt_orphans();
    let starter = starter.to_str().and_then(|number| number.parse().ok()).and_then(Pid::from_raw);
    let starter = starter.ok_or(io::ErrorKind::InvalidInput)?;
    // First the watch, then the question whether there is still somebody to watch.
    let watch = pidfd_open(starter, PidfdFlags::empty());
    if getppid() != Some(starter) {
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(guard(starter, watch.ok(), command))?;
    Ok(ExitCode::SUCCESS)
}

async fn guard(starter: Pid, watch: Option<OwnedFd>, command: &[OsString]) -> io::Result<()> {
    let mut told = [
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::hangup())?,
        signal(SignalKind::quit())?,
    ];
    let mut child_ended = signal(SignalKind::child())?;
    let starter_gone = death(starter, watch);
    tokio::pin!(starter_gone);
    let mut group = match start(command) {
        Ok(group) => group,
        Err(error) => return say(&format!("cannot {error}\n")),
    };
    let mut reported = false;
    loop {
        tokio::select! {
            biased;
            () = any(&mut told) => break,
            () = &mut starter_gone => break,
            status = group.wait(), if !reported => {
                reported = true;
                report(status?)?;
            }
            _ = child_ended.recv() => reap_ended(),
        }
        if reported && living().is_empty() {
            return Ok(());
        }
    }
    end_all(GRACE).await;
    Ok(())
}

/// Starts the command, and lets go of what belongs to it.
fn start(command: &[OsString]) -> io::Result<Group> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(output);
    let group = Group::spawn(&mut command)?;
    // Whoever reads the output waits for the last one who could write to it.
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    Ok(group)
}

fn report(status: ExitStatus) -> io::Result<()> {
    let word = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}\n"),
        (None, signal) => format!("signal {}\n", signal.unwrap_or_default()),
    };
    say(&word)?;
    // The end of the report.
    Ok(dup2_stderr(std::fs::File::options().write(true).open("/dev/null")?)?)
}

fn say(word: &str) -> io::Result<()> {
    io::stderr().write_all(word.as_bytes())
}

pub(super) fn read_report(text: &str) -> End {
    let word = text.strip_suffix('\n').and_then(|line| line.split_once(' '));
    match word.map(|(kind, rest)| (kind, rest, rest.parse())) {
        Some(("exit", _, Ok(code))) => End::Exit(code),
        Some(("signal", _, Ok(signal))) => End::Signal(signal),
        Some(("cannot", why, _)) => End::NotStarted(why.to_owned()),
        _ => End::Unknown,
    }
}

/// Returns when the process is dead.
async fn death(of: Pid, watch: Option<OwnedFd>) {
    if let Some(watch) = watch {
        let (sender, dead) = oneshot::channel();
        std::thread::spawn(move || {
            // It becomes readable once.
            while poll(&mut [PollFd::new(&watch, PollFlags::IN)], None).is_err() {}
            let _ = sender.send(());
        });
        if dead.await.is_ok() {
            return;
        }
    }
    while getppid() == Some(of) {
        tokio::time::sleep(LOOK).await;
    }
}

async fn any(signals: &mut [tokio::signal::unix::Signal]) {
    std::future::poll_fn(|cx| {
        let caught = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
        if caught { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_report_counts() {
        assert_eq!(read_report("exit 3\n"), End::Exit(3));
        assert_eq!(read_report("signal 9\n"), End::Signal(9));
        assert_eq!(read_report("cannot find it\n"), End::NotStarted("find it".to_owned()));
        for torn in ["", "exit 1", "exit\n", "signal x\n", "swb host: cannot\n"] {
            assert_eq!(read_report(torn), End::Unknown, "{torn:?}");
        }
    }
}
