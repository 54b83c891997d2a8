//! Here-documents: announced in a line, read after its newline.

use super::reader::{Announced, Reader};
use super::script::{HereDocument, RedirectKind};
use super::unclear::Unclear;
use super::word::{Piece, Word};

impl Reader<'_> {
    /// Notes a here-document whose delimiter is `word`; its body gets the number that is returned.
    pub(super) fn announce(&mut self, word: &Word, strip_tabs: bool) -> Result<RedirectKind, Unclear> {
        // The delimiter is taken as it is written; one with expansions is legal and a trap.
        let Some(delimiter) = word.text() else {
            return Err(self.syntax("a here-document with a moving end"));
        };
        if delimiter.contains('\n') {
            return Err(self.syntax("a here-document whose end spans lines"));
        }
        let quoted = word.pieces.iter().any(|piece| matches!(piece, Piece::Literal { quoted: true, .. }));
        let mut documents = self.shared.documents.borrow_mut();
        let number = documents.len();
        documents.push(HereDocument { body: Word::default() });
        self.announced.push(Announced { number, delimiter, quoted, strip_tabs });
        Ok(RedirectKind::HereDocument(number))
    }

    /// Takes a newline and the bodies that were announced before it.
    pub(super) fn newline(&mut self) -> Result<(), Unclear> {
        self.expect("\n", "a newline")?;
        if self.newline_is_doubtful {
            return Err(self.syntax("a newline before an outer here-document"));
        }
        for announced in std::mem::take(&mut self.announced) {
            self.here_document(&announced)?;
        }
        Ok(())
    }

    fn here_document(&mut self, announced: &Announced) -> Result<(), Unclear> {
        let mut text = String::new();
        loop {
            if self.at >= self.text.len() {
                // Shells take the rest of the file with a warning; here the missing end is reason enough to ask.
                return Err(self.syntax("a here-document without its end"));
            }
            let mut line = self.take_while(|byte| byte != b'\n');
            self.take("\n");
            if announced.strip_tabs {
                line = line.trim_start_matches('\t');
            }
            if line == announced.delimiter {
                break;
            }
            if !announced.quoted && line.ends_with('\\') {
                // A joined line may hide or fake the end, and shells differ.
                return Err(self.syntax("a here-document with joined lines"));
            }
            text.push_str(line);
            text.push('\n');
        }
        let body = if announced.quoted { Word::quoted(text) } else { self.expanded_body(&text)? };
        if let Some(document) = self.shared.documents.borrow_mut().get_mut(announced.number) {
            document.body = body;
        }
        Ok(())
    }

    fn expanded_body(&self, text: &str) -> Result<Word, Unclear> {
        let mut reader = Reader::new(text, self.depth + 1, self.shared)?;
        let mut body = Word::default();
        while reader.peek().is_some() {
            reader.inside_double_quotes(&mut body)?;
        }
        Ok(body)
    }
}
