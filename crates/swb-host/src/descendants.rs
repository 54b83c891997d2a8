//! Whatever this process has brought into the world, and its end.
//!
//! A process that declared itself a subreaper becomes the parent of every orphan among its descendants, so leaving a
//! process group, a session or a parent does not lead out of the tree. The tree is read from `/proc`; where there is
//! none (or no subreaper), only process groups help, and nothing here does harm. Proof: `tests/descendants.rs`, which is a
//! process of its own because these functions mean every child there is.

use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

use crate::group;

const PAUSE: Duration = Duration::from_millis(5);

/// Makes this process the parent of its orphaned descendants.
pub fn adopt_orphans() {
    // Not being able to is not an error: process groups still work.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Every living descendant of this process, parents before children.
pub fn living() -> Vec<Pid> {
    let table = table();
    let mut found = vec![getpid()];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(table.iter().filter(|process| process.parent == parent).map(|process| process.number));
        at += 1;
    }
    found.remove(0);
    found.retain(|number| table.iter().any(|process| process.number == *number && !process.ended));
    found
}

/// Reaps orphans that have ended. The leaders of groups are left to those who wait for them.
pub fn reap_ended() {
    let us = getpid();
    let table = table();
    let leaders = group::leaders();
    let ended = |process: &&Process| process.parent == us && process.ended;
    for process in table.iter().filter(ended).filter(|process| !leaders.contains(&process.number)) {
        let _ = waitpid(Some(process.number), WaitOptions::NOHANG);
    }
}

/// Ends all descendants: asks them first, kills those that are left after `patience`. Returns when none is alive.
pub async fn end_all(patience: Duration) {
    for number in living() {
        let _ = kill_process(number, Signal::TERM);
    }
    let asked = tokio::time::Instant::now();
    loop {
        reap_ended();
        let left = living();
        if left.is_empty() {
            return;
        }
        if asked.elapsed() >= patience {
            for number in left {
                let _ = kill_process(number, Signal::KILL);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

struct Process {
    number: Pid,
    parent: Pid,
    ended: bool,
}

fn table() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name in parentheses may hold anything, also parentheses and spaces.
            let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
            let ended = matches!(fields.next()?, "Z" | "X");
            let parent = fields.next()?.parse().ok().and_then(Pid::from_raw)?;
            Some(Process { number, parent, ended })
        })
        .collect()
}
