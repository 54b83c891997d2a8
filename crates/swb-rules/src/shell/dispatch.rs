//! From the words of one command to the program that really runs, through wrappers and builtins that run others.

use super::concern::Concern;
use super::invocation::{Nature, Risk, Via};
use super::listing::below;
use super::place::Place;
use super::subcommands::is_shell;
use super::unclear::{MAX_DEPTH, Unclear};
use super::unfold::{Streams, Unfold};
use super::word::Word;
use super::words::{Arguments, values_of};
use super::wrappers::{Wrapper, wrapper};

/// Folders whose programs are those of the system.
const SYSTEM_FOLDERS: &[&str] = &[
    "/bin/",
    "/sbin/",
    "/usr/bin/",
    "/usr/sbin/",
    "/usr/local/bin/",
    "/usr/local/sbin/",
    "/opt/homebrew/bin/",
];

impl Unfold<'_> {
    /// Runs words as a command.
    pub(super) fn run(&mut self, words: &[Word], streams: &Streams) {
        let Some((first, arguments)) = words.split_first() else { return };
        let name = first.literal().filter(|name| !name.is_empty() && !name.contains(char::is_control));
        let Some(name) = name else {
            self.command.doubt(Unclear::Program { word: first.shown() });
            self.invoke(&first.shown(), None, arguments, streams, Nature::Unknown);
            return;
        };
        if self.depth >= MAX_DEPTH {
            return self.command.doubt(Unclear::TooDeep);
        }
        self.depth += 1;
        self.run_named(&name, arguments, streams);
        self.depth -= 1;
    }

    fn run_named(&mut self, name: &str, arguments: &[Word], streams: &Streams) {
        let system = SYSTEM_FOLDERS
            .iter()
            .find_map(|folder| name.strip_prefix(folder))
            .filter(|rest| !rest.contains('/'));
        let program = system.unwrap_or(name);
        if program.contains('/') {
            for here in self.directories.here().to_vec() {
                let file = Place::of_text(program, &here);
                let base = program.rsplit('/').next().unwrap_or(program).to_owned();
                self.touch_suspected(&base, Some(file), arguments, streams);
            }
            return;
        }
        if self.via.iter().any(|via| matches!(via, Via::Function(function) if function == program)) {
            self.command.flags.destructive = true;
            self.command.blame(
                Concern::Destroys,
                Risk::Critical,
                format!("`{program}` starts itself over and over"),
            );
            return;
        }
        match program {
            "cd" | "pushd" | "popd" => self.change_directory(program, arguments, streams),
            "eval" => {
                self.invoke(program, None, arguments, streams, Nature::Idle);
                self.text_from_words(program, arguments);
            }
            "source" | "." => {
                self.invoke(program, None, arguments, streams, Nature::Runs);
                self.script_file(arguments.first());
                // A script of the project is trusted like the project; any other one may leave the shell anywhere.
                let stays = arguments
                    .first()
                    .is_some_and(|word| self.places_of(word).iter().all(Place::is_below_start));
                if !stays {
                    self.directories.lose();
                }
            }
            "trap" => {
                self.invoke(program, None, arguments, streams, Nature::Idle);
                self.text_from_words(program, arguments.get(..1).unwrap_or_default());
            }
            "alias" => {
                self.invoke(program, None, arguments, streams, Nature::Idle);
                // From here on a name may mean anything.
                if !arguments.is_empty() {
                    self.command.doubt(Unclear::Script { program: program.to_owned() });
                }
                for word in arguments {
                    if let Some((_, value)) = word.text().as_deref().and_then(|text| text.split_once('=')) {
                        self.text(program, Some(value.to_owned()));
                    }
                }
            }
            "find" => self.find(arguments, streams),
            shell if is_shell(shell) => self.shell(shell, arguments, streams),
            "fish" | "csh" | "tcsh" | "pwsh" | "nu" | "elvish" | "xonsh" => {
                self.command.doubt(Unclear::ForeignCode { program: program.to_owned() });
                self.invoke(program, None, arguments, streams, Nature::Unknown);
            }
            _ => match wrapper(program) {
                Some(wrapper) => self.wrapped(wrapper, arguments, streams),
                None => self.touch(program, arguments, streams),
            },
        }
    }

    fn change_directory(&mut self, program: &str, arguments: &[Word], streams: &Streams) {
        self.invoke(program, None, arguments, streams, Nature::Idle);
        let operands = Arguments::new(arguments).operands();
        match (program, operands.as_slice()) {
            ("cd", []) => self.directories.change(vec![Place::home()]),
            ("cd" | "pushd", [word]) if word.text().as_deref() != Some("-") => {
                let mut places = self.places_of(word);
                for place in &mut places {
                    // Which folder a pattern finds is not known.
                    if place.pattern {
                        *place = Place::unknown(word.shown());
                    }
                }
                self.directories.change(places);
            }
            _ => self.directories.lose(),
        }
    }

    fn wrapped(&mut self, wrapper: &'static Wrapper, arguments: &[Word], streams: &Streams) {
        let name = wrapper.name;
        self.command.flags.background |= wrapper.background;
        if wrapper.privilege {
            self.command.flags.privilege = true;
            self.command.blame(
                Concern::Privilege,
                Risk::High,
                format!("`{name}` runs a command as another user"),
            );
        }
        let mut found = match wrapper.unwrap_arguments(arguments) {
            Ok(found) => found,
            Err(unclear) => {
                self.command.doubt(unclear);
                self.invoke(name, None, arguments, streams, Nature::Unknown);
                return;
            }
        };
        let sorted = Arguments::new(arguments);
        if name == "command" && sorted.has_any(&["v", "V"]) && !found.command.is_empty() {
            self.invoke(name, None, arguments, streams, Nature::Idle);
            return;
        }
        let split = values_of(arguments, &["S", "--split-string"]);
        if sorted.has_any(wrapper.opaque)
            || (name == "env" && sorted.has_any(&["S", "--split-string"]) && split.is_empty())
        {
            self.command.doubt(Unclear::Script { program: name.to_owned() });
        }
        for assignment in &found.assignments {
            self.steering(&assignment.name);
        }
        self.invoke(name, None, arguments, streams, Nature::Idle);
        if name == "xargs" {
            let places: Vec<Place> =
                argument_files(arguments).iter().flat_map(|word| self.places_of(word)).collect();
            if let Some(invocation) = self.command.invocations.last_mut() {
                invocation.reads.extend(places);
            }
        }
        let inner = Streams { redirects: Vec::new(), ..streams.clone() };
        self.via.push(Via::Program(name.to_owned()));
        match name {
            "env" if !split.is_empty() => {
                self.text_from_words(name, &split.into_iter().cloned().collect::<Vec<_>>());
            }
            "env" if found.command.is_empty() => {
                self.command.blame(
                    Concern::Exposes,
                    Risk::Medium,
                    "shows the environment, which may hold keys",
                );
            }
            "xargs" => {
                if found.command.is_empty() {
                    found.command.push(Word::quoted("echo"));
                }
                if let Some(mark) = replacement(arguments) {
                    for word in found.command.iter_mut().filter(|word| word.shown().contains(&mark)) {
                        *word = Word::unknown();
                    }
                }
                match &streams.lists_below {
                    Some(roots) => found.command.extend(roots.iter().map(below)),
                    None => found.command.push(Word::unknown()),
                }
                self.run(&found.command, &Streams::default());
            }
            "ssh" => {
                self.command.flags.network = true;
                self.command.blame(Concern::Network, Risk::High, "runs something on another machine");
                if sorted.has_any(&["o", "F", "E", "L", "R", "D", "J", "w", "S", "I"]) {
                    self.command.blame(
                        Concern::Steers,
                        Risk::High,
                        "gives ssh options that can run programs or open tunnels",
                    );
                }
                self.apart(|walk| {
                    walk.directories.lose();
                    walk.text_from_words(name, &found.command);
                });
            }
            "watch" => self.text_from_words(name, &found.command),
            "flock" if found.command.first().and_then(Word::text).as_deref() == Some("-c") => {
                self.text_from_words(name, &found.command[1..]);
            }
            _ => self.run(&found.command, &inner),
        }
        self.via.pop();
    }
}

