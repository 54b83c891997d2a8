//! The shell judge: what a command line would run and touch, and whether it may.
//!
//! [`parse`] reads a POSIX or bash command line without running anything and lists every program that could start from
//! it: in pipes, lists, blocks, functions, substitutions, here-documents, behind `sudo`, `env`, `xargs`, `find -exec`,
//! `bash -c`, `eval` and the like. [`findings()`] lists what speaks against it in a directory, sorted into kinds; [`judge()`]
//! makes a verdict of that for a mode: run it, ask, or refuse.
//!
//! ```text
//! text ─ reader, quoting, expansion, heredoc ─► words ─ grammar, compound ─► script
//! script ─ unfold, dispatch, wrappers, effects (tables: programs, reaches, subcommands) ─► Command
//! Command ─ findings, written (tables: protected) ─► [`Finding`]s ─ judge ─► Verdict
//! ```
//!
//! The parser is our own. `brush-parser` brings some 60 packages (two parser generators among them); `yash-syntax` is under the GPL; `conch-parser` is no longer kept;
//! `tree-sitter-bash` is C. And none of them has the answer that matters most here: "this I do not know".
//!
//! Invariants: nothing panics and nothing takes more than linear time and bounded stack, whatever the text; every program
//! that bash would start is listed, or the line is [`Unclear`]; what is unclear is asked about. This decides whom to ask.
//! It does not contain anything: a script in the project may do what it likes once it runs.
//! Proof: `tests/shell_*.rs`: tables of lines with their verdicts, properties over arbitrary text and generated scripts,
//! and a comparison with the programs that a real bash starts.

mod bindings;
mod builders;
mod compound;
mod concern;
mod directories;
mod dispatch;
mod effects;
mod expansion;
mod filters;
mod find;
mod findings;
mod git;
mod grammar;
mod heredoc;
mod invocation;
mod judge;
mod listing;
mod pattern;
mod place;
mod programs;
mod project_code;
mod protected;
mod quoting;
mod reaches;
mod reader;
mod script;
mod shells;
mod subcommands;
mod unclear;
mod unfold;
mod variables;
mod word;
mod words;
mod wrappers;
mod written;

pub use concern::Concern;
pub use findings::{Finding, Touch, findings, findings_of_path, is_common_path};
pub use invocation::{Argument, Command, Flags, Invocation, Nature, Reason, Risk, Via};
pub use judge::{Mode, Scope, Verdict, judge};
pub use place::Place;
pub use unclear::Unclear;

/// Reads a command line.
///
/// ```
/// let command = swb_rules::shell::parse("sudo rm -rf /var/log | tee $(date +%F).txt");
/// let programs: Vec<_> = command.invocations.iter().map(|invocation| invocation.program.as_str()).collect();
/// assert_eq!(programs, ["sudo", "rm", "date", "tee"]);
/// assert!(command.flags.privilege);
/// ```
#[must_use]
pub fn parse(line: &str) -> Command {
    let mut refused = Command::default();
    if line.chars().any(is_invisible) {
        refused.doubt(Unclear::Invisible);
        return refused;
    }
    let shared = reader::Shared::default();
    match grammar::read_script(line, 0, &shared) {
        Ok(script) => {
            let mut walk = unfold::Unfold::new(&shared, &script);
            walk.script(&script);
            if shared.arithmetic.get() && shared.sleeping_command.get() {
                // Arithmetic evaluates the text of variables; quoted text may be a command by then.
                walk.command.doubt(Unclear::Script { program: "((…))".to_owned() });
            }
            // `${NAME:=value}` sets a variable in passing.
            for name in shared.assigned.borrow().iter() {
                walk.steering(name);
            }
            for name in shared.variables.borrow().iter().filter(|name| variables::sounds_secret(name)) {
                walk.command.blame(
                    Concern::Exposes,
                    Risk::Medium,
                    format!("uses the value of `{name}`, which may be a secret"),
                );
            }
            walk.command
        }
        Err(unclear) => {
            refused.doubt(unclear);
            refused
        }
    }
}

/// Characters that make a line look different from what it is.
pub(crate) fn is_invisible(character: char) -> bool {
    (character.is_control() && !matches!(character, '\n' | '\t'))
        || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
