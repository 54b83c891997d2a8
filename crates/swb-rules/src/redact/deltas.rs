//! Redaction of streams that come in turns: the deltas of a run's texts.

use std::collections::HashMap;
use std::hash::Hash;

use super::stream::RedactedStream;

/// Redacts many streams at once, each under a key of its own: one per block of text, of thoughts, of a tool's output.
///
/// A secret that is cut into two deltas leaves in neither: the end of a delta that may be the beginning of one is kept
/// back until the next delta, or the end of its block, decides. Whoever passes deltas on says when a block has ended;
/// nothing is lost then, and what was kept back under other keys stays there.
///
/// ```
/// use swb_rules::redact::RedactedDeltas;
///
/// let mut deltas = RedactedDeltas::default();
/// let (token, block, other) = (format!("ghp_{}", "x9".repeat(18)), ("run_1", 0), ("run_1", 1));
/// let mut said = String::new();
/// said.extend(deltas.push(block, "the token is gh"));
/// assert_eq!(deltas.push(other, "Meanwhile.\n"), Some("Meanwhile.\n".to_owned()));
/// said.extend(deltas.push(block, &token[2..20]));
/// said.extend(deltas.push(block, &token[20..]));
/// said.extend(deltas.end(&block));
/// assert_eq!(said, "the token is [REDACTED:FORGE_TOKEN]");
/// assert_eq!(deltas.end(&other), None);
/// ```
#[derive(Debug)]
pub struct RedactedDeltas<K> {
    open: HashMap<K, RedactedStream>,
}

impl<K> Default for RedactedDeltas<K> {
    fn default() -> Self {
        RedactedDeltas { open: HashMap::new() }
    }
}

impl<K: Eq + Hash> RedactedDeltas<K> {
    /// Takes a delta; gives the text that can leave, if there is any.
    pub fn push(&mut self, key: K, delta: &str) -> Option<String> {
        some(self.open.entry(key).or_default().push(delta))
    }

    /// Takes the end of a block; gives what was kept back. A key that is used again begins a new block.
    pub fn end(&mut self, key: &K) -> Option<String> {
        self.open.remove(key).and_then(|stream| some(stream.finish().0))
    }

    /// Takes the end of everything; gives what was kept back, in no particular order.
    pub fn end_all(&mut self) -> Vec<(K, String)> {
        let rest = self.open.drain().map(|(key, stream)| (key, stream.finish().0));
        rest.filter(|(_, text)| !text.is_empty()).collect()
    }

    /// Bytes that are kept back or needed to look back on. Each open block has a few kilobytes at most, and its last delta.
    #[must_use]
    pub fn held(&self) -> usize {
        self.open.values().map(RedactedStream::held).sum()
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_block_that_has_ended_leaves_nothing_to_the_next_one_of_its_key() {
        let mut deltas = RedactedDeltas::default();
        let mut first = deltas.push("text", "password=hunt7").unwrap_or_default();
        first.extend(deltas.end(&"text"));
        assert_eq!(first, crate::redact::redact("password=hunt7").text);
        assert!(!first.contains("hunt7"), "{first}");
        assert_eq!(deltas.push("text", "er2 is a word.\n"), Some("er2 is a word.\n".to_owned()));
        assert_eq!(deltas.end_all(), []);
        assert_eq!(deltas.held(), 0);
    }

    proptest! {
        #[test]
        fn streams_in_turns_are_each_redacted_as_a_whole(
            turns in prop::collection::vec((0..3_usize, "(ghp_[a-z0-9]{0,40}|password=\\PC{0,6}|[a-z =.\\n]{0,8}|é)"), 0..40),
        ) {
            let (mut deltas, mut whole, mut left) = (RedactedDeltas::default(), [const { String::new() }; 3], [const { String::new() }; 3]);
            for (key, delta) in &turns {
                whole[*key].push_str(delta);
                left[*key].push_str(&deltas.push(*key, delta).unwrap_or_default());
            }
            for (key, rest) in deltas.end_all() {
                left[key].push_str(&rest);
            }
            for (left, whole) in left.iter().zip(&whole) {
                prop_assert_eq!(left, &crate::redact::redact(whole).text);
            }
        }
    }
}
