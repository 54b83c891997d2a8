//! Paths as a shell line names them, followed lexically and without looking at the disk.
//!
//! A place hangs on a root: the directory the line starts in, the home directory, the top of the file system, or nothing
//! that is known. `.` and `..` are worked out on the text, so a symbolic link in the middle is not seen; that is what
//! containment is for. A variable other than `HOME` and `PWD` makes the whole place unknown, because its value may hold
//! slashes and dots of its own.

use std::fmt;

use super::word::{Piece, Word};

/// A path as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub(super) root: Root,
    /// Names below the root; leading `..` only below a root that is not the top.
    pub(super) parts: Vec<String>,
    /// Some part holds an unquoted `*`, `?` or `[`.
    pub(super) pattern: bool,
    shown: String,
}

/// What a place hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// The directory the line starts in.
    Start,
    Home,
    Top,
    Unknown,
}

impl Place {
    /// The directory the line starts in.
    pub(super) fn start() -> Self {
        Self { root: Root::Start, parts: Vec::new(), pattern: false, shown: ".".to_owned() }
    }

    /// The home directory.
    pub(super) fn home() -> Self {
        Self { root: Root::Home, parts: Vec::new(), pattern: false, shown: "~".to_owned() }
    }

    /// A place of which nothing is known but how it is written.
    pub(super) fn unknown(shown: impl Into<String>) -> Self {
        Self { root: Root::Unknown, parts: Vec::new(), pattern: false, shown: shown.into() }
    }

    /// The place that `word` names for a command that runs in `here`.
    pub(super) fn of_word(word: &Word, here: &Place) -> Self {
        let shown = word.shown();
        // Quotes that open at the start of a word leave an empty piece.
        let is_empty = |piece: &&Piece| matches!(piece, Piece::Literal { text, .. } if text.is_empty());
        let pieces = &word.pieces[word.pieces.iter().take_while(is_empty).count()..];
        let (root, rest) = match pieces.split_first() {
            Some((Piece::Variable(name), rest)) if name == "HOME" => (Some(Place::home()), rest),
            Some((Piece::Variable(name), rest)) if name == "PWD" => (Some(here.clone()), rest),
            _ => (None, pieces),
        };
        let mut text = String::new();
        for piece in rest {
            match piece {
                Piece::Literal { text: more, .. } => text.push_str(more),
                _ => return Self::unknown(shown),
            }
        }
        let mut place = match root {
            // `$HOMEwork` is another variable, but `$HOME"work"` is a sibling of the home directory.
            Some(_) if !text.is_empty() && !text.starts_with('/') => return Self::unknown(shown),
            Some(root) => root.joined(text.trim_start_matches('/')),
            None if word.has_tilde() => match text.strip_prefix('~') {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                    Place::home().joined(rest.trim_start_matches('/'))
                }
                // The home of somebody else, or one's own by name: they lie side by side.
                Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '_') => {
                    Place::start().joined("/home").joined(rest)
                }
                _ => return Self::unknown(shown),
            },
            None => here.joined(&text),
        };
        place.pattern |= word.is_pattern();
        place.shown = shown;
        place
    }

    /// The place that plain text names, without tilde or patterns.
    pub(super) fn of_text(text: &str, here: &Place) -> Self {
        let mut place = here.joined(text);
        text.clone_into(&mut place.shown);
        place
    }

    fn joined(&self, text: &str) -> Self {
        let mut place = if text.starts_with('/') {
            Self { root: Root::Top, parts: Vec::new(), pattern: false, shown: String::new() }
        } else {
            self.clone()
        };
        if place.root == Root::Unknown {
            text.clone_into(&mut place.shown);
            return place;
        }
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => place.go_up(),
                name => place.parts.push(name.to_owned()),
            }
        }
        place
    }

    fn go_up(&mut self) {
        match self.parts.last() {
            Some(part) if part != ".." => {
                self.parts.pop();
            }
            _ if self.root == Root::Top => {}
            _ => self.parts.push("..".to_owned()),
        }
    }

    /// The names from the top of the file system, if they are known.
    pub(super) fn absolute(&self, start: &str, home: Option<&str>) -> Option<Vec<String>> {
        let base = match self.root {
            Root::Top => "/",
            Root::Start => start,
            Root::Home => home?,
            Root::Unknown => return None,
        };
        let top = Self { root: Root::Top, parts: Vec::new(), pattern: false, shown: String::new() };
        let mut place = top.joined(&format!("/{base}"));
        for part in &self.parts {
            if part == ".." { place.go_up() } else { place.parts.push(part.clone()) }
        }
        Some(place.parts)
    }

    /// Lies below the directory the line starts in.
    pub(super) fn is_below_start(&self) -> bool {
        self.root == Root::Start && self.parts.first().is_none_or(|part| part != "..")
    }

    /// Where it is, from the top of the file system and as far as that is known without looking: a pattern ends it.
    /// `None` if nothing is known. For those who can look, and follow the links on the way.
    #[must_use]
    pub fn path(&self, directory: &str, home: Option<&str>) -> Option<String> {
        let mut parts = self.absolute(directory, home)?;
        if self.pattern
            && let Some(at) = parts.iter().position(|part| part.contains(['*', '?', '[']))
        {
            parts.truncate(at);
        }
        Some(format!("/{}", parts.join("/")))
    }

    /// Whether anything is known about it.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.root != Root::Unknown
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
