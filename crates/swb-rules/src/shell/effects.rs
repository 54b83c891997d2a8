//! What an ordinary program reads and writes, told by the tables and its arguments.

use super::concern::Concern;
use super::filters::{SedArguments, awk_is_plain, jq_is_plain};
use super::invocation::{Nature, Risk, Via};
use super::listing::below;
use super::place::Place;
use super::programs::{Operands, Program, lookup};
use super::reaches::reach_of;
use super::subcommands;
use super::unclear::Unclear;
use super::unfold::{Streams, Unfold};
use super::word::Word;
use super::words::{Arguments, may_be_path};

/// Builtins that give variables their values.
const SETTERS: &[&str] = &[
    "declare",
    "export",
    "getopts",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "typeset",
    "unset",
    "wait",
];

impl Unfold<'_> {
    /// A program that runs no other one.
    pub(super) fn touch(&mut self, program: &str, arguments: &[Word], streams: &Streams) {
        if let Some((_, moves)) = self.functions.iter().find(|(name, _)| name == program).cloned() {
            if moves {
                self.directories.lose();
            }
            if lookup(program).is_none() && reach_of(program).is_none() {
                self.invoke(program, None, arguments, streams, Nature::Idle);
                return;
            }
        }
        if let Some(reach) = reach_of(program) {
            self.command.flags.network |= reach.network;
            self.command.flags.privilege |= reach.privilege;
            self.command.flags.destructive |= reach.destructive;
            self.command.blame(reach.concern, reach.risk, format!("`{program}` {}", reach.reason));
            self.invoke(program, None, arguments, streams, Nature::Reaches);
            return self.suspect_reads(arguments);
        }
        if program == "git" {
            return self.git(arguments, streams);
        }
        if subcommands::has_subcommands(program) {
            let sorted = Arguments::new(arguments);
            let act = match sorted.first() {
                Some(name) => subcommands::lookup(program, name.trim_start_matches('+')),
                None if sorted.has_any(&["--version", "V", "v", "--help", "h", "--list"]) => {
                    Some(subcommands::READS)
                }
                None => None,
            };
            // `cargo +nightly build`, and options with values before the subcommand.
            let act = act.or_else(|| {
                sorted
                    .operands()
                    .get(1)
                    .and_then(|word| word.literal())
                    .and_then(|name| subcommands::lookup(program, &name))
            });
            self.builder(program, arguments);
            return self.act(program, act, arguments, streams);
        }
        if let Some(interpreter) = subcommands::interpreter(program) {
            return self.interpret(program, interpreter, arguments, streams);
        }
        if program == "dd" {
            return self.dd(arguments, streams);
        }
        match lookup(program) {
            Some(known) if known.nature == Nature::Runs => {
                self.builder(program, arguments);
                self.touch_suspected(program, None, arguments, streams);
            }
            Some(known) => self.touch_known(known, arguments, streams),
            None => {
                self.command.blame(
                    Concern::Unknown,
                    Risk::Medium,
                    format!("`{program}` is not a known program"),
                );
                self.invoke(program, None, arguments, streams, Nature::Unknown);
                self.suspect_reads(arguments);
            }
        }
    }

    fn touch_known(&mut self, known: Program, arguments: &[Word], streams: &Streams) {
        let program = known.name;
        let bundled = bundled_options(program, arguments);
        let arguments = bundled.as_deref().unwrap_or(arguments);
        let sorted = Arguments::new(arguments);
        let mut nature = known.nature;
        if known.careful.split_ascii_whitespace().any(|option| sorted.has(option)) {
            self.command.blame(
                Concern::Steers,
                Risk::Medium,
                format!("`{program}` is given an option that makes it write or run something else"),
            );
            nature = Nature::Unknown;
        }
        if nature == Nature::Idle {
            self.builtin(program, arguments);
        }
        // `ps e`, without a dash, shows the environment of every process.
        let shows_environment = match program {
            "set" | "export" | "declare" | "typeset" | "readonly" => arguments.is_empty(),
            "ps" => sorted.texts().any(|text| !text.starts_with('-') && text.contains('e')),
            _ => false,
        };
        if shows_environment {
            self.command.blame(Concern::Exposes, Risk::Medium, "shows the environment, which may hold keys");
        }
        let mut operands = sorted.operands();
        let mut operand_use = known.operands;
        if operand_use == Operands::Expression {
            operand_use = Operands::Read;
            if program == "sed" {
                let sed = SedArguments::read(arguments).filter(SedArguments::is_plain);
                match &sed {
                    Some(sed) => operands.clone_from(&sed.files),
                    None => self.command.doubt(Unclear::ForeignCode { program: program.to_owned() }),
                }
                if sed.is_none_or(|sed| sed.in_place) {
                    (nature, operand_use) = (Nature::Writes, Operands::Written);
                }
            } else {
                self.expression(program, &sorted, &mut operands);
            }
        }
        if matches!(program, "xxd" | "uniq") && operands.len() < 2 {
            (nature, operand_use) = (Nature::Reads, Operands::Read);
        }
        if program == "tar" && sorted.has("t") && !sorted.has_any(&["x", "c", "r", "u", "A", "--delete"]) {
            (nature, operand_use) = (Nature::Reads, Operands::Read);
        }
        let removes_trees = program == "rm" && sorted.has_any(&["r", "R", "--recursive"]);
        self.whole_trees(program, &sorted);
        self.invoke(program, None, arguments, streams, nature);
        let (reads, writes) = self.split_operands(&sorted, &operands, operand_use);
        let through_list =
            self.via.iter().any(|via| matches!(via, Via::Program(name) if name == "xargs" || name == "find"));
        if through_list && nature == Nature::Writes {
            self.command.blame(
                Concern::Unclear,
                Risk::Medium,
                format!("`{program}` changes whatever is listed"),
            );
        }
        if let Some(invocation) = self.command.invocations.last_mut() {
            invocation.reads.extend(reads);
            invocation.writes.extend(writes);
            invocation.removes_trees = removes_trees;
        }
    }

    /// Builtins evaluate subscripts in what looks like a name: `test -v 'a[$(cmd)]'`.
    fn builtin(&mut self, program: &str, arguments: &[Word]) {
        let sorted = Arguments::new(arguments);
        let evaluates = !matches!(program, "echo" | "printf" | "expr" | "basename" | "dirname")
            || program == "printf" && sorted.has("v");
        for text in sorted.texts() {
            if evaluates && (text.contains('`') || text.contains("$(")) {
                self.command.doubt(Unclear::Script { program: program.to_owned() });
            }
        }
        if SETTERS.contains(&program) {
            for word in arguments {
                let shown = word.shown();
                self.steering(shown.split(['=', '[', '+']).next().unwrap_or_default());
            }
        }
        // A callback; patterns that suddenly match hidden files.
        let changes_meaning = matches!(program, "mapfile" | "readarray") && sorted.has("C")
            || program == "shopt" && sorted.texts().any(|text| text == "dotglob");
        if changes_meaning || program == "shopt" && sorted.has_unknown() {
            self.command.doubt(Unclear::Script { program: program.to_owned() });
        }
    }

    /// Takes the expression from the operands and looks whether it is harmless.
    fn expression(&mut self, program: &str, sorted: &Arguments<'_>, operands: &mut Vec<&Word>) {
        let by_option =
            sorted.has_any(&["e", "f", "--regexp", "--file", "--files", "--from-file", "--type-list"]);
        if !by_option && !operands.is_empty() {
            operands.remove(0);
        }
        let plain: fn(&str) -> bool = match program {
            "awk" | "gawk" | "mawk" => awk_is_plain,
            "jq" | "yq" => jq_is_plain,
            _ => return,
        };
        // Which argument is the program depends on options that take values, so all of them must be harmless.
        let all_plain = sorted.texts().filter(|text| !text.starts_with("-F")).all(|text| plain(&text));
        if !all_plain || sorted.has_unknown() {
            self.command.doubt(Unclear::ForeignCode { program: program.to_owned() });
        }
    }

    fn whole_trees(&mut self, program: &str, sorted: &Arguments<'_>) {
        if matches!(program, "chmod" | "chgrp") && sorted.has_any(&["R", "--recursive"]) {
            self.command.blame(
                Concern::Privilege,
                Risk::Medium,
                format!("`{program} -R` changes the rights of whole folders"),
            );
        }
        let set_id =
            |text: &str| text.contains("+s") || (text.len() == 4 && text.starts_with(['2', '4', '6']));
        if program == "chmod" && sorted.first().is_some_and(|mode| set_id(&mode)) {
            self.command.flags.privilege = true;
            self.command.blame(
                Concern::Privilege,
                Risk::High,
                "lets a program run with the rights of its owner",
            );
        }
        if program == "rm" && sorted.has("--no-preserve-root") {
            self.command.flags.destructive = true;
            self.command.blame(Concern::Destroys, Risk::Critical, "removes even the top of the file system");
        }
    }

    pub(super) fn split_operands(
        &self,
        sorted: &Arguments<'_>,
        operands: &[&Word],
        operand_use: Operands,
    ) -> (Vec<Place>, Vec<Place>) {
        let all = |words: &[&Word]| words.iter().flat_map(|word| self.places_of(word)).collect::<Vec<_>>();
        let in_options: Vec<Place> = sorted
            .paths_in_options()
            .iter()
            .flat_map(|text| self.directories.here().iter().map(move |here| option_path(text, here)))
            .collect();
        let (mut reads, mut writes) = match operand_use {
            Operands::Ignored => return (Vec::new(), Vec::new()),
            Operands::Read | Operands::Expression => (all(operands), Vec::new()),
            Operands::Written => (Vec::new(), all(operands)),
            Operands::Changed => (Vec::new(), all(operands.get(1..).unwrap_or_default())),
            Operands::Suspected => {
                let paths: Vec<&Word> = operands.iter().copied().filter(|word| may_be_path(word)).collect();
                (Vec::new(), all(&paths))
            }
            Operands::Copied if sorted.has_any(&["t", "--target-directory"]) => {
                (all(operands), all(operands))
            }
            Operands::Copied => match operands.split_last() {
                // What is copied into a folder lands below it, under its own name.
                Some((last, rest)) => {
                    let mut writes = self.places_of(last);
                    if last.text().is_some_and(|text| text.ends_with('/')) {
                        writes.extend(self.places_of(&below(last)));
                    }
                    (all(rest), writes)
                }
                None => (Vec::new(), Vec::new()),
            },
        };
        if matches!(operand_use, Operands::Read | Operands::Expression) {
            reads.extend(in_options);
        } else {
            writes.extend(in_options);
        }
        (reads, writes)
    }
}

/// `tar xzf` means `tar -xzf`.
fn bundled_options(program: &str, arguments: &[Word]) -> Option<Vec<Word>> {
    let (first, rest) = arguments.split_first()?;
    let text = first.text().filter(|text| program == "tar" && !text.starts_with('-'))?;
    Some(std::iter::once(Word::quoted(format!("-{text}"))).chain(rest.iter().cloned()).collect())
}

pub(super) fn option_path(text: &str, here: &Place) -> Place {
    // `curl -d @~/x` is not expanded by the shell, but some programs do it themselves.
    match text.strip_prefix("~/") {
        Some(rest) => Place::of_text(rest, &Place::home()),
        None => Place::of_text(text, here),
    }
}
