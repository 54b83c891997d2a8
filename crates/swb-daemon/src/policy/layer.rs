//! The rules of one folder: those in force, and what is wrong with the files if they cannot be used now.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use swb_journal::watch::{Signal, Subscription, subscribe};
use swb_policy::rule_folder::{Found, RuleFolder, sources};
use swb_rules::policy::{LoadError, Loaded, Restrictions, Rules, Source};

/// How files become rules.
pub type Load<T> = fn(&[Source<'_>]) -> Result<Loaded<T>, Vec<LoadError>>;

/// How the user's files become rules, with those everyone starts with or without.
#[must_use]
pub fn load_of(defaults: bool) -> Load<Rules> {
    if defaults { Rules::load } else { Rules::load_without_defaults }
}

/// A set of rules of either sort.
pub(super) trait RuleSet {
    fn count(&self) -> usize;
}

impl RuleSet for Rules {
    fn count(&self) -> usize {
        self.rules().count()
    }
}

impl RuleSet for Restrictions {
    fn count(&self) -> usize {
        self.rules().count()
    }
}

/// What a layer holds at one moment.
#[derive(Debug)]
pub(super) struct Kept<T> {
    /// The rules in force; none if there never were any that could be used.
    pub(super) rules: Option<Arc<T>>,
    /// What is wrong with the files as they are now.
    pub(super) problems: Vec<LoadError>,
    pub(super) warnings: Vec<LoadError>,
}

impl<T: RuleSet> Kept<T> {
    /// How many rules are in force; none if everything is denied.
    pub(super) fn count(&self) -> Option<usize> {
        self.rules.as_ref().map(|rules| rules.count())
    }
}

/// What reading again has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// The files say what they said before.
    Same,
    /// Other rules are in force.
    Updated,
    /// The files cannot be used; what was in force still is.
    Rejected,
}

/// How a layer stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// Rules in force.
    pub rules: usize,
    /// What is wrong with the files as they are now.
    pub problems: Vec<LoadError>,
    /// What looks wrong although it is not.
    pub warnings: Vec<LoadError>,
    /// There were never rules that could be used: everything is denied.
    pub denies_everything: bool,
}

/// The rules of a folder, and an ear for changes of it.
#[derive(Debug)]
pub(super) struct Layer<T> {
    folder: RuleFolder,
    load: Load<T>,
    kept: RwLock<Arc<Kept<T>>>,
    signal: Arc<Signal>,
    /// Held while files are read, so that an older look never replaces a newer one.
    look: Mutex<Look>,
}

#[derive(Debug, Default)]
struct Look {
    seen: Option<blake3::Hash>,
    /// Where files really lie that are links.
    linked: Vec<PathBuf>,
    subscriptions: Vec<Subscription>,
    /// Some folder could not be watched.
    is_deaf: bool,
}

impl<T> Layer<T> {
    /// Reads a folder for the first time; `bell` is raised whenever it may have changed.
    pub(super) fn open(folder: RuleFolder, load: Load<T>, bell: &Arc<Signal>) -> Self {
        let signal = Arc::new(Signal::default());
        let bell = Arc::clone(bell);
        signal.set_waker(move || bell.raise());
        let nothing = Kept { rules: None, problems: Vec::new(), warnings: Vec::new() };
        let layer =
            Layer { folder, load, kept: RwLock::new(Arc::new(nothing)), signal, look: Mutex::default() };
        layer.read_again();
        layer
    }

    pub(super) fn kept(&self) -> Arc<Kept<T>> {
        Arc::clone(&self.kept.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at the files, and takes what they say if it can be used.
    pub(super) fn read_again(&self) -> Reading {
        let mut look = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        // First the ears, then the eyes: a change after this look rings.
        let read = loop {
            self.listen(&mut look);
            let read = self.folder.read();
            match &read {
                Ok(Found { linked, .. }) if *linked != look.linked => look.linked.clone_from(linked),
                _ => break read,
            }
        };
        let seen = fingerprint(&read);
        if look.seen == Some(seen) {
            return Reading::Same;
        }
        look.seen = Some(seen);
        let loaded = read.and_then(|found| (self.load)(&sources(&found.files)));
        let (kept, reading) = match loaded {
            Ok(Loaded { rules, warnings }) => {
                (Kept { rules: Some(Arc::new(rules)), problems: Vec::new(), warnings }, Reading::Updated)
            }
            Err(problems) => {
                let before = self.kept();
                (Kept { rules: before.rules.clone(), problems, warnings: Vec::new() }, Reading::Rejected)
            }
        };
        *self.kept.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(kept);
        reading
    }

    /// Whether changes may go unnoticed.
    pub(super) fn is_deaf(&self) -> bool {
        self.look.lock().unwrap_or_else(PoisonError::into_inner).is_deaf
    }

    /// Watches the folder and those it lies in, as far as they are ours or do not exist yet, and where its links lead.
    fn listen(&self, look: &mut Look) {
        // The old ones go first: their end would also end a new watch on the same path.
        let Look { subscriptions, is_deaf, linked, .. } = look;
        subscriptions.clear();
        *is_deaf = false;
        let mut hear = |folder: &Path, prefix: &str| match subscribe(folder, prefix, &self.signal) {
            Ok(subscription) => subscriptions.push(subscription),
            // Whether it went away meanwhile is heard from the folder above it.
            Err(_) => *is_deaf |= folder.is_dir(),
        };
        if self.folder.path().is_dir() {
            hear(self.folder.path(), "");
        }
        let mut below = self.folder.path();
        while let (Some(above), Some(name)) = (below.parent(), below.file_name()) {
            if above.is_dir() {
                hear(above, &name.to_string_lossy());
                if self.folder.anchor().starts_with(above) {
                    break;
                }
            }
            below = above;
        }
        for file in &*linked {
            if let (Some(folder), Some(name)) = (file.parent(), file.file_name()) {
                hear(folder, &name.to_string_lossy());
            }
        }
    }
}

/// The same for the same files and the same errors.
fn fingerprint(read: &Result<Found, Vec<LoadError>>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut part = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    match read {
        Ok(found) => found.files.iter().for_each(|file| {
            part(&file.name);
            part(&file.text);
        }),
        Err(errors) => {
            part("errors");
            errors.iter().for_each(|error| part(&error.to_string()));
        }
    }
    hasher.finalize()
}
