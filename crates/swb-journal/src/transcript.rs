//! What was shown moving, kept for those who come late: one file of JSON lines for each name, in the order of their
//! numbers.
//!
//! A line is whatever the caller says it is, as long as it is one line of JSON with a number under `seq`. It is in the
//! file when [`Transcripts::append`] returns, though not synced: it outlives the process, not the machine. A torn tail is
//! cut before anything is appended behind it; a damaged line is passed over. Lines of all files after a number are read as
//! one stream, whose beginning is found by halving each file. Proof: the tests below cut a file at every byte.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

const SUFFIX: &str = ".jsonl";
/// Files that are held open for appending.
const MOST_OPEN: usize = 64;
/// How much is looked at at once when the end of a file is sought.
const PIECE: u64 = 64 * 1024;
/// Below this a file is read on instead of halved.
const NEAR: u64 = 64 * 1024;

/// A folder of transcripts. One process at a time writes there.
#[derive(Debug)]
pub struct Transcripts {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<String, File>,
    /// The last number of each file.
    last: HashMap<String, u64>,
}

#[derive(Deserialize)]
struct Numbered {
    seq: u64,
}

impl Transcripts {
    /// Opens a folder, or makes one. Torn tails are cut.
    pub fn open(folder: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut last = HashMap::new();
        for entry in std::fs::read_dir(folder)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)) else { continue };
            let file = OpenOptions::new().read(true).write(true).open(path_of(folder, name))?;
            cut_torn_tail(&file)?;
            last.insert(name.to_owned(), last_number(&file)?);
        }
        Ok(Transcripts { folder: folder.to_owned(), state: Mutex::new(State { open: HashMap::new(), last }) })
    }

    /// Appends lines, each of which ends in a line feed, in one write; `seq` is the number of the last of them.
    pub fn append(&self, name: &str, seq: u64, lines: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if !state.open.contains_key(name) {
            if state.open.len() >= MOST_OPEN {
                state.open.clear();
            }
            let path = path_of(&self.folder, name);
            let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
            state.open.insert(name.to_owned(), file);
        }
        let State { open, last } = &mut *state;
        let Some(file) = open.get_mut(name) else { return Err(io::ErrorKind::NotFound.into()) };
        if let Err(error) = file.write_all(lines) {
            // Half a line must not become the beginning of the next one.
            let cut = cut_torn_tail(file);
            open.remove(name);
            return Err(cut.err().unwrap_or(error));
        }
        match last.get_mut(name) {
            Some(last) => *last = seq,
            None => {
                last.insert(name.to_owned(), seq);
            }
        }
        Ok(())
    }

    /// The highest number there is; 0 if there is none.
    pub fn last(&self) -> u64 {
        self.state().last.values().copied().max().unwrap_or(0)
    }

    /// The lines of one name, from its first on.
    pub fn of(&self, name: &str) -> io::Result<Lines> {
        match File::open(path_of(&self.folder, name)) {
            Ok(file) => Ok(Lines::new(vec![Cursor::new(file, 0)?])),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Lines::new(Vec::new())),
            Err(error) => Err(error),
        }
    }

    /// The lines of all names after a number, in order.
    pub fn after(&self, seq: u64) -> io::Result<Lines> {
        let names: Vec<String> =
            self.state().last.iter().filter(|(_, last)| **last > seq).map(|(name, _)| name.clone()).collect();
        let cursors = names.iter().map(|name| Cursor::new(File::open(path_of(&self.folder, name))?, seq));
        Ok(Lines::new(cursors.collect::<io::Result<_>>()?))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lines in the order of their numbers.
#[derive(Debug)]
pub struct Lines {
    cursors: Vec<Cursor>,
}

impl Lines {
    fn new(mut cursors: Vec<Cursor>) -> Self {
        cursors.retain(|cursor| cursor.next.is_some());
        Lines { cursors }
    }

    /// The next line and its number.
    pub fn next_line(&mut self) -> io::Result<Option<(u64, String)>> {
        let first =
            self.cursors.iter().enumerate().min_by_key(|(_, cursor)| cursor.next.as_ref().map(|next| next.0));
        let Some((at, _)) = first else { return Ok(None) };
        let line = self.cursors[at].take()?;
        if self.cursors[at].next.is_none() {
            self.cursors.swap_remove(at);
        }
        Ok(line)
    }
}

#[derive(Debug)]
struct Cursor {
    reader: BufReader<File>,
    next: Option<(u64, String)>,
}

impl Cursor {
    /// Stands before the first line after a number.
    fn new(mut file: File, after: u64) -> io::Result<Self> {
        let (mut low, mut high) = (0, file.metadata()?.len());
        // Lines that begin before `low` have numbers up to `after`.
        while after > 0 && high - low > NEAR {
            let middle = low + (high - low) / 2;
            match line_from(&file, middle)? {
                Some((begin, seq)) if begin < high && seq <= after => low = begin,
                _ => high = middle,
            }
        }
        file.seek(SeekFrom::Start(low))?;
        let mut cursor = Cursor { reader: BufReader::new(file), next: None };
        loop {
            cursor.read()?;
            if cursor.next.as_ref().is_none_or(|(seq, _)| *seq > after) {
                return Ok(cursor);
            }
        }
    }

    fn take(&mut self) -> io::Result<Option<(u64, String)>> {
        let taken = self.next.take();
        self.read()?;
        Ok(taken)
    }

    fn read(&mut self) -> io::Result<()> {
        self.next = loop {
            let mut line = Vec::new();
            self.reader.read_until(b'\n', &mut line)?;
            if line.pop() != Some(b'\n') {
                break None;
            }
            // What is damaged is passed over.
            let Some(numbered) = serde_json::from_slice::<Numbered>(&line).ok() else { continue };
            if let Ok(line) = String::from_utf8(line) {
                break Some((numbered.seq, line));
            }
        };
        Ok(())
    }
}

/// The first line with a number that begins at or behind `from`, and where it begins.
fn line_from(file: &File, from: u64) -> io::Result<Option<(u64, u64)>> {
    let mut reader = BufReader::new(At { file, place: from });
    let mut begin = from;
    // The rest of the line that `from` lies in.
    let mut line = Vec::new();
    begin += reader.read_until(b'\n', &mut line)? as u64;
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line)? as u64;
        if line.last() != Some(&b'\n') {
            return Ok(None);
        }
        if let Ok(Numbered { seq }) = serde_json::from_slice(&line) {
            return Ok(Some((begin, seq)));
        }
        begin += length;
    }
}

