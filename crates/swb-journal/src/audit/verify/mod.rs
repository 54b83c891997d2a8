//! Offline proof that a log is whole: nothing changed, removed, inserted or moved.
//!
//! Each segment is checked by itself, several at a time; then they are joined: every header must hang on the end of the
//! segment before, and a gap must be one that the last purge has proven. A chain that hangs together may still have been
//! cut off at its end, or written anew as a whole. Only a head that was kept in another place tells, an *anchor*;
//! without one that could be compared the verdict is "consistent, not anchored".
//!
//! - `segment`: the lines of one segment. `join`: segments and purged spans. `report`: what was found.
//!
//! Nothing here needs the log's lock or changes a byte; a log that is being written is verified up to where it was.

mod join;
mod report;
mod segment;

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use report::{AnchorSeen, AnchorState, Finding, FindingKind, Report, TornTail, Verdict};
pub(super) use segment::{Checked, check_segment};

use super::log::{Head, lock};
use super::recover::{Examined, examine};
use super::segment::{SegmentFile, list};

/// Verifies the log in a folder, against heads that were kept in another place.
pub fn verify(folder: &Path, anchors: &[Head]) -> io::Result<Report> {
    match attempt(folder, anchors) {
        // A purge has removed a segment after it was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => attempt(folder, anchors),
        outcome => outcome,
    }
}

fn attempt(folder: &Path, anchors: &[Head]) -> io::Result<Report> {
    let segments = list(folder)?;
    let (checked, torn) = check_all(&segments, anchors)?;
    Ok(join::join(checked, anchors, torn))
}

/// Checks every segment by itself; the last one up to its torn tail.
pub(super) fn check_all(
    segments: &[SegmentFile],
    anchors: &[Head],
) -> io::Result<(Vec<Checked>, Option<TornTail>)> {
    let mut torn = None;
    let mut end = None;
    if let Some(last) = segments.last() {
        match examine(last)? {
            Examined::Sound { tip, torn_bytes, .. } => {
                end = Some(tip.offset);
                if torn_bytes > 0 {
                    torn = Some(TornTail { segment: last.segment, offset: tip.offset, bytes: torn_bytes });
                }
            }
            Examined::Unborn { bytes } => {
                end = Some(0);
                torn = Some(TornTail { segment: last.segment, offset: 0, bytes });
            }
            Examined::Damaged { .. } | Examined::Foreign { .. } => {}
        }
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(segment) = segments.get(at) else { return };
            let end = end.filter(|_| at + 1 == segments.len());
            let checked = check_segment(segment, end, anchors, &mut |_, _| {});
            lock(&results).push((at, checked));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8).min(segments.len());
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    let checked = results.into_iter().map(|(_, checked)| checked).collect::<io::Result<Vec<_>>>()?;
    Ok((checked, torn))
}
