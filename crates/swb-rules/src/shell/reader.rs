//! The place in the text, and the limits that all readers of one command line share.
//!
//! Text inside text (`$(…)`, backquotes, `bash -c`) is read by further readers. They draw on one allowance, so that no
//! nesting of any kind multiplies the work or the stack.

use std::cell::{Cell, RefCell};

use super::script::HereDocument;
use super::unclear::{MAX_BYTES, MAX_COMMANDS, MAX_DEPTH, MAX_REREAD, Unclear};
use super::word::Word;

/// What all readers of one line share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    commands: Cell<usize>,
    bytes: Cell<usize>,
    pub(super) documents: RefCell<Vec<HereDocument>>,
    /// Names of variables whose values are used.
    pub(super) variables: RefCell<Vec<String>>,
    /// Names of variables that get a value inside a word.
    pub(super) assigned: RefCell<Vec<String>>,
    /// `$((…))` and its relatives evaluate the text of variables, commands in it included.
    pub(super) arithmetic: Cell<bool>,
    /// Some quoted text looks like a command substitution.
    pub(super) sleeping_command: Cell<bool>,
}

impl Shared {
    /// The body of a here-document.
    pub(super) fn document(&self, number: usize) -> Option<Word> {
        self.documents.borrow().get(number).map(|document| document.body.clone())
    }
}

/// A reader of one text.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) shared: &'a Shared,
    /// Here-documents announced on this line, whose bodies follow after the newline.
    pub(super) announced: Vec<Announced>,
    /// An enclosing line has announced here-documents: where their bodies stand is no longer certain after a newline.
    pub(super) newline_is_doubtful: bool,
}

/// A here-document whose body was not read yet.
pub(super) struct Announced {
    pub(super) number: usize,
    pub(super) delimiter: String,
    pub(super) quoted: bool,
    pub(super) strip_tabs: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, depth: usize, shared: &'a Shared) -> Result<Self, Unclear> {
        let bytes = shared.bytes.get() + text.len();
        shared.bytes.set(bytes);
        if depth > MAX_DEPTH {
            return Err(Unclear::TooDeep);
        }
        if text.len() > MAX_BYTES || bytes > MAX_REREAD {
            return Err(Unclear::TooLong);
        }
        Ok(Self { text, at: 0, depth, shared, announced: Vec::new(), newline_is_doubtful: false })
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    pub(super) fn starts_with(&self, prefix: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(prefix.as_bytes())
    }

    /// Takes `prefix` if it stands here.
    pub(super) fn take(&mut self, prefix: &str) -> bool {
        let found = self.starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    pub(super) fn expect(&mut self, wanted: &str, what: &'static str) -> Result<(), Unclear> {
        if self.take(wanted) { Ok(()) } else { Err(self.syntax(what)) }
    }

    pub(super) fn syntax(&self, what: &'static str) -> Unclear {
        Unclear::Syntax { at: self.at, what }
    }

    /// Takes text while `belongs` holds; cuts only beside ASCII, so never inside a character.
    pub(super) fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&belongs) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Takes one whole character.
    pub(super) fn take_char(&mut self) -> Option<&'a str> {
        let character = self.text[self.at..].chars().next()?;
        let start = self.at;
        self.at += character.len_utf8();
        Some(&self.text[start..self.at])
    }

    /// Blanks, escaped newlines and comments: nothing that could be run.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                // Only asked between words, where a hash starts a comment.
                Some(b'#') => {
                    self.take_while(|byte| byte != b'\n');
                }
                _ => return,
            }
        }
    }

    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Unclear>,
    ) -> Result<T, Unclear> {
        if self.depth >= MAX_DEPTH {
            return Err(Unclear::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Accounts for one command.
    pub(super) fn count_command(&self) -> Result<(), Unclear> {
        let commands = self.shared.commands.get() + 1;
        self.shared.commands.set(commands);
        if commands > MAX_COMMANDS { Err(Unclear::TooMany) } else { Ok(()) }
    }
}

/// Where a word ends when it is not quoted.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}
