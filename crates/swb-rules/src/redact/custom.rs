//! Rules of the user's own: a prefix, the characters behind it, and how many there are at least.
//!
//! They are rules like the built-in ones, so they find secrets over the borders of chunks and lines too. They hold for
//! the whole process and are set before anything is redacted: what has been written cannot be redacted any more.
//! A rule that would hide ordinary text is refused; so is one under the name of another, because a rule that replaces a
//! built-in one could only make it weaker.

use std::sync::OnceLock;

use serde::Deserialize;

use super::category::Category;
use super::rules::{Class, RULES, Rule, Shape, Token};

/// Most rules, and most names.
const MOST: usize = 256;
const SHORTEST_PREFIX: usize = 3;
pub(super) const LONGEST_PREFIX: usize = 32;
const SHORTEST_SECRET: usize = 8;
const LONGEST_SECRET: usize = 512;
const SHORTEST_NAME: usize = 3;

/// Rules of the user's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CustomRules {
    /// What secrets look like.
    pub rule: Vec<CustomRule>,
    /// Parts of names whose values are hidden in JSON.
    pub names: Vec<String>,
}

/// What a secret looks like.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomRule {
    /// Its name, as matches carry it.
    pub id: String,
    /// What every such secret begins with.
    pub prefix: String,
    /// What follows.
    #[serde(default)]
    pub characters: Characters,
    /// How many characters follow at least. One of them is a digit.
    pub min: usize,
}

/// Sets of characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Characters {
    /// Letters and digits.
    #[default]
    Alnum,
    /// Upper-case letters and digits.
    Upper,
    /// Letters, digits, `_` and `-`.
    Name,
    /// Letters, digits, `_`, `-` and `.`.
    Dotted,
    /// Letters, digits and `-._~+/=`.
    Token68,
}

/// Why rules were not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CustomRuleError {
    /// The name cannot be used.
    #[error("the id {0:?} of a rule must be 1 to 40 letters, digits and '-'")]
    Id(String),
    /// The name is taken.
    #[error("there is a rule {0:?} already; rules cannot be replaced")]
    Taken(String),
    /// The prefix would fit everything.
    #[error("rule {0:?} has no prefix: it would hide everything")]
    NoPrefix(String),
    /// The prefix would fit too much.
    #[error("the prefix of rule {id:?} is too broad: {why}")]
    BroadPrefix {
        /// Which rule.
        id: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// What follows is too short, or longer than anybody looks.
    #[error(
        "rule {id:?} wants {min} characters behind its prefix; {SHORTEST_SECRET} to {LONGEST_SECRET} can be told from ordinary text"
    )]
    Length {
        /// Which rule.
        id: String,
        /// What it wants.
        min: usize,
    },
    /// A name would hide too much.
    #[error("the name {0:?} is too broad: {SHORTEST_NAME} letters or digits are the least")]
    BroadName(String),
    /// There are too many.
    #[error("{0} rules and names are too many: {MOST} of each are the most")]
    TooMany(usize),
    /// Something has been redacted without them.
    #[error("the rules of redaction are set already")]
    TooLate,
}

/// The rules of this process.
#[derive(Debug, Default)]
pub(super) struct Installed {
    pub(super) rules: Vec<Rule>,
    /// Without case and separators.
    pub(super) names: Vec<String>,
}

static INSTALLED: OnceLock<Installed> = OnceLock::new();

/// The rules of the user's own. From the first look on they cannot be set any more.
pub(super) fn installed() -> &'static Installed {
    INSTALLED.get_or_init(Installed::default)
}

/// Takes rules for the whole process.
pub fn install(custom: CustomRules) -> Result<(), CustomRuleError> {
    INSTALLED.set(check(custom)?).map_err(|_| CustomRuleError::TooLate)
}

fn check(custom: CustomRules) -> Result<Installed, CustomRuleError> {
    let count = custom.rule.len().max(custom.names.len());
    if count > MOST {
        return Err(CustomRuleError::TooMany(count));
    }
    let mut installed = Installed::default();
    for rule in custom.rule {
        let rule = prepare(rule, &installed.rules)?;
        installed.rules.push(rule);
    }
    for name in custom.names {
        let flat: String =
            name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        if flat.len() < SHORTEST_NAME {
            return Err(CustomRuleError::BroadName(name));
        }
        installed.names.push(flat);
    }
    Ok(installed)
}

