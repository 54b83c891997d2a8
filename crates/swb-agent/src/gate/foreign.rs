//! Calls of tools that are not ours: nobody here knows what they do.
//!
//! What a server says about its tool is a hint, not a promise, but the user chose the server. So a tool that is said to
//! change nothing and to reach nothing else needs no asking; a tool that may look things up elsewhere does, because what
//! it is asked for leaves the machine. What the user allowed by name is allowed, except to change things in a mode that
//! changes nothing.

use super::{Decision, Mode, Risk};

/// A call of a tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Foreign {
    pub(crate) server: String,
    /// The user said that this tool needs no asking.
    pub(crate) allowed: bool,
    /// The server says that it changes nothing.
    pub(crate) read_only: bool,
    /// The server says that it may destroy something.
    pub(crate) destructive: bool,
    /// The server says that it reaches nothing beyond the server.
    pub(crate) closed_world: bool,
}

pub(super) fn decide(mode: Mode, call: &Foreign) -> Decision {
    let harmless = call.read_only && (call.closed_world || call.allowed);
    match mode {
        Mode::Full => Decision::Allow,
        _ if harmless => Decision::Allow,
        Mode::ReadOnly => Decision::Deny {
            reason: format!(
                "calling this tool of the server `{}` is not allowed in read-only mode",
                call.server
            ),
        },
        Mode::Workspace if call.allowed => Decision::Allow,
        Mode::Workspace => Decision::Ask {
            risk: if call.destructive { Risk::High } else { Risk::Medium },
            reason: format!("it calls the MCP server `{}`, which may do anything", call.server),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(mode: Mode, allowed: bool, read_only: bool, closed_world: bool) -> &'static str {
        let server = "s".to_owned();
        match decide(mode, &Foreign { server, allowed, read_only, destructive: false, closed_world }) {
            Decision::Allow => "allow",
            Decision::Ask { .. } => "ask",
            Decision::Deny { .. } => "deny",
        }
    }

    #[test]
    fn what_may_do_anything_is_asked_for() {
        for (allowed, read_only, closed_world, workspace, looking) in [
            (false, false, false, "ask", "deny"),
            (false, false, true, "ask", "deny"),
            (false, true, false, "ask", "deny"),
            (false, true, true, "allow", "allow"),
            (true, false, false, "allow", "deny"),
            (true, true, false, "allow", "allow"),
        ] {
            let word = |mode| word(mode, allowed, read_only, closed_world);
            let words = (word(Mode::Workspace), word(Mode::ReadOnly), word(Mode::Full));
            assert_eq!(words, (workspace, looking, "allow"), "{allowed} {read_only} {closed_world}");
        }
    }
}
