//! What a child said, kept until somebody has read it.
//!
//! The newest bytes stay in memory, older ones go to a spill file, and both together never hold more than the cap: then
//! [`Output::room`] is zero, the pipe is not read, and the child waits as it would for any slow reader. Nothing is ever
//! dropped that was not acknowledged. A disk that takes nothing any more has the same effect as the cap.
//!
//! The spill file holds what memory does not, in order; what was acknowledged is punched out of it, so it takes no more
//! disk than the cap. It is unlinked from the start: it ends with the host, which is the only one who could read it.
//!
//! Proof: the tests below compare it with a plain vector under random pushes, reads and acknowledgements.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

use crate::wire::MAX_PIECE;

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// In memory.
    pub ring: usize,
    /// In memory and on disk together.
    pub cap: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { ring: 256 * 1024, cap: 64 * 1024 * 1024 }
    }
}

/// One stream out of a child.
#[derive(Debug)]
pub(crate) struct Output {
    limits: Limits,
    /// The first byte that is kept.
    kept_from: u64,
    /// The bytes from `end - recent.len()` on.
    recent: VecDeque<u8>,
    end: u64,
    spill: Spill,
    finished: bool,
}

#[derive(Debug)]
struct Spill {
    file: File,
    /// The offset in the stream of the file's first byte.
    base: u64,
    /// The offset in the stream after the file's last byte.
    end: u64,
    /// The last write failed; memory holds what should have gone there.
    failed: bool,
}

/// What there is at an offset.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing before this offset is kept.
    Gone(u64),
    /// Nothing yet.
    Nothing,
    /// Nothing ever.
    End,
}

impl Output {
    /// Keeps its spill in `folder`, under no name.
    pub(crate) fn new(limits: Limits, folder: &Path) -> io::Result<Self> {
        let spill = Spill { file: tempfile::tempfile_in(folder)?, base: 0, end: 0, failed: false };
        Ok(Output { limits, kept_from: 0, recent: VecDeque::new(), end: 0, spill, finished: false })
    }

    /// How many bytes may be pushed now.
    pub(crate) fn room(&self) -> usize {
        let kept = self.end - self.kept_from;
        let below_cap = usize::try_from(self.limits.cap.saturating_sub(kept)).unwrap_or(usize::MAX);
        let in_memory = (self.limits.ring + MAX_PIECE).saturating_sub(self.recent.len());
        below_cap.min(in_memory).min(MAX_PIECE)
    }

    /// Takes what the child said; at most [`Output::room`] bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.recent.extend(bytes);
        self.end += bytes.len() as u64;
        self.make_room();
    }

    /// Moves what memory should not hold to disk. A disk that refuses is tried again whenever this is called.
    pub(crate) fn make_room(&mut self) {
        while self.recent.len() > self.limits.ring {
            let over = (self.recent.len() - self.limits.ring).min(MAX_PIECE);
            let (front, _) = self.recent.as_slices();
            let piece = &front[..over.min(front.len())];
            let in_memory_from = self.end - self.recent.len() as u64;
            if let Err(error) = self.spill.append(in_memory_from, piece) {
                if !self.spill.failed {
                    self.spill.failed = true;
                    crate::complain(&format!("cannot keep more output, so it is not read: {error}"));
                }
                return;
            }
            self.spill.failed = false;
            let moved = piece.len();
            self.recent.drain(..moved);
        }
    }

    /// The child will say no more.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// What there is from `from` on, at most one piece of it.
    pub(crate) fn read(&self, from: u64) -> io::Result<Piece> {
        if from < self.kept_from {
            return Ok(Piece::Gone(self.kept_from));
        }
        if from >= self.end {
            return Ok(if self.finished { Piece::End } else { Piece::Nothing });
        }
        let in_memory_from = self.end - self.recent.len() as u64;
        if from < in_memory_from {
            return self.spill.read(from).map(Piece::Bytes);
        }
        let skip = usize::try_from(from - in_memory_from).unwrap_or(usize::MAX);
        Ok(Piece::Bytes(self.recent.range(skip..).take(MAX_PIECE).copied().collect()))
    }

    /// Forgets what comes before `upto`. Going back, or past the end, changes nothing.
    pub(crate) fn acknowledge(&mut self, upto: u64) -> bool {
        if upto > self.end {
            return false;
        }
        if upto <= self.kept_from {
            return true;
        }
        self.kept_from = upto;
        let in_memory_from = self.end - self.recent.len() as u64;
        if let Ok(unneeded @ 1..) = usize::try_from(upto.saturating_sub(in_memory_from)) {
            self.recent.drain(..unneeded);
            self.recent.shrink_to(self.limits.ring);
        }
        self.spill.forget(upto);
        self.make_room();
        true
    }

    /// The first byte kept, the end, and whether the pipe is not read for want of room.
    pub(crate) fn extent(&self) -> (u64, u64, bool) {
        (self.kept_from, self.end, self.room() == 0)
    }

    /// Whether the disk refused the last time.
    pub(crate) fn is_stuck(&self) -> bool {
        self.spill.failed
    }
}

