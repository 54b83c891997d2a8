//! The last lines on the screen, which may still change.
//!
//! What is settled is written once and scrolls away like the output of any program; the lines below it are drawn again
//! when they change. Only what differs is written, in one piece and between the marks of a synchronized update, so that
//! nothing flickers. New lines are written over the old ones and what is left of these is cleared afterwards: a terminal
//! that was told to clear from its first cell on might keep what was there as if it had been settled. The cursor rests at the end of the last line; with no line that may change, at the beginning of a
//! fresh one. After a change of width the terminal has wrapped our lines anew, which is reckoned with.
//!
//! Invariants: a line that was settled is never touched again; the lines that may change fit on the screen (their owner
//! sees to it). Proof: the tests below, against the screen of a terminal.

use std::io::Write;

use super::line::Line;

/// What a terminal does not know it passes over.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";
const CLEAR_BELOW: &[u8] = b"\x1b[J";
const CLEAR_ROW: &[u8] = b"\x1b[K";

/// What stands on the screen and may still change.
#[derive(Debug, Default)]
pub(crate) struct Region {
    shown: Vec<Line>,
    colour: bool,
}

impl Region {
    pub(crate) fn new(colour: bool) -> Self {
        Region { shown: Vec::new(), colour }
    }

    /// Writes the settled lines above the live ones, and the live ones as they are now.
    pub(crate) fn draw(&mut self, settled: Vec<Line>, live: Vec<Line>, columns: usize, out: &mut Vec<u8>) {
        let fresh = live.is_empty();
        let live_from = settled.len();
        let mut all = settled;
        all.extend(live);
        let mut same = self.shown.iter().zip(&all).take_while(|(shown, line)| shown == line).count();
        if same == self.shown.len() && same == all.len() && !fresh {
            return;
        }
        if same == all.len() && same > 0 {
            // Something has to be written for the cursor to rest at.
            same -= 1;
        }
        let begin = out.len();
        out.extend_from_slice(BEGIN);
        let written = out.len();
        let old_rows = self.go_to(same, columns, out);
        self.write(&all[same..], old_rows, columns, out);
        if fresh && !all.is_empty() {
            out.extend_from_slice(b"\r\n");
        }
        if out.len() == written {
            out.truncate(begin);
        } else {
            out.extend_from_slice(END);
        }
        self.shown = all.split_off(live_from);
    }

    /// Puts the cursor where this line of the shown ones begins. Returns the rows of old lines from there on.
    fn go_to(&self, same: usize, columns: usize, out: &mut Vec<u8>) -> usize {
        if self.shown.is_empty() {
            return 0;
        }
        if same == self.shown.len() {
            out.extend_from_slice(b"\r\n");
            return 0;
        }
        let rows = rows(&self.shown[same..], columns);
        if rows > 1 {
            let _ = write!(out, "\x1b[{}A", rows - 1);
        }
        out.push(b'\r');
        rows
    }

    /// Writes lines over so many rows of old ones.
    fn write(&self, lines: &[Line], old_rows: usize, columns: usize, out: &mut Vec<u8>) {
        let Some((first, rest)) = lines.split_first() else {
            if old_rows > 0 {
                out.extend_from_slice(CLEAR_ROW);
                clear_below(old_rows > 1, 0, out);
            }
            return;
        };
        first.write(self.colour, out);
        let width = first.width();
        // At the end of a full row the cursor rests on its last cell, which must not be cleared.
        if old_rows > 0 && (width == 0 || !width.is_multiple_of(columns)) {
            out.extend_from_slice(CLEAR_ROW);
        }
        if rest.is_empty() {
            clear_below(old_rows > first.rows(columns), end_of(width, columns), out);
            return;
        }
        for (at, line) in rest.iter().enumerate() {
            out.extend_from_slice(b"\r\n");
            if at == 0 && old_rows > 0 {
                out.extend_from_slice(CLEAR_BELOW);
            }
            line.write(self.colour, out);
        }
    }

    /// Forgets what is shown, because somebody else has written since: the next line begins below.
    pub(crate) fn abandon(&mut self, out: &mut Vec<u8>) {
        if !self.shown.is_empty() {
            out.extend_from_slice(b"\r\n");
            self.shown.clear();
        }
    }
}

fn rows(lines: &[Line], columns: usize) -> usize {
    lines.iter().map(|line| line.rows(columns)).sum()
}

/// The column behind a line of this width, on its last row.
fn end_of(width: usize, columns: usize) -> usize {
    if width > 0 && width.is_multiple_of(columns) { columns - 1 } else { width % columns }
}

