//! Pipelines whose output is a list of files below a known place: `find src -name '*.rs' | xargs wc -l`.
//!
//! What `xargs` adds to its command is known only at run time, but if it comes from a program that lists files below a
//! folder, through filters that only drop lines, then it is below that folder.

use super::script::{Node, Simple};
use super::word::Word;
use super::words::Arguments;

/// Filters that drop or reorder lines and change none: name, operands that are not files, options that change lines.
const FILTERS: &[(&str, usize, &[&str])] = &[
    ("grep", 1, &["o", "c", "n", "H", "b", "f", "e", "--file", "--regexp", "--only-matching", "--count"]),
    ("head", 0, &["c"]),
    ("tail", 0, &["c"]),
    ("sort", 0, &["o", "--output", "--files0-from"]),
    ("uniq", 0, &["c", "--count"]),
];

/// Below which places the files lie that `member` would list, given what is piped into it.
pub(super) fn lists_below(member: &Node, piped: Option<&[Word]>) -> Option<Vec<Word>> {
    let Node::Simple(Simple { words, redirects, .. }) = member else { return None };
    let (program, arguments) = words.split_first()?;
    let program = program.literal()?;
    if !redirects
        .iter()
        .all(|redirect| redirect.target.literal().is_some_and(|text| text == "/dev/null" || text == "1"))
    {
        return None;
    }
    let sorted = Arguments::new(arguments);
    if sorted.has_unknown() {
        return None;
    }
    match program.as_str() {
        "find" => {
            let starts: Vec<Word> = find_starts(arguments).cloned().collect();
            let prints_more = sorted.texts().any(|text| {
                matches!(text.as_str(), "-printf" | "-ls" | "-exec" | "-execdir" | "-files0-from")
            });
            (!prints_more).then(|| if starts.is_empty() { vec![dot()] } else { starts })
        }
        "git" if sorted.first().as_deref() == Some("ls-files") => Some(vec![dot()]),
        "grep" | "rg"
            if piped.is_none() && sorted.has_any(&["l", "L", "--files-with-matches", "--files"]) =>
        {
            let roots: Vec<Word> = sorted.operands().into_iter().skip(1).cloned().collect();
            Some(if roots.is_empty() { vec![dot()] } else { roots })
        }
        filter => {
            let (_, expressions, changing) = FILTERS.iter().find(|(name, ..)| *name == filter)?;
            let is_number =
                |word: &&Word| word.text().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()));
            let operands = sorted.operands().iter().filter(|word| !is_number(word)).count();
            let only_drops = operands <= *expressions && !sorted.has_any(changing);
            piped.filter(|_| only_drops).map(<[Word]>::to_vec)
        }
    }
}

/// Where `find` starts.
pub(super) fn find_starts(arguments: &[Word]) -> impl Iterator<Item = &Word> {
    arguments
        .iter()
        .skip_while(|word| word.text().is_some_and(|text| matches!(text.as_str(), "-L" | "-H" | "-P")))
        .take_while(|word| word.text().is_none_or(|text| !text.starts_with(['-', '(', '!'])))
}

/// Anything below `root`, as a word.
pub(super) fn below(root: &Word) -> Word {
    let mut word = root.clone();
    word.push("/*", false);
    word
}

fn dot() -> Word {
    Word::quoted(".")
}
