//! Finds the anchors of all rules in one pass.
//!
//! One Aho-Corasick automaton, compiled to a table, ignores case and reports overlaps: a single read of the text
//! whatever the number of rules, and no input can make it slower. Regular expressions were the other choice; but a secret
//! that is cut by a chunk or a line break needs a decision "not yet", which they do not offer, and the shapes behind the
//! anchors are few.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::custom::{LONGEST_PREFIX, installed};
use super::rules::{RULES, Rule, Shape};
use super::view::View;

/// An anchor that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    pub(super) rule: &'static Rule,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// No anchor is longer.
const LONGEST: usize = LONGEST_PREFIX;

struct Table {
    automaton: AhoCorasick,
    /// Rule and literal of each pattern.
    patterns: Vec<(&'static Rule, &'static str)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let patterns: Vec<_> = RULES
        .iter()
        .chain(&installed().rules)
        .flat_map(|rule| rule.anchors.iter().map(move |anchor| (rule, *anchor)))
        .collect();
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(patterns.iter().map(|(_, anchor)| anchor))
        .expect("a few dozen short literals fit any automaton");
    Table { automaton, patterns }
});

/// Whether any anchor of any rule is there, in any case. Breaks of lines are not looked across.
pub(super) fn any(text: &[u8]) -> bool {
    TABLE.automaton.find(text).is_some()
}

/// All anchors that start at `from` or later, in order.
pub(super) fn find_all(view: &View<'_>, from: usize) -> Vec<Anchor> {
    let bytes = view.bytes();
    let mut anchors = Vec::new();
    for found in TABLE.automaton.find_overlapping_iter(&bytes[from..]) {
        let (rule, literal) = TABLE.patterns[found.pattern().as_usize()];
        let (start, end) = (from + found.start(), from + found.end());
        if ignores_case(rule) || &bytes[start..end] == literal.as_bytes() {
            anchors.push(Anchor { rule, start, end });
        }
    }
    for newline in memchr::memchr_iter(b'\n', &bytes[from..]).map(|at| at + from) {
        across(view, from, newline, &mut anchors);
    }
    // Of two that start together the longer one says more about what follows.
    anchors.sort_by_key(|anchor| (anchor.start, std::cmp::Reverse(anchor.end)));
    anchors
}

/// Anchors that a soft break cuts in two.
fn across(view: &View<'_>, from: usize, newline: usize, anchors: &mut Vec<Anchor>) {
    let bytes = view.bytes();
    let at = if newline > from && bytes[newline - 1] == b'\r' { newline - 1 } else { newline };
    // What the break might become when more text comes is covered by what `hold_back` keeps.
    let Ok(Some(after)) = view.soft_break(at) else { return };
    let before = &bytes[from.max(at.saturating_sub(LONGEST))..at];
    let behind = &bytes[after..bytes.len().min(after + LONGEST)];
    if !joins_an_anchor(before, behind) {
        return;
    }
    let mut joined = [0; 2 * LONGEST];
    let joined = &mut joined[..before.len() + behind.len()];
    joined[..before.len()].copy_from_slice(before);
    joined[before.len()..].copy_from_slice(behind);
    for found in TABLE.automaton.find_overlapping_iter(&*joined) {
        if found.start() < before.len() && found.end() > before.len() {
            let (rule, literal) = TABLE.patterns[found.pattern().as_usize()];
            if ignores_case(rule) || &joined[found.range()] == literal.as_bytes() {
                let start = at - (before.len() - found.start());
                anchors.push(Anchor { rule, start, end: after + (found.end() - before.len()) });
            }
        }
    }
}

/// From where on the text may hold the beginning of an anchor that is not complete yet.
pub(super) fn hold_back(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut tail: Vec<(usize, u8)> = Vec::new();
    // A break at the very end may turn out to be soft.
    let start = from.max(bytes.len().saturating_sub(LONGEST + 2));
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        if !matches!(byte, b'\r' | b'\n') {
            tail.push((at, byte.to_ascii_lowercase()));
        }
    }
    let starts = |suffix: &[(usize, u8)]| {
        let may_start = match suffix {
            [(_, first), (_, second), ..] => BEGINNINGS[pair(*first, *second)],
            _ => true,
        };
        may_start
            && TABLE.patterns.iter().any(|(_, anchor)| {
                anchor.len() > suffix.len()
                    && suffix
                        .iter()
                        .zip(anchor.bytes())
                        .all(|((_, byte), wanted)| *byte == wanted.to_ascii_lowercase())
            })
    };
    (0..tail.len()).find(|at| starts(&tail[*at..])).map_or(bytes.len(), |at| tail[at].0)
}

/// Whether the bytes on both sides of a break stand side by side in some anchor: a quick no for most lines.
fn joins_an_anchor(before: &[u8], behind: &[u8]) -> bool {
    match (before.last(), behind.first()) {
        (Some(left), Some(right)) => NEIGHBOURS[pair(*left, *right)],
        _ => false,
    }
}

static NEIGHBOURS: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let mut neighbours = vec![false; 1 << 16];
    for (_, anchor) in &TABLE.patterns {
        for bytes in anchor.as_bytes().windows(2) {
            neighbours[pair(bytes[0], bytes[1])] = true;
        }
    }
    neighbours
});

/// The first two bytes of all anchors.
static BEGINNINGS: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let mut beginnings = vec![false; 1 << 16];
    for (_, anchor) in &TABLE.patterns {
        // Nothing is held back for shorter ones: where they begin they are complete.
        if let [first, second, ..] = anchor.as_bytes() {
            beginnings[pair(*first, *second)] = true;
        }
    }
    beginnings
});

fn pair(left: u8, right: u8) -> usize {
    usize::from(left.to_ascii_lowercase()) << 8 | usize::from(right.to_ascii_lowercase())
}

fn ignores_case(rule: &Rule) -> bool {
    !matches!(rule.shape, Shape::Token(_) | Shape::Jwt | Shape::Pem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_anchor_is_longer_than_what_is_held_back() {
        for (rule, anchor) in &TABLE.patterns {
            assert!(anchor.len() < LONGEST && anchor.len() > 1 && anchor.is_ascii(), "{} {anchor}", rule.id);
        }
    }

    #[test]
    fn only_the_beginning_of_an_anchor_is_held_back() {
        assert_eq!(hold_back("plain words.", 0), 12);
        assert_eq!(hold_back("see gh", 0), 4);
        assert_eq!(hold_back("see gh\n", 0), 4);
        assert_eq!(hold_back("see -----BEGIN", 0), 4);
    }
}
