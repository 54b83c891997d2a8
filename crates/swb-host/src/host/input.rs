//! What goes into a child: numbered writes, taken once each.
//!
//! A write is taken when it is in the host's memory, which lives as long as the child does; so whoever wrote it need not
//! wait for a child that is slow to read. The number makes a repeat after a lost connection harmless.

use std::collections::VecDeque;

/// More than this waits for no child.
const MOST_WAITING: usize = 1024 * 1024;

/// One stream into a child.
#[derive(Debug, Default)]
pub(super) struct Input {
    taken: u64,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    closing: bool,
    /// The child has closed its end, or has ended.
    gone: bool,
}

/// What the writing task does next.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    Write(Vec<u8>),
    Close,
    Wait,
}

impl Input {
    pub(super) fn write(&mut self, number: u64, bytes: Vec<u8>) -> Result<(), String> {
        if number <= self.taken {
            return Ok(());
        }
        let expected = self.taken + 1;
        if number != expected {
            return Err(format!("write {number} came, {expected} is the next"));
        }
        if self.closing || self.gone {
            return Err("the child reads no more".to_owned());
        }
        if self.waiting_bytes + bytes.len() > MOST_WAITING {
            return Err(format!("the child has {} bytes to read; try again later", self.waiting_bytes));
        }
        self.taken = number;
        self.waiting_bytes += bytes.len();
        self.waiting.push_back(bytes);
        Ok(())
    }

    /// Nothing follows what was taken so far.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// The child takes nothing any more.
    pub(super) fn give_up(&mut self) {
        self.gone = true;
        self.waiting.clear();
        self.waiting_bytes = 0;
    }

    pub(super) fn next(&mut self) -> Next {
        match self.waiting.pop_front() {
            Some(bytes) => Next::Write(bytes),
            None if self.closing || self.gone => Next::Close,
            None => Next::Wait,
        }
    }

    /// The bytes of a [`Next::Write`] are with the child.
    pub(super) fn written(&mut self, bytes: usize) {
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
    }

    /// The number of the last write taken, and how many bytes the child has not read.
    pub(super) fn extent(&self) -> (u64, usize) {
        (self.taken, self.waiting_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_write_is_taken_once() {
        let mut input = Input::default();
        assert_eq!(input.write(1, b"a".to_vec()), Ok(()));
        assert_eq!(input.write(1, b"a".to_vec()), Ok(()));
        assert_eq!(input.next(), Next::Write(b"a".to_vec()));
        assert_eq!(input.next(), Next::Wait);
    }

    #[test]
    fn a_number_that_is_not_the_next_changes_nothing() {
        let mut input = Input::default();
        assert!(input.write(2, b"b".to_vec()).unwrap_err().contains("1 is the next"));
        assert_eq!((input.extent(), input.next()), ((0, 0), Next::Wait));
    }

    #[test]
    fn a_child_that_does_not_read_is_not_written_to_without_end() {
        let mut input = Input::default();
        assert_eq!(input.write(1, vec![0; MOST_WAITING]), Ok(()));
        assert!(input.write(2, vec![0]).is_err());
        let Next::Write(bytes) = input.next() else { panic!("it was taken") };
        // On its way is not arrived.
        assert!(input.write(2, vec![0]).is_err());
        input.written(bytes.len());
        assert_eq!(input.write(2, vec![0]), Ok(()));
    }

    #[test]
    fn a_close_comes_after_what_was_taken() {
        let mut input = Input::default();
        input.write(1, b"a".to_vec()).unwrap();
        input.close();
        assert!(input.write(2, b"b".to_vec()).is_err());
        assert_eq!((input.next(), input.next()), (Next::Write(b"a".to_vec()), Next::Close));
    }
}