fn prepare(rule: CustomRule, before: &[Rule]) -> Result<Rule, CustomRuleError> {
    let CustomRule { id, prefix, characters, min } = rule;
    if !(1..=40).contains(&id.len()) || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(CustomRuleError::Id(id));
    }
    if RULES.iter().chain(before).any(|known| known.id == id) || id == super::json::BY_NAME {
        return Err(CustomRuleError::Taken(id));
    }
    if prefix.is_empty() {
        return Err(CustomRuleError::NoPrefix(id));
    }
    let first = prefix.as_bytes()[0];
    let why = if !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
        Some("it must be of visible ASCII characters")
    } else if !(SHORTEST_PREFIX..=LONGEST_PREFIX).contains(&prefix.len()) {
        Some("it must have 3 to 32 characters")
    } else if !prefix.bytes().any(|byte| byte.is_ascii_alphabetic())
        || prefix.bytes().all(|byte| byte == first)
    {
        Some("ordinary text is full of it")
    } else {
        None
    };
    if let Some(why) = why {
        return Err(CustomRuleError::BroadPrefix { id, why });
    }
    if !(SHORTEST_SECRET..=LONGEST_SECRET).contains(&min) {
        return Err(CustomRuleError::Length { id, min });
    }
    let class = match characters {
        Characters::Alnum => Class::Alnum,
        Characters::Upper => Class::Upper,
        Characters::Name => Class::Name,
        Characters::Dotted => Class::Dotted,
        Characters::Token68 => Class::Token68,
    };
    // Once per process and a few kilobytes at most: they live as long as the built-in ones.
    let anchors: &'static [&'static str] = Box::leak(Box::new([&*prefix.leak()]));
    Ok(Rule {
        id: id.leak(),
        category: Category::Custom,
        anchors,
        shape: Shape::Token(Token { class, min, usual: min, fixed: true, at_word_start: true, digit: true }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(id: &str, prefix: &str, min: usize) -> CustomRules {
        let rule =
            CustomRule { id: id.to_owned(), prefix: prefix.to_owned(), characters: Characters::Alnum, min };
        CustomRules { rule: vec![rule], names: Vec::new() }
    }

    #[test]
    fn rules_that_are_empty_or_too_broad_are_refused() {
        assert_eq!(check(rule("a", "", 16)).unwrap_err(), CustomRuleError::NoPrefix("a".to_owned()));
        for prefix in ["a", "ab", "---", "12345", "aaaa", "a b", "é___", &"x1".repeat(20)] {
            let error = check(rule("a", prefix, 16)).unwrap_err();
            assert!(matches!(error, CustomRuleError::BroadPrefix { .. }), "{prefix}: {error}");
        }
        for min in [0, 7, 513] {
            assert_eq!(
                check(rule("a", "acme_", min)).unwrap_err(),
                CustomRuleError::Length { id: "a".to_owned(), min }
            );
        }
        for id in ["", "a b", "jwt", "secret-name"] {
            let error = check(rule(id, "acme_", 16)).unwrap_err();
            assert!(matches!(error, CustomRuleError::Id(_) | CustomRuleError::Taken(_)), "{id}: {error}");
        }
        let twice = CustomRules {
            rule: [rule("a", "acme_", 16).rule, rule("a", "ecma_", 16).rule].concat(),
            names: Vec::new(),
        };
        assert_eq!(check(twice).unwrap_err(), CustomRuleError::Taken("a".to_owned()));
        for name in ["", "--", "ab"] {
            let custom = CustomRules { rule: Vec::new(), names: vec![name.to_owned()] };
            assert_eq!(check(custom).unwrap_err(), CustomRuleError::BroadName(name.to_owned()));
        }
        assert!(check(rule("acme-key", "acme_", 16)).is_ok());
    }
}
