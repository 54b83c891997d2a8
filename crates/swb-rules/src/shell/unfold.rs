//! Walks a parsed script and lists every program that could run, with where it would run and how it is reached.

use super::bindings::Bindings;
use super::concern::Concern;
use super::directories::Directories;
use super::invocation::{Command, Invocation, Nature, Risk, Via};
use super::place::Place;
use super::reader::Shared;
use super::script::{Assignment, Block, BlockKind, Join, Node, Redirect, RedirectKind, Script, Simple};
use super::variables::steers_programs;
use super::word::Word;

/// The walk and what it has found.
pub(super) struct Unfold<'a> {
    pub(super) command: Command,
    pub(super) shared: &'a Shared,
    pub(super) directories: Directories,
    pub(super) bindings: Bindings,
    pub(super) via: Vec<Via>,
    /// Names of functions, and whether each changes the directory.
    pub(super) functions: Vec<(String, bool)>,
    pub(super) depth: usize,
    /// Some command of the whole line changes the directory.
    moves: bool,
}

/// What a command is connected to.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams {
    /// It reads from another command.
    pub(super) piped: bool,
    /// That command, or one before it, reaches the network.
    pub(super) from_network: bool,
    /// What is piped in are names of files below these places.
    pub(super) lists_below: Option<Vec<Word>>,
    pub(super) redirects: Vec<Redirect>,
}

impl<'a> Unfold<'a> {
    pub(super) fn new(shared: &'a Shared, script: &Script) -> Self {
        Self {
            command: Command::default(),
            shared,
            directories: Directories::start(),
            bindings: Bindings::default(),
            via: Vec::new(),
            functions: Vec::new(),
            depth: 0,
            moves: moves(script),
        }
    }

    pub(super) fn script(&mut self, script: &Script) {
        for item in script {
            if item.join != Join::And {
                self.directories.leave_chain();
            }
            if item.background {
                self.command.flags.background = true;
                self.apart(|walk| walk.node(&item.node, Streams::default()));
            } else {
                self.node(&item.node, Streams::default());
            }
        }
        self.directories.leave_chain();
    }

    /// Commands that run in a shell of their own: a `cd` in there changes nothing out here.
    pub(super) fn apart(&mut self, walk: impl FnOnce(&mut Self)) {
        let directories = self.directories.clone();
        walk(self);
        self.directories = directories;
    }

    fn node(&mut self, node: &Node, streams: Streams) {
        match node {
            Node::Simple(simple) => self.simple(simple, streams),
            Node::Block(block) => self.block(block),
            Node::Pipeline(members) => {
                let mut streams = Streams::default();
                for member in members {
                    let network_before = self.command.flags.network;
                    self.command.flags.network = false;
                    let lists_below = super::listing::lists_below(member, streams.lists_below.as_deref());
                    self.apart(|walk| walk.node(member, streams.clone()));
                    streams.piped = true;
                    streams.from_network |= self.command.flags.network;
                    streams.lists_below = lists_below;
                    self.command.flags.network |= network_before;
                }
            }
        }
    }

    fn block(&mut self, block: &Block) {
        self.words(&block.words);
        if !block.redirects.is_empty() {
            let redirects = block.redirects.clone();
            self.simple(&Simple { redirects, ..Simple::default() }, Streams::default());
        }
        match &block.kind {
            BlockKind::Subshell => self.apart(|walk| walk.script(&block.body)),
            BlockKind::Group | BlockKind::Branch => self.script(&block.body),
            BlockKind::Loop => self.repeated(&block.body),
            BlockKind::For(name) => {
                self.steering(name);
                self.bindings.enter(name, block);
                self.repeated(&block.body);
                self.bindings.leave();
            }
            BlockKind::Function(name) => {
                self.functions.push((name.clone(), moves(&block.body)));
                self.via.push(Via::Function(name.clone()));
                self.apart(|walk| {
                    // Where it will be called from is not known here if anything moves.
                    if walk.moves {
                        walk.directories.lose();
                    }
                    walk.script(&block.body);
                });
                self.via.pop();
            }
        }
    }

