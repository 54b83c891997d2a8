//! The layout of a record's line, read and written without understanding what it records.
//!
//! ```text
//! {"n":17,"prev":"<hash>","seq":1234,"salt":"<16 digits>","kind":"start","at":"…",…,"hash":"<hash>"}⏎
//!                         └───────────────────────── fields ──────────────────────┘
//! ```
//!
//! `n` is the record's number, `prev` the hash of the line before it, `seq` the highest place of any event recorded so
//! far, this record included. `n` and `seq` only rise, and each line says them at its beginning: that is why a record is
//! found by halving a segment, without an index.
//!
//! Invariant: one record has one spelling. Numbers have no leading zeros, hashes are lowercase, nothing stands before,
//! between or after; so every changed byte is either in the fields, which the digest covers, or is not read as a line.

use super::hash::{ChainHash, HEX_BYTES};
use super::key::SALT_HEX_BYTES;

/// The longest line a log holds, its newline included.
pub(super) const MAX_LINE_BYTES: usize = 4 << 20;
const HASH_KEY: &[u8] = b",\"hash\":\"";
const END: &[u8] = b"\"}";
/// What stands around the text of an entry at most: two hashes, two numbers, a salt and their names.
pub(super) const FRAME_BYTES: usize = 300;
/// Enough of a line to know its place.
pub(super) const PLACE_BYTES: usize = 160;

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) number: u64,
    pub(super) prev: ChainHash,
    pub(super) seq: u64,
}

/// A line that has the shape of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawRecord<'a> {
    pub(super) place: Place,
    pub(super) hash: ChainHash,
    /// The text of `kind`.
    pub(super) kind: &'a [u8],
    behind_kind: &'a [u8],
    /// What the digest covers.
    pub(super) fields: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// Reads a line without its newline.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let (start, hash) = split_hash(line)?;
        let (place, fields_from, kind_from) = parse_place(start)?;
        let rest = start.get(kind_from..)?;
        let (kind, behind_kind) = rest.split_at(memchr::memchr(b'"', rest)?);
        Some(RawRecord { place, hash, kind, behind_kind: &behind_kind[1..], fields: &start[fields_from..] })
    }

    pub(super) fn digest(&self) -> ChainHash {
        ChainHash::of_fields(self.fields)
    }

    /// Of an end: the number of the start. It stands right behind the kind.
    pub(super) fn of(&self) -> Option<u64> {
        split_number(self.behind_kind.strip_prefix(b",\"of\":")?).map(|(of, _)| of)
    }

    /// Whether the line is as it was written.
    pub(super) fn is_intact(&self) -> bool {
        ChainHash::of_record(self.place.prev, self.place.number, self.digest()) == self.hash
    }
}

/// Reads the beginning of a line; it need not be all there.
pub(super) fn place_of(beginning: &[u8]) -> Option<Place> {
    parse_place(beginning).map(|(place, ..)| place)
}

/// A line's text before its own hash, and that hash.
pub(super) fn split_hash(line: &[u8]) -> Option<(&[u8], ChainHash)> {
    let line = line.strip_suffix(END)?;
    let (start, hex) = line.split_at_checked(line.len().checked_sub(HEX_BYTES)?)?;
    Some((start.strip_suffix(HASH_KEY)?, ChainHash::from_hex(hex)?))
}

/// The place, where the fields begin, and where the kind begins.
fn parse_place(line: &[u8]) -> Option<(Place, usize, usize)> {
    let rest = line.strip_prefix(b"{\"n\":")?;
    let (number, rest) = split_number(rest)?;
    let rest = rest.strip_prefix(b",\"prev\":\"")?;
    let (prev, rest) = rest.split_at_checked(HEX_BYTES)?;
    let rest = rest.strip_prefix(b"\",")?;
    let fields_from = line.len() - rest.len();
    let (seq, rest) = split_number(rest.strip_prefix(b"\"seq\":")?)?;
    let rest = rest.strip_prefix(b",\"salt\":\"")?.get(SALT_HEX_BYTES..)?;
    let rest = rest.strip_prefix(b"\",\"kind\":\"")?;
    let place = Place { number, prev: ChainHash::from_hex(prev)?, seq };
    Some((place, fields_from, line.len() - rest.len()))
}

