//! Tables that fit: columns as wide as their cells, or narrower with cells on several lines.

use anstyle::Style;
use pulldown_cmark::Alignment;

use super::line::{Line, Span, wrap};

const BAR: Style = Style::new().dimmed();
/// What stands between two columns.
const BETWEEN: &str = " │ ";
const NARROWEST: usize = 4;

type Cell = Vec<Span>;

/// A table that is being read. Its first row is the head.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
    row: Vec<Cell>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Table { alignments, rows: Vec::new(), row: Vec::new() }
    }

    pub(super) fn cell(&mut self, cell: Cell) {
        self.row.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    pub(super) fn lines(mut self, columns: usize) -> Vec<Line> {
        if let Some(head) = self.rows.first_mut() {
            for span in head.iter_mut().flatten() {
                span.style = span.style.bold();
            }
        }
        let widths = fit(self.widths(), columns);
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            lines.extend(self.row_lines(row, &widths));
            if at == 0 {
                let rule: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::of(rule.join("─┼─"), BAR));
            }
        }
        lines
    }

    fn widths(&self) -> Vec<usize> {
        let width = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            cells.map(|cell| Line { spans: cell.clone() }.width()).max().unwrap_or(0).max(1)
        };
        (0..self.alignments.len()).map(width).collect()
    }

    fn row_lines(&self, row: &[Cell], widths: &[usize]) -> Vec<Line> {
        let empty = Line::default();
        let cells: Vec<Vec<Line>> = widths
            .iter()
            .enumerate()
            .map(|(at, width)| wrap(row.get(at).map_or(&[], Vec::as_slice), &empty, &empty, *width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        (0..height)
            .map(|at| {
                let mut line = Line::default();
                for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                    if column > 0 {
                        line.push(BETWEEN, BAR);
                    }
                    let part = cell.get(at).unwrap_or(&empty);
                    let space = width.saturating_sub(part.width());
                    let before = match self.alignments.get(column) {
                        Some(Alignment::Right) => space,
                        Some(Alignment::Center) => space / 2,
                        _ => 0,
                    };
                    line.push(" ".repeat(before), Style::new());
                    line.spans.extend(part.spans.iter().cloned());
                    line.push(" ".repeat(space - before), Style::new());
                }
                line
            })
            .collect()
    }
}

/// Takes from the widest until all fit, or nothing more can be taken.
fn fit(mut widths: Vec<usize>, columns: usize) -> Vec<usize> {
    let bars = 3 * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + bars > columns {
        match widths.iter_mut().max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            _ => break,
        }
    }
    widths
}