impl Spill {
    fn append(&mut self, from: u64, bytes: &[u8]) -> io::Result<()> {
        if from != self.end {
            // Everything in the file was acknowledged before memory ran over again.
            self.file.set_len(0)?;
            (self.base, self.end) = (from, from);
        }
        self.file.write_all_at(bytes, self.end - self.base)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn read(&self, from: u64) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.end - from).unwrap_or(usize::MAX).min(MAX_PIECE);
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, from - self.base)?;
        Ok(bytes)
    }

    fn forget(&mut self, upto: u64) {
        let unneeded = upto.min(self.end).saturating_sub(self.base);
        if unneeded == 0 {
            return;
        }
        // Where holes cannot be punched the file keeps its size until all of it was read.
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = if upto >= self.end {
            self.base = self.end;
            self.file.set_len(0)
        } else {
            fallocate(&self.file, punch, 0, unneeded).map_err(io::Error::from)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn output(ring: usize, cap: u64) -> Output {
        Output::new(Limits { ring, cap }, &std::env::temp_dir()).unwrap()
    }

    fn read_all(output: &Output, mut from: u64) -> Vec<u8> {
        let mut all = Vec::new();
        while let Piece::Bytes(bytes) = output.read(from).unwrap() {
            from += bytes.len() as u64;
            all.extend(bytes);
        }
        all
    }

    #[test]
    fn at_the_cap_there_is_no_room_until_something_is_acknowledged() {
        let mut output = output(10, 100);
        output.push(&[1; 100]);
        assert_eq!((output.room(), output.extent()), (0, (0, 100, true)));
        assert!(output.acknowledge(40));
        assert_eq!(output.room(), 40);
        assert_eq!(output.read(39).unwrap(), Piece::Gone(40));
        assert_eq!(read_all(&output, 40), [1; 60]);
    }

    #[test]
    fn what_was_never_said_cannot_be_acknowledged() {
        let mut output = output(10, 100);
        output.push(b"abc");
        assert!(!output.acknowledge(4));
        assert_eq!(read_all(&output, 0), b"abc");
    }

    #[test]
    fn an_end_is_an_end_only_after_the_last_byte() {
        let mut output = output(10, 100);
        output.push(b"abc");
        assert_eq!(output.read(3).unwrap(), Piece::Nothing);
        output.finish();
        assert_eq!(output.read(0).unwrap(), Piece::Bytes(b"abc".to_vec()));
        assert_eq!(output.read(3).unwrap(), Piece::End);
    }

    #[test]
    fn acknowledged_bytes_give_their_disk_back() {
        use std::os::unix::fs::MetadataExt;
        let mut output = output(0, 1 << 20);
        for _ in 0..64 {
            for _ in 0..16 {
                output.push(&[7; 65_536]);
            }
            assert!(output.acknowledge(output.extent().1 - 65_536));
        }
        assert!(output.spill.file.metadata().unwrap().blocks() * 512 <= 2 << 20);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(usize),
        Acknowledge(u64),
        Read(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0usize..40).prop_map(Step::Push),
            (0u64..300).prop_map(Step::Acknowledge),
            (0u64..300).prop_map(Step::Read),
        ];
        proptest::collection::vec(step, 0..60)
    }

    proptest! {
        #[test]
        fn it_is_a_vector_with_a_moving_start(ring in 0usize..40, cap in 1u64..120, steps in steps()) {
            let mut output = output(ring, cap);
            let (mut all, mut start) = (Vec::<u8>::new(), 0u64);
            for step in steps {
                match step {
                    Step::Push(n) => {
                        let n = n.min(output.room());
                        let bytes: Vec<u8> = (1..=250).cycle().skip(all.len() % 250).take(n).collect();
                        output.push(&bytes);
                        all.extend(bytes);
                    }
                    Step::Acknowledge(upto) => {
                        prop_assert_eq!(output.acknowledge(upto), upto <= all.len() as u64);
                        if upto <= all.len() as u64 {
                            start = start.max(upto);
                        }
                    }
                    Step::Read(from) if from < start => prop_assert_eq!(output.read(from).unwrap(), Piece::Gone(start)),
                    Step::Read(from) => {
                        let expected = all.get(usize::try_from(from).unwrap()..).unwrap_or_default();
                        prop_assert_eq!(read_all(&output, from), expected);
                    }
                }
                prop_assert!(all.len() as u64 - start <= cap);
                prop_assert!(output.recent.len() <= ring);
            }
        }
    }
}
