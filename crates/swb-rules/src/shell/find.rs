//! `find`: what it reads, what it removes and what it runs.

use super::concern::Concern;
use super::invocation::{Nature, Risk, Via};
use super::listing::{below, find_starts};
use super::place::Place;
use super::unclear::Unclear;
use super::unfold::{Streams, Unfold};
use super::word::Word;

impl Unfold<'_> {
    /// `find`, with the commands it runs.
    pub(super) fn find(&mut self, arguments: &[Word], streams: &Streams) {
        let starts: Vec<Word> = find_starts(arguments).cloned().collect();
        self.invoke("find", None, arguments, streams, Nature::Reads);
        let places: Vec<Place> = starts.iter().flat_map(|word| self.places_of(word)).collect();
        let texts: Vec<_> = arguments.iter().map(Word::text).collect();
        if let Some(invocation) = self.command.invocations.last_mut() {
            invocation.reads.extend(places);
        }
        let roots = if starts.is_empty() { vec![Word::quoted(".")] } else { starts };
        let mut at = 0;
        while at < arguments.len() {
            let text = texts[at].as_deref();
            at += 1;
            match text {
                None => self.command.doubt(Unclear::Script { program: "find".to_owned() }),
                Some("-delete") => {
                    self.command.flags.destructive = true;
                    self.command.blame(Concern::Deletes, Risk::Medium, "removes whatever is found");
                    let places: Vec<Place> =
                        roots.iter().flat_map(|root| self.places_of(&below(root))).collect();
                    if let Some(invocation) = self.command.invocations.last_mut() {
                        invocation.nature = Nature::Writes;
                        invocation.writes.extend(places);
                    }
                }
                Some("-fprint" | "-fprint0" | "-fprintf" | "-fls") => {
                    let places = arguments.get(at).map(|word| self.places_of(word)).unwrap_or_default();
                    if let Some(invocation) = self.command.invocations.last_mut() {
                        invocation.nature = Nature::Writes;
                        invocation.writes.extend(places);
                    }
                }
                Some("-files0-from") => self.command.doubt(Unclear::Script { program: "find".to_owned() }),
                Some(action @ ("-exec" | "-execdir" | "-ok" | "-okdir")) => {
                    let end = texts[at..].iter().position(|text| matches!(text.as_deref(), Some(";" | "+")));
                    let end = end.map_or(arguments.len(), |end| at + end);
                    let words: Vec<Word> =
                        arguments[at..end].iter().flat_map(|word| found_words(word, &roots)).collect();
                    self.via.push(Via::Program("find".to_owned()));
                    self.apart(|walk| {
                        if action.ends_with("dir") {
                            walk.directories.lose();
                        }
                        walk.run(&words, &Streams::default());
                    });
                    self.via.pop();
                    at = end;
                }
                Some(_) => {}
            }
        }
    }
}

/// What `find` puts in the place of `{}`.
fn found_words(word: &Word, roots: &[Word]) -> Vec<Word> {
    match word.text() {
        Some(text) if text == "{}" => roots.iter().map(below).collect(),
        // Inside a longer word, or inside a script: what it becomes is not followed.
        Some(text) if text.contains("{}") => vec![Word::unknown()],
        _ => vec![word.clone()],
    }
}
