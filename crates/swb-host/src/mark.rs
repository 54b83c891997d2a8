//! Marks: how what a host has started is recognised once the host itself is gone.
//!
//! A host that is killed takes its child along, and in a cell everything else. Without one a grandchild that left its
//! group and its session lives on, and nobody's child it is no longer found by its ancestry. What it cannot lose by that is
//! the environment it was started with: every child of a host has the variable [`VARIABLE`], which names the host and when
//! it began. [`sweep`] ends those whose host is gone.
//!
//! Invariants: only processes of this user, of hosts below one folder, and never one whose host lives: a number that was
//! given to another process since is told by when that began. A process is held (pidfd) while it is looked at, so no other
//! is met in its place. What starts with an empty environment is not found: walls are better.
//! Proof: the tests below; `swb-cli/tests/runs/uncontained.rs` with the real binary.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, getpid, pidfd_open, pidfd_send_signal};

use crate::lineage;

/// The variable that holds the mark: the number of the host, when it began, and its socket.
pub const VARIABLE: &str = "SWB_HOST_MARK";
/// Those who are ended may have started others meanwhile; they are looked for so often.
const ROUNDS: usize = 32;
/// How long the kernel may take to end a process.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The kernel's flag of a process that is on its way out.
const EXITING: u64 = 0x4;

/// Whose child somebody is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    host: Pid,
    /// In the kernel's own measure.
    began: u64,
    socket: PathBuf,
}

impl Mark {
    /// Whether the host is there.
    fn is_hosted(&self) -> bool {
        began(self.host) == Some(self.began)
    }

    fn read(text: &[u8]) -> Option<Self> {
        let mut parts = text.splitn(3, |byte| *byte == b':');
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse::<u64>().ok();
        let host = Pid::from_raw(i32::try_from(number()?).ok()?)?;
        let began = number()?;
        let socket = OsString::from_vec(parts.next()?.to_vec()).into();
        Some(Mark { host, began, socket })
    }
}

/// The mark of whatever this process starts, as the host that listens there.
pub(crate) fn of_this_host(socket: &Path) -> io::Result<OsString> {
    let us = getpid();
    let began = began(us).ok_or_else(|| io::Error::other("/proc does not know this process"))?;
    let mut mark: OsString = format!("{}:{began}:", us.as_raw_nonzero()).into();
    mark.push(canonical(socket));
    Ok(mark)
}

/// A socket by where it really lies: its folder may be reached in several ways.
fn canonical(socket: &Path) -> PathBuf {
    let folder = socket.parent().and_then(|folder| std::fs::canonicalize(folder).ok());
    folder.zip(socket.file_name()).map_or_else(|| socket.to_owned(), |(folder, name)| folder.join(name))
}

/// Ends every process that a host with a socket below this folder has started, if that host is gone. Returns how many.
pub fn sweep(hosts: &Path) -> usize {
    let hosts = std::fs::canonicalize(hosts).unwrap_or_else(|_| hosts.to_owned());
    let mut ended = 0;
    for _ in 0..ROUNDS {
        let left: Vec<OwnedFd> = processes().filter_map(|process| orphan(process, &hosts)).collect();
        if left.is_empty() {
            break;
        }
        for process in left {
            // One that is gone already is as good.
            if pidfd_send_signal(&process, Signal::KILL).is_ok() {
                ended += 1;
                let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&PATIENCE));
            }
        }
    }
    ended
}

/// The process, if a host below this folder has started it and is gone.
fn orphan(process: Pid, hosts: &Path) -> Option<OwnedFd> {
    let is_one = || mark(process).is_some_and(|mark| mark.socket.starts_with(hosts) && !mark.is_hosted());
    // Most are not, and need not be held for that.
    if !is_one() || is_above_us(process) {
        return None;
    }
    let held = pidfd_open(process, PidfdFlags::empty()).ok()?;
    // From now on the number is this process's, and it is looked at again.
    is_one().then_some(held)
}

/// A daemon that an agent has started is not ended by itself.
fn is_above_us(process: Pid) -> bool {
    let mut at = Some(getpid());
    while let Some(here) = at {
        if here == process {
            return true;
        }
        at = lineage::parent(here).flatten();
    }
    false
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
        (entry.metadata().ok()?.uid() == geteuid().as_raw()).then_some(number)
    })
}

