//! The patterns, as data.
//!
//! A rule has anchors: literals of which one must be there. All anchors of all rules are searched for at once; only
//! where one is found does the shape of its rule look at the text behind it.

use super::category::Category;

/// One pattern.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) id: &'static str,
    pub(super) category: Category,
    pub(super) anchors: &'static [&'static str],
    pub(super) shape: Shape,
}

/// How a secret looks behind its anchor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// The anchor, then a run of characters of one class.
    Token(Token),
    /// Three runs joined by dots.
    Jwt,
    /// `Bearer` or `Basic` and what follows it.
    Scheme,
    /// `Authorization:`, a scheme perhaps, and what follows it.
    Header,
    /// `scheme://user:password@host`.
    Url,
    /// A name that is given a value that looks like a password.
    Password,
    /// A name that is given a value that looks like a key.
    Secret,
    /// A PEM block.
    Pem,
}

/// A run behind an anchor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) class: Class,
    /// Fewer characters than this are not a secret.
    pub(super) min: usize,
    /// The usual length: a line break before it belongs to the token.
    pub(super) usual: usize,
    /// Tokens of this kind are never longer, so a line break behind the usual length does not belong to them.
    pub(super) fixed: bool,
    /// The anchor must not continue a word.
    pub(super) at_word_start: bool,
    /// Some character near the start must be a digit.
    pub(super) digit: bool,
}

/// Sets of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Letters and digits.
    Alnum,
    /// Upper-case letters and digits.
    Upper,
    /// Letters, digits, `_` and `-`.
    Name,
    /// Letters, digits, `_`, `-` and `.`.
    Dotted,
    /// Letters, digits and `-._~+/`, then `=`.
    Token68,
    /// Anything that ends neither a word nor a list.
    Value,
}

impl Class {
    pub(super) fn has(self, byte: u8) -> bool {
        match self {
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Name => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Token68 => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=')
            }
            Self::Value => {
                byte > b' '
                    && byte != 0x7f
                    && !matches!(
                        byte,
                        b'"' | b'\'' | b'`' | b',' | b';' | b'&' | b'<' | b'>' | b')' | b']' | b'}' | b'\\'
                    )
            }
        }
    }
}

const fn token(class: Class, min: usize) -> Token {
    Token { class, min, usual: min, fixed: true, at_word_start: false, digit: false }
}

const fn rule(id: &'static str, category: Category, anchors: &'static [&'static str], shape: Shape) -> Rule {
    Rule { id, category, anchors, shape }
}

/// All rules.
pub(super) const RULES: &[Rule] = &[
    rule(
        "model-key",
        Category::ApiKey,
        &["sk-proj-", "sk-ant-", "sk-svcacct-", "sk-admin-", "sk-or-v1-", "sk-None-"],
        Shape::Token(Token {
            digit: true,
            usual: 100,
            fixed: false,
            at_word_start: true,
            ..token(Class::Name, 20)
        }),
    ),
    rule(
        "model-key-plain",
        Category::ApiKey,
        &["sk-"],
        Shape::Token(Token {
            digit: true,
            usual: 48,
            fixed: false,
            at_word_start: true,
            ..token(Class::Alnum, 32)
        }),
    ),
    rule(
        "stripe-key",
        Category::ApiKey,
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"],
        Shape::Token(Token { usual: 24, fixed: false, at_word_start: true, ..token(Class::Alnum, 16) }),
    ),
    rule(
        "google-key",
        Category::ApiKey,
        &["AIza"],
        Shape::Token(Token { at_word_start: true, ..token(Class::Name, 35) }),
    ),
    rule("google-oauth", Category::ApiKey, &["GOCSPX-"], Shape::Token(token(Class::Name, 24))),
    rule(
        "groq-key",
        Category::ApiKey,
        &["gsk_"],
        Shape::Token(Token { digit: true, at_word_start: true, ..token(Class::Alnum, 40) }),
    ),
    rule(
        "xai-key",
        Category::ApiKey,
        &["xai-"],
        Shape::Token(Token { digit: true, at_word_start: true, ..token(Class::Alnum, 40) }),
    ),
    rule(
        "huggingface-token",
        Category::ApiKey,
        &["hf_"],
        Shape::Token(Token { at_word_start: true, ..token(Class::Alnum, 34) }),
    ),
    rule(
        "npm-token",
        Category::ApiKey,
        &["npm_"],
        Shape::Token(Token { digit: true, at_word_start: true, ..token(Class::Alnum, 36) }),
    ),
    rule(
        "pypi-token",
        Category::ApiKey,
        &["pypi-AgE"],
        Shape::Token(Token { usual: 150, fixed: false, ..token(Class::Name, 40) }),
    ),
    rule(
        "sendgrid-key",
        Category::ApiKey,
        &["SG."],
        Shape::Token(Token {
            digit: true,
            usual: 66,
            fixed: false,
            at_word_start: true,
            ..token(Class::Dotted, 60)
        }),
    ),
    rule("age-key", Category::PrivateKey, &["AGE-SECRET-KEY-1"], Shape::Token(token(Class::Upper, 58))),
    rule(
        "aws-access-key",
        Category::AwsKey,
        &["AKIA", "ASIA"],
        Shape::Token(Token { digit: true, at_word_start: true, ..token(Class::Upper, 16) }),
    ),
    rule(
        "github-token",
        Category::ForgeToken,
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        Shape::Token(token(Class::Alnum, 36)),
    ),
    rule(
        "github-fine-grained",
        Category::ForgeToken,
        &["github_pat_"],
        Shape::Token(Token { usual: 82, ..token(Class::Name, 22) }),
    ),
    rule(
        "gitlab-token",
        Category::ForgeToken,
        &["glpat-", "glptt-", "gldt-", "glrt-"],
        Shape::Token(Token { at_word_start: true, ..token(Class::Name, 20) }),
    ),
    rule(
        "slack-token",
        Category::ChatToken,
        &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-"],
        Shape::Token(Token {
            digit: true,
            usual: 50,
            fixed: false,
            at_word_start: true,
            ..token(Class::Name, 10)
        }),
    ),
    rule(
        "slack-webhook",
        Category::ChatToken,
        &["hooks.slack.com/services/"],
        Shape::Token(Token { digit: true, usual: 44, fixed: false, ..token(Class::Token68, 20) }),
    ),
    rule("jwt", Category::Jwt, &["eyJ"], Shape::Jwt),
    rule("scheme", Category::Authorization, &["bearer", "basic"], Shape::Scheme),
    rule("authorization", Category::Authorization, &["authorization"], Shape::Header),
    rule("url-password", Category::UrlPassword, &["://"], Shape::Url),
    rule("password", Category::Password, &["password", "passwd", "passphrase", "mysql_pwd"], Shape::Password),
    rule(
        "aws-secret",
        Category::AwsKey,
        &["aws_secret", "aws_session_token", "secretaccesskey", "secret_access_key"],
        Shape::Secret,
    ),
    rule(
        "api-key",
        Category::ApiKey,
        &["api_key", "api-key", "apikey", "api_token", "api-token", "apitoken"],
        Shape::Secret,
    ),
    rule(
        "secret",
        Category::Secret,
        &["secret", "token", "accountkey", "signing_key", "encryption_key"],
        Shape::Secret,
    ),
    rule("private-key", Category::PrivateKey, &["-----BEGIN "], Shape::Pem),
];