/// Clears the rows below this one, if there are any of ours, and returns to the column.
fn clear_below(any: bool, column: usize, out: &mut Vec<u8>) {
    if any {
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(CLEAR_BELOW);
        let _ = write!(out, "\x1b[A\x1b[{}G", column + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstyle::Style;
    use proptest::prelude::*;

    /// A screen that knows the few sequences we write.
    struct Screen {
        cells: Vec<Vec<char>>,
        row: usize,
        column: usize,
        columns: usize,
    }

    impl Screen {
        fn new(columns: usize) -> Self {
            Screen { cells: vec![Vec::new()], row: 0, column: 0, columns }
        }

        fn take(&mut self, bytes: &[u8]) {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let mut rest = text.as_str();
            while let Some(character) = rest.chars().next() {
                let mut used = character.len_utf8();
                match character {
                    '\r' => self.column = 0,
                    '\n' => self.down(),
                    '\u{1b}' => {
                        let end = 2 + rest[2..].find(|c: char| c.is_ascii_alphabetic()).unwrap();
                        self.control(&rest[2..end], &rest[end..=end]);
                        used = end + 1;
                    }
                    character => {
                        if self.column == self.columns {
                            self.column = 0;
                            self.down();
                        }
                        let row = &mut self.cells[self.row];
                        row.resize(row.len().max(self.column + 1), ' ');
                        row[self.column] = character;
                        self.column += 1;
                    }
                }
                rest = &rest[used..];
            }
        }

        fn control(&mut self, number: &str, what: &str) {
            let count = || number.parse().unwrap_or(1);
            // Behind the last cell the cursor really rests on it.
            let cell = self.column.min(self.columns - 1);
            match what {
                "A" => self.row -= count(),
                "G" => self.column = count() - 1,
                "K" => self.cells[self.row].truncate(cell),
                "J" => {
                    assert!((self.row, cell) != (0, 0), "some terminals would keep what was there");
                    self.cells.truncate(self.row + 1);
                    self.cells[self.row].truncate(cell);
                }
                _ => assert!(number.starts_with("?2026"), "{number}{what}"),
            }
        }

        fn down(&mut self) {
            self.row += 1;
            if self.row == self.cells.len() {
                self.cells.push(Vec::new());
            }
        }

        fn rows(&self) -> Vec<String> {
            let mut rows: Vec<String> = self.cells.iter().map(|row| row.iter().collect()).collect();
            // What is empty below the cursor is no row.
            while rows.len() > self.row + 1 && rows.last().is_some_and(String::is_empty) {
                rows.pop();
            }
            rows
        }
    }

    fn line(text: &str) -> Line {
        Line::of(text, Style::new())
    }

    fn lines(texts: &[&str]) -> Vec<Line> {
        texts.iter().map(|text| line(text)).collect()
    }

    /// Draws step by step and returns the rows of the screen after each.
    fn drawn(columns: usize, steps: &[(&[&str], &[&str])]) -> Vec<Vec<String>> {
        let (mut region, mut screen) = (Region::new(false), Screen::new(columns));
        let mut seen = Vec::new();
        for (settled, live) in steps {
            let mut out = Vec::new();
            region.draw(lines(settled), lines(live), columns, &mut out);
            screen.take(&out);
            seen.push(screen.rows());
        }
        seen
    }

    #[test]
    fn settled_lines_stay_and_live_ones_change() {
        let seen = drawn(
            20,
            &[
                (&[], &["one", "..."]),
                (&[], &["one two", "..."]),
                (&["one two"], &["three", "..."]),
                (&["three"], &[]),
                (&[], &["again"]),
            ],
        );
        assert_eq!(seen[1], ["one two", "..."]);
        assert_eq!(seen[2], ["one two", "three", "..."]);
        assert_eq!(seen[3], ["one two", "three", ""]);
        assert_eq!(seen[4], ["one two", "three", "again"]);
    }

    #[test]
    fn what_has_not_changed_is_not_written_again() {
        let mut region = Region::new(false);
        let mut out = Vec::new();
        region.draw(Vec::new(), lines(&["long unchanged text", "1 s"]), 40, &mut out);
        out.clear();
        region.draw(Vec::new(), lines(&["long unchanged text", "2 s"]), 40, &mut out);
        assert_eq!(out, b"\x1b[?2026h\r2 s\x1b[K\x1b[?2026l");
        out.clear();
        region.draw(Vec::new(), lines(&["long unchanged text", "2 s"]), 40, &mut out);
        assert_eq!(out, b"");
    }

    #[test]
    fn after_a_change_of_width_the_lines_are_found_where_the_terminal_put_them() {
        let mut region = Region::new(false);
        let mut out = Vec::new();
        region.draw(Vec::new(), lines(&["0123456789", "status"]), 40, &mut out);
        out.clear();
        // At five columns the terminal shows two rows and two rows.
        region.draw(Vec::new(), lines(&["01234", "56789", "stat"]), 5, &mut out);
        assert!(
            out.starts_with(b"\x1b[?2026h\x1b[3A\r01234\r\n\x1b[J"),
            "{:?}",
            String::from_utf8_lossy(&out)
        );
    }

    proptest! {
        #[test]
        fn the_screen_shows_what_was_settled_and_what_is_live(
            steps in prop::collection::vec(
                (prop::collection::vec("[a-c]{0,7}", 0..4), prop::collection::vec("[a-c]{0,7}", 0..4)), 1..12),
            columns in 3usize..6,
        ) {
            let (mut region, mut screen) = (Region::new(false), Screen::new(columns));
            let mut settled: Vec<String> = Vec::new();
            for (new, live) in steps {
                let mut out = Vec::new();
                let as_lines = |texts: &[String]| texts.iter().map(|text| line(text)).collect::<Vec<_>>();
                region.draw(as_lines(&new), as_lines(&live), columns, &mut out);
                screen.take(&out);
                settled.extend(new);
                let mut wanted: Vec<String> = Vec::new();
                for text in settled.iter().chain(&live) {
                    let rows = text.as_bytes().chunks(columns).map(|row| String::from_utf8(row.to_vec()).unwrap());
                    let before = wanted.len();
                    wanted.extend(rows);
                    if wanted.len() == before {
                        wanted.push(String::new());
                    }
                }
                if live.is_empty() {
                    wanted.push(String::new());
                }
                prop_assert_eq!(&screen.rows(), &wanted);
            }
        }
    }
}
