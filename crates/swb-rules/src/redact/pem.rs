//! Private keys in PEM armour: header, body and footer, also with the line ends written as `\n` or lost altogether.

use super::run::{Kind, Run};
use super::shapes::Hit;
use super::view::{More, View};

/// Lines that stand before the body of older keys.
const FIELDS: &[&[u8]] = &[b"Proc-Type:", b"DEK-Info:", b"Version:", b"Comment:", b"Hash:", b"Charset:"];
/// Characters of the body that must be there: a header alone gives nothing away, and code is full of them.
const MIN_BODY: usize = 16;
/// A word this long is part of a body, whatever follows it.
const LONG_WORD: usize = 40;

/// How far a piece of a block goes.
pub(super) struct PieceEnd {
    pub(super) at: usize,
    pub(super) is_last: bool,
}

/// A block whose `-----BEGIN ` is given by its start and end.
pub(super) fn find(view: &View<'_>, start: usize, end: usize) -> Result<Option<Hit>, More> {
    let mut label = Vec::new();
    let mut at = end;
    loop {
        let Some((byte, next)) = view.next(at)? else { return Ok(None) };
        at = next;
        match byte {
            b'-' => break,
            b'A'..=b'Z' | b'0'..=b'9' | b' ' if label.len() < 40 => label.push(byte),
            _ => return Ok(None),
        }
    }
    if !label.windows(11).any(|window| window == b"PRIVATE KEY") {
        return Ok(None);
    }
    for _ in 0..4 {
        match view.next(at)? {
            Some((b'-', next)) => at = next,
            _ => return Ok(None),
        }
    }
    let header_end = at;
    let mut body = 0;
    // Separators are not counted against the body, but there may only be so many.
    for _ in 0..MIN_BODY * 4 {
        if body == 0 && field(view, at)?.is_some() {
            body = MIN_BODY;
        }
        if body >= MIN_BODY {
            return Ok(Some(Hit { start, end: header_end, run: Some(Run::new(Kind::Pem, header_end)) }));
        }
        match view.peek(at)? {
            Some(byte) if is_base64(byte) => body += 1,
            Some(byte) if is_separator(byte) => {}
            Some(b'\\') => at += 1,
            _ => return Ok(None),
        }
        at += 1;
    }
    Ok(None)
}

/// The piece of a block at a place: separators and a word, a field, or the footer. `None` where the block has ended.
pub(super) fn piece(view: &View<'_>, start: usize) -> Result<Option<PieceEnd>, More> {
    let mut at = start;
    loop {
        match view.peek(at)? {
            Some(byte) if is_separator(byte) => at += 1,
            Some(b'\\') if matches!(view.peek(at + 1)?, Some(b'n' | b'r' | b't' | b'\\' | b'"')) => at += 2,
            _ => break,
        }
        if at - start > 64 {
            return Ok(None);
        }
    }
    if starts_with(view, at, b"-----END ")? {
        let mut end = at + 9;
        while matches!(view.peek(end)?, Some(b'A'..=b'Z' | b'0'..=b'9' | b' ')) && end - at < 64 {
            end += 1;
        }
        while view.peek(end)? == Some(b'-') && end - at < 80 {
            end += 1;
        }
        return Ok(Some(PieceEnd { at: end, is_last: true }));
    }
    if let Some(end) = field(view, at)? {
        return Ok(Some(PieceEnd { at: end, is_last: false }));
    }
    let mut end = at;
    while end - at < LONG_WORD && view.peek(end)?.is_some_and(is_base64) {
        end += 1;
    }
    // The rest of a long word belongs to it; everything else must look like a line of the body.
    let is_rest = at == start && start.checked_sub(1).is_some_and(|before| is_base64(view.bytes()[before]));
    let belongs = end > at && (is_rest || end - at == LONG_WORD || ends_body_line(view, end)?);
    Ok(belongs.then_some(PieceEnd { at: end, is_last: false }))
}

/// Whether a short word that ends here is the end of a line of the body rather than the start of a sentence.
fn ends_body_line(view: &View<'_>, end: usize) -> Result<bool, More> {
    let mut at = end;
    while matches!(view.peek(at)?, Some(b' ' | b'\t')) && at - end < 4 {
        at += 1;
    }
    match view.peek(at)? {
        None | Some(b'\r' | b'\n' | b'\\' | b'"' | b'\'') => Ok(true),
        Some(b'-') => starts_with(view, at, b"-----END"),
        Some(byte) if at > end && is_base64(byte) => {
            let mut word = at;
            while word - at < LONG_WORD && view.peek(word)?.is_some_and(is_base64) {
                word += 1;
            }
            Ok(word - at == LONG_WORD)
        }
        Some(_) => Ok(false),
    }
}

/// Where the field at a place ends, if there is one.
fn field(view: &View<'_>, at: usize) -> Result<Option<usize>, More> {
    for name in FIELDS {
        if starts_with(view, at, name)? {
            let mut end = at + name.len();
            while end - at < 120 && !matches!(view.peek(end)?, None | Some(b'\r' | b'\n' | b'\\')) {
                end += 1;
            }
            // Never inside a character: whatever is not ASCII does not belong here.
            return Ok(view.text.is_char_boundary(end).then_some(end));
        }
    }
    Ok(None)
}

fn starts_with(view: &View<'_>, at: usize, wanted: &[u8]) -> Result<bool, More> {
    for (offset, byte) in wanted.iter().enumerate() {
        if view.peek(at + offset)? != Some(*byte) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b',' | b'|' | b'>')
}
