//! Words: what a shell makes of quotes, escapes and dollars, as far as it can be known without running anything.
//!
//! A word is a row of pieces. A literal piece remembers whether it was quoted, because `*`, `~` and `{a,b}` mean
//! something only when it was not. A value that exists only at run time is a piece of its own and stays one: nothing
//! here guesses it.

use super::script::Script;

/// One shell word.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
}

/// A part of a word.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Literal {
        text: String,
        quoted: bool,
    },
    /// `$NAME` or `${NAME}`.
    Variable(String),
    /// Any other value known only at run time.
    Unknown,
    /// `$(…)` or backquotes: the value is unknown, the commands are not.
    Commands(Script),
    /// `<(…)` or `>(…)`.
    Process(Script),
}

/// More words than this out of one brace expression are not worth following.
const MAX_BRACE_WORDS: usize = 64;

impl Word {
    /// A word whose text is known and has no special characters left.
    pub(super) fn quoted(text: impl Into<String>) -> Self {
        Self { pieces: vec![Piece::Literal { text: text.into(), quoted: true }] }
    }

    /// A word of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self { pieces: vec![Piece::Unknown] }
    }

    /// The text, if the shell would pass exactly this text on.
    pub(super) fn literal(&self) -> Option<String> {
        (!self.is_pattern() && !self.has_tilde()).then(|| self.text()).flatten()
    }

    /// The text with patterns and tildes left as they stand; `None` if a part is known only at run time.
    pub(super) fn text(&self) -> Option<String> {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Literal { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The word as a reader would recognise it.
    pub(super) fn shown(&self) -> String {
        let mut shown = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal { text, .. } => shown.push_str(text),
                Piece::Variable(name) => {
                    shown.push('$');
                    shown.push_str(name);
                }
                Piece::Unknown => shown.push_str("$…"),
                Piece::Commands(_) => shown.push_str("$(…)"),
                Piece::Process(_) => shown.push_str("<(…)"),
            }
        }
        shown
    }

    /// The text if the whole word was written without quotes, as reserved words must be.
    pub(super) fn bare(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Literal { text, quoted: false }] => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_pattern(&self) -> bool {
        let bare = |wanted: &[char]| {
            self.pieces
                .iter()
                .any(|piece| matches!(piece, Piece::Literal { text, quoted: false } if text.contains(wanted)))
        };
        bare(&['*', '?']) || (bare(&['[']) && bare(&[']']))
    }

    /// Starts with a `~` that the shell replaces.
    pub(super) fn has_tilde(&self) -> bool {
        matches!(self.pieces.first(), Some(Piece::Literal { text, quoted: false }) if text.starts_with('~'))
    }

    /// Scripts that run to make this word.
    pub(super) fn scripts(&self) -> impl Iterator<Item = &Script> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Commands(script) | Piece::Process(script) => Some(script),
            _ => None,
        })
    }

    /// Appends text, joining it to the piece before when that was quoted alike.
    pub(super) fn push(&mut self, more: &str, as_quoted: bool) {
        if let Some(Piece::Literal { text, quoted }) = self.pieces.last_mut()
            && *quoted == as_quoted
        {
            text.push_str(more);
        } else {
            self.pieces.push(Piece::Literal { text: more.to_owned(), quoted: as_quoted });
        }
    }

    /// The words that `{a,b}` makes of this one. What is too much or too clever becomes an unknown word.
    pub(super) fn expand_braces(self) -> Vec<Word> {
        let has_open = self.pieces.iter().any(
            |piece| matches!(piece, Piece::Literal { text, quoted: false } if text.contains('{') && text != "{}"),
        );
        if !has_open {
            return vec![self];
        }
        let Some(text) = self.bare() else {
            // A brace that stands beside quotes or dollars may reach over several pieces.
            let text = self.shown();
            return if text.contains('}') && (text.contains(',') || text.contains("..")) {
                vec![Word::unknown()]
            } else {
                vec![self]
            };
        };
        let mut texts = Vec::new();
        match brace_texts(text, &mut texts, 0) {
            Some(()) => texts
                .into_iter()
                .map(|text| Word { pieces: vec![Piece::Literal { text, quoted: false }] })
                .collect(),
            None => vec![Word::unknown()],
        }
    }
}

/// Expands the first brace list of `text`, then what follows from it. `None` when that cannot be followed.
fn brace_texts(text: &str, into: &mut Vec<String>, depth: usize) -> Option<()> {
    if depth > 8 || into.len() >= MAX_BRACE_WORDS {
        return None;
    }
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| at + from) {
        let Some((close, commas)) = brace_list(text, open) else {
            from = open + 1;
            continue;
        };
        if commas.is_empty() {
            // A sequence such as {1..9}: its members are not spelled out.
            if text[open..close].contains("..") {
                return None;
            }
            from = open + 1;
            continue;
        }
        let mut start = open + 1;
        for end in commas.into_iter().chain([close]) {
            let text = format!("{}{}{}", &text[..open], &text[start..end], &text[close + 1..]);
            brace_texts(&text, into, depth + 1)?;
            start = end + 1;
        }
        return Some(());
    }
    into.push(text.to_owned());
    Some(())
}

/// Where the brace at `open` closes, and the commas between its members.
fn brace_list(text: &str, open: usize) -> Option<(usize, Vec<usize>)> {
    let (mut depth, mut commas) = (0, Vec::new());
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some((at, commas));
                }
            }
            b',' if depth == 1 => commas.push(at),
            _ => {}
        }
    }
    None
}
