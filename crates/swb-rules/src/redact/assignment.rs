//! Names that are given values: `password=…`, `"api_key": "…"`, `X-Api-Key: …`, `--token …`, `Authorization: …`.

use super::rules::Class;
use super::run::{Kind, Run};
use super::shapes::Hit;
use super::value::Sample;
use super::view::{More, View};

/// Where a value starts and how it is written.
struct Assigned {
    at: usize,
    quote: Option<Quote>,
    /// `=` without blanks around it, as code seldom writes it.
    tight: bool,
}

#[derive(Clone, Copy)]
struct Quote {
    sign: u8,
    escaped: bool,
}

/// What may follow a name that is known, lower case.
const TAILS: &[&str] =
    &["", "_access_key", "accesskey", "_key", "-key", "key", "_token", "-token", "_value", "_base64"];
const MAX_TAIL: usize = 24;
const MAX_BLANKS: usize = 3;

/// Schemes of an `Authorization` header.
const SCHEMES: &[&str] = &["bearer", "basic", "token", "digest", "negotiate", "apikey", "bot", "key"];

/// Shortest values.
const MIN_PASSWORD: usize = 4;
const MIN_SECRET: usize = 16;
const MIN_HEADER: usize = 6;

/// A password: anything that is not obviously something else.
pub(super) fn find_password(view: &View<'_>, start: usize, end: usize) -> Result<Option<Hit>, More> {
    let Some(assigned) = assigned(view, start, end)? else { return Ok(None) };
    let found = match assigned.quote {
        Some(quote) => {
            let sample = Sample::read_quoted(view, assigned.at, quote.sign)?;
            let closed = sample.behind == Some(quote.sign) || sample.len() >= 64;
            closed && sample.len() >= MIN_PASSWORD && !sample.is_placeholder() && !sample.is_prose()
        }
        None => {
            let sample = Sample::read(view, assigned.at, Class::Value)?;
            sample.len() >= MIN_PASSWORD
                && !sample.is_placeholder()
                && !sample.is_code()
                && (assigned.tight
                    || (sample.has_digit_or_sign() && !sample.is_number() && !sample.is_variable()))
        }
    };
    Ok(found.then(|| assigned.hit(Class::Value, MIN_PASSWORD)))
}

/// A key: long, and not a word.
pub(super) fn find_secret(view: &View<'_>, start: usize, end: usize) -> Result<Option<Hit>, More> {
    let Some(assigned) = assigned(view, start, end)? else { return Ok(None) };
    let sample = Sample::read(view, assigned.at, Class::Token68)?;
    let found =
        sample.len() >= MIN_SECRET && sample.looks_random() && !sample.is_placeholder() && !sample.is_path();
    let found = found && (assigned.quote.is_some() || !sample.is_variable());
    let is_call = matches!(sample.behind, Some(b'(' | b'['));
    Ok((found && !is_call).then(|| assigned.hit(Class::Token68, MIN_SECRET)))
}

/// What follows `Authorization:`.
pub(super) fn find_header(view: &View<'_>, end: usize) -> Result<Option<Hit>, More> {
    let Some(assigned) = separator(view, end)? else { return Ok(None) };
    let word = Sample::read(view, assigned.at, Class::Token68)?;
    if word.behind != Some(b' ') {
        let found = word.len() >= MIN_SECRET && word.looks_random() && !word.is_placeholder();
        return Ok(found.then(|| assigned.hit(Class::Token68, MIN_SECRET)));
    }
    if !SCHEMES.iter().any(|scheme| word.is(scheme)) {
        return Ok(None);
    }
    let at = view.blanks(word.end, MAX_BLANKS)?;
    let value = Sample::read(view, at, Class::Token68)?;
    let found = value.len() >= MIN_HEADER && !value.is_placeholder();
    Ok(found.then(|| Assigned { at, ..assigned }.hit(Class::Token68, MIN_HEADER)))
}

impl Assigned {
    /// The value is a secret of at least `min` characters.
    fn hit(&self, class: Class, min: usize) -> Hit {
        let kind = match self.quote {
            Some(Quote { sign, escaped }) => Kind::Quoted { quote: sign, escaped },
            None => Kind::Characters { class, left: min, fixed: false },
        };
        Hit { start: self.at, end: self.at, run: Some(Run::new(kind, self.at)) }
    }
}

/// The value that a name is given, if it is given one.
fn assigned(view: &View<'_>, start: usize, end: usize) -> Result<Option<Assigned>, More> {
    let mut tail = Vec::new();
    let mut at = end;
    loop {
        match view.next(at)? {
            Some((byte, next)) if Class::Name.has(byte) => {
                tail.push(byte);
                at = next;
            }
            _ => break,
        }
        if tail.len() > MAX_TAIL {
            return Ok(None);
        }
    }
    let shouted = !view.bytes()[start..end].iter().any(u8::is_ascii_lowercase);
    let fits = TAILS.iter().any(|known| tail.eq_ignore_ascii_case(known.as_bytes()))
        || tail.iter().all(u8::is_ascii_digit)
        || (shouted && tail.first() == Some(&b'_') && !tail.iter().any(u8::is_ascii_lowercase));
    if !fits {
        return Ok(None);
    }
    if is_option(view, start)
        && let Some((b' ', value)) = view.next(at)?
        && let Some((byte, _)) = view.next(value)?
        && byte != b'-'
        && !is_quote(byte)
        && Class::Value.has(byte)
        && !matches!(byte, b'=' | b':')
    {
        return Ok(Some(Assigned { at: view.blanks(value, 0)?, quote: None, tight: false }));
    }
    separator(view, at)
}

/// `=`, `:`, `=>` or `:=` behind a name, with what may stand around it.
fn separator(view: &View<'_>, mut at: usize) -> Result<Option<Assigned>, More> {
    if let Some((_, next)) = quote(view, at)? {
        at = next;
    }
    if let Some((b']', next)) = view.next(at)? {
        at = next;
    }
    let name_end = at;
    at = view.blanks(at, MAX_BLANKS)?;
    let mut tight = at == name_end;
    let Some((sign @ (b'=' | b':'), next)) = view.next(at)? else { return Ok(None) };
    at = next;
    tight &= sign == b'=';
    match (sign, view.next(at)?) {
        // A comparison, or a path of a programming language.
        (b'=', Some((b'=', _))) | (_, Some((b':', _))) => return Ok(None),
        (_, Some((b'=' | b'>', next))) => {
            tight = false;
            at = next;
        }
        _ => {}
    }
    let sign_end = at;
    at = view.blanks(at, MAX_BLANKS)?;
    tight &= at == sign_end;
    let found = quote(view, at)?;
    let (quote, at) = found.map_or((None, at), |(quote, next)| (Some(quote), next));
    Ok(Some(Assigned { at: view.blanks(at, 0)?, quote, tight }))
}

fn quote(view: &View<'_>, at: usize) -> Result<Option<(Quote, usize)>, More> {
    Ok(match view.next(at)? {
        Some((sign, next)) if is_quote(sign) => Some((Quote { sign, escaped: false }, next)),
        Some((b'\\', next)) => match view.next(next)? {
            Some((sign @ (b'"' | b'\''), next)) => Some((Quote { sign, escaped: true }, next)),
            _ => None,
        },
        _ => None,
    })
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// Whether the name is an option of a command line.
fn is_option(view: &View<'_>, start: usize) -> bool {
    let before = &view.bytes()[start.saturating_sub(24)..start];
    let name = before.iter().rev().take_while(|byte| byte.is_ascii_lowercase() || **byte == b'-').count();
    before[before.len() - name..].starts_with(b"--")
}
