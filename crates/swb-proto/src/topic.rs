//! Topics: dotted names of what happened, and globs over them.
//!
//! In a glob `*` stands for any run of characters, dots included, and `?` for one character: `agent.*` is everything
//! about agents, `*.failed` every failure, `*` everything. Globs are matched once per topic and subscription, so the
//! plain backtracking matcher below is never on a hot path; it is linear in the topic for each star.

use std::borrow::Borrow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest topic or glob.
pub const MAX_TOPIC_BYTES: usize = 120;

/// The topic of the synthetic event that stands for a range a subscriber did not get.
pub const GAP: &str = "bus.gap";

/// A topic such as `terminal.state.changed`: `[a-z][a-z0-9]*(\.[a-z][a-z0-9_]*)*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct Topic(
    #[schemars(regex(pattern = r"^[a-z][a-z0-9]*(\.[a-z][a-z0-9_]*)*$"), length(max = 120))] String,
);

/// The text is not a topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a topic is dotted lower-case words, at most 120 bytes: terminal.state.changed")]
pub struct InvalidTopic;

impl Topic {
    /// The topic as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// Lets a table keyed by topics be asked with a plain text.
impl Borrow<str> for Topic {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Topic {
    type Error = InvalidTopic;
    fn try_from(text: String) -> Result<Self, InvalidTopic> {
        if is_topic(&text) { Ok(Topic(text)) } else { Err(InvalidTopic) }
    }
}

impl TryFrom<&str> for Topic {
    type Error = InvalidTopic;
    fn try_from(text: &str) -> Result<Self, InvalidTopic> {
        Topic::try_from(text.to_owned())
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_topic(text: &str) -> bool {
    text.len() <= MAX_TOPIC_BYTES
        && text.split('.').enumerate().all(|(position, segment)| {
            let mut bytes = segment.bytes();
            bytes.next().is_some_and(|b| b.is_ascii_lowercase())
                && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || (b == b'_' && position > 0))
        })
}

/// A pattern over topics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct TopicGlob(#[schemars(regex(pattern = r"^[a-z0-9_.*?]+$"), length(min = 1, max = 120))] String);

/// The text is not a glob over topics.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a topic glob consists of lower-case letters, digits, '_', '.', '*' and '?', at most 120 bytes")]
pub struct InvalidGlob;

impl TryFrom<String> for TopicGlob {
    type Error = InvalidGlob;
    fn try_from(text: String) -> Result<Self, InvalidGlob> {
        let allowed =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'.' | b'*' | b'?');
        let well_formed = !text.is_empty() && text.len() <= MAX_TOPIC_BYTES && text.bytes().all(allowed);
        if well_formed { Ok(TopicGlob(text)) } else { Err(InvalidGlob) }
    }
}

impl TopicGlob {
    /// The glob as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this glob lets every topic through.
    pub fn is_everything(&self) -> bool {
        self.0.bytes().all(|b| b == b'*')
    }

    /// Whether `topic` matches.
    pub fn matches(&self, topic: &str) -> bool {
        let (pattern, text) = (self.0.as_bytes(), topic.as_bytes());
        let (mut p, mut t) = (0, 0);
        // Where to go on if the current attempt fails: just after the last star, one character further in the topic.
        let mut retry: Option<(usize, usize)> = None;
        while t < text.len() {
            match pattern.get(p) {
                Some(b'*') => {
                    retry = Some((p + 1, t));
                    p += 1;
                }
                Some(b'?') => (p, t) = (p + 1, t + 1),
                Some(byte) if *byte == text[t] => (p, t) = (p + 1, t + 1),
                _ => match retry {
                    Some((after_star, from)) => {
                        retry = Some((after_star, from + 1));
                        (p, t) = (after_star, from + 1);
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|b| *b == b'*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn glob(text: &str) -> TopicGlob {
        TopicGlob::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn topics_follow_the_grammar() {
        for good in ["a", "terminal.output", "agent.run.started", "renderer.switch.rolled_back", "a1.b2"] {
            assert!(Topic::try_from(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "a.", ".a", "A.b", "a..b", "a_b.c", "1a", "a.1", "a b", "a-b", &"a".repeat(121)]
        {
            assert!(Topic::try_from(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn globs_match_as_a_shell_user_expects() {
        for (pattern, topic) in [
            ("*", "a.b.c"),
            ("agent.*", "agent.run.started"),
            ("*.failed", "agent.run.failed"),
            ("a.b", "a.b"),
            ("a.?", "a.b"),
            ("a*c*e", "a.c.c.d.e"),
            ("**", "x"),
        ] {
            assert!(glob(pattern).matches(topic), "{pattern} {topic}");
        }
        for (pattern, topic) in [
            ("agent.*", "agents.replied"),
            ("a.b", "a.b.c"),
            ("*.failed", "a.failed.not"),
            ("?", ""),
            ("a.?", "a.bc"),
        ] {
            assert!(!glob(pattern).matches(topic), "{pattern} {topic}");
        }
    }

    proptest! {
        #[test]
        fn a_glob_agrees_with_the_obvious_recursion(pattern in "[ab.*?]{1,8}", topic in "[ab.]{0,10}") {
            fn obvious(p: &[u8], t: &[u8]) -> bool {
                match (p, t) {
                    ([], []) => true,
                    ([b'*', rest @ ..], _) => obvious(rest, t) || (!t.is_empty() && obvious(p, &t[1..])),
                    ([b'?', rest @ ..], [_, more @ ..]) => obvious(rest, more),
                    ([a, rest @ ..], [b, more @ ..]) if a == b => obvious(rest, more),
                    _ => false,
                }
            }
            prop_assert_eq!(glob(&pattern).matches(&topic), obvious(pattern.as_bytes(), topic.as_bytes()));
        }
    }
}
