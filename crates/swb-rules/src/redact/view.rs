//! Text that may go on, with the line breaks that a terminal put in.
//!
//! A decision that would need text that has not come yet is [`More`], never a guess: so it does not matter how a stream
//! was cut into chunks. A line break is soft if it stands where a terminal would have wrapped the line: at the last
//! column if the width is known, else after [`MIN_WRAP`] columns, with text going on directly behind it.

/// How far back anything here looks, in bytes.
pub(super) const LOOK_BEHIND: usize = 4096;
/// Narrower lines are not taken for wrapped ones when the width is unknown.
const MIN_WRAP: usize = 40;

/// Cannot be decided before more text is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct More;

/// A stretch of text.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'t> {
    pub(super) text: &'t str,
    /// Nothing follows.
    pub(super) last: bool,
    /// The width of the terminal, if it is known.
    pub(super) columns: Option<usize>,
}

impl View<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// The byte at a place; `None` behind the end.
    pub(super) fn peek(&self, at: usize) -> Result<Option<u8>, More> {
        match self.bytes().get(at) {
            Some(byte) => Ok(Some(*byte)),
            None if self.last => Ok(None),
            None => Err(More),
        }
    }

    /// The byte at a place and where the next one is, stepping over a soft break first.
    pub(super) fn next(&self, at: usize) -> Result<Option<(u8, usize)>, More> {
        match self.peek(at)? {
            Some(b'\r' | b'\n') => match self.soft_break(at)? {
                Some(after) => Ok(self.peek(after)?.map(|byte| (byte, after + 1))),
                None => Ok(Some((b'\n', at + 1))),
            },
            Some(byte) => Ok(Some((byte, at + 1))),
            None => Ok(None),
        }
    }

    /// Where the text goes on behind the line break at a place, if it is a soft one.
    pub(super) fn soft_break(&self, at: usize) -> Result<Option<usize>, More> {
        let after = match self.peek(at)? {
            Some(b'\n') => at + 1,
            Some(b'\r') if self.peek(at + 1)? == Some(b'\n') => at + 2,
            _ => return Ok(None),
        };
        if !self.is_full_line(at) {
            return Ok(None);
        }
        // Where the width is known, so is the break; else the text must go on.
        Ok(self.peek(after)?.filter(|byte| self.columns.is_some() || *byte > b' ').map(|_| after))
    }

    /// Where the blanks at a place end, but not more than `most` of them, nor a soft break behind them.
    pub(super) fn blanks(&self, start: usize, most: usize) -> Result<usize, More> {
        let mut at = start;
        for _ in 0..most {
            match self.next(at)? {
                Some((b' ' | b'\t', next)) => at = next,
                _ => break,
            }
        }
        Ok(match self.soft_break(at)? {
            Some(after) => after,
            None => at,
        })
    }

    fn is_full_line(&self, end: usize) -> bool {
        let from = end.saturating_sub(LOOK_BEHIND);
        let window = &self.bytes()[from..end];
        let line = memchr::memrchr(b'\n', window).map_or(window, |newline| &window[newline + 1..]);
        match self.columns {
            Some(columns) => line.len() >= columns && visible(line) == columns,
            None => line.len() >= MIN_WRAP,
        }
    }

    /// Whether a word may start at a place: no letter or digit before it but such as end an escape sequence.
    pub(super) fn starts_word(&self, at: usize) -> bool {
        let before = &self.bytes()[at.saturating_sub(24)..at];
        let Some((&last, rest)) = before.split_last() else { return true };
        if !last.is_ascii_alphanumeric() {
            return last != b'+';
        }
        // `\n` and `\u003d` in JSON, `%3D` in a URL.
        let ends_with = |digits: usize, mark: &[u8]| {
            before.len() >= digits + mark.len()
                && before[before.len() - digits..].iter().all(u8::is_ascii_hexdigit)
                && before[..before.len() - digits].ends_with(mark)
        };
        if matches!(last, b'n' | b'r' | b't') && rest.ends_with(b"\\")
            || ends_with(4, b"\\u")
            || ends_with(2, b"%")
        {
            return true;
        }
        // A colour: ESC [ digits m, the escape perhaps spelled out.
        let parameters = rest.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
        let head = &rest[..rest.len() - parameters];
        [&b"\x1b["[..], b"1b[", b"1B[", b"033["].iter().any(|escape| head.ends_with(escape))
    }
}

/// Characters that take a column: escape sequences and the bytes inside a character do not.
fn visible(line: &[u8]) -> usize {
    let mut columns = 0;
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        at += 1;
        if byte == 0x1b && line.get(at) == Some(&b'[') {
            at += 1;
            while line.get(at).is_some_and(|byte| !byte.is_ascii_alphabetic()) {
                at += 1;
            }
            at += 1;
        } else if byte & 0xc0 != 0x80 {
            columns += 1;
        }
    }
    columns
}
