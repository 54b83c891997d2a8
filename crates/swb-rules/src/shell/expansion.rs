//! Reads what stands behind a dollar or a backquote: a value known only at run time, and the commands that make it.

use super::reader::Reader;
use super::script::Script;
use super::unclear::Unclear;
use super::word::{Piece, Word};

impl Reader<'_> {
    /// A dollar and what belongs to it.
    pub(super) fn dollar(&mut self, word: &mut Word, in_double_quotes: bool) -> Result<(), Unclear> {
        self.at += 1;
        match self.peek() {
            Some(b'(') if self.peek_at(1) == Some(b'(') && self.arithmetic_end().is_some() => {
                self.arithmetic(word)
            }
            Some(b'(') => {
                self.at += 1;
                let script = self.script_until_parenthesis()?;
                word.pieces.push(Piece::Commands(script));
                Ok(())
            }
            Some(b'{') => {
                self.at += 1;
                self.parameter(word, in_double_quotes)
            }
            // The old spelling of arithmetic.
            Some(b'[') => Err(self.syntax("`$[`")),
            Some(b'\'') if !in_double_quotes => {
                self.at += 1;
                self.ansi_quoted(word)
            }
            // Translated text is still text in double quotes.
            Some(b'"') if !in_double_quotes => Ok(()),
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let name = self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                self.note_variable(name);
                word.pieces.push(Piece::Variable(name.to_owned()));
                Ok(())
            }
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                self.at += 1;
                word.pieces.push(Piece::Unknown);
                Ok(())
            }
            // The shell joins lines before it looks at dollars: `$\⏎(…)` is a substitution.
            Some(b'\\') if self.peek_at(1) == Some(b'\n') => {
                Err(self.syntax("a dollar before a joined line"))
            }
            _ => {
                word.push("$", true);
                Ok(())
            }
        }
    }

    /// Commands up to the closing parenthesis, the opening one already taken.
    pub(super) fn script_until_parenthesis(&mut self) -> Result<Script, Unclear> {
        // Bodies that an outer line still waits for would start after the first newline in here, in some shells.
        let outer = std::mem::take(&mut self.announced);
        let doubtful = self.newline_is_doubtful;
        self.newline_is_doubtful |= !outer.is_empty();
        let script = self.deeper(|reader| {
            let script = reader.list()?;
            reader.expect(")", "a parenthesis that is not closed")?;
            Ok(script)
        })?;
        if !self.announced.is_empty() {
            return Err(self.syntax("a here-document without its body"));
        }
        self.announced = outer;
        self.newline_is_doubtful = doubtful;
        Ok(script)
    }

    /// `` `…` ``: its text is unescaped once and read as a script of its own.
    pub(super) fn backquoted(&mut self, word: &mut Word, in_double_quotes: bool) -> Result<(), Unclear> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return Err(self.syntax("a backquote that is not closed")),
                Some(b'`') => break,
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'$' | b'`' | b'\\') => {}
                        Some(b'"') if in_double_quotes => {}
                        _ => text.push('\\'),
                    }
                    text.push_str(self.take_char().unwrap_or_default());
                }
                Some(_) => text.push_str(self.take_while(|byte| !matches!(byte, b'`' | b'\\'))),
            }
        }
        self.at += 1;
        let script = super::grammar::read_script(&text, self.depth + 1, self.shared)?;
        word.pieces.push(Piece::Commands(script));
        Ok(())
    }

    /// `${…}`, after the brace.
    fn parameter(&mut self, word: &mut Word, in_double_quotes: bool) -> Result<(), Unclear> {
        let start = self.at;
        let mut inner = Word::default();
        self.deeper(|reader| {
            loop {
                match reader.peek() {
                    None => return Err(reader.syntax("a brace that is not closed")),
                    Some(b'}') => break,
                    Some(b'$') => reader.dollar(&mut inner, in_double_quotes)?,
                    Some(b'`') => reader.backquoted(&mut inner, in_double_quotes)?,
                    // Shells disagree about quotes in here, so the end of the expansion would be a guess.
                    Some(b'\'' | b'"') => return Err(reader.syntax("a quote inside `${…}`")),
                    Some(b'\\') if reader.peek_at(1) == Some(b'\n') => {
                        return Err(reader.syntax("a joined line inside `${…}`"));
                    }
                    Some(b'\\') => {
                        reader.at += 1;
                        reader.take_char();
                    }
                    // `<(…)` is not special here in bash, but it is one operator away from being so.
                    Some(_) => {
                        reader.take_while(|byte| !matches!(byte, b'}' | b'$' | b'`' | b'\'' | b'"' | b'\\'));
                    }
                }
            }
            Ok(())
        })?;
        let text = &self.text[start..self.at];
        self.at += 1;
        let name_end =
            text.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_').unwrap_or(text.len());
        self.note_variable(&text[..name_end]);
        if text[name_end..].starts_with(['=', '[']) || text[name_end..].starts_with(":=") {
            self.shared.assigned.borrow_mut().push(text[..name_end].to_owned());
        }
        if text.ends_with("@P") || text.starts_with('!') {
            // The value is expanded again, commands in it included, or names another variable.
            return Err(self.syntax("a value that is expanded again"));
        }
        if text.contains('[') || text.contains(':') {
            // Subscripts, offsets and lengths are arithmetic.
            self.shared.arithmetic.set(true);
        }
        word.pieces.push(if is_name(text) { Piece::Variable(text.to_owned()) } else { Piece::Unknown });
        word.pieces.extend(inner.pieces.into_iter().filter(|piece| matches!(piece, Piece::Commands(_))));
        Ok(())
    }

    fn note_variable(&self, name: &str) {
        self.shared.variables.borrow_mut().push(name.to_owned());
    }

    /// Where arithmetic that starts with `((` here would end (behind the second parenthesis), if it is arithmetic.
    pub(super) fn arithmetic_end(&self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut depth = 0_usize;
        for at in self.at..bytes.len() {
            match bytes[at] {
                b'(' => depth += 1,
                b')' => {
                    depth -= 1;
                    if depth == 1 && bytes.get(at + 1) == Some(&b')') {
                        return Some(at + 2);
                    }
                    if depth <= 1 {
                        return None;
                    }
                }
                // Inside quotes parentheses would not count; no honest arithmetic has them, comments or lines.
                b'\'' | b'"' | b'`' | b'\\' | b'\n' | b'#' | b';' => return None,
                _ => {}
            }
        }
        None
    }

    /// `((…))`: an unknown value, and whatever commands stand in it.
    pub(super) fn arithmetic(&mut self, word: &mut Word) -> Result<(), Unclear> {
        let Some(end) = self.arithmetic_end() else {
            return Err(self.syntax("arithmetic that is not closed"));
        };
        self.shared.arithmetic.set(true);
        let inner = &self.text[self.at + 2..end - 2];
        let mut reader = Reader::new(inner, self.depth + 1, self.shared)?;
        let mut value = Word::default();
        while reader.peek().is_some() {
            reader.inside_double_quotes(&mut value)?;
        }
        self.at = end;
        word.pieces.push(Piece::Unknown);
        word.pieces.extend(value.pieces.into_iter().filter(|piece| matches!(piece, Piece::Commands(_))));
        Ok(())
    }
}

/// A name that a variable may have.
pub(super) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
