//! How much of a result is kept.

/// What a tool may return at most, in bytes; the rest is counted and dropped while it streams.
pub(crate) const CAPTURED_BYTES: usize = 1024 * 1024;
/// What the model usually gets to see of one result at most, in characters.
pub(super) const KEPT_CHARS: usize = 30_000;
/// And at least, however little fits into it.
const KEPT_AT_LEAST: usize = 1000;

/// How many characters of each of so many results are kept: together about half of the context, if its size is known.
pub(crate) fn kept_chars(most: usize, context_window: Option<u64>, results: usize) -> usize {
    let together =
        context_window.map_or(usize::MAX, |tokens| usize::try_from(tokens * 2).unwrap_or(usize::MAX));
    (together / results.max(1)).clamp(KEPT_AT_LEAST, most.max(KEPT_AT_LEAST))
}

/// The result as the history keeps it.
pub(crate) fn for_history(result: &str, kept_chars: usize) -> String {
    if result.len() <= kept_chars {
        return result.to_owned();
    }
    let Some((end, _)) = result.char_indices().nth(kept_chars) else { return result.to_owned() };
    let total = result.chars().count();
    format!("{}\n[truncated — {total} total chars, showing first {kept_chars}]", &result[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_is_cut_with_a_note_and_a_short_one_is_not() {
        assert_eq!(for_history("abc", 3), "abc");
        let exact = "é".repeat(KEPT_CHARS);
        assert_eq!(for_history(&exact, KEPT_CHARS), exact);
        let cut = for_history(&"é".repeat(KEPT_CHARS + 1), KEPT_CHARS);
        assert!(cut.ends_with("[truncated — 30001 total chars, showing first 30000]"));
    }

    #[test]
    fn results_share_half_of_a_small_context() {
        assert_eq!(kept_chars(KEPT_CHARS, Some(200_000), 3), KEPT_CHARS);
        assert_eq!(kept_chars(KEPT_CHARS, None, 100), KEPT_CHARS);
        assert_eq!(kept_chars(KEPT_CHARS, Some(8000), 4), 4000);
        assert_eq!(kept_chars(KEPT_CHARS, Some(10), 9), KEPT_AT_LEAST);
    }
}
