//! Why a command line is not understood well enough to be let through unseen.

use std::fmt;

/// Longest command line that is looked at.
pub(super) const MAX_BYTES: usize = 64 * 1024;
/// Deepest nesting of substitutions, blocks and commands in strings.
pub(super) const MAX_DEPTH: usize = 24;
/// Most commands in one line, those in strings included.
pub(super) const MAX_COMMANDS: usize = 2_000;
/// Most text read again because it stands in a string (`bash -c`, `eval`, backquotes).
pub(super) const MAX_REREAD: usize = 4 * MAX_BYTES;

/// What stands in the way of understanding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unclear {
    /// The text is not shell, or shell that is not understood here.
    Syntax {
        /// Byte offset in the text that was being read, which may be a string inside the line.
        at: usize,
        /// What was met or missed.
        what: &'static str,
    },
    /// Longer than what is looked at.
    TooLong,
    /// Nested deeper than what is looked at.
    TooDeep,
    /// More commands than what is looked at.
    TooMany,
    /// Characters that a person reading the line does not see.
    Invisible,
    /// The program is known only when the line runs.
    Program {
        /// The word as it stands.
        word: String,
    },
    /// A shell or an interpreter whose script is known only when the line runs.
    Script {
        /// The program that would run it.
        program: String,
    },
    /// Code in a language that is not read here.
    ForeignCode {
        /// The program that would run it.
        program: String,
    },
    /// An option that is not known in a command that runs another one.
    Option {
        /// The program.
        program: String,
        /// Its option.
        option: String,
    },
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { at, what } => write!(f, "cannot be parsed: {what} at byte {at}"),
            Self::TooLong => write!(f, "longer than {MAX_BYTES} bytes"),
            Self::TooDeep => write!(f, "nested more than {MAX_DEPTH} levels deep"),
            Self::TooMany => write!(f, "more than {MAX_COMMANDS} commands"),
            Self::Invisible => write!(f, "has characters that cannot be seen"),
            Self::Program { word } => write!(f, "which program `{word}` is, is known only when it runs"),
            Self::Script { program } => write!(f, "what `{program}` would run is known only when it runs"),
            Self::ForeignCode { program } => write!(f, "code for `{program}` is not read here"),
            Self::Option { program, option } => {
                write!(f, "`{program}` runs another command and `{option}` is not a known option of it")
            }
        }
    }
}
