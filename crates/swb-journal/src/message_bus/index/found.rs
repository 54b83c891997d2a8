//! What a file holds behind the end of its index.

use std::io;
use std::ops::ControlFlow;

use super::key::{Key, OFFSET_BITS};
use crate::message_bus::parse::State;
use crate::message_bus::segment::{self, Patience, Position, Segment};

const MARK_SPACING: u64 = 64 << 10;

/// Keys of closed records and the opener behind the last of them.
pub(super) struct Found {
    pub(super) entries: Vec<(u64, u64)>,
    pub(super) marks: Vec<u64>,
    pub(super) covered: u64,
}

impl Found {
    /// Looks at everything from an opener on.
    pub(super) fn behind(segment: &Segment, from: u64) -> io::Result<Self> {
        let start = if from == 0 { Position::START } else { Position::between(from) };
        let (mut entries, mut marks) = (Vec::new(), Vec::new());
        let mut next_mark = from;
        let end = segment::scan(
            segment,
            start,
            segment.opened_len,
            Patience::ClosedOnly,
            &mut |offset, record| {
                // Legacy lines are found by their number, and what cannot be addressed needs no entry.
                if offset >> OFFSET_BITS == 0
                    && !record.id.is_empty()
                    && !record.id.starts_with("LEGACY-LINE-")
                {
                    entries.push((Key::Id(&record.id).hash(), offset));
                    if let Some(key) = &record.idempotency_key {
                        entries.push((Key::Idempotency(key).hash(), offset));
                    }
                    if offset >= next_mark {
                        marks.push(offset);
                        next_mark = offset + MARK_SPACING;
                    }
                }
                ControlFlow::Continue(())
            },
        )?;
        // Within legacy lines there is no opener to resume from yet.
        let covered = if end.resume.state == State::Between { end.resume.offset } else { 0 };
        Ok(Found { entries, marks, covered })
    }
}