/// A number in its only spelling, and what follows it.
fn split_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().position(|byte| !byte.is_ascii_digit())?;
    let (number, rest) = text.split_at(digits);
    if number.is_empty() || (number[0] == b'0' && number.len() > 1) {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    Some((number.iter().try_fold(0, add)?, rest))
}

/// Appends a record's line. `salt` writes the salt, `body` is the text of an entry without its braces.
pub(super) fn push_record(
    place: Place,
    salt: impl FnOnce(&mut Vec<u8>),
    body: &[u8],
    out: &mut Vec<u8>,
) -> ChainHash {
    out.extend_from_slice(b"{\"n\":");
    push_number(place.number, out);
    out.extend_from_slice(b",\"prev\":\"");
    place.prev.push_hex(out);
    out.extend_from_slice(b"\",");
    let fields_from = out.len();
    out.extend_from_slice(b"\"seq\":");
    push_number(place.seq, out);
    out.extend_from_slice(b",\"salt\":\"");
    salt(out);
    out.extend_from_slice(b"\",");
    out.extend_from_slice(body);
    let hash = ChainHash::of_record(place.prev, place.number, ChainHash::of_fields(&out[fields_from..]));
    push_hash(hash, out);
    hash
}

/// Appends a line's own hash and its end.
pub(super) fn push_hash(hash: ChainHash, out: &mut Vec<u8>) {
    out.extend_from_slice(HASH_KEY);
    hash.push_hex(out);
    out.extend_from_slice(END);
    out.push(b'\n');
}

pub(super) fn push_number(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut from, mut rest) = (digits.len(), number);
    loop {
        from -= 1;
        digits[from] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[from..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(number: u64, seq: u64, body: &str) -> Vec<u8> {
        let place = Place { number, prev: ChainHash::of_fields(b"before"), seq };
        let mut out = Vec::new();
        push_record(place, |out| out.extend_from_slice(&[b'5'; SALT_HEX_BYTES]), body.as_bytes(), &mut out);
        assert_eq!(out.pop(), Some(b'\n'));
        assert!(out.len() <= body.len() + FRAME_BYTES);
        out
    }

    #[test]
    fn a_line_is_json_and_reads_back() {
        let line = line(17, 4, r#""kind":"start","at":"now""#);
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!((&value["n"], &value["seq"], &value["at"]), (&17.into(), &4.into(), &"now".into()));
        let record = RawRecord::parse(&line).unwrap();
        assert!(record.is_intact());
        assert_eq!((record.place.number, record.place.seq, record.kind), (17, 4, &b"start"[..]));
        assert_eq!(place_of(&line[..PLACE_BYTES]), Some(record.place));
        assert_eq!(record.of(), None);
        let end = self::line(18, 4, r#""kind":"end","of":17,"at":"now""#);
        assert_eq!(RawRecord::parse(&end).unwrap().of(), Some(17));
    }

    #[test]
    fn numbers_have_one_spelling() {
        for text in ["007,", "+7,", "-7,", ",", "18446744073709551616,", "7"] {
            assert_eq!(split_number(text.as_bytes()), None, "{text}");
        }
        assert_eq!(split_number(b"0,"), Some((0, &b","[..])));
        assert_eq!(split_number(b"18446744073709551615,"), Some((u64::MAX, &b","[..])));
    }

    proptest! {
        #[test]
        fn every_other_line_is_no_record_or_not_intact(
            number in any::<u64>(),
            seq in any::<u64>(),
            at in 0usize..400,
            byte in any::<u8>(),
            how in 0..3,
        ) {
            let line = line(number, seq, r#""kind":"event","at":"2026-11-15T10:24:36.007Z","topic":"a.b""#);
            let at = at % line.len();
            let mut other = line.clone();
            match how {
                0 => other[at] = byte,
                1 => other.insert(at, byte),
                _ => drop(other.remove(at)),
            }
            prop_assume!(other != line);
            let seen = RawRecord::parse(&other).is_some_and(|record| record.is_intact());
            prop_assert!(!seen, "{}", String::from_utf8_lossy(&other));
        }
    }
}
