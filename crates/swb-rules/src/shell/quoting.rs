//! Reads one word: quotes, escapes, and the dollars handed on to `expansion`.
//!
//! What bash and POSIX shells read differently, or what depends on options of the shell, is refused rather than guessed.

use super::reader::{Reader, ends_word};
use super::unclear::Unclear;
use super::word::{Piece, Word};

impl Reader<'_> {
    /// The word that starts here, or `None` where an operator or the end stands.
    pub(super) fn word(&mut self) -> Result<Option<Word>, Unclear> {
        let start = self.at;
        let mut word = Word::default();
        loop {
            match self.peek() {
                None => break,
                Some(b'\'') => self.single_quoted(&mut word)?,
                Some(b'"') => {
                    self.at += 1;
                    self.double_quoted(&mut word)?;
                }
                Some(b'\\') => self.escaped(&mut word)?,
                Some(b'$') => self.dollar(&mut word, false)?,
                Some(b'`') => self.backquoted(&mut word, false)?,
                Some(b'<' | b'>') if self.peek_at(1) == Some(b'(') => {
                    self.at += 2;
                    let script = self.script_until_parenthesis()?;
                    word.pieces.push(Piece::Process(script));
                }
                Some(b'(') if is_array_start(&word) => {
                    self.at += 1;
                    self.array(&mut word)?;
                }
                Some(byte) if ends_word(byte) => break,
                Some(_) => {
                    let text = self.take_while(|byte| {
                        !ends_word(byte) && !matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'`')
                    });
                    word.push(text, false);
                }
            }
        }
        Ok((self.at > start).then_some(word))
    }

    /// Text between double quotes, the opening one already taken.
    fn double_quoted(&mut self, word: &mut Word) -> Result<(), Unclear> {
        word.push("", true);
        loop {
            match self.peek() {
                None => return Err(self.syntax("a double quote that is not closed")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => self.inside_double_quotes(word)?,
            }
        }
    }

    /// One step of text in which only dollars, backquotes and some escapes are special.
    pub(super) fn inside_double_quotes(&mut self, word: &mut Word) -> Result<(), Unclear> {
        match self.peek() {
            Some(b'$') => self.dollar(word, true),
            Some(b'`') => self.backquoted(word, true),
            Some(b'\\') => {
                self.at += 1;
                match self.peek() {
                    Some(b'\n') => self.at += 1,
                    Some(b'$' | b'`' | b'"' | b'\\') => {
                        self.note_sleeping_command();
                        let text = self.take_char().unwrap_or_default();
                        word.push(text, true);
                    }
                    _ => word.push("\\", true),
                }
                Ok(())
            }
            _ => {
                let text = self.take_while(|byte| !matches!(byte, b'$' | b'`' | b'\\' | b'"'));
                word.push(text, true);
                if text.is_empty() {
                    // A double quote where it has no meaning: a here-document.
                    let text = self.take_char().unwrap_or_default();
                    word.push(text, true);
                }
                Ok(())
            }
        }
    }

    fn single_quoted(&mut self, word: &mut Word) -> Result<(), Unclear> {
        self.at += 1;
        let text = self.take_while(|byte| byte != b'\'');
        if text.contains(['$', '`']) {
            self.note_sleeping_command();
        }
        word.push(text, true);
        self.expect("'", "a single quote that is not closed")
    }

    fn escaped(&mut self, word: &mut Word) -> Result<(), Unclear> {
        self.at += 1;
        match self.peek() {
            Some(b'\n') => self.at += 1,
            // Kept or dropped: bash does either.
            None => return Err(self.syntax("a backslash at the very end")),
            Some(byte) => {
                if matches!(byte, b'$' | b'`') {
                    self.note_sleeping_command();
                }
                let text = self.take_char().unwrap_or_default();
                word.push(text, true);
            }
        }
        Ok(())
    }

    /// `$'…'`, after the opening quote. Escapes that bash decodes are decoded; odd ones leave the value unknown.
    pub(super) fn ansi_quoted(&mut self, word: &mut Word) -> Result<(), Unclear> {
        self.note_sleeping_command();
        let mut known = true;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return Err(self.syntax("a single quote that is not closed")),
                Some(b'\'') => {
                    self.at += 1;
                    break;
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.ansi_escape() {
                        Some(character) => text.push(character),
                        None => known = false,
                    }
                }
                Some(_) => text.push_str(self.take_while(|byte| !matches!(byte, b'\'' | b'\\'))),
            }
        }
        if known {
            word.push(&text, true);
        } else {
            word.pieces.push(Piece::Unknown);
        }
        Ok(())
    }

    fn ansi_escape(&mut self) -> Option<char> {
        let letter = self.take_char()?;
        match letter {
            "n" => Some('\n'),
            "t" => Some('\t'),
            "r" => Some('\r'),
            "e" | "E" => Some('\x1b'),
            "\\" | "'" | "\"" | "?" => letter.chars().next(),
            "x" => self.code(16, 2),
            "u" => self.code(16, 4),
            "U" => self.code(16, 8),
            "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" => {
                self.at -= 1;
                self.code(8, 3)
            }
            _ => None,
        }
    }

    fn code(&mut self, radix: u32, most: usize) -> Option<char> {
        let start = self.at;
        while self.at - start < most && self.peek().is_some_and(|byte| char::from(byte).is_digit(radix)) {
            self.at += 1;
        }
        let code = u32::from_str_radix(&self.text[start..self.at], radix).ok()?;
        // Above ASCII these are bytes, not characters; a NUL ends the string in bash.
        char::from_u32(code).filter(|&character| character.is_ascii() && character != '\0')
    }

    /// Quoted text that would be a command if something evaluated it.
    fn note_sleeping_command(&self) {
        self.shared.sleeping_command.set(true);
    }

    /// `NAME=(…)`, after the parenthesis: the members become pieces of the word, which is unknown as a whole.
    fn array(&mut self, word: &mut Word) -> Result<(), Unclear> {
        self.deeper(|reader| {
            loop {
                reader.skip_blanks();
                match reader.peek() {
                    Some(b'\n') => reader.newline()?,
                    Some(b')') => {
                        reader.at += 1;
                        word.pieces.push(Piece::Unknown);
                        return Ok(());
                    }
                    _ => match reader.word()? {
                        Some(member) => word.pieces.extend(member.pieces),
                        None => return Err(reader.syntax("an array that is not closed")),
                    },
                }
            }
        })
    }
}

/// `NAME=` or `NAME+=` directly before a parenthesis.
fn is_array_start(word: &Word) -> bool {
    word.bare().and_then(|text| text.strip_suffix('=')).is_some_and(|name| {
        let name = name.strip_suffix('+').unwrap_or(name);
        super::expansion::is_name(name)
    })
}