    fn repeated(&mut self, body: &Script) {
        if moves(body) {
            self.directories.lose();
        }
        self.script(body);
    }

    fn simple(&mut self, simple: &Simple, mut streams: Streams) {
        for assignment in &simple.assignments {
            self.assignment(assignment);
        }
        self.words(&simple.words);
        for redirect in &simple.redirects {
            self.words(std::slice::from_ref(&redirect.target));
            if let RedirectKind::HereDocument(number) = redirect.kind
                && let Some(body) = self.shared.document(number)
            {
                self.words(&[body]);
            }
        }
        streams.redirects.extend(simple.redirects.iter().cloned());
        if simple.words.is_empty() {
            if streams.redirects.iter().any(|redirect| redirect.kind != RedirectKind::Duplicate) {
                self.invoke(":", None, &[], &streams, Nature::Idle);
            }
            return;
        }
        self.run(&simple.words, &streams);
    }

    pub(super) fn assignment(&mut self, assignment: &Assignment) {
        self.words(std::slice::from_ref(&assignment.value));
        self.steering(&assignment.name);
    }

    /// A variable gets a value.
    pub(super) fn steering(&mut self, name: &str) {
        if steers_programs(name) {
            self.command.blame(
                Concern::Steers,
                Risk::High,
                format!("sets `{name}`, which steers what other programs do"),
            );
        }
    }

    /// Commands inside words.
    pub(super) fn words(&mut self, words: &[Word]) {
        for script in words.iter().flat_map(Word::scripts) {
            self.via.push(Via::Substitution);
            self.apart(|walk| walk.script(script));
            self.via.pop();
        }
    }

    /// Adds an invocation with the files of its redirections.
    pub(super) fn invoke(
        &mut self,
        program: &str,
        file: Option<Place>,
        arguments: &[Word],
        streams: &Streams,
        nature: Nature,
    ) -> &mut Invocation {
        let arguments = arguments
            .iter()
            .map(|word| super::invocation::Argument { text: word.shown(), known: word.literal().is_some() })
            .collect();
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for redirect in &streams.redirects {
            let places = self.places_of(&redirect.target);
            match redirect.kind {
                RedirectKind::Read => reads.extend(places),
                RedirectKind::Write | RedirectKind::Append => writes.extend(places),
                RedirectKind::ReadWrite => {
                    reads.extend(places.iter().cloned());
                    writes.extend(places);
                }
                RedirectKind::Duplicate | RedirectKind::HereString | RedirectKind::HereDocument(_) => {}
            }
        }
        self.command.invocations.push(Invocation {
            program: program.to_owned(),
            file,
            arguments,
            reads,
            writes,
            places: self.directories.here().to_vec(),
            via: self.via.clone(),
            nature,
            removes_trees: false,
        });
        let last = self.command.invocations.len() - 1;
        &mut self.command.invocations[last]
    }

    /// The places a word may name: one for each directory and each value of a followed variable.
    pub(super) fn places_of(&self, word: &Word) -> Vec<Place> {
        if word.pieces.iter().any(|piece| matches!(piece, super::word::Piece::Process(_)))
            && word.pieces.len() == 1
        {
            return Vec::new();
        }
        let mut places: Vec<Place> = Vec::new();
        for value in self.bindings.values(word) {
            for here in self.directories.here() {
                let place = Place::of_word(&value, here);
                if !places.iter().any(|known| super::directories::same(known, &place)) {
                    places.push(place);
                }
            }
        }
        places
    }
}

/// Whether some command may change the directory.
fn moves(script: &Script) -> bool {
    fn node_moves(node: &Node) -> bool {
        match node {
            Node::Pipeline(_) => false,
            Node::Block(block) => block.kind != BlockKind::Subshell && moves(&block.body),
            Node::Simple(simple) => {
                simple.words.first().is_some_and(|program| program.text().is_none())
                    || simple.words.iter().filter_map(Word::text).any(|text| {
                        matches!(text.as_str(), "cd" | "pushd" | "popd" | "eval" | "source" | ".")
                    })
            }
        }
    }
    script.iter().any(|item| node_moves(&item.node))
}
