//! The one place that writes lines: numbers them, chains them, and puts them into the file in one write.
//!
//! A batch is built in memory and written at once; a segment that is full is synced and followed by the next one within
//! the batch. After an error nothing here is used again: what the file holds then is found out by opening the log anew.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::append::{Work, WriteFailure};
use super::entry::Kind;
use super::hash::ChainHash;
use super::header::{FORMAT, Header};
use super::key::LogKey;
use super::line::{FRAME_BYTES, Place, push_record};
use super::moment::Moment;
use super::options::{AuditOptions, Durability};
use super::recover::Tip;
use super::segment::{SegmentFile, sync_folder};
use super::ticket::Receipt;

/// What is built in memory before it is written, at most and beyond one line.
const BATCH_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Writer {
    folder: PathBuf,
    key: Arc<LogKey>,
    options: AuditOptions,
    chain: String,
    file: File,
    segment: SegmentFile,
    header_hash: ChainHash,
    begun_at: Moment,
    /// The end of the log, what is only in `buffer` included.
    tip: Tip,
    buffer: Vec<u8>,
}

impl Writer {
    /// Makes the first segment of a log.
    pub(super) fn begin(
        folder: &Path,
        key: Arc<LogKey>,
        options: AuditOptions,
        at: Moment,
    ) -> Result<Self, WriteFailure> {
        let chain = new_chain().map_err(|source| WriteFailure { path: folder.to_owned(), source })?;
        Self::begin_chain(folder, key, options, chain, at)
    }

    pub(super) fn begin_chain(
        folder: &Path,
        key: Arc<LogKey>,
        options: AuditOptions,
        chain: String,
        at: Moment,
    ) -> Result<Self, WriteFailure> {
        let header = Header {
            segment: 1,
            format: FORMAT,
            chain,
            first: 1,
            seq: 0,
            prev: ChainHash::NONE,
            header: ChainHash::NONE,
            open: Vec::new(),
            at,
            after_damage: None,
        };
        Self::make_segment(folder, key, options, header)
    }

    /// Makes a segment and begins to write in it.
    pub(super) fn make_segment(
        folder: &Path,
        key: Arc<LogKey>,
        options: AuditOptions,
        header: Header,
    ) -> Result<Self, WriteFailure> {
        let segment = SegmentFile::new(folder, header.segment, header.first);
        let made = || {
            let mut buffer = Vec::new();
            let hash = header.push(&mut buffer);
            let mut file = segment.make()?;
            file.write_all(&buffer)?;
            file.sync_all()?;
            sync_folder(folder)?;
            let offset = buffer.len() as u64;
            buffer.clear();
            io::Result::Ok((file, hash, offset, buffer))
        };
        let (file, hash, offset, buffer) =
            made().map_err(|source| WriteFailure { path: segment.path.clone(), source })?;
        let open = header.open.iter().copied().collect();
        let tip = Tip { number: header.first - 1, hash, seq: header.seq, offset, open };
        let Header { chain, at: begun_at, .. } = header;
        let folder = folder.to_owned();
        Ok(Writer { folder, key, options, chain, file, segment, header_hash: hash, begun_at, tip, buffer })
    }

    /// Goes on in a segment that was examined. Its torn tail is cut first.
    pub(super) fn resume(
        folder: &Path,
        key: Arc<LogKey>,
        options: AuditOptions,
        segment: SegmentFile,
        (header, header_hash): (Header, ChainHash),
        tip: Tip,
    ) -> Result<Self, WriteFailure> {
        let opened = || {
            let file = segment.open_to_append()?;
            if file.metadata()?.len() != tip.offset {
                file.set_len(tip.offset)?;
                file.sync_all()?;
            }
            io::Result::Ok(file)
        };
        let file = opened().map_err(|source| WriteFailure { path: segment.path.clone(), source })?;
        let (folder, buffer) = (folder.to_owned(), Vec::new());
        let Header { chain, at: begun_at, .. } = header;
        Ok(Writer { folder, key, options, chain, file, segment, header_hash, begun_at, tip, buffer })
    }

    /// Writes a batch, in order. The receipts are good only if all of it worked.
    pub(super) fn commit(&mut self, batch: &[Work]) -> Result<Vec<Receipt>, WriteFailure> {
        let mut receipts = Vec::with_capacity(batch.len());
        let written = batch
            .iter()
            .try_for_each(|work| {
                receipts.push(self.add(work)?);
                if self.buffer.len() >= BATCH_BYTES { self.flush() } else { Ok(()) }
            })
            .and_then(|()| self.flush())
            .and_then(|()| if self.options.durability == Durability::Synced { self.sync() } else { Ok(()) });
        written.map(|()| receipts).map_err(|source| WriteFailure { path: self.segment.path.clone(), source })
    }

    /// Makes sure that everything written so far outlives a power cut.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    pub(super) fn tip(&self) -> &Tip {
        &self.tip
    }

    pub(super) fn chain(&self) -> &str {
        &self.chain
    }

    pub(super) fn segment(&self) -> &SegmentFile {
        &self.segment
    }

    /// Closes the segment and begins the next one, if this one holds any record.
    pub(super) fn roll(&mut self, at: Moment) -> io::Result<()> {
        if self.tip.number < self.segment.first {
            return Ok(());
        }
        self.flush()?;
        // A closed segment is never looked after again, so it is made safe whatever the durability.
        self.sync()?;
        let header = Header {
            segment: self.segment.segment + 1,
            format: FORMAT,
            chain: self.chain.clone(),
            first: self.tip.number + 1,
            seq: self.tip.seq,
            prev: self.tip.hash,
            header: self.header_hash,
            open: self.tip.open.iter().copied().collect(),
            at,
            after_damage: None,
        };
        let segment = SegmentFile::new(&self.folder, header.segment, header.first);
        self.file = segment.make()?;
        self.segment = segment;
        self.header_hash = header.push(&mut self.buffer);
        self.tip.hash = self.header_hash;
        self.tip.offset = self.buffer.len() as u64;
        self.begun_at = at;
        sync_folder(&self.folder)
    }

    fn add(&mut self, work: &Work) -> io::Result<Receipt> {
        let age = work.at.unix_millis().saturating_sub(self.begun_at.unix_millis());
        let old = u128::try_from(age).is_ok_and(|age| age >= self.options.segment_age.as_millis());
        let full = self.tip.offset + (work.body().len() + FRAME_BYTES) as u64 > self.options.segment_bytes;
        if old || full {
            self.roll(work.at)?;
        }
        let number = self.tip.number + 1;
        let place = Place { number, prev: self.tip.hash, seq: self.tip.seq.max(work.event_seq.unwrap_or(0)) };
        let from = self.buffer.len();
        let salt = |out: &mut Vec<u8>| self.key.push_salt(place.prev, number, out);
        let hash = push_record(place, salt, work.body(), &mut self.buffer);
        self.tip.number = number;
        self.tip.hash = hash;
        self.tip.seq = place.seq;
        self.tip.offset += (self.buffer.len() - from) as u64;
        match (work.kind, work.of) {
            (Kind::Start, _) => drop(self.tip.open.insert(number)),
            (Kind::End, Some(of)) => drop(self.tip.open.remove(&of)),
            _ => {}
        }
        Ok(Receipt { number, hash })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        // One large batch must not cost its memory for ever.
        self.buffer.shrink_to(2 * BATCH_BYTES);
        Ok(())
    }
}

/// The name of a log that has none yet.
pub(super) fn new_chain() -> io::Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
