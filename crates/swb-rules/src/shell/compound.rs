//! Reads blocks: groups, subshells, conditions, loops, cases, functions and tests.

use super::reader::{Reader, ends_word};
use super::script::{Block, BlockKind, Script};
use super::unclear::Unclear;
use super::word::Word;

/// Reserved words that end a list.
const ENDS: &[&str] = &["}", "then", "elif", "else", "fi", "do", "done", "esac"];

/// Reserved words that start something.
const STARTS: &[&str] =
    &["{", "if", "while", "until", "for", "select", "case", "function", "[[", "coproc", "!", "in"];

/// Whether an unquoted word is reserved where a command may start.
pub(super) fn is_reserved(word: &str) -> bool {
    STARTS.contains(&word) || ENDS.contains(&word)
}

impl<'a> Reader<'a> {
    /// The block that starts here, if one does.
    pub(super) fn compound(&mut self) -> Result<Option<Block>, Unclear> {
        if self.starts_with("((") && self.arithmetic_end().is_some() {
            let mut word = Word::default();
            self.arithmetic(&mut word)?;
            return Ok(Some(block(BlockKind::Group, vec![word], Script::new())));
        }
        if self.take("(") {
            let body = self.script_until_parenthesis()?;
            return Ok(Some(block(BlockKind::Subshell, Vec::new(), body)));
        }
        let Some(keyword) = self.reserved() else { return Ok(None) };
        let block = match keyword {
            "{" => {
                self.at += 1;
                let body = self.filled_list()?;
                self.end("}")?;
                block(BlockKind::Group, Vec::new(), body)
            }
            "if" => self.condition()?,
            "while" | "until" => {
                self.at += keyword.len();
                let mut body = self.filled_list()?;
                body.extend(self.do_done()?);
                block(BlockKind::Loop, Vec::new(), body)
            }
            "for" | "select" => self.for_loop(keyword)?,
            "case" => self.case()?,
            "function" => {
                self.at += keyword.len();
                self.skip_blanks();
                let name = self.word()?.and_then(|word| word.literal());
                let Some(name) = name else { return Err(self.syntax("a function without a name")) };
                self.skip_blanks();
                if self.take("(") {
                    self.skip_blanks();
                    self.expect(")", "a parenthesis that is not closed")?;
                }
                self.function_body(name)?
            }
            "[[" => self.test()?,
            "coproc" => return Err(self.syntax("`coproc`")),
            _ => return Ok(None),
        };
        Ok(Some(block))
    }

