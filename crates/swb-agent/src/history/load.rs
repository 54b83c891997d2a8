//! Reading a history, line by line.
//!
//! What a crash can leave behind is at the end: half a line, or blocks of the disk that were never written. Lines at the
//! end that make no sense are therefore cut off, and a copy is kept if they were whole lines. A line that makes no sense
//! although a good one follows was damaged otherwise, and is an error that changes nothing. Memory holds one line and
//! what the history is in the end, not what it was before its compactions.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use swb_proto::agent::Message;

use super::record::Record;

/// No line that was ever written is longer.
const MAX_LINE_BYTES: u64 = 256 * 1024 * 1024;
const BUFFER_BYTES: usize = 256 * 1024;

/// What is wrong with a file.
#[derive(Debug)]
pub(super) enum LoadError {
    /// This line, counted from 1, makes no sense.
    Damaged {
        line: usize,
        reason: String,
    },
    Io(io::Error),
}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> Self {
        LoadError::Io(error)
    }
}

/// Lines that make no sense, as long as no good one follows.
#[derive(Debug)]
struct Tail {
    line: usize,
    reason: String,
    /// At least one of them has its newline: it is not just what was being written when the end came.
    whole: bool,
}

/// Gives every record to `take`, and returns where the last good line ends. What follows it is nonsense.
pub(super) fn records(
    file: &File,
    mut take: impl FnMut(Record) -> Result<(), String>,
) -> Result<(u64, bool), LoadError> {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut line = Vec::new();
    let mut good_end = 0;
    let mut tail: Option<Tail> = None;
    for number in 1.. {
        line.clear();
        let length = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? as u64;
        if length == 0 {
            break;
        }
        let whole = line.ends_with(b"\n");
        match (parse(&line), &mut tail) {
            (Ok(_), Some(Tail { line, reason, .. })) if whole => {
                return Err(LoadError::Damaged { line: *line, reason: std::mem::take(reason) });
            }
            (Ok(record), None) if whole => {
                take(record).map_err(|reason| LoadError::Damaged { line: number, reason })?;
                good_end += length;
            }
            (_, Some(tail)) => tail.whole |= whole,
            (parsed, None) => {
                let reason =
                    parsed.err().map_or_else(|| "it has no end".to_owned(), |error| error.to_string());
                tail = Some(Tail { line: number, reason, whole });
            }
        }
        if number == 1
            && let Some(Tail { line, reason, .. }) = tail.take()
        {
            // Without its first line a file is no history at all.
            return Err(LoadError::Damaged { line, reason });
        }
    }
    Ok((good_end, tail.is_some_and(|tail| tail.whole)))
}

fn parse(line: &[u8]) -> Result<Record, serde_json::Error> {
    // Most lines are messages; this way they are read in one pass.
    let message =
        line.strip_prefix(br#"{"type":"message","message":"#).and_then(|rest| rest.strip_suffix(b"}\n"));
    match message {
        Some(message) => {
            serde_json::from_slice::<Message>(message).map(|message| Record::Message { message })
        }
        None => serde_json::from_slice(line),
    }
}

/// Puts what follows the last good line into a file of its own, for people.
pub(super) fn keep_tail(file: &File, good_end: u64, beside: &Path) -> io::Result<()> {
    let mut file = file;
    file.seek(SeekFrom::Start(good_end))?;
    let mut kept = OpenOptions::new().append(true).create(true).mode(0o600).open(beside)?;
    io::copy(&mut file, &mut kept)?;
    kept.flush()?;
    kept.sync_data()
}
