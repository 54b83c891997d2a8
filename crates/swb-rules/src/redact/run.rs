//! The rest of a secret: how far it goes once it is known to be one.
//!
//! A run needs no buffer. It remembers where it stands and goes on when more text comes, so a secret of any length is
//! hidden in bounded memory.

use super::pem;
use super::rules::Class;
use super::view::{More, View};

/// A secret that may go on.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) kind: Kind,
    /// Everything before this place is part of the secret.
    pub(super) at: usize,
    pub(super) open: bool,
}

/// What belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Characters of a class; line breaks too until `left` more characters have come, and then only if not `fixed`.
    Characters { class: Class, left: usize, fixed: bool },
    /// Everything up to a quote, which is written with a backslash if the text is quoted itself.
    Quoted { quote: u8, escaped: bool },
    /// The body of a PEM block.
    Pem,
}

/// A piece of a line this long behind a wrapped secret belongs to it, whatever follows.
const LONG_PIECE: usize = 64;

impl Run {
    pub(super) fn new(kind: Kind, at: usize) -> Self {
        Self { kind, at, open: true }
    }

    /// Goes as far as the text allows.
    pub(super) fn extend(&mut self, view: &View<'_>) {
        while self.open {
            match self.step(view) {
                Ok(true) => {}
                Ok(false) => self.open = false,
                Err(More) => return,
            }
        }
    }

    /// Goes only as far as its usual length, behind which all runs of a kind are alike.
    pub(super) fn extend_counted(&mut self, view: &View<'_>) {
        while self.open && !self.is_settled() {
            match self.step(view) {
                Ok(goes_on) => self.open = goes_on,
                Err(More) => return,
            }
        }
    }

    /// Whether its usual length has come.
    pub(super) fn is_settled(&self) -> bool {
        !matches!(self.kind, Kind::Characters { left: 1.., .. })
    }

    /// Makes one of two runs of a kind over the same text: whichever goes further.
    pub(super) fn unite(&mut self, other: Run) {
        match (&mut self.kind, &other.kind) {
            (Kind::Characters { left, .. }, Kind::Characters { left: more, .. }) if self.at == other.at => {
                *left = (*left).max(*more);
                self.open |= other.open;
            }
            _ if other.at > self.at => *self = other,
            _ if other.at == self.at => self.open |= other.open,
            _ => {}
        }
    }

    /// One step; `false` at the end.
    fn step(&mut self, view: &View<'_>) -> Result<bool, More> {
        match &mut self.kind {
            Kind::Characters { class, left, fixed } => {
                let Some(byte) = view.peek(self.at)? else { return Ok(false) };
                if class.has(byte) {
                    self.at += 1;
                    *left = left.saturating_sub(1);
                    return Ok(true);
                }
                let Some(after) = view.soft_break(self.at)? else { return Ok(false) };
                let goes_on = view.peek(after)?.is_some_and(|byte| class.has(byte))
                    && (*left > 0
                        || (!*fixed && (view.columns.is_some() || piece_belongs(view, *class, after)?)));
                if goes_on {
                    self.at = after;
                }
                Ok(goes_on)
            }
            Kind::Quoted { quote, escaped } => {
                let Some(byte) = view.peek(self.at)? else { return Ok(false) };
                if byte == *quote && !*escaped {
                    return Ok(false);
                }
                match byte {
                    b'\\' => match view.peek(self.at + 1)? {
                        Some(next) if next == *quote && *escaped => return Ok(false),
                        Some(next) if next.is_ascii() && !matches!(next, b'\r' | b'\n') => self.at += 2,
                        _ => self.at += 1,
                    },
                    b'\r' | b'\n' => {
                        let Some(after) = view.soft_break(self.at)? else { return Ok(false) };
                        if view.columns.is_none() && !closes_soon(view, *quote, after)? {
                            return Ok(false);
                        }
                        self.at = after;
                    }
                    _ => self.at += 1,
                }
                Ok(true)
            }
            Kind::Pem => match pem::piece(view, self.at)? {
                Some(end) => {
                    let ended = end.is_last;
                    self.at = end.at;
                    Ok(!ended)
                }
                None => Ok(false),
            },
        }
    }

    /// The same characters belong to both.
    pub(super) fn is_like(&self, other: &Kind) -> bool {
        match (&self.kind, other) {
            (Kind::Characters { class, fixed, .. }, Kind::Characters { class: other, fixed: also, .. }) => {
                class == other && fixed == also
            }
            (kind, other) => kind == other,
        }
    }
}

/// Whether the piece at the start of a line is the end of a secret from the line before, when the width of the terminal
/// is not known and the secret may have been complete.
fn piece_belongs(view: &View<'_>, class: Class, start: usize) -> Result<bool, More> {
    let mut end = start;
    while view.peek(end)?.is_some_and(|byte| class.has(byte)) {
        end += 1;
        if end - start >= LONG_PIECE {
            return Ok(true);
        }
    }
    let piece = &view.bytes()[start..end];
    let assigns = piece
        .iter()
        .position(|byte| *byte == b'=')
        .is_some_and(|at| piece[at..].iter().any(|byte| *byte != b'='));
    let is_date = piece.len() >= 5 && piece[..4].iter().all(u8::is_ascii_digit) && piece[4] == b'-';
    Ok(!assigns
        && match view.peek(end)? {
            None | Some(b'\r' | b'\n' | b'"' | b'\'' | b'`') => true,
            Some(b' ' | b'\t') => {
                let has = |is: fn(&u8) -> bool| piece.iter().any(is);
                piece.len() >= 8
                    && has(u8::is_ascii_digit)
                    && has(u8::is_ascii_alphabetic)
                    && !has(|byte| matches!(byte, b'/' | b'.'))
                    && !is_date
            }
            Some(_) => false,
        })
}

fn closes_soon(view: &View<'_>, quote: u8, start: usize) -> Result<bool, More> {
    for at in start..start + 128 {
        match view.peek(at)? {
            Some(byte) if byte == quote => return Ok(true),
            None | Some(b' ' | b'\r' | b'\n' | b'\t') => return Ok(false),
            Some(_) => {}
        }
    }
    Ok(false)
}
