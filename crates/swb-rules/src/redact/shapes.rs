//! Looks at the text behind an anchor: is it a secret, and where does it start?
//!
//! Each shape looks a bounded distance ahead and then says yes, no, or "more text". What follows behind a yes is found
//! by the run, however long it is.

use super::assignment;
use super::pem;
use super::rules::{Class, Rule, Shape, Token};
use super::run::{Kind, Run};
use super::value::Sample;
use super::view::{More, View};

/// A secret that was found.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) start: usize,
    /// Where it ends at least.
    pub(super) end: usize,
    pub(super) run: Option<Run>,
}

impl Hit {
    fn running(start: usize, at: usize, class: Class, left: usize) -> Self {
        Self { start, end: at, run: Some(Run::new(Kind::Characters { class, left, fixed: false }, at)) }
    }
}

/// What a rule makes of its anchor at `start..end`.
pub(super) fn find(rule: &Rule, view: &View<'_>, start: usize, end: usize) -> Result<Option<Hit>, More> {
    match rule.shape {
        Shape::Token(token) => find_token(view, start, end, token),
        Shape::Jwt => find_jwt(view, start, end),
        Shape::Scheme => find_scheme(view, start, end),
        Shape::Header => assignment::find_header(view, end),
        Shape::Url => find_url(view, end),
        Shape::Password => assignment::find_password(view, start, end),
        Shape::Secret => assignment::find_secret(view, start, end),
        Shape::Pem => pem::find(view, start, end),
    }
}

fn find_token(view: &View<'_>, start: usize, end: usize, token: Token) -> Result<Option<Hit>, More> {
    if token.at_word_start && !view.starts_word(start) {
        return Ok(None);
    }
    let mut at = end;
    let mut digit = !token.digit;
    for _ in 0..token.min {
        match view.next(at)? {
            Some((byte, next)) if token.class.has(byte) => {
                digit |= byte.is_ascii_digit();
                at = next;
            }
            _ => return Ok(None),
        }
    }
    let kind = Kind::Characters { class: token.class, left: token.usual - token.min, fixed: token.fixed };
    Ok(digit.then(|| Hit { start, end: at, run: Some(Run::new(kind, at)) }))
}

/// Longest part of a token of three parts that is looked at.
const MAX_PART: usize = 8192;

fn find_jwt(view: &View<'_>, start: usize, end: usize) -> Result<Option<Hit>, More> {
    // One look per run of characters, or a text full of anchors would be read over and over.
    let continues = start.checked_sub(1).is_some_and(|before| matches!(view.bytes()[before], b'_' | b'-'));
    if continues || !view.starts_word(start) {
        return Ok(None);
    }
    let Some(second) = part(view, end, 8)? else { return Ok(None) };
    let mut at = second;
    let mut opening = Vec::new();
    for _ in 0..8 {
        match view.next(at)? {
            Some((byte, next)) if Class::Name.has(byte) => {
                opening.push(byte);
                at = next;
            }
            _ => return Ok(None),
        }
    }
    if opening.starts_with(b"eyJ") {
        return Ok(Some(Hit::running(start, at, Class::Dotted, 0)));
    }
    // An encrypted token: five parts, of which the second tells nothing.
    let Some(third) = part(view, at, 0)? else { return Ok(None) };
    match view.next(third)? {
        Some((byte, next)) if Class::Name.has(byte) => Ok(Some(Hit::running(start, next, Class::Dotted, 0))),
        _ => Ok(None),
    }
}

/// Where the part behind this one starts, if this one has at least `min` characters and ends in a dot.
fn part(view: &View<'_>, mut at: usize, min: usize) -> Result<Option<usize>, More> {
    for count in 0..MAX_PART {
        match view.next(at)? {
            Some((b'.', next)) if count >= min => return Ok(Some(next)),
            Some((byte, next)) if Class::Name.has(byte) => at = next,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Shortest value behind a scheme that stands alone.
const MIN_SCHEME: usize = 12;

fn find_scheme(view: &View<'_>, start: usize, end: usize) -> Result<Option<Hit>, More> {
    if !view.starts_word(start) {
        return Ok(None);
    }
    let at = view.blanks(end, 4)?;
    if at == end {
        return Ok(None);
    }
    let sample = Sample::read(view, at, Class::Token68)?;
    let found = sample.len() >= MIN_SCHEME && sample.looks_random();
    Ok(found.then(|| Hit::running(at, at, Class::Token68, MIN_SCHEME)))
}

/// Longest name and password that are looked at.
const MAX_CREDENTIALS: usize = 384;

fn find_url(view: &View<'_>, end: usize) -> Result<Option<Hit>, More> {
    let (mut colon, mut sign) = (None, None);
    let mut at = end;
    for _ in 0..MAX_CREDENTIALS {
        let Some((byte, next)) = view.next(at)? else { break };
        match byte {
            b':' if colon.is_none() && sign.is_none() => colon = Some(next),
            b'@' => sign = Some(next - 1),
            b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\' | b'(' | b')' | b',' => break,
            byte if byte <= b' ' => break,
            _ => {}
        }
        at = next;
    }
    let (Some(start), Some(end)) = (colon, sign) else { return Ok(None) };
    let password = &view.bytes()[start..end.max(start)];
    let is_variable = match password {
        [b'{' | b'<' | b'*', ..] | [] => true,
        [b'$', next, ..] => *next == b'{' || *next == b'_' || next.is_ascii_uppercase(),
        _ => false,
    };
    Ok((!is_variable).then_some(Hit { start, end, run: None }))
}
