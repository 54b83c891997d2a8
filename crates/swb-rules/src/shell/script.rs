//! The shape of a parsed command line: only what decides what is run and touched.
//!
//! A script is a list of items; an item is a simple command, a pipeline or a block. Conditions, loops and branches are
//! all blocks: the judge does not ask which branch is taken, it asks what could be run at all.
//! Invariant: every command that a shell could start from the text is reachable from here, also those that stand inside
//! a word (`$(…)`, backquotes, `<(…)`) or inside a here-document.

use super::word::Word;

/// Commands in order.
pub(super) type Script = Vec<Item>;

/// One command and how it follows the one before it.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) join: Join,
    pub(super) background: bool,
    pub(super) node: Node,
}

/// What must have happened before an item runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    /// Runs whatever the one before did: `;`, `&`, a newline.
    Then,
    /// Runs after success.
    And,
    /// Runs after failure.
    Or,
}

/// A command.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Simple(Simple),
    Pipeline(Vec<Node>),
    Block(Block),
}

/// A program with its words, or bare assignments and redirections.
#[derive(Debug, Clone, Default)]
pub(super) struct Simple {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
}

/// `NAME=value` before a program, or alone.
#[derive(Debug, Clone)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) value: Word,
}

/// Commands under one roof.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) kind: BlockKind,
    /// What a `for` runs over, a `case` looks at, a `[[` tests: not commands, but they may hold some.
    pub(super) words: Vec<Word>,
    pub(super) body: Script,
    pub(super) redirects: Vec<Redirect>,
}

/// Which roof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BlockKind {
    Subshell,
    Group,
    Branch,
    Loop,
    /// A loop over words, with its variable.
    For(String),
    Function(String),
}

/// Where a stream comes from or goes to.
#[derive(Debug, Clone)]
pub(super) struct Redirect {
    pub(super) kind: RedirectKind,
    pub(super) target: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedirectKind {
    Read,
    Write,
    Append,
    ReadWrite,
    /// `2>&1`, `<&-`: no file is touched.
    Duplicate,
    /// `<<<`: the word is the input.
    HereString,
    /// `<<`: the body is the document of this number.
    HereDocument(usize),
}

/// The body of a here-document.
#[derive(Debug, Clone)]
pub(super) struct HereDocument {
    pub(super) body: Word,
}
