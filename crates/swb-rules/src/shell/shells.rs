//! Text and files that are run as shell scripts: `bash -c`, `bash FILE`, `eval`, input of a shell.

use super::concern::Concern;
use super::grammar::read_script;
use super::invocation::{Nature, Risk, Via};
use super::script::RedirectKind;
use super::unclear::Unclear;
use super::unfold::{Streams, Unfold};
use super::word::Word;

impl Unfold<'_> {
    /// A shell: what it is told to run is read like the line itself.
    pub(super) fn shell(&mut self, name: &str, arguments: &[Word], streams: &Streams) {
        self.invoke(name, None, arguments, streams, Nature::Idle);
        self.via.push(Via::Program(name.to_owned()));
        match shell_arguments(arguments) {
            None => self.command.doubt(Unclear::Script { program: name.to_owned() }),
            Some(ShellScript::Text(word)) => {
                let text = word.and_then(Word::literal);
                self.apart(|walk| walk.text(name, text));
            }
            Some(ShellScript::File(word)) => self.script_file(Some(word)),
            Some(ShellScript::Input) => self.shell_input(name, streams),
        }
        self.via.pop();
    }

    fn shell_input(&mut self, name: &str, streams: &Streams) {
        if streams.from_network {
            self.command.flags.destructive = true;
            self.command.blame(Concern::BringsCode, Risk::Critical, "runs what it downloads");
        }
        let text = streams.redirects.iter().rev().find_map(|redirect| match redirect.kind {
            RedirectKind::HereString => Some(redirect.target.literal()),
            RedirectKind::HereDocument(number) => {
                Some(self.shared.document(number).and_then(|body| body.literal()))
            }
            _ => None,
        });
        self.via.push(Via::Input);
        self.apart(|walk| walk.text(name, text.flatten()));
        self.via.pop();
    }

    /// A script that is a file: it is project code if it lies in the project.
    pub(super) fn script_file(&mut self, word: Option<&Word>) {
        let Some(word) = word else { return };
        let places = self.places_of(word);
        if places.is_empty() {
            self.command.doubt(Unclear::Script { program: word.shown() });
        }
        for place in places {
            // Which files a pattern finds is not known, so neither is what would run.
            if place.pattern {
                self.command.doubt(Unclear::Script { program: word.shown() });
            }
            let name = word.shown();
            let invocation = self.invoke(&name, Some(place.clone()), &[], &Streams::default(), Nature::Runs);
            invocation.reads.push(place);
        }
    }

    /// Words joined to one text, as `eval` does, and read.
    pub(super) fn text_from_words(&mut self, program: &str, words: &[Word]) {
        let texts: Option<Vec<String>> = words.iter().map(Word::literal).collect();
        self.text(program, texts.map(|texts| texts.join(" ")));
    }

    /// Text that `program` would run as a shell script.
    pub(super) fn text(&mut self, program: &str, text: Option<String>) {
        let Some(text) = text else {
            return self.command.doubt(Unclear::Script { program: program.to_owned() });
        };
        match read_script(&text, self.depth + 1, self.shared) {
            Ok(script) => {
                self.depth += 1;
                self.script(&script);
                self.depth -= 1;
            }
            Err(unclear) => self.command.doubt(unclear),
        }
    }
}

/// Where a shell takes its script from.
enum ShellScript<'a> {
    Text(Option<&'a Word>),
    File(&'a Word),
    Input,
}

/// Takes the arguments of a shell apart as the shell does; `None` if an option is not known.
fn shell_arguments(arguments: &[Word]) -> Option<ShellScript<'_>> {
    let (mut from_text, mut from_input) = (false, false);
    let mut rest = arguments.iter();
    let mut operand = None;
    while let Some(word) = rest.next() {
        let text = word.text()?;
        match text.as_str() {
            "--" | "-" => {
                operand = rest.next();
                break;
            }
            "--login" | "--norc" | "--noprofile" | "--posix" | "--verbose" | "--restricted" => {}
            long if long.starts_with("--") => return None,
            short if short.len() > 1 && short.starts_with(['-', '+']) => {
                from_text |= short.starts_with('-') && short.contains('c');
                from_input |= short.contains('s');
                // Each `o` takes the name of a setting from the words that follow.
                for _ in short.matches(['o', 'O']) {
                    // Patterns that match hidden files mean other files than they seem to.
                    let name = rest.next().and_then(Word::text).unwrap_or_default().to_ascii_lowercase();
                    if name.replace('_', "").contains("dot") {
                        return None;
                    }
                }
            }
            _ => {
                operand = Some(word);
                break;
            }
        }
    }
    Some(match operand {
        _ if from_text => ShellScript::Text(operand),
        Some(file) if !from_input => ShellScript::File(file),
        _ => ShellScript::Input,
    })
}
