//! Text that somebody else wrote, made harmless for a terminal.
//!
//! A model, a tool or a file may say anything, also the sequences that move a cursor, change a title, fill the clipboard
//! or turn the direction of writing so that a line reads as another. [`Plain`] lets none of them through: whole escape
//! sequences vanish, other control characters become visible signs, tabs become spaces. It takes text in pieces, because
//! a sequence may be split over two of them.
//!
//! Invariants: of control characters only `\n` comes out; the same text gives the same result however it is cut.
//! Proof: the property tests below.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A sequence that is longer than this is none: what follows is shown.
const LONGEST_SEQUENCE: usize = 4096;
const TAB: &str = "    ";

/// Takes text in pieces and gives it back harmless.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    state: State,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    Text,
    /// After a carriage return: with the line feed behind it, it is one end of a line.
    Return,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte.
    Short,
    /// In `ESC [ …`, up to a final byte.
    Control(usize),
    /// In `ESC ] …`, `ESC P …` and the like, up to BEL or ST.
    String(usize),
    /// In such a string, after ESC.
    StringEscape,
}

impl Plain {
    /// Appends the harmless form of a piece.
    pub(crate) fn push(&mut self, piece: &str, out: &mut String) {
        for character in piece.chars() {
            self.take(character, out);
        }
    }

    fn take(&mut self, character: char, out: &mut String) {
        self.state = match (self.state, character) {
            (State::Return, '\n') => {
                out.push('\n');
                State::Text
            }
            (State::Return, character) => {
                // A line that would be written over: both are shown, one below the other.
                out.push('\n');
                self.state = State::Text;
                return self.take(character, out);
            }
            (State::Text, '\u{1b}') => State::Escape,
            (State::Text, '\u{9b}') => State::Control(0),
            (State::Text, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => State::String(0),
            (State::Text, '\r') => State::Return,
            (State::Text, character) => {
                put(character, out);
                State::Text
            }
            (State::Escape, '[') => State::Control(0),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::String(0),
            (State::Escape, ' '..='/') => State::Short,
            (State::Escape | State::Short, '0'..='~') => State::Text,
            (State::Control(length), ' '..='?') if length < LONGEST_SEQUENCE => State::Control(length + 1),
            (State::Control(_), '@'..='~') => State::Text,
            (State::String(_), '\u{7}' | '\u{9c}') => State::Text,
            (State::String(_), '\u{1b}') => State::StringEscape,
            (State::StringEscape, '\\') => State::Text,
            // A string that was never closed must not swallow the rest.
            (State::String(length), character) if character != '\n' && length < LONGEST_SEQUENCE => {
                State::String(length + 1)
            }
            (State::StringEscape, character) => {
                self.state = State::Escape;
                return self.take(character, out);
            }
            (_, character) => {
                self.state = State::Text;
                return self.take(character, out);
            }
        };
    }
}

/// The whole text, harmless.
pub(crate) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    Plain::default().push(text, &mut out);
    out
}

/// The text on one line, harmless, and cut to so many columns.
pub(crate) fn line(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for word in self::text(text).split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        if out.len() > columns * 8 + 64 {
            break;
        }
    }
    cut(&out, columns)
}

/// The text cut to so many columns, with a sign that it was.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for character in text.chars() {
        let width = character.width().unwrap_or(0);
        if used + width + 1 > columns {
            break;
        }
        used += width;
        out.push(character);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

fn put(character: char, out: &mut String) {
    match character {
        '\n' => out.push('\n'),
        '\t' => out.push_str(TAB),
        // The signs that Unicode has for them.
        '\0'..='\u{1f}' => out.push(char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}')),
        '\u{7f}' => out.push('\u{2421}'),
        '\u{80}'..='\u{9f}' => out.push('\u{fffd}'),
        character if deceives(character) => out.push('\u{fffd}'),
        character => out.push(character),
    }
}

/// Whether a character changes how others are read, or hides: directions, line ends of other worlds, tags.
fn deceives(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sequences_vanish_and_the_text_around_them_stays() {
        for (given, wanted) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("a\u{1b}]0;title\u{7}b", "ab"),
            ("a\u{1b}]52;c;aGk=\u{1b}\\b", "ab"),
            ("a\u{1b}Pq#0\u{1b}\\b\u{1b}(Bc\u{1b}7d", "abcd"),
            ("a\u{9b}2Jb\u{9d}0;x\u{9c}c", "abc"),
            ("one\r\ntwo\rthree", "one\ntwo\nthree"),
            ("bell\u{7} back\u{8} nul\0 del\u{7f}", "bell␇ back␈ nul␀ del␡"),
            ("a\tb", "a    b"),
            ("abc\u{202e}cba", "abc\u{fffd}cba"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
        ] {
            assert_eq!(text(given), wanted, "{given:?}");
        }
    }

    #[test]
    fn what_was_never_closed_does_not_hide_the_rest() {
        assert_eq!(text("a\u{1b}]0;half\nb"), "a\nb");
        assert_eq!(text("a\u{1b}[12\nb"), "a\nb");
        assert!(text(&format!("\u{1b}]0;{}", "x".repeat(5000))).len() > 800);
        assert_eq!(text("a\u{1b}"), "a");
    }

    #[test]
    fn a_line_is_one_line_of_so_many_columns() {
        assert_eq!(line(" a\n\u{1b}[1mb\t c ", 20), "a b c");
        assert_eq!(line("abcdef", 4), "abc…");
        assert_eq!(line("漢字漢字", 5), "漢字…");
        assert_eq!(line("漢字", 4), "漢字");
        assert_eq!(line("abc", 0), "");
    }

    proptest! {
        #[test]
        fn nothing_that_moves_a_cursor_comes_out(pieces in prop::collection::vec(
            prop_oneof![".{0,6}", "[\u{0}-\u{20}\u{7f}-\u{9f}\\[\\]PX0-9;m\\\\]{0,6}"], 0..12)) {
            let mut whole = String::new();
            let mut plain = Plain::default();
            for piece in &pieces {
                plain.push(piece, &mut whole);
            }
            prop_assert!(!whole.chars().any(|c| (c.is_control() && c != '\n') || deceives(c)));
            prop_assert_eq!(&whole, &text(&pieces.concat()));
        }
    }
}
