//! Absolute paths: of an error that leaves the house only the last name of one is shown.
//!
//! Where a file lies tells who works here and on what. A path is `/` at the beginning of a word with at least two names
//! behind it; the path of a URL, `and/or` and `$/ping` are none.

use std::borrow::Cow;

/// The text with every absolute path shortened to its last name: `…/config.toml`.
///
/// ```
/// use swb_rules::redact::without_paths;
/// assert_eq!(without_paths("cannot open '/home/ada/x/config.toml': denied"), "cannot open '…/config.toml': denied");
/// assert_eq!(without_paths("see https://example.org/a/b"), "see https://example.org/a/b");
/// ```
#[must_use]
pub fn without_paths(text: &str) -> Cow<'_, str> {
    let mut shown: Option<String> = None;
    let mut done = 0;
    let mut from = 0;
    while let Some(start) = text[from..].find('/').map(|at| from + at) {
        let begins_word = match text[..start].chars().next_back() {
            None => true,
            Some(':') => !text[start..].starts_with("//"),
            Some('/') => text[..start].ends_with("file://"),
            Some(before) => before.is_whitespace() || "\"'`([{<=,;|>".contains(before),
        };
        let is_named = text[start + 1..].starts_with(|c: char| c.is_alphanumeric() || "._-~+@".contains(c));
        if !begins_word || !is_named {
            from = start + 1;
            continue;
        }
        let end = start + length(&text[start..]);
        let path = text[start..end].trim_end_matches('/');
        from = end;
        // Of `/.` at the end of a sentence nothing is left.
        if path.rfind('/').is_none_or(|last| last == 0) {
            continue;
        }
        let out = shown.get_or_insert_with(|| String::with_capacity(text.len()));
        out.push_str(&text[done..start]);
        out.push('…');
        out.push_str(&path[path.rfind('/').unwrap_or(0)..]);
        done = start + path.len();
    }
    match shown {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(&text[done..]);
            Cow::Owned(out)
        }
    }
}

/// How long a path is. One with a space in it ends there, unless another `/` follows before anything that ends a word:
/// better too much hidden than half a path shown.
fn length(path: &str) -> usize {
    let ends = |c: char| c.is_whitespace() || "\"'`)]}<>|;,".contains(c);
    let mut end = path.find(ends).unwrap_or(path.len());
    while path[end..].starts_with(' ') {
        let rest = &path[end + 1..];
        let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
        // `/a b/c` goes on; `/a or /b` does not.
        if word.starts_with('/') || !word.contains('/') || word.contains("://") {
            break;
        }
        end += 1 + word.len();
    }
    path[..end].trim_end_matches([':', '.', '?', '!']).len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_last_name_of_a_path_stays() {
        for (text, shown) in [
            ("cannot use /home/ada/.config/x.toml: denied", "cannot use …/x.toml: denied"),
            ("/var/lib/x/y", "…/y"),
            ("at \"/srv/my project/a\" and /tmp/b.", "at \"…/a\" and …/b."),
            ("path=/a/b,/c/d;(/e/f)", "path=…/b,…/d;(…/f)"),
            ("see file:///etc/a/passwd", "see file://…/passwd"),
            ("in:/a/b/", "in:…/b/"),
        ] {
            assert_eq!(without_paths(text), shown);
        }
    }

    #[test]
    fn what_is_no_path_stays_as_it_is() {
        for text in [
            "no handler for $/ping",
            "and/or",
            "https://a.example/b/c",
            "5 / 7",
            "/",
            "/.",
            "a /... /-",
            "a // b/c",
            "/x alone",
        ] {
            assert!(matches!(without_paths(text), Cow::Borrowed(_)), "{text}: {}", without_paths(text));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_and_taking_it_twice_changes_nothing(text in "[ -~/…é]{0,60}") {
            let once = without_paths(&text).into_owned();
            prop_assert_eq!(without_paths(&once), once.as_str());
        }

        #[test]
        fn no_folder_of_a_path_is_left(folders in prop::collection::vec("[a-z]{3,8}Q", 1..5), before in "[a-z ]{0,8}[ '(]") {
            let text = format!("{before}/{}/name: no", folders.join("/"));
            prop_assert!(!without_paths(&text).contains('Q'), "{}", without_paths(&text));
        }
    }
}
