//! Records one after another, over the borders of segments.

use super::entry::Kind;
use super::header::Header;
use super::line::{Place, RawRecord};
use super::lines::Lines;
use super::read::{AuditReadError, AuditReader, Beginning};
use super::record::Record;
use super::seek;
use super::segment::SegmentFile;

/// From where on records are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reached {
    /// After a number.
    Number(u64),
    /// After a place among events.
    Seq(u64),
}

impl Reached {
    fn by(self, place: &Place) -> bool {
        match self {
            Reached::Number(number) => place.number > number,
            Reached::Seq(seq) => place.seq > seq,
        }
    }
}

/// Records in order. At the end of the log it gives none, and goes on if it is asked again when there are more.
///
/// A line that is not as it was written is an error, and the next one comes after it.
#[derive(Debug)]
pub struct Records {
    reader: AuditReader,
    reached: Reached,
    current: Option<(SegmentFile, Lines)>,
    /// The current segment cannot be read on: a line in it has no end.
    stuck: bool,
}

/// A line that is as it was written.
#[derive(Debug)]
pub(crate) struct RecordLine<'a> {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(super) raw: RawRecord<'a>,
    /// The line without its newline.
    pub(crate) text: &'a [u8],
}

impl RecordLine<'_> {
    pub(crate) fn parse(&self) -> Result<Record, AuditReadError> {
        let damaged = AuditReadError::Damaged { segment: self.segment, offset: self.offset };
        Record::from_raw(&self.raw, self.text).ok_or(damaged)
    }
}

impl Records {
    pub(super) fn new(reader: AuditReader, reached: Reached) -> Self {
        Records { reader, reached, current: None, stuck: false }
    }

    /// Begins in a segment, near the first record that is wanted.
    pub(super) fn enter(&mut self, segment: &SegmentFile) -> Result<(), AuditReadError> {
        let lines = match Beginning::of(segment)? {
            Some(Beginning { file, length, .. }) => {
                let near = seek::near(&file, length, |place| self.reached.by(place))
                    .map_err(|error| AuditReadError::io(&segment.path, error))?;
                Lines::new(file, near)
            }
            // Without a header there is nothing to go by; its lines are read, and what is wrong with them is said.
            None => Lines::new(segment.open().map_err(|error| AuditReadError::io(&segment.path, error))?, 0),
        };
        self.current = Some((segment.clone(), lines));
        self.stuck = false;
        Ok(())
    }

    /// The next line.
    pub(crate) fn next_line(&mut self) -> Result<Option<RecordLine<'_>>, AuditReadError> {
        let offset = loop {
            let Some((segment, lines)) = &mut self.current else {
                let first = self.reader.segments()?.into_iter().next();
                let Some(first) = first else { return Ok(None) };
                self.enter(&first)?;
                continue;
            };
            let number = segment.segment;
            let next = match lines.next_line() {
                Ok(next) => next.filter(|_| !self.stuck),
                // What follows in this segment cannot be found; the next one can.
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    if !std::mem::replace(&mut self.stuck, true) {
                        return Err(AuditReadError::Damaged { segment: number, offset: lines.offset() });
                    }
                    None
                }
                Err(error) => return Err(AuditReadError::io(&segment.path, error)),
            };
            let Some((offset, line)) = next else {
                if self.move_on(number)? { continue } else { return Ok(None) }
            };
            match RawRecord::parse(line).filter(RawRecord::is_intact) {
                Some(record) if self.reached.by(&record.place) => break offset,
                Some(_) => {}
                // The header had not been written when we came.
                None if offset == 0 && Header::parse(line).is_some() => {}
                None => return Err(AuditReadError::Damaged { segment: number, offset }),
            }
        };
        // Found in the loop; looked up once more, because a loop cannot hand out what it borrows.
        let Some((segment, lines)) = &self.current else { return Ok(None) };
        let text = lines.last();
        let Some(raw) = RawRecord::parse(text) else { return Ok(None) };
        Ok(Some(RecordLine { segment: segment.segment, offset, raw, text }))
    }

    /// Goes on with the segment after this one, if there is one and nothing is left here.
    fn move_on(&mut self, number: u64) -> Result<bool, AuditReadError> {
        let next = self.reader.segments()?.into_iter().find(|segment| segment.segment > number);
        let Some(next) = next else { return Ok(false) };
        // Lines may have come between the last look at this segment and the birth of the next one.
        if let Some((_, lines)) = &mut self.current
            && matches!(lines.peek(), Ok(true))
        {
            return Ok(true);
        }
        self.enter(&next)?;
        Ok(true)
    }
}

impl Iterator for Records {
    type Item = Result<Record, AuditReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_line() {
            Ok(line) => line.map(|line| line.parse()),
            Err(error) => Some(Err(error)),
        }
    }
}

/// The records of events, in the order they were recorded.
#[derive(Debug)]
pub struct Events {
    pub(super) records: Records,
    pub(super) after: u64,
}

/// What was found on a bounded way through a log.
#[derive(Debug)]
pub enum Looked {
    /// An event.
    Found(Box<Record>),
    /// None so far, and there is more to look at.
    NotYet,
    /// None, and no more records.
    End,
}

impl Events {
    /// Looks for the next event among no more than so many records. Records of other kinds are not even parsed.
    pub fn look(&mut self, records: usize) -> Result<Looked, AuditReadError> {
        let after = self.after;
        for _ in 0..records {
            let Some(line) = self.records.next_line()? else { return Ok(Looked::End) };
            if line.raw.kind != b"event" {
                continue;
            }
            let record = line.parse()?;
            if record.entry.event_seq.is_some_and(|seq| seq > after) {
                return Ok(Looked::Found(Box::new(record)));
            }
        }
        Ok(Looked::NotYet)
    }
}

impl Iterator for Events {
    type Item = Result<Record, AuditReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.records.by_ref().find(|record| match record {
            Ok(record) => {
                record.entry.kind == Kind::Event && record.entry.event_seq.is_some_and(|seq| seq > self.after)
            }
            Err(_) => true,
        })
    }
}
