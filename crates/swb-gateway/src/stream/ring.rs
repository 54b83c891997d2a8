//! The latest frames of one bus, numbered. Bounded by bytes; what falls out is still in the file.

use std::collections::VecDeque;

use bytes::Bytes;

use super::frame::{Frames, Mark};

/// Enough for a burst, little enough for many buses.
const MOST_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Ring {
    batches: VecDeque<Batch>,
    bytes: usize,
    /// The number of the next frame.
    head: u64,
}

#[derive(Debug)]
struct Batch {
    first: u64,
    frames: Frames,
}

/// What a reader finds at its number.
#[derive(Debug)]
pub(super) enum Taken {
    /// Frames from `skip` on, and the number after them.
    Frames { frames: Frames, skip: usize, next: u64 },
    /// Nothing yet.
    Nothing,
    /// The ring begins later than this: so many frames are gone.
    Overtaken { behind: u64 },
}

impl Ring {
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    pub(super) fn push(&mut self, frames: Frames) {
        let count = frames.marks.len() as u64;
        self.bytes += frames.bytes.len();
        self.batches.push_back(Batch { first: self.head, frames });
        self.head += count;
        // The newest stays whatever its size, or nobody would get it.
        while self.bytes > MOST_BYTES && self.batches.len() > 1 {
            if let Some(oldest) = self.batches.pop_front() {
                self.bytes -= oldest.frames.bytes.len();
            }
        }
    }

    /// The batch that holds this number.
    pub(super) fn take(&self, number: u64) -> Taken {
        if number >= self.head {
            return Taken::Nothing;
        }
        let after = self.batches.partition_point(|batch| batch.first <= number);
        let Some(batch) = after.checked_sub(1).and_then(|at| self.batches.get(at)) else {
            return Taken::Overtaken { behind: self.head - number };
        };
        let skip = usize::try_from(number - batch.first).unwrap_or(usize::MAX);
        let next = batch.first + batch.frames.marks.len() as u64;
        Taken::Frames { frames: batch.frames.clone(), skip, next }
    }

    /// The number after the latest frame that matches.
    pub(super) fn after(&self, matches: impl Fn(&Mark) -> bool) -> Option<u64> {
        self.batches.iter().rev().find_map(|batch| {
            let at = batch.frames.marks.iter().rposition(&matches)?;
            Some(batch.first + at as u64 + 1)
        })
    }
}

/// The bytes of frames from an index on; nothing if there are none.
pub(super) fn rest(frames: &Frames, skip: usize) -> Option<Bytes> {
    (skip < frames.marks.len()).then(|| frames.from(skip))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of ten bytes, recognised by their numbers.
    fn frames(numbers: std::ops::Range<u64>) -> Frames {
        let marks: Vec<_> = (1..)
            .zip(numbers)
            .map(|(count, number)| Mark { end: count * 10, whole: number, id: Some(number) })
            .collect();
        Frames { bytes: vec![b'x'; marks.len() * 10].into(), marks }
    }

    #[test]
    fn a_reader_finds_its_place_in_the_middle_of_a_batch() {
        let mut ring = Ring::default();
        ring.push(frames(0..3));
        ring.push(frames(3..5));
        assert!(matches!(ring.take(5), Taken::Nothing));
        let Taken::Frames { frames, skip, next } = ring.take(1) else { panic!("frame 1 is there") };
        assert_eq!((rest(&frames, skip).unwrap().len(), next), (20, 3));
        let after = |id| ring.after(|mark| mark.id == Some(id));
        assert_eq!((after(2), after(4), after(9)), (Some(3), Some(5), None));
    }

    #[test]
    fn what_falls_out_is_noticed() {
        let mut ring = Ring::default();
        for number in 0..3 {
            let mark = Mark { end: MOST_BYTES, whole: number, id: None };
            ring.push(Frames { bytes: vec![0; MOST_BYTES].into(), marks: vec![mark] });
        }
        assert!(matches!(ring.take(0), Taken::Overtaken { behind: 3 }));
        assert!(matches!(ring.take(2), Taken::Frames { .. }));
    }
}
