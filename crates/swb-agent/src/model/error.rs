//! Why there is no answer, or only a part of one. The words are for people.

/// Why a model does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// No such model, or no way to reach it.
    #[error(
        "model `{name}` cannot be used here: {why}; `get_available_models` and `swb models` list those that can"
    )]
    Unusable {
        /// The name.
        name: String,
        /// What is missing.
        why: Unusable,
    },
    /// The stream ended in the middle.
    #[error("the model's answer was cut off")]
    CutOff,
    /// Nothing was said.
    #[error("model returned an empty response")]
    Empty,
    /// The conversation does not fit into the model's context; a shorter one may.
    #[error("the conversation is too long for the model: {message}")]
    TooLong {
        /// The model's words.
        message: String,
    },
    /// The answer is as long as it may be, and not at its end.
    #[error("the answer was cut off at the model's limit ({reason}); ask it to go on")]
    OutputLimit {
        /// The provider's word for it.
        reason: String,
    },
    /// The provider does not let the model answer this.
    #[error("{provider} declined to answer ({reason})")]
    Declined {
        /// Which provider.
        provider: String,
        /// Its word for it.
        reason: String,
    },
    /// The provider answered with an error instead of a stream.
    #[error("{provider} refused with HTTP {status}: {message}")]
    Refused {
        /// Which provider.
        provider: String,
        /// The status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// The provider put an error where a piece of the answer should have been.
    #[error("{provider} broke off: {message}")]
    Broken {
        /// Which provider.
        provider: String,
        /// Its words.
        message: String,
    },
    /// There is no connection, or it broke.
    #[error("{provider} cannot be reached: {message}")]
    Unreachable {
        /// Which provider.
        provider: String,
        /// What happened.
        message: String,
    },
    /// The provider said nothing for too long.
    #[error("{provider} said nothing for {} s", *millis as f64 / 1e3)]
    Silent {
        /// Which provider.
        provider: String,
        /// How long it was waited for.
        millis: u128,
    },
    /// What the provider sent makes no sense.
    #[error("{provider} sent what cannot be understood: {message}")]
    Malformed {
        /// Which provider.
        provider: String,
        /// What is wrong with it.
        message: String,
    },
    /// The provider wants to be left alone for longer than is reasonable.
    #[error("{last}; it wants a wait of {seconds} s")]
    LongWait {
        /// How long.
        seconds: u64,
        /// What it said.
        last: Box<ModelError>,
    },
    /// It was tried often enough.
    #[error("{last} (tried {attempts} times)")]
    GaveUp {
        /// How often.
        attempts: u32,
        /// How the last attempt failed.
        last: Box<ModelError>,
    },
    /// The model said that it failed.
    #[error("{message}")]
    Failed {
        /// Its words.
        message: String,
    },
}

impl ModelError {
    /// The same, after so many attempts.
    pub(crate) fn after(self, attempts: u32) -> Self {
        ModelError::GaveUp { attempts, last: Box::new(self) }
    }
}

/// What a model lacks to be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// Nobody knows it.
    #[error("no provider of that name is known")]
    Unknown,
    /// Its provider wants a key.
    #[error("there is no key in ${variables}")]
    NoKey {
        /// Where one was looked for.
        variables: String,
    },
    /// Nobody listens where it should be.
    #[error("nobody answers at {base_url}")]
    Silent {
        /// Where.
        base_url: String,
    },
    /// Its address is none.
    #[error("{base_url} is no address to call: {message}")]
    Address {
        /// What is configured.
        base_url: String,
        /// What is wrong with it.
        message: String,
    },
}
