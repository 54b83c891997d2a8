//! The sessions of a folder at a glance: which there are, what each is about, and how it stands.
//!
//! A history may be long and there may be thousands of them, so only the two ends of a file are read: its first lines
//! (which session, how the first turn begins) and its last ones, back to where the latest turn begins or ends. Nothing
//! is changed and nobody is kept from opening a session ([`super::lock`]). A file that makes no sense is listed with the
//! reason. Proof: the tests below; `swb-cli/tests/sessions.rs`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::OFlags;
use serde::Serialize;
use swb_proto::id;

use super::record::{Record, TurnOutcome, VERSION};
use super::{lock, store::SUFFIX};

/// What is read first of either end.
const WINDOW: u64 = 4 * 1024;
/// What is read at most: the first line may hold a long system prompt, the last turn long results.
const MOST: u64 = 8 * 1024 * 1024;

/// A session that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What `--continue` takes.
    pub id: String,
    /// When it was last written.
    pub updated_at: SystemTime,
    /// How long its file is.
    pub bytes: u64,
    path: PathBuf,
}

/// What a look at a session tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glance {
    /// Whether a process has it open.
    pub live: bool,
    /// What its file says, or why it cannot be read.
    pub known: Result<Known, String>,
}

/// What a file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Known {
    /// How the first prompt begins; it may hold anything that a prompt may hold.
    pub title: Option<String>,
    /// The folder it was started in.
    pub cwd: PathBuf,
    /// The model in use.
    pub model: String,
    /// When it was begun, in RFC 3339.
    pub created_at: String,
    /// How many turns there were; `None` if the last one is too long to see where it began.
    pub turns: Option<u64>,
    /// How the last turn stands.
    pub last_turn: LastTurn,
    /// The session that started this one, if it is a subagent's.
    pub parent: Option<String>,
}

/// How the last turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LastTurn {
    /// There was none.
    None,
    /// It came to its end.
    Done,
    /// Somebody aborted it.
    Cancelled,
    /// It broke off.
    Failed,
    /// It has begun: it is running if the session is live, and was cut short otherwise.
    Begun,
}

/// All sessions of a folder, the one that was written last first. A folder that does not exist has none.
pub fn newest_first(folder: &Path) -> io::Result<Vec<Listed>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut listed = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)) else { continue };
        // One that is gone by now, or cannot be continued anyway, is none.
        let Ok(metadata) = entry.metadata() else { continue };
        if id::check(id).is_ok() && metadata.is_file() {
            let updated_at = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            listed.push(Listed { id: id.to_owned(), updated_at, bytes: metadata.len(), path: entry.path() });
        }
    }
    listed.sort_unstable_by(|a, b| (b.updated_at, &b.id).cmp(&(a.updated_at, &a.id)));
    Ok(listed)
}

impl Listed {
    /// Looks at it.
    pub fn look(&self) -> Glance {
        // Whatever stands there by now: never wait for it.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        match OpenOptions::new().read(true).custom_flags(flags).open(&self.path) {
            Ok(file) => Glance { live: lock::is_held(&file), known: read(&file) },
            Err(error) => Glance { live: false, known: Err(error.to_string()) },
        }
    }
}

fn read(file: &File) -> Result<Known, String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let mut known = first_lines(file, length)?;
    last_lines(file, length, &mut known)?;
    Ok(known)
}

/// The session, and its title if a turn has begun.
fn first_lines(file: &File, length: u64) -> Result<Known, String> {
    let mut window = WINDOW;
    loop {
        let bytes = part(file, 0, window.min(length))?;
        let whole = length <= window || window >= MOST;
        let mut lines = whole_lines(&bytes);
        let Some(first) = lines.next() else {
            if whole {
                return Err("it does not name a session".to_owned());
            }
            window *= 8;
            continue;
        };
        let mut known = header(first)?;
        let begun = lines.find(|line| Kind::of(line) == Kind::TurnStart);
        if begun.is_none() && !whole {
            window *= 8;
            continue;
        }
        if let Some(Ok(Record::TurnStart { preview, .. })) = begun.map(serde_json::from_slice) {
            known.title = Some(preview);
        }
        return Ok(known);
    }
}

fn header(line: &[u8]) -> Result<Known, String> {
    let Ok(Record::Session { version, model, cwd, created_at, parent, .. }) = serde_json::from_slice(line)
    else {
        return Err("it does not name a session".to_owned());
    };
    if version > VERSION {
        return Err(format!("it is of version {version}; this program knows {VERSION}"));
    }
    Ok(Known { title: None, cwd, model, created_at, turns: Some(0), last_turn: LastTurn::None, parent })
}

/// The number and the state of the last turn, and the model.
fn last_lines(file: &File, length: u64, known: &mut Known) -> Result<(), String> {
    let mut window = WINDOW;
    loop {
        let begin = length.saturating_sub(window);
        let bytes = part(file, begin, length - begin)?;
        // What stands before the first newline may be the rest of a line.
        let skipped =
            if begin == 0 { 0 } else { memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1) };
        let mut model = None;
        let lines: Vec<&[u8]> = whole_lines(&bytes[skipped..]).collect();
        for line in lines.into_iter().rev() {
            let kind = Kind::of(line);
            if kind == Kind::Damaged {
                return Err("its last lines are damaged".to_owned());
            }
            let mark = match kind {
                Kind::TurnStart | Kind::TurnEnd | Kind::Model => serde_json::from_slice(line).ok(),
                _ => None,
            };
            let (number, used, state) = match mark {
                Some(Record::Model { model: used }) => {
                    model.get_or_insert(used);
                    continue;
                }
                Some(Record::TurnStart { number, model, .. }) => (number, model, LastTurn::Begun),
                Some(Record::TurnEnd { number, model, outcome }) => (number, model, outcome.into()),
                _ => continue,
            };
            known.model = model.unwrap_or(used);
            known.turns = Some(number);
            known.last_turn = state;
            return Ok(());
        }
        if let Some(model) = model {
            known.model = model;
        }
        if begin == 0 {
            return Ok(());
        }
        if window >= MOST {
            known.turns = None;
            known.last_turn = LastTurn::Begun;
            return Ok(());
        }
        window *= 8;
    }
}

impl From<TurnOutcome> for LastTurn {
    fn from(outcome: TurnOutcome) -> Self {
        match outcome {
            TurnOutcome::Done | TurnOutcome::Other => LastTurn::Done,
            TurnOutcome::Cancelled => LastTurn::Cancelled,
            TurnOutcome::Failed => LastTurn::Failed,
        }
    }
}

/// What a line is, told by its first bytes: long ones are passed over without being parsed.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    TurnStart,
    TurnEnd,
    Model,
    Other,
    Damaged,
}

impl Kind {
    fn of(line: &[u8]) -> Self {
        let Some(rest) = line.strip_prefix(br#"{"type":""#).filter(|_| line.ends_with(b"}\n")) else {
            return Kind::Damaged;
        };
        match rest {
            rest if rest.starts_with(br#"turn_start""#) => Kind::TurnStart,
            rest if rest.starts_with(br#"turn_end""#) => Kind::TurnEnd,
            rest if rest.starts_with(br#"model""#) => Kind::Model,
            _ => Kind::Other,
        }
    }
}

/// The lines that have their newline; a crash may have torn the last one.
fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"))
}

fn part(file: &File, offset: u64, length: u64) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
mod tests;
