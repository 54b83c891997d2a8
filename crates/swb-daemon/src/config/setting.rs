//! A setting: its value, where it came from, and what is wrong with it.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use toml::Value;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// It is built in.
    Default,
    /// The user's or the project's file.
    File {
        /// Which.
        path: PathBuf,
    },
    /// The environment.
    Env {
        /// Which variable.
        name: String,
    },
    /// The command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path } => path.display().fmt(f),
            Origin::Env { name } => f.write_str(name),
            Origin::Flag => f.write_str("command line"),
        }
    }
}

/// One value in force.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// Its dotted key.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

/// A key that is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Its dotted key.
    pub key: String,
    /// Where it stands.
    pub origin: Origin,
    /// Why it is ignored.
    pub problem: Problem,
}

/// Why a key is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// It means nothing.
    Unknown,
    /// A project's file has no right to say it.
    NotForProjects,
    /// Its value, in the file of another program, is none that we could use.
    Unfit,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            Problem::Unknown => write!(f, "unknown setting {} in {}; it is ignored", self.key, self.origin),
            Problem::NotForProjects => write!(
                f,
                "setting {} in {} is ignored: a project must not say where keys are sent or what agents may do; \
                 set it in your own file",
                self.key, self.origin
            ),
            Problem::Unfit => {
                write!(f, "setting {} in {} cannot be used; it is ignored", self.key, self.origin)
            }
        }
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
    /// A file is not TOML.
    #[error("{} is not valid TOML: {source}", path.display())]
    Syntax {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<toml::de::Error>,
    },
    /// A value does not fit its key.
    #[error("{key} in {origin}: {problem}")]
    Value {
        /// Which key.
        key: String,
        /// Where it stands.
        origin: Origin,
        /// What is wrong with it.
        problem: String,
    },
    /// A flag is not `key=value`.
    #[error("{0:?} is not of the form key=value")]
    Flag(String),
}
