//! Server-sent events out of pieces of a body, wherever the pieces were cut.
//!
//! An event ends at an empty line; lines end as the standard allows (`\n`, `\r\n`, `\r`). An event is given out as the
//! bytes it came in, without a copy; [`data`] finds what it says. What has no end when the body ends counts as an event
//! too: many servers forget the last empty line.

use std::borrow::Cow;

use memchr::memchr;

/// The bytes that are not events yet.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    /// Where the event that is being read begins, and the line.
    event: usize,
    line: usize,
    /// How far there is no end of a line.
    seen: usize,
    /// The last byte was a `\r`, so a `\n` that follows belongs to it.
    half: bool,
}

impl Frames {
    /// Takes a piece of the body.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.event);
        self.line -= self.event;
        self.seen -= self.event;
        self.event = 0;
        if !self.half && memchr(b'\r', piece).is_none() {
            self.bytes.extend_from_slice(piece);
            return;
        }
        for &byte in piece {
            let second = std::mem::replace(&mut self.half, byte == b'\r') && byte == b'\n';
            if !second {
                self.bytes.push(if byte == b'\r' { b'\n' } else { byte });
            }
        }
    }

    /// The next event that is whole.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        loop {
            let Some(at) = memchr(b'\n', &self.bytes[self.seen..]) else {
                self.seen = self.bytes.len();
                return None;
            };
            let end = self.seen + at;
            self.seen = end + 1;
            let line = std::mem::replace(&mut self.line, self.seen);
            if line == end {
                let event = std::mem::replace(&mut self.event, self.seen);
                if event < end {
                    return Some(&self.bytes[event..end]);
                }
            }
        }
    }

    /// What is left when the body has ended.
    pub(super) fn rest(&mut self) -> Option<&[u8]> {
        let event = std::mem::replace(&mut self.event, self.bytes.len());
        (self.line, self.seen) = (self.event, self.event);
        (event < self.event).then(|| &self.bytes[event..])
    }

    /// How much waits for its end.
    pub(super) fn unfinished(&self) -> usize {
        self.bytes.len() - self.event
    }
}

/// What an event says; nothing if it is only a comment.
pub(super) fn data(event: &str) -> Cow<'_, str> {
    if let Some(only) = event.strip_prefix("data:")
        && memchr(b'\n', only.trim_end().as_bytes()).is_none()
    {
        return Cow::Borrowed(only.trim());
    }
    let said = event.lines().filter_map(|line| line.trim().strip_prefix("data:")).map(str::trim);
    Cow::Owned(said.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut frames = Frames::default();
        let mut events = Vec::new();
        for piece in pieces {
            frames.push(piece);
            while let Some(event) = frames.next() {
                events.push(data(std::str::from_utf8(event).unwrap()).into_owned());
            }
        }
        events.extend(frames.rest().map(|event| data(std::str::from_utf8(event).unwrap()).into_owned()));
        events
    }

    #[test]
    fn an_event_is_what_stands_between_empty_lines() {
        assert_eq!(read(&[b"data: a\n\ndata:b\n\n"]), ["a", "b"]);
        assert_eq!(read(&[b": hello\n\nevent: x\ndata: a\ndata: b\n\n\n\ndata: c"]), ["", "a\nb", "c"]);
        assert_eq!(read(&[b"\n\ndata: a\n\n"]), ["a"]);
        assert_eq!(read(&[b"data: a\n"]), ["a"]);
        assert!(read(&[b"", b"\n"]).is_empty());
    }

    #[test]
    fn what_was_given_out_is_forgotten() {
        let mut frames = Frames::default();
        for _ in 0..1000 {
            frames.push(b"data: a\n\ndata: ");
            assert!(frames.next().is_some());
            assert!(frames.next().is_none());
            frames.push(b"b\n\n");
            assert!(frames.next().is_some());
            assert!(frames.bytes.len() < 40 && frames.unfinished() == 0);
        }
    }

    proptest! {
        #[test]
        fn neither_the_ends_of_lines_nor_the_cuts_matter(
            said in proptest::collection::vec("[a-zé:]{1,6}", 0..6),
            end in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
            cuts in proptest::collection::vec(0_usize..200, 0..8),
        ) {
            let body: String = said.iter().map(|word| format!("data: {word}{end}{end}")).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= body.len()).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &body.as_bytes()[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(&pieces), said);
        }
    }
}
