//! Text in pieces gives the same lines as text at once.

use super::*;
use proptest::prelude::*;

const COLUMNS: usize = 24;

fn plain(lines: &[Line]) -> Vec<String> {
    let text = |line: &Line| line.spans.iter().map(|span| span.text.as_str()).collect::<String>();
    lines.iter().map(text).collect()
}

fn streamed(pieces: &[&str]) -> Vec<String> {
    let mut stream = Stream::default();
    let mut lines = Vec::new();
    for piece in pieces {
        stream.push(piece);
        lines.extend(stream.settle(COLUMNS));
        stream.live(COLUMNS);
    }
    lines.extend(stream.finish(COLUMNS));
    plain(&lines)
}

#[test]
fn a_block_is_settled_when_the_next_begins() {
    let mut stream = Stream::default();
    stream.push("one **tw");
    assert_eq!(plain(&stream.settle(COLUMNS)), [""; 0]);
    assert_eq!(plain(&stream.live(COLUMNS)), ["one **tw"]);
    stream.push("o**\n\n");
    assert_eq!(plain(&stream.settle(COLUMNS)), [""; 0]);
    stream.push("thr");
    assert_eq!(plain(&stream.live(COLUMNS)), ["one two", "", "thr"]);
    stream.push("ee\nfo");
    assert_eq!(plain(&stream.settle(COLUMNS)), ["one two"]);
    assert_eq!(plain(&stream.live(COLUMNS)), ["", "three fo"]);
}

#[test]
fn lines_given_to_a_small_screen_do_not_come_twice() {
    let mut stream = Stream::default();
    stream.push("- a\n- b\n- c");
    stream.give(2);
    assert_eq!(plain(&stream.live(COLUMNS)), ["• c"]);
    stream.push("\n\nnext");
    assert_eq!(plain(&stream.finish(COLUMNS)), ["• c", "", "next"]);
}

#[test]
fn a_long_listing_is_settled_line_by_line_and_stays_a_listing() {
    let code: Vec<String> = (0..3000).map(|at| format!("*line* {at}")).collect();
    let text = format!("before\n\n```\n{}\n```\n\nafter *all*", code.join("\n"));
    let pieces: Vec<&str> = text.split_inclusive(' ').collect();
    let mut wanted = vec!["before".to_owned(), String::new()];
    wanted.extend(code.iter().map(|line| format!("  {line}")));
    wanted.extend([String::new(), "after all".to_owned()]);
    assert_eq!(streamed(&pieces), wanted);
}

#[test]
fn what_never_ends_is_not_held_back() {
    let mut stream = Stream::default();
    let mut settled = 0;
    for _ in 0..100_000 {
        stream.push("word ");
        if stream.len() > LONGEST_BLOCK {
            settled += stream.settle(COLUMNS).len();
        }
        assert!(stream.len() <= LONGEST_BLOCK + 5);
    }
    assert!(settled > 10_000);
    stream.push(&"x".repeat(1_000_000));
    stream.settle(COLUMNS);
    assert!(stream.len() <= LONGEST_BLOCK);
}

#[test]
fn plain_words_are_settled_line_by_line() {
    let mut stream = Stream::words(Style::new());
    stream.push("*one*\n\ntw");
    assert_eq!(plain(&stream.settle(COLUMNS)), ["*one*", ""]);
    stream.push("o");
    assert_eq!(plain(&stream.finish(COLUMNS)), ["two"]);
    stream.push("- three\n");
    assert_eq!(plain(&stream.finish(COLUMNS)), ["- three"]);
}

const BLOCKS: [&str; 10] = [
    "one two three four five six",
    "# Title",
    "- a\n- b **c**\n- d",
    "1. x\n2. y\n   - z",
    "```sh\nls -l\n\necho *x*\n```",
    "> quote\n> more",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "---",
    "text with `code` and [a](http://b)",
    "<div>\nhtml\n</div>",
];

proptest! {
    #[test]
    fn any_cut_gives_the_same_lines(picks in prop::collection::vec(0..BLOCKS.len(), 1..6),
                                    cuts in prop::collection::vec(0usize..200, 0..20)) {
        // Two lists of a kind, or two quotes, would be one.
        let mut picks = picks;
        picks.dedup();
        let text = picks.iter().map(|at| BLOCKS[*at]).collect::<Vec<_>>().join("\n\n");
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| text.is_char_boundary(*cut)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.retain(|cut| *cut <= text.len());
        let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
        prop_assert_eq!(streamed(&pieces), plain(&render(&text, COLUMNS)));
    }
}
