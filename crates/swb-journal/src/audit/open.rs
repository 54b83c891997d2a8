//! Where a log ends, and how to go on from there.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::append::{AppendError, WriteFailure};
use super::hash::ChainHash;
use super::header::{Damage, FORMAT, Header};
use super::key::LogKey;
use super::moment::Moment;
use super::options::AuditOptions;
use super::recover::{Cut, Examined, Tip, examine};
use super::segment::{self, SegmentFile};
use super::writer::{Writer, new_chain};

/// What was found when a log was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opened {
    /// A torn tail that was cut. A record says so too.
    pub cut: Option<Cut>,
    /// Commands that had begun and not ended, by the number of their start. Whoever opens the log ends them.
    pub unfinished: Vec<u64>,
    /// Damage that was accepted: the log goes on behind it.
    pub damage: Option<Damage>,
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it open.
    #[error("another process writes this audit log: {} is locked", path.display())]
    Busy {
        /// The file that is locked.
        path: PathBuf,
    },
    /// A record in the last segment is not as it was written. Nothing was changed.
    #[error("segment {} of the audit log is damaged at byte {}, after record {}", .0.segment, .0.offset, .0.last_good)]
    Damaged(Damage),
    /// It was written by a later version.
    #[error("the audit log has format {format}; this version reads format {}", FORMAT)]
    Format {
        /// Its format.
        format: u32,
    },
    /// A file could not be read or written.
    #[error("cannot open {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
    /// It was opened, but the cut of its torn tail could not be recorded.
    #[error("cannot record what was repaired")]
    Append(#[source] AppendError),
}

impl OpenError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        OpenError::Io { path: path.to_owned(), source }
    }
}

impl From<WriteFailure> for OpenError {
    fn from(failure: WriteFailure) -> Self {
        OpenError::Io { path: failure.path, source: failure.source }
    }
}

/// Where a log goes on.
enum Continuation {
    /// There is none yet.
    New,
    /// In the segment that was written last.
    Resume { segment: SegmentFile, header: (Header, ChainHash), tip: Tip },
    /// In a new segment behind a damaged one.
    Behind(Header),
}

/// Finds the end of the log, cuts a torn tail, and makes the writer that goes on there. If that is refused, nothing has
/// been changed.
pub(super) fn find_end(
    folder: &Path,
    key: &Arc<LogKey>,
    options: &AuditOptions,
    now: Moment,
) -> Result<(Writer, Opened), OpenError> {
    let mut opened = Opened::default();
    let mut unborn = Vec::new();
    let continuation = look(folder, options.accept_damage, now, &mut opened, &mut unborn)?;
    for segment in unborn {
        std::fs::remove_file(&segment.path).map_err(|error| OpenError::io(&segment.path, error))?;
    }
    let (key, options) = (Arc::clone(key), options.clone());
    let writer = match continuation {
        Continuation::New => Writer::begin(folder, key, options, now)?,
        Continuation::Resume { segment, header, tip } => {
            Writer::resume(folder, key, options, segment, header, tip)?
        }
        Continuation::Behind(header) => Writer::make_segment(folder, key, options, header)?,
    };
    opened.unfinished = writer.tip().open.iter().copied().collect();
    Ok((writer, opened))
}

fn look(
    folder: &Path,
    accept_damage: bool,
    now: Moment,
    opened: &mut Opened,
    unborn: &mut Vec<SegmentFile>,
) -> Result<Continuation, OpenError> {
    let mut segments = segment::list(folder).map_err(|error| OpenError::io(folder, error))?;
    while let Some(last) = segments.pop() {
        match examine(&last).map_err(|error| OpenError::io(&last.path, error))? {
            Examined::Unborn { bytes } => {
                // Its header was torn: the segment before is still the last one.
                if bytes > 0 {
                    opened.cut = Some(Cut { segment: last.segment, offset: 0, bytes });
                }
                unborn.push(last);
            }
            Examined::Sound { header, header_hash, tip, torn_bytes } => {
                if torn_bytes > 0 {
                    let cut = Cut { segment: last.segment, offset: tip.offset, bytes: torn_bytes };
                    opened.cut = Some(cut);
                }
                return Ok(Continuation::Resume { segment: last, header: (header, header_hash), tip });
            }
            Examined::Damaged { damage, .. } if !accept_damage => return Err(OpenError::Damaged(damage)),
            Examined::Damaged { damage, header, tip, highest } => {
                let (before, tip) = match header.zip(tip) {
                    Some((before, tip)) => (Some(before), tip),
                    None => end_of_the_one_before(&segments, &last)?,
                };
                opened.damage = Some(damage);
                let chain = match &before {
                    Some((header, _)) => header.chain.clone(),
                    None => new_chain().map_err(|error| OpenError::io(folder, error))?,
                };
                return Ok(Continuation::Behind(Header {
                    segment: last.segment + 1,
                    format: FORMAT,
                    chain,
                    // Numbers that stand in the damaged part are not given out again.
                    first: highest.number.max(tip.number) + 1,
                    seq: highest.seq.max(tip.seq),
                    prev: tip.hash,
                    header: before.map_or(ChainHash::NONE, |(_, hash)| hash),
                    open: tip.open.into_iter().collect(),
                    at: now,
                    after_damage: Some(damage),
                }));
            }
            Examined::Foreign { format } => return Err(OpenError::Format { format }),
        }
    }
    Ok(Continuation::New)
}

type End = (Option<(Header, ChainHash)>, Tip);

/// Where the chain stood before a segment whose own header cannot be read.
fn end_of_the_one_before(segments: &[SegmentFile], damaged: &SegmentFile) -> Result<End, OpenError> {
    let nothing = Tip {
        number: damaged.first.saturating_sub(1),
        hash: ChainHash::NONE,
        seq: 0,
        offset: 0,
        open: Default::default(),
    };
    let Some(before) = segments.last() else { return Ok((None, nothing)) };
    match examine(before).map_err(|error| OpenError::io(&before.path, error))? {
        Examined::Sound { header, header_hash, tip, .. } => Ok((Some((header, header_hash)), tip)),
        Examined::Damaged { header: Some(header), tip: Some(tip), .. } => Ok((Some(header), tip)),
        _ => Ok((None, nothing)),
    }
}