    /// The unquoted word that stands here and ends here.
    fn reserved(&self) -> Option<&'a str> {
        let rest: &'a str = &self.text[self.at..];
        let end = rest.bytes().position(ends_word).unwrap_or(rest.len());
        let word = &rest[..end];
        (!word.is_empty()).then_some(word)
    }

    pub(super) fn reserved_end(&self) -> bool {
        self.reserved().is_some_and(|word| ENDS.contains(&word))
    }

    /// Takes a reserved word and the blanks behind it.
    pub(super) fn take_reserved(&mut self, wanted: &str) -> bool {
        let found = self.reserved() == Some(wanted);
        if found {
            self.at += wanted.len();
            self.skip_blanks();
        }
        found
    }

    fn end(&mut self, wanted: &'static str) -> Result<(), Unclear> {
        self.skip_newlines()?;
        if self.reserved() == Some(wanted) {
            self.at += wanted.len();
            Ok(())
        } else {
            Err(self.syntax("a block that is not closed"))
        }
    }

    fn filled_list(&mut self) -> Result<Script, Unclear> {
        let list = self.list()?;
        if list.is_empty() { Err(self.syntax("an empty block")) } else { Ok(list) }
    }

    fn condition(&mut self) -> Result<Block, Unclear> {
        let mut body = Script::new();
        self.at += "if".len();
        loop {
            body.extend(self.filled_list()?);
            self.end("then")?;
            body.extend(self.filled_list()?);
            if self.take_reserved("elif") {
                continue;
            }
            if self.take_reserved("else") {
                body.extend(self.filled_list()?);
            }
            self.end("fi")?;
            return Ok(block(BlockKind::Branch, Vec::new(), body));
        }
    }

    fn do_done(&mut self) -> Result<Script, Unclear> {
        self.end("do")?;
        let body = self.filled_list()?;
        self.end("done")?;
        Ok(body)
    }

    fn for_loop(&mut self, keyword: &str) -> Result<Block, Unclear> {
        self.at += keyword.len();
        self.skip_blanks();
        let mut words = Vec::new();
        let mut kind = BlockKind::Loop;
        if self.starts_with("((") {
            let end = self.text[self.at..].find("))").map(|end| self.at + end);
            let Some(end) = end else { return Err(self.syntax("a loop that is not closed")) };
            self.shared.arithmetic.set(true);
            let inner = &self.text[self.at + 2..end];
            if inner.contains(['$', '`', '(', '\'', '"', '\\', '\n']) {
                return Err(self.syntax("a counting loop that does more than count"));
            }
            self.at = end + 2;
        } else {
            let name = self.word()?;
            let Some(name) =
                name.as_ref().and_then(Word::bare).filter(|name| super::expansion::is_name(name))
            else {
                return Err(self.syntax("a loop without a variable"));
            };
            self.skip_newlines()?;
            if self.take_reserved("in") {
                kind = BlockKind::For(name.to_owned());
                while let Some(word) = self.word()? {
                    words.extend(word.expand_braces());
                    self.skip_blanks();
                }
            }
        }
        self.skip_blanks();
        self.take(";");
        let body = self.do_done()?;
        Ok(block(kind, words, body))
    }

    fn case(&mut self) -> Result<Block, Unclear> {
        self.at += "case".len();
        self.skip_blanks();
        let mut words = Vec::from_iter(self.word()?);
        self.skip_newlines()?;
        if words.is_empty() || !self.take_reserved("in") {
            return Err(self.syntax("a case without a subject"));
        }
        let mut body = Script::new();
        loop {
            self.skip_newlines()?;
            if self.reserved() == Some("esac") {
                self.at += "esac".len();
                return Ok(block(BlockKind::Branch, words, body));
            }
            self.take("(");
            loop {
                self.skip_blanks();
                match self.word()? {
                    Some(pattern) => words.push(pattern),
                    None => return Err(self.syntax("a case without a pattern")),
                }
                self.skip_blanks();
                if self.take(")") {
                    break;
                }
                self.expect("|", "a case pattern that is not closed")?;
            }
            body.extend(self.list()?);
            let closed = [";;&", ";;", ";&"].into_iter().any(|end| self.take(end));
            if !closed && self.reserved() != Some("esac") {
                return Err(self.syntax("a case that is not closed"));
            }
        }
    }

    /// `[[ … ]]`: no commands but those inside its words.
    fn test(&mut self) -> Result<Block, Unclear> {
        self.at += "[[".len();
        let mut words = Vec::new();
        loop {
            self.skip_newlines()?;
            match self.word()? {
                Some(word) if word.bare() == Some("]]") => break,
                Some(word) => {
                    if word.bare().is_some_and(|text| text.starts_with('-')) {
                        // `-eq`, `-v` and others evaluate their operands as arithmetic.
                        self.shared.arithmetic.set(true);
                    }
                    words.push(word);
                }
                None if matches!(self.peek(), Some(b'<' | b'>' | b'(' | b')' | b'|' | b'&')) => self.at += 1,
                None => return Err(self.syntax("a test that is not closed")),
            }
        }
        Ok(block(BlockKind::Group, words, Script::new()))
    }
}

fn block(kind: BlockKind, words: Vec<Word>, body: Script) -> Block {
    Block { kind, words, body, redirects: Vec::new() }
}
