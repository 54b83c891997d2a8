//! How much of a result is kept.

/// What a tool may return at most, in bytes; the rest is counted and dropped while it streams.
pub(crate) const CAPTURED_BYTES: usize = 1024 * 1024;
/// What the model gets to see at most, in characters.
const KEPT_CHARS: usize = 30_000;

/// The result as the history keeps it.
pub(crate) fn for_history(result: &str) -> String {
    if result.len() <= KEPT_CHARS {
        return result.to_owned();
    }
    let Some((end, _)) = result.char_indices().nth(KEPT_CHARS) else { return result.to_owned() };
    let total = result.chars().count();
    format!("{}\n[truncated — {total} total chars, showing first {KEPT_CHARS}]", &result[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_is_cut_with_a_note_and_a_short_one_is_not() {
        assert_eq!(for_history("abc"), "abc");
        let exact = "é".repeat(KEPT_CHARS);
        assert_eq!(for_history(&exact), exact);
        let cut = for_history(&"é".repeat(KEPT_CHARS + 1));
        assert!(cut.ends_with("[truncated — 30001 total chars, showing first 30000]"));
    }
}
