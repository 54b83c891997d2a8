//! How Markdown looks.

use super::*;

fn shown(text: &str, columns: usize) -> Vec<String> {
    let plain = |line: &Line| line.spans.iter().map(|span| span.text.as_str()).collect::<String>();
    render(text, columns).iter().map(|line| plain(line).trim_end().to_owned()).collect()
}

#[test]
fn blocks_are_parted_by_one_empty_line() {
    let text = "# Title\nOne *two*\nthree.\n\n\n\n---\n> said\n> so\n\nend";
    let rule = "─".repeat(40);
    assert_eq!(shown(text, 60), ["Title", "", "One two three.", "", &rule, "", "▌ said so", "", "end"]);
}

#[test]
fn lists_are_tight_or_loose_as_they_were_written_and_hang() {
    let text = "- one\n- two two two\n  1. in\n  2. on\n- [x] done\n- \n";
    assert_eq!(shown(text, 9), ["• one", "• two two", "  two", "  1. in", "  2. on", "• ☑ done", "•"]);
    assert_eq!(shown("3. a\n\n4. b\n\n   more\n", 20), ["3. a", "", "4. b", "", "   more"]);
}

#[test]
fn code_is_neither_wrapped_nor_changed() {
    let text = "```rust\nfn main() { long(); }\n\n  *x*\n```\nand `a  b`";
    assert_eq!(shown(text, 10), ["  rust", "  fn main() { long(); }", "", "    *x*", "", "and a  b"]);
    assert_eq!(shown("- x\n\n      indented\n", 20), ["• x", "", "    indented"]);
    assert_eq!(shown("```\nnot closed", 20), ["  not closed"]);
}

#[test]
fn a_link_shows_where_it_leads() {
    assert_eq!(shown("[bank](http://evil.example)", 60), ["bank (http://evil.example)"]);
    assert_eq!(shown("<http://a.example>", 60), ["http://a.example"]);
    assert_eq!(shown("![cat](c.png)", 60), ["image: cat (c.png)"]);
}

#[test]
fn styles_nest() {
    let lines = render("**bold *both* `code`**", 60);
    let spans = &lines[0].spans;
    assert_eq!(spans[0].style, Style::new().bold());
    assert_eq!((spans[1].text.as_str(), spans[1].style), ("both", Style::new().bold().italic()));
    assert_eq!(spans[3].style, Style::new().bold().fg_color(CODE.get_fg_color()));
}

#[test]
fn tables_are_as_wide_as_needed_and_no_wider_than_the_screen() {
    let text = "| a | number |\n|---|---:|\n| first | 1 |\n| second thing | 22 |\n";
    assert_eq!(
        shown(text, 60),
        ["a            │ number", "─────────────┼───────", "first        │      1", "second thing │     22"]
    );
    let narrow = shown(text, 16);
    assert_eq!(narrow[3..], ["second  │     22", "thing   │"]);
    assert!(narrow.iter().all(|line| line.chars().count() <= 16), "{narrow:?}");
}

#[test]
fn html_and_odd_input_are_shown_and_harm_nothing() {
    assert_eq!(shown("<div>\nhi</div>\n\n<b>x</b>", 40), ["<div>", "hi</div>", "", "<b>x</b>"]);
    for odd in
        ["", "\n", "***", "[", "|", "|-|", "> - 1. > x", "```", "- - - x", "\\", "a\\\nb", "&amp;&#x1b;"]
    {
        shown(odd, 1);
        shown(odd, 80);
    }
}