/// The mark that a process was started with.
fn mark(process: Pid) -> Option<Mark> {
    let environment = std::fs::read(format!("/proc/{}/environ", process.as_raw_nonzero())).ok()?;
    let value = environment.split(|byte| *byte == 0).find_map(|variable| {
        let value = variable.strip_prefix(VARIABLE.as_bytes())?;
        value.strip_prefix(b"=")
    });
    Mark::read(value?)
}

/// When a process began; `None` for one that is not there, or as good as dead.
fn began(process: Pid) -> Option<u64> {
    read_stat(&std::fs::read(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?)
}

/// The same of the kernel's line about it. One that is on its way out has closed its sockets already, and whoever
/// noticed that may well look before it is buried.
fn read_stat(stat: &[u8]) -> Option<u64> {
    // The name in parentheses may hold anything, also parentheses, spaces and bytes that are no text.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let flags: u64 = fields.nth(5)?.parse().ok()?;
    if flags & EXITING != 0 {
        return None;
    }
    fields.nth(12)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::process::{Child, Command, Stdio};

    const NOBODY: &str = "4194303:1";

    fn marked(mark: &str) -> Child {
        let mut command = Command::new("sleep");
        command.arg("1000").env(VARIABLE, mark).stdin(Stdio::null());
        command.spawn().unwrap()
    }

    fn is_alive(child: &mut Child) -> bool {
        child.try_wait().unwrap().is_none()
    }

    #[test]
    fn only_those_of_a_host_that_is_gone_and_ours_are_ended() {
        let home = tempfile::tempdir().unwrap();
        let ours = std::fs::canonicalize(home.path()).unwrap().join("hosts");
        std::fs::create_dir_all(ours.join("s")).unwrap();
        let socket = ours.join("s/host.sock");
        let (us, since) = (std::process::id(), began(getpid()).unwrap());
        let here = of_this_host(&socket).unwrap().into_string().unwrap();
        assert_eq!(here, format!("{us}:{since}:{}", socket.display()));
        let mut orphan = marked(&format!("{NOBODY}:{}", socket.display()));
        let mut reused = marked(&format!("{us}:{}:{}", since + 1, socket.display()));
        let mut spared = [
            marked(&here),
            marked(&format!("{NOBODY}:{}-other/s/host.sock", ours.display())),
            marked(&format!("{NOBODY}:/elsewhere/hosts/s/host.sock")),
            marked("no mark"),
        ];
        assert_eq!(sweep(&ours), 2);
        assert!(!is_alive(&mut orphan) && !is_alive(&mut reused));
        for child in &mut spared {
            assert!(is_alive(child));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(sweep(&ours), 0);
    }

    #[test]
    fn a_process_on_its_way_out_is_gone() {
        let stat = |state: &str, flags: u64| {
            format!("7 (a) b\u{fffd}) {state} 1 7 7 0 -1 {flags} 1 2 3 4 5 6 7 8 20 0 9 0 4242 1000 8")
                .into_bytes()
        };
        assert_eq!(read_stat(&stat("S", 0x0040_0100)), Some(4242));
        assert_eq!(read_stat(&stat("R", 0x0040_0104)), None);
        assert_eq!(read_stat(&stat("Z", 0x0040_0104)), None);
        let own = std::fs::read("/proc/self/stat").unwrap();
        assert_eq!(read_stat(&own), began(getpid()));
    }

    #[test]
    fn a_mark_is_read_as_it_was_written_and_nothing_else_is() {
        let mark = Mark::read(b"7:99:/a:b/\xff").unwrap();
        assert_eq!((mark.host.as_raw_nonzero().get(), mark.began), (7, 99));
        assert_eq!(mark.socket.as_os_str().as_bytes(), b"/a:b/\xff");
        for nonsense in ["", "7", "7:99", "-7:99:/a", "0:1:/a", "7:x:/a", "99999999999:1:/a"] {
            assert_eq!(Mark::read(nonsense.as_bytes()), None, "{nonsense}");
        }
    }
}
