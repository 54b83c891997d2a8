//! Reads lists, pipelines and simple commands. Blocks are in `compound`.
//!
//! Mechanism: recursive descent straight on the text, because what a character means in a shell depends on where it
//! stands. Every function either consumes what it names or reports where it failed; nothing is skipped silently.

use super::reader::{Reader, Shared};
use super::script::{Assignment, Block, BlockKind, Item, Join, Node, Redirect, RedirectKind, Script, Simple};
use super::unclear::Unclear;
use super::word::{Piece, Word};

/// Reads a whole text.
pub(super) fn read_script(text: &str, depth: usize, shared: &Shared) -> Result<Script, Unclear> {
    let mut reader = Reader::new(text, depth, shared)?;
    let script = reader.list()?;
    if reader.peek().is_some() {
        return Err(reader.syntax("something that no command can start with"));
    }
    if !reader.announced.is_empty() {
        return Err(reader.syntax("a here-document without its body"));
    }
    Ok(script)
}

impl Reader<'_> {
    /// Commands up to a closing parenthesis, a reserved word that cannot start a command, `;;` or the end.
    pub(super) fn list(&mut self) -> Result<Script, Unclear> {
        let mut items = Script::new();
        let mut join = Join::Then;
        loop {
            self.skip_newlines()?;
            if self.at_list_end() {
                if join != Join::Then {
                    return Err(self.syntax("a list that ends in an operator"));
                }
                return Ok(items);
            }
            let node = self.pipeline()?;
            self.skip_blanks();
            let (next, background, ended) = self.list_operator()?;
            items.push(Item { join, background, node });
            join = next;
            if ended {
                return Ok(items);
            }
        }
    }

    /// The operator behind a pipeline: how the next one follows, whether this one goes to the background, and whether
    /// the list ends here.
    fn list_operator(&mut self) -> Result<(Join, bool, bool), Unclear> {
        if self.take("&&") {
            return Ok((Join::And, false, false));
        }
        if self.take("||") {
            return Ok((Join::Or, false, false));
        }
        match self.peek() {
            Some(b'\n') => self.newline()?,
            Some(b';') if self.peek_at(1) != Some(b';') && self.peek_at(1) != Some(b'&') => self.at += 1,
            Some(b'&') => {
                self.at += 1;
                return Ok((Join::Then, true, false));
            }
            None | Some(b';' | b')') => return Ok((Join::Then, false, true)),
            // A block may be followed directly by a reserved word: `{ a; } }`.
            Some(_) if self.reserved_end() => return Ok((Join::Then, false, true)),
            Some(_) => return Err(self.syntax("an operator was expected")),
        }
        Ok((Join::Then, false, false))
    }

    fn at_list_end(&self) -> bool {
        matches!(self.peek(), None | Some(b')'))
            || self.starts_with(";;")
            || self.starts_with(";&")
            || self.reserved_end()
    }

    pub(super) fn skip_newlines(&mut self) -> Result<(), Unclear> {
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    fn pipeline(&mut self) -> Result<Node, Unclear> {
        loop {
            if self.take_reserved("!") {
                continue;
            }
            if self.take_reserved("time") {
                self.take_reserved("-p");
                continue;
            }
            break;
        }
        // A bare `!` or `time` is a command that does nothing.
        let mut members = vec![if self.at_list_end() || matches!(self.peek(), Some(b'\n' | b';' | b'&')) {
            Node::Simple(Simple::default())
        } else {
            self.command()?
        }];
        loop {
            self.skip_blanks();
            if self.starts_with("||") || !self.take("|") {
                break;
            }
            self.take("&");
            self.skip_newlines()?;
            members.push(self.command()?);
        }
        if members.len() > 1 {
            return Ok(Node::Pipeline(members));
        }
        members.pop().ok_or_else(|| self.syntax("a command was expected"))
    }

    fn command(&mut self) -> Result<Node, Unclear> {
        self.count_command()?;
        self.skip_blanks();
        if let Some(mut block) = self.deeper(Self::compound)? {
            loop {
                self.skip_blanks();
                match self.redirect()? {
                    Some(redirect) => block.redirects.push(redirect),
                    None => return Ok(Node::Block(block)),
                }
            }
        }
        self.simple()
    }

    fn simple(&mut self) -> Result<Node, Unclear> {
        let mut simple = Simple::default();
        let start = self.at;
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            if self.peek() == Some(b'(') {
                return self.function(simple);
            }
            let Some(word) = self.word()? else { break };
            if has_open_subscript(&word) {
                // Bash reads on to the closing bracket, blanks and operators included.
                return Err(self.syntax("a subscript that is not closed in its word"));
            }
            if simple.words.is_empty() && word.bare().is_some_and(super::compound::is_reserved) {
                // Joined lines made a reserved word of pieces, or it stands where none may.
                return Err(self.syntax("a reserved word that has no meaning here"));
            }
            if simple.words.is_empty()
                && let Some(assignment) = assignment(&word)
            {
                simple.assignments.push(assignment);
                continue;
            }
            simple.words.extend(word.expand_braces());
        }
        if self.at == start { Err(self.syntax("a command was expected")) } else { Ok(Node::Simple(simple)) }
    }

    /// `name ()`, where a parenthesis was met behind a word.
    fn function(&mut self, mut simple: Simple) -> Result<Node, Unclear> {
        let name = match (simple.words.pop(), simple.words.is_empty()) {
            (Some(word), true) if simple.assignments.is_empty() && simple.redirects.is_empty() => {
                word.literal()
            }
            _ => None,
        };
        let Some(name) = name else { return Err(self.syntax("a parenthesis that has no meaning here")) };
        self.at += 1;
        self.skip_blanks();
        self.expect(")", "a parenthesis that is not closed")?;
        self.function_body(name).map(Node::Block)
    }

    pub(super) fn function_body(&mut self, name: String) -> Result<Block, Unclear> {
        self.skip_newlines()?;
        let body = match self.deeper(Self::command)? {
            node @ Node::Block(_) => vec![Item { join: Join::Then, background: false, node }],
            _ => return Err(self.syntax("a function without a block")),
        };
        Ok(Block { kind: BlockKind::Function(name), words: Vec::new(), body, redirects: Vec::new() })
    }

    /// A redirection, if one stands here.
    fn redirect(&mut self) -> Result<Option<Redirect>, Unclear> {
        let start = self.at;
        self.take_while(|byte| byte.is_ascii_digit());
        let operators = [
            ("<<<", RedirectKind::HereString),
            ("<<-", RedirectKind::HereDocument(1)),
            ("<<", RedirectKind::HereDocument(0)),
            ("<>", RedirectKind::ReadWrite),
            ("<&", RedirectKind::Duplicate),
            ("&>>", RedirectKind::Append),
            ("&>", RedirectKind::Write),
            (">>", RedirectKind::Append),
            (">&", RedirectKind::Duplicate),
            (">|", RedirectKind::Write),
            (">", RedirectKind::Write),
            ("<", RedirectKind::Read),
        ];
        let is_process = self.starts_with("<(") || self.starts_with(">(");
        let numbered = self.at > start;
        // `1&>x` runs a program called `1`.
        let found = operators
            .into_iter()
            .find(|(sign, _)| !(is_process || numbered && sign.starts_with('&')) && self.take(sign));
        let Some((sign, kind)) = found else {
            self.at = start;
            return Ok(None);
        };
        self.skip_blanks();
        let Some(target) = self.word()? else { return Err(self.syntax("a redirection to nowhere")) };
        let kind = match kind {
            RedirectKind::HereDocument(_) => self.announce(&target, sign == "<<-")?,
            // `>& file` writes both streams to a file; `>&1` and `>&-` do not.
            RedirectKind::Duplicate if !is_descriptor(&target) => {
                if sign == ">&" {
                    RedirectKind::Write
                } else {
                    RedirectKind::Read
                }
            }
            kind => kind,
        };
        Ok(Some(Redirect { kind, target }))
    }
}

/// `name[` without its `]`.
fn has_open_subscript(word: &Word) -> bool {
    let bare = word.pieces.iter().filter_map(|piece| match piece {
        Piece::Literal { text, quoted: false } => Some(text.as_str()),
        _ => None,
    });
    let count = |sign: char| bare.clone().map(|text| text.matches(sign).count()).sum::<usize>();
    let starts_with_name = matches!(word.pieces.first(), Some(Piece::Literal { text, quoted: false })
        if text.split_once('[').is_some_and(|(name, _)| super::expansion::is_name(name)));
    starts_with_name && count('[') > count(']')
}

fn is_descriptor(word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        let digits = text.strip_suffix('-').unwrap_or(&text);
        digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The assignment that a word is, if it is one. The name must be unquoted.
pub(super) fn assignment(word: &Word) -> Option<Assignment> {
    let Some(Piece::Literal { text, quoted: false }) = word.pieces.first() else { return None };
    let (name, rest) = text.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    if !super::expansion::is_name(name) {
        return None;
    }
    let mut value = Word::default();
    if !rest.is_empty() {
        value.push(rest, false);
    }
    value.pieces.extend(word.pieces.iter().skip(1).cloned());
    Some(Assignment { name: name.to_owned(), value })
}
