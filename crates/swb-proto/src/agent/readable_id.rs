//! The id of a line that is no command, so that its sender need not wait in vain.
//!
//! A walk over the top level of an object that may be cut off, ill-formed or not even UTF-8 behind the id: keys and
//! strings are understood, everything else is only skipped. It stops at the first byte that fits nowhere and returns
//! what it has seen until then. Proof: the property tests of [`super::frame`].

/// The first `id` on the top level that is a whole string.
pub(super) fn find(line: &[u8]) -> Option<String> {
    let mut walk = Walk { rest: line };
    walk.expect(b'{')?;
    loop {
        let key = walk.string()?;
        walk.expect(b':')?;
        if key == br#""id""# {
            // A value of another type is no id; a later duplicate would be a guess.
            return serde_json::from_slice(walk.string()?).ok();
        }
        walk.skip_value()?;
        walk.expect(b',')?;
    }
}

struct Walk<'a> {
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    fn skip_white_space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.skip_white_space();
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    /// A string with its quotes, its escapes untouched.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.skip_white_space();
        if self.rest.first() != Some(&b'"') {
            return None;
        }
        let mut at = 1;
        loop {
            at += memchr::memchr2(b'"', b'\\', self.rest.get(at..)?)?;
            if self.rest[at] == b'"' {
                break;
            }
            at += 2;
        }
        let (string, rest) = self.rest.split_at(at + 1);
        self.rest = rest;
        Some(string)
    }

    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            self.skip_white_space();
            match *self.rest.first()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.rest = &self.rest[1..];
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.rest = &self.rest[1..];
                }
                b',' | b':' if depth > 0 => self.rest = &self.rest[1..],
                _ => {
                    let end = self.rest.iter().position(|b| b",:]}\"{[ \t\r\n".contains(b));
                    match end? {
                        0 => return None,
                        end => self.rest = &self.rest[end..],
                    }
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}
