//! What kinds of secrets there are, and what is said about one that was found.

use std::fmt;

/// A kind of secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Category {
    /// A key of a model provider or another service.
    ApiKey,
    /// An AWS access key id, or the secret that belongs to one.
    AwsKey,
    /// A token of a forge: GitHub, GitLab.
    ForgeToken,
    /// A token of a chat service.
    ChatToken,
    /// A JSON web token.
    Jwt,
    /// What stands behind `Bearer`, `Basic` and the like.
    Authorization,
    /// A password inside a URL.
    UrlPassword,
    /// A private key in PEM armour.
    PrivateKey,
    /// A password or passphrase that is given a value.
    Password,
    /// A token or secret that is given a value.
    Secret,
    /// What a rule of the user's own has found.
    Custom,
}

impl Category {
    /// The name in the placeholder.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ApiKey => "API_KEY",
            Self::AwsKey => "AWS_KEY",
            Self::ForgeToken => "FORGE_TOKEN",
            Self::ChatToken => "CHAT_TOKEN",
            Self::Jwt => "JWT",
            Self::Authorization => "AUTHORIZATION",
            Self::UrlPassword => "URL_PASSWORD",
            Self::PrivateKey => "PRIVATE_KEY",
            Self::Password => "PASSWORD",
            Self::Secret => "SECRET",
            Self::Custom => "CUSTOM",
        }
    }

    /// What stands in the place of a secret of this kind.
    #[must_use]
    pub const fn placeholder(self) -> &'static str {
        match self {
            Self::ApiKey => "[REDACTED:API_KEY]",
            Self::AwsKey => "[REDACTED:AWS_KEY]",
            Self::ForgeToken => "[REDACTED:FORGE_TOKEN]",
            Self::ChatToken => "[REDACTED:CHAT_TOKEN]",
            Self::Jwt => "[REDACTED:JWT]",
            Self::Authorization => "[REDACTED:AUTHORIZATION]",
            Self::UrlPassword => "[REDACTED:URL_PASSWORD]",
            Self::PrivateKey => "[REDACTED:PRIVATE_KEY]",
            Self::Password => "[REDACTED:PASSWORD]",
            Self::Secret => "[REDACTED:SECRET]",
            Self::Custom => "[REDACTED:CUSTOM]",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a secret was: never what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// Its kind.
    pub category: Category,
    /// The rule that found it.
    pub rule: &'static str,
    /// Byte offset in the text, or in the stream since its start.
    pub position: usize,
    /// Its length in bytes, line breaks inside it included.
    pub length: usize,
}
