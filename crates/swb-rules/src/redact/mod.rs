//! Redaction: secrets leave no text that is recorded or sent.
//!
//! [`redact`] takes a whole text, [`RedactedStream`] takes one in chunks, [`redact_json`] takes a JSON value and
//! [`RedactedArguments`] the text of one in chunks. A secret
//! becomes `[REDACTED:CATEGORY]`; what is reported about it is where it was and which rule found it, never the value.
//!
//! ```text
//! text ─ anchors (one automaton) ─► shapes, assignment, pem ─► run ─► scanner ─► text with placeholders
//! ```
//!
//! Secrets are found by what they look like where that is certain (`ghp_…`, PEM, JWT) and by the name they are given to
//! where it is not (`password=…`). Nothing is found by its entropy: hashes, ids and images are as random as keys.
//! A secret may be cut by the end of a chunk or by the line break of a terminal, inside its prefix too.
//!
//! Rules of the user's own are added with [`install`], before anything is redacted.
//!
//! Not found: a secret without a known look under a name that is not listed, a secret with colour codes inside it, and an
//! unquoted all-letter password behind a colon (`password: hunter`), which cannot be told from prose.
//!
//! Invariants: linear time, because every shape looks a bounded distance ahead and a run reads each byte once; memory
//! bounded by the last chunk and a few kilobytes; the result does not depend on the chunks.
//! Proof: `tests/redact_*.rs`: every pattern of the facts, ordinary text that must stay as it is, planted secrets in any
//! surroundings and any chunks.

mod anchors;
mod arguments;
mod assignment;
mod category;
mod custom;
mod json;
mod paths;
mod pem;
mod plain;
mod rules;
mod run;
mod scanner;
mod shapes;
mod stream;
mod value;
mod view;

pub use arguments::RedactedArguments;
pub use category::{Category, Match};
pub use custom::{Characters, CustomRule, CustomRuleError, CustomRules, install};
pub use json::redact_json;
pub use paths::without_paths;
pub use plain::is_plain_json;
pub use stream::RedactedStream;

/// The names of all rules.
pub fn rule_ids() -> impl Iterator<Item = &'static str> {
    rules::RULES.iter().chain(&custom::installed().rules).map(|rule| rule.id).chain([json::BY_NAME])
}

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted {
    /// The text with placeholders.
    pub text: String,
    /// Where the secrets were.
    pub matches: Vec<Match>,
}

/// Redacts a text.
///
/// ```
/// let redacted = swb_rules::redact::redact("postgres://app:hunter2@db/main");
/// assert_eq!(redacted.text, "postgres://app:[REDACTED:URL_PASSWORD]@db/main");
/// assert_eq!((redacted.matches[0].position, redacted.matches[0].length), (15, 7));
/// ```
#[must_use]
pub fn redact(text: &str) -> Redacted {
    let mut sink = scanner::Sink::default();
    sink.text.reserve(text.len());
    scanner::Scanner::default().advance(text, true, &mut sink);
    Redacted { text: sink.text, matches: sink.matches }
}
