//! The first characters of a value: does it look like a secret, or like a word, a type or a variable?
//!
//! No entropy is measured: an ordinary hash has as much of it as a key. What counts is the name before the value; here
//! only the obvious non-values are sorted out.

use super::rules::Class;
use super::view::{More, View};

/// So much of a value is looked at.
const SAMPLE: usize = 64;

/// The beginning of a value.
#[derive(Debug)]
pub(super) struct Sample {
    bytes: Vec<u8>,
    /// Where it ends.
    pub(super) end: usize,
    /// The byte behind it; `None` at the end of the text or when the value is longer than what is looked at.
    pub(super) behind: Option<u8>,
}

/// Values that are words about values.
const PLACEHOLDERS: &[&str] = &[
    "none",
    "null",
    "nil",
    "true",
    "false",
    "undefined",
    "string",
    "text",
    "bytes",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "required",
    "optional",
    "redacted",
    "authentication",
    "unset",
    "empty",
    "hidden",
    "invalid",
    "incorrect",
    "missing",
];

/// Parts of names of variables that hold secrets: a value that is such a name is code.
const VARIABLE_PARTS: &[&str] = &[
    "pass", "pwd", "secret", "token", "key", "env", "conf", "arg", "self", "input", "value", "field", "opt",
    "cred", "param", "user",
];

impl Sample {
    /// Reads characters of a class.
    pub(super) fn read(view: &View<'_>, start: usize, class: Class) -> Result<Self, More> {
        Self::read_while(view, start, |byte| class.has(byte))
    }

    /// Reads up to a quote or the end of the line.
    pub(super) fn read_quoted(view: &View<'_>, start: usize, quote: u8) -> Result<Self, More> {
        Self::read_while(view, start, |byte| byte != quote && !matches!(byte, b'\r' | b'\n'))
    }

    fn read_while(view: &View<'_>, start: usize, belongs: impl Fn(u8) -> bool) -> Result<Self, More> {
        let mut sample = Self { bytes: Vec::new(), end: start, behind: None };
        let mut at = start;
        while sample.bytes.len() < SAMPLE {
            match view.next(at)? {
                Some((byte, next)) if belongs(byte) => {
                    sample.bytes.push(byte);
                    at = next;
                }
                other => {
                    sample.behind = other.map(|(byte, _)| byte);
                    break;
                }
            }
        }
        sample.end = at;
        Ok(sample)
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is(&self, word: &str) -> bool {
        self.bytes.eq_ignore_ascii_case(word.as_bytes())
    }

    /// A digit, or upper and lower case mixed as no word mixes them.
    pub(super) fn looks_random(&self) -> bool {
        let count = |is: fn(&u8) -> bool| self.bytes.iter().filter(|byte| is(byte)).count();
        count(u8::is_ascii_digit) > 0
            || (count(u8::is_ascii_uppercase) >= 4 && count(u8::is_ascii_lowercase) >= 4)
    }

    /// A digit, or a sign that a word does not have.
    pub(super) fn has_digit_or_sign(&self) -> bool {
        self.bytes.iter().any(|byte| byte.is_ascii_digit() || b"!@#$%^&*+=~?".contains(byte))
    }

    /// Stands for a value instead of being one.
    pub(super) fn is_placeholder(&self) -> bool {
        let text = String::from_utf8_lossy(&self.bytes).to_lowercase();
        let first = self.bytes.first().copied().unwrap_or_default();
        matches!(first, b'<' | b'{' | b'[' | b'(' | b'*' | b'%' | b'|' | b':' | 0)
            || text.starts_with("${")
            || text.starts_with("$(")
            || (first == b'$'
                && self.bytes.get(1).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_'))
            || PLACEHOLDERS.contains(&text.trim_end_matches(['.', '!', '?', ':']))
            || text.starts_with("your")
            || self.bytes.iter().all(|byte| *byte == first)
    }

    /// Code rather than a value: a call, an index, a path of names.
    pub(super) fn is_code(&self) -> bool {
        let text = String::from_utf8_lossy(&self.bytes).to_lowercase();
        let is_name =
            self.bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
        text.contains(['(', '[', '{'])
            || text.contains("::")
            || matches!(self.behind, Some(b'(' | b'['))
            || (is_name && VARIABLE_PARTS.iter().any(|part| text.contains(part)))
    }

    /// A path of names with hardly a digit, such as a variable of the environment, or a constant.
    pub(super) fn is_variable(&self) -> bool {
        let has = |sign: u8| self.bytes.contains(&sign);
        let digits = self.bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
        let is_constant =
            has(b'_') && !self.bytes.iter().any(u8::is_ascii_lowercase) && digits <= self.len() / 4;
        is_constant || (digits == 0 || (digits <= 2 && (has(b'_') || has(b'.')))) && self.is_code()
    }

    /// A number of a programming language, or a type.
    pub(super) fn is_number(&self) -> bool {
        let text = String::from_utf8_lossy(&self.bytes);
        let suffix = text.trim_start_matches('_').trim_start_matches(|c: char| c.is_ascii_digit());
        suffix.is_empty() && self.len() < 6
            || matches!(
                suffix,
                "u8" | "u16"
                    | "u32"
                    | "u64"
                    | "u128"
                    | "usize"
                    | "i8"
                    | "i16"
                    | "i32"
                    | "i64"
                    | "i128"
                    | "isize"
                    | "f32"
                    | "f64"
            )
    }

    /// Words about a password rather than one.
    pub(super) fn is_prose(&self) -> bool {
        let text = String::from_utf8_lossy(&self.bytes).to_lowercase();
        text.contains(' ')
            && [
                "password",
                "required",
                "enter",
                "must",
                "invalid",
                "incorrect",
                "your",
                "the ",
                "please",
                "passphrase",
            ]
            .iter()
            .any(|word| text.contains(word))
    }

    /// A path of a file or a URL.
    pub(super) fn is_path(&self) -> bool {
        let text = String::from_utf8_lossy(&self.bytes);
        text.contains("://")
            || text.starts_with("./")
            || text.starts_with("~/")
            || (text.starts_with('/') && text.matches('/').count() > 1 && !text.contains(['+', '=']))
    }
}