/// Files that `xargs` reads its list from: `-a FILE`, `--arg-file=FILE`.
fn argument_files(arguments: &[Word]) -> Vec<Word> {
    let mut files = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        let Some(text) = word.text() else { continue };
        let attached = match text.strip_prefix("--") {
            Some(long) => {
                let (name, value) = long.split_once('=').unwrap_or((long, ""));
                if name.is_empty() || !"arg-file".starts_with(name) {
                    continue;
                }
                value
            }
            None => match text.strip_prefix('-').and_then(|cluster| cluster.split_once('a')) {
                Some((_, value)) => value,
                None => continue,
            },
        };
        if attached.is_empty() {
            files.extend(arguments.get(at + 1).cloned());
        } else {
            files.push(Word::quoted(attached));
        }
    }
    files
}

/// The text for which `xargs` puts in what it reads, if it does not append it.
fn replacement(arguments: &[Word]) -> Option<String> {
    if !Arguments::new(arguments).has_any(&["I", "i", "--replace"]) {
        return None;
    }
    let next = values_of(arguments, &["I"]).first().and_then(|word| word.text());
    let attached = arguments.iter().filter_map(Word::text).find_map(|text| {
        let mark = text
            .strip_prefix("--replace=")
            .or_else(|| text.strip_prefix("-I"))
            .or_else(|| text.strip_prefix("-i"))?;
        (!mark.is_empty()).then(|| mark.to_owned())
    });
    Some(attached.or(next).unwrap_or_else(|| "{}".to_owned()))
}
