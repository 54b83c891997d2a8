//! Builders that are told to run something else than the project's own code, or to install it.
//!
//! `make`, `cargo` and the like run what the project says, and that is allowed where the project is. An option or a
//! variable on the command line that names another program is not the project's word but the line's.

use super::concern::Concern;
use super::invocation::Risk;
use super::programs::lists;
use super::unfold::Unfold;
use super::variables::steers_programs;
use super::word::Word;
use super::words::Arguments;

const COMPILERS: &str = "c++ cc clang clang++ g++ gcc";
const INSTALLERS: &str = "make gmake ninja meson just cmake ant";

impl Unfold<'_> {
    /// Looks at what a builder is told beside what the project says.
    pub(super) fn builder(&mut self, program: &str, arguments: &[Word]) {
        let sorted = Arguments::new(arguments);
        let is_make = matches!(program, "make" | "gmake");
        if is_steered(program, &sorted) || is_make && sorted.texts().any(|text| overrides(&text)) {
            self.command.blame(
                Concern::Steers,
                Risk::High,
                format!("`{program}` is told to run something that is not in the project"),
            );
        }
        let installs = |text: &str| {
            text == "--install" || text.trim_start_matches("un").split('-').next() == Some("install")
        };
        if lists(INSTALLERS, program) && sorted.texts().any(|text| installs(&text)) {
            self.command.blame(Concern::Installs, Risk::Medium, format!("`{program}` installs software"));
        }
    }
}

fn is_steered(program: &str, sorted: &Arguments<'_>) -> bool {
    let any = |wanted: &dyn Fn(&str) -> bool| sorted.texts().any(|text| wanted(&text));
    match program {
        "make" | "gmake" => sorted.has_any(&["E", "--eval"]),
        "cargo" => sorted.has("--config"),
        "go" => any(&|text| {
            let name = text.trim_start_matches('-').split('=').next().unwrap_or_default();
            text.starts_with('-') && matches!(name, "exec" | "toolexec" | "vettool" | "overlay")
        }),
        // `cmake -E` is a tool box of its own: it copies, removes and runs.
        "cmake" => any(&|text| text == "-E" || text == "-P"),
        "just" => sorted.has_any(&["c", "--command", "--shell", "--shell-arg", "--chooser"]),
        "npm" | "pnpm" | "yarn" | "bun" => sorted.has("--script-shell"),
        "rustc" | "rustdoc" => any(&|text| text.contains("linker=") || text.contains("runtool")),
        compiler if lists(COMPILERS, compiler) => {
            any(&|text| text == "-wrapper" || text.starts_with("-fplugin") || text.starts_with("-specs"))
        }
        _ => false,
    }
}

/// A variable on the command line of `make` that may become a program.
fn overrides(text: &str) -> bool {
    let Some((name, value)) = text.split_once('=') else { return false };
    let name = name.trim_end_matches([':', '+', '?', '!']);
    if name.starts_with('-') || name.is_empty() {
        return false;
    }
    let is_shell_text =
        value.contains(['$', '`', ';', '|', '&', '<', '>', '(', '\n']) || name == ".SHELLFLAGS";
    let may_be_command = value.contains(char::is_whitespace) && !name.ends_with("FLAGS");
    steers_programs(name) || is_shell_text || may_be_command
}
