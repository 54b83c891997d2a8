//! Programs that run code or have subcommands: `git`, build tools, interpreters; and `dd`, which has a syntax of its own.
//!
//! What project code does is not looked into. It may run, and write, where the project is; every path it is given counts
//! as one it may write to.

use super::concern::Concern;
use super::effects::option_path;
use super::git::git;
use super::invocation::{Nature, Risk};
use super::place::{Place, Root};
use super::programs::Operands;
use super::subcommands::{Act, Interpreter, PYTHON_MODULES};
use super::unclear::Unclear;
use super::unfold::{Streams, Unfold};
use super::word::Word;
use super::words::{Arguments, may_be_path, values_of};

impl Unfold<'_> {
    /// A program that runs project code: it may write to any path it is given.
    pub(super) fn touch_suspected(
        &mut self,
        program: &str,
        file: Option<Place>,
        arguments: &[Word],
        streams: &Streams,
    ) {
        let sorted = Arguments::new(arguments);
        let (reads, writes) = self.split_operands(&sorted, &sorted.operands(), Operands::Suspected);
        let invocation = self.invoke(program, file, arguments, streams, Nature::Runs);
        invocation.reads.extend(reads);
        // Headers and libraries of the system are named all the time and cannot be written by these programs.
        let of_system = |place: &Place| {
            place.root == Root::Top
                && place
                    .parts
                    .first()
                    .is_some_and(|part| matches!(part.as_str(), "usr" | "lib" | "lib64" | "opt" | "nix"))
        };
        invocation.writes.extend(writes.into_iter().filter(|place| !of_system(place)));
    }

    /// Arguments of a program that is asked about anyway: only secrets among them matter.
    pub(super) fn suspect_reads(&mut self, arguments: &[Word]) {
        let sorted = Arguments::new(arguments);
        let mut places = Vec::new();
        for text in sorted.paths_in_options() {
            places.extend(self.directories.here().iter().map(|here| option_path(&text, here)));
        }
        for word in sorted.operands() {
            if let Some(text) = word.text() {
                let text = text.rsplit(['@', '=']).next().unwrap_or_default();
                places.extend(self.directories.here().iter().map(|here| option_path(text, here)));
            }
        }
        if let Some(invocation) = self.command.invocations.last_mut() {
            invocation.reads.extend(places);
        }
    }

    pub(super) fn git(&mut self, arguments: &[Word], streams: &Streams) {
        let parsed = git(arguments);
        for (risk, reason) in &parsed.concerns {
            self.command.blame(Concern::Steers, *risk, *reason);
        }
        self.apart(|walk| {
            if let Some(directory) = parsed.directory {
                let places = walk.places_of(directory);
                walk.directories.change(places);
            }
            walk.act("git", parsed.act, arguments, streams);
            let revisions: Vec<Word> = Arguments::new(parsed.arguments)
                .texts()
                .filter_map(|text| text.split_once(':').map(|(_, path)| Word::quoted(path)))
                .filter(|word| may_be_path(word) || word.text().is_some_and(|text| text.starts_with('.')))
                .collect();
            let places: Vec<Place> = revisions.iter().flat_map(|word| walk.places_of(word)).collect();
            if let Some(invocation) = walk.command.invocations.last_mut() {
                invocation.reads.extend(places);
            }
        });
    }

    pub(super) fn act(&mut self, program: &str, act: Option<Act>, arguments: &[Word], streams: &Streams) {
        let Some(act) = act else {
            self.command.blame(
                Concern::Unknown,
                Risk::Medium,
                format!("what `{program}` would do is not known"),
            );
            self.invoke(program, None, arguments, streams, Nature::Unknown);
            return self.suspect_reads(arguments);
        };
        self.command.flags.network |= act.network;
        self.command.flags.destructive |= act.destructive;
        if let Some((concern, risk, reason)) = act.concern {
            self.command.blame(concern, risk, format!("`{program}` {reason}"));
        }
        match act.nature {
            Nature::Runs | Nature::Writes => {
                self.touch_suspected(program, None, arguments, streams);
                if let Some(invocation) = self.command.invocations.last_mut() {
                    invocation.nature = act.nature;
                }
            }
            nature => {
                self.invoke(program, None, arguments, streams, nature);
                self.suspect_reads(arguments);
            }
        }
    }

    pub(super) fn interpret(
        &mut self,
        program: &str,
        interpreter: &Interpreter,
        arguments: &[Word],
        streams: &Streams,
    ) {
        let sorted = Arguments::new(arguments);
        if arguments.len() == 1 && sorted.has_any(&["--version", "V", "--help"]) {
            self.invoke(program, None, arguments, streams, Nature::Idle);
            return;
        }
        if sorted.has_any(interpreter.module) {
            let module = values_of(arguments, interpreter.module).first().and_then(|word| word.literal());
            if module.is_none_or(|module| !PYTHON_MODULES.contains(&module.as_str())) {
                self.command.doubt(Unclear::ForeignCode { program: program.to_owned() });
            }
            return self.touch_suspected(program, None, arguments, streams);
        }
        let script =
            sorted.operands().first().copied().filter(|word| word.text().is_none_or(|text| text != "-"));
        let before_script: Vec<Word> = arguments
            .iter()
            .take_while(|word| word.text().is_some_and(|text| text.starts_with('-')))
            .cloned()
            .collect();
        if script.is_none() || Arguments::new(&before_script).has_any(interpreter.inline) {
            self.command.doubt(Unclear::ForeignCode { program: program.to_owned() });
        }
        self.touch_suspected(program, None, arguments, streams);
        self.script_file(script);
    }

    pub(super) fn dd(&mut self, arguments: &[Word], streams: &Streams) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for word in arguments {
            let Some(text) = word.text() else {
                self.command.doubt(Unclear::Script { program: "dd".to_owned() });
                continue;
            };
            for here in self.directories.here() {
                if let Some(path) = text.strip_prefix("if=") {
                    reads.push(Place::of_text(path, here));
                } else if let Some(path) = text.strip_prefix("of=") {
                    writes.push(Place::of_text(path, here));
                }
            }
        }
        let invocation = self.invoke("dd", None, arguments, streams, Nature::Writes);
        invocation.reads.extend(reads);
        invocation.writes.extend(writes);
    }
}