/// Reads a file without moving its own place.
struct At<'a> {
    file: &'a File,
    place: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.place)?;
        self.place += read as u64;
        Ok(read)
    }
}

fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{SUFFIX}"))
}

/// Where the last whole line ends.
fn end_of_whole_lines(file: &File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut piece = Vec::new();
    while end > 0 {
        let begin = end.saturating_sub(PIECE);
        piece.resize(usize::try_from(end - begin).unwrap_or_default(), 0);
        file.read_exact_at(&mut piece, begin)?;
        if let Some(at) = memchr::memrchr(b'\n', &piece) {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

fn cut_torn_tail(file: &File) -> io::Result<()> {
    let whole = end_of_whole_lines(file)?;
    if whole < file.metadata()?.len() { file.set_len(whole) } else { Ok(()) }
}

/// The number of the last line that has one.
fn last_number(file: &File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut reach = PIECE;
    loop {
        let begin = length.saturating_sub(reach);
        let mut reader = BufReader::new(At { file, place: begin });
        let (mut line, mut last) = (Vec::new(), None);
        while reader.read_until(b'\n', &mut line)? > 0 {
            last = serde_json::from_slice(&line).ok().map(|Numbered { seq }| seq).or(last);
            line.clear();
        }
        match last {
            Some(last) => return Ok(last),
            None if begin == 0 => return Ok(0),
            None => reach *= 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seq: u64) -> String {
        format!("{{\"seq\":{seq},\"text\":\"{}\"}}\n", "x".repeat((seq % 97) as usize))
    }

    fn numbers(mut lines: Lines) -> Vec<u64> {
        std::iter::from_fn(|| lines.next_line().unwrap()).map(|(seq, _)| seq).collect()
    }

    #[test]
    fn lines_of_all_names_come_in_the_order_of_their_numbers_from_anywhere() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Transcripts::open(folder.path()).unwrap();
        for seq in 1..=6000 {
            kept.append(["a", "b", "c"][(seq % 3) as usize], seq, line(seq).as_bytes()).unwrap();
        }
        for kept in [&kept, &Transcripts::open(folder.path()).unwrap()] {
            assert_eq!(kept.last(), 6000);
            for after in [0, 1, 2, 1000, 4097, 5999, 6000, 9000] {
                assert_eq!(numbers(kept.after(after).unwrap()), (after + 1..=6000).collect::<Vec<_>>());
            }
            assert_eq!(
                numbers(kept.of("b").unwrap()),
                (1..=6000).filter(|seq| seq % 3 == 1).collect::<Vec<_>>()
            );
            assert!(numbers(kept.of("nobody").unwrap()).is_empty());
        }
    }

    #[test]
    fn a_file_cut_anywhere_goes_on_with_whole_lines() {
        let whole: String = (1..=3).map(line).collect();
        for cut in 0..whole.len() {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("a.jsonl"), &whole[..cut]).unwrap();
            let kept = Transcripts::open(folder.path()).unwrap();
            kept.append("a", 9, line(9).as_bytes()).unwrap();
            let left = whole[..cut].matches('\n').count() as u64;
            assert_eq!(
                numbers(kept.of("a").unwrap()),
                (1..=left).chain([9]).collect::<Vec<_>>(),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn a_damaged_line_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.jsonl"), b"{\"seq\":1}\nnoise \xff\n{\"seq\":3}\nmore\n")
            .unwrap();
        let kept = Transcripts::open(folder.path()).unwrap();
        assert_eq!((kept.last(), numbers(kept.after(0).unwrap())), (3, vec![1, 3]));
    }
}
