//! A place on a bus that moves forward: the new messages since the last look, across rotations.
//!
//! A tail remembers a file and an offset in it, not an id, so it neither re-reads nor depends on ids being unique.
//! When the file has been rotated, it is read to its end and the next one in the order of rotation follows. A rotated
//! file stays under observation for a while, because a writer of another make that waited for its lock may still
//! append to it. A file that was truncated, edited or replaced by hand is noticed; the tail then says so and goes on
//! behind the last message it has shown, or from the start of the file if that message is gone.
//!
//! A look never blocks for long and starts no threads; waiting is the business of [`super::follow`].

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::index::Key;
use super::place::BusPath;
use super::read::ReadErrorKind;
use super::record::Message;
use super::segment::{self, Patience, Position, Segment};
use super::view::{Kept, Successor, View};

/// A foreign writer gives up on a lock after about this long; until then it may append to a rotated file.
const LATE_WRITERS: Duration = Duration::from_secs(35);
/// How soon to look again at a record that a writer seems to be in the middle of.
const UNDECIDED_RECHECK: Duration = Duration::from_millis(1);
const LATE_RECHECK: Duration = Duration::from_secs(1);
/// Bytes before the position that must still be there.
const EVIDENCE: usize = 48;

/// Where to start following.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowFrom {
    /// With the oldest message, archives included.
    Beginning,
    /// With the next message to be posted.
    End,
    /// With the last so many messages.
    Last(usize),
    /// With the message after this one.
    After(String),
}

/// What a follower sees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FollowEvent {
    /// A message.
    Message(Box<Message>),
    /// Someone changed the file other than by appending; messages may come again or be missing from here.
    Rewritten,
}

/// The result of one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// What is new, in order.
    pub events: Vec<FollowEvent>,
    /// There is more to fetch at once.
    pub more: bool,
    /// Look again after this long even if no change is signalled.
    pub recheck: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Tail {
    path: BusPath,
    kept: Kept,
    current: Option<Reading>,
    rotated: Vec<(Reading, Instant)>,
    last_id: Option<String>,
}

#[derive(Debug)]
struct Reading {
    segment: Segment,
    position: Position,
    /// The first record from the position was shown before.
    skip_first: bool,
    evidence: Vec<u8>,
    /// Size of the file when a last record could not be judged, and since when.
    undecided: Option<(u64, Instant)>,
    seen_len: Option<u64>,
}

impl Tail {
    pub(super) fn new(path: BusPath, from: &FollowFrom) -> Result<Self, ReadErrorKind> {
        let path = path.moved().unwrap_or(path);
        let kept = Kept::default();
        let current = match View::open(&path, &kept)? {
            None => None,
            Some(view) => match from {
                FollowFrom::Beginning => None,
                FollowFrom::After(id) => match view.find(Key::Id(id))? {
                    Some(found) => view
                        .segment_of(found.rank)?
                        .map(|segment| Reading::new(segment, found.start.position, true)),
                    None if view.is_missing()? => None,
                    None => return Err(ReadErrorKind::UnknownCursor { id: id.clone() }),
                },
                FollowFrom::End => {
                    view.start_of_last(1)?.map(|(segment, position)| Reading::new(segment, position, true))
                }
                FollowFrom::Last(count) => view
                    .start_of_last((*count).max(1))?
                    .map(|(segment, position)| Reading::new(segment, position, *count == 0)),
            },
        };
        let last_id = match from {
            FollowFrom::After(id) => Some(id.clone()),
            _ => None,
        };
        Ok(Self { path, kept, current, rotated: Vec::new(), last_id })
    }

    /// Where the bus is.
    pub(super) fn path(&self) -> &BusPath {
        &self.path
    }

    /// Fetches about `limit` new messages.
    pub(super) fn poll(&mut self, limit: usize) -> Result<Polled, ReadErrorKind> {
        let mut polled = Polled::default();
        self.poll_late(limit, &mut polled)?;
        loop {
            let Some(view) = View::open(&self.path, &self.kept)? else {
                // Nothing was read here yet, and it may have come to lie elsewhere.
                match self.path.moved().filter(|_| self.current.is_none()) {
                    Some(moved) => self.path = moved,
                    None => return Ok(polled),
                }
                continue;
            };
            let Some(current) = &mut self.current else {
                let Some(first) = view.first()? else { return Ok(polled) };
                self.current = Some(Reading::new(first, Position::START, false));
                continue;
            };
            if current.was_rewritten()? {
                polled.events.push(FollowEvent::Rewritten);
                self.current = restart(&view, self.last_id.as_deref())?;
                continue;
            }
            current.read(limit, Patience::Since(Instant::now()), &mut self.last_id, &mut polled)?;
            if polled.events.len() >= limit {
                polled.more = true;
                return Ok(polled);
            }
            match view.after(current.segment.identity)? {
                Successor::None => return Ok(polled),
                Successor::Next(next) => {
                    // Whatever was appended before the rotation is there now, and nothing may overtake it.
                    current.read(limit, Patience::Decide, &mut self.last_id, &mut polled)?;
                    if polled.events.len() >= limit {
                        polled.more = true;
                        return Ok(polled);
                    }
                    let next = Reading::new(next, Position::START, false);
                    let done = std::mem::replace(current, next);
                    self.rotated.push((done, Instant::now() + LATE_WRITERS));
                    polled.recheck = Some(LATE_RECHECK);
                }
                Successor::Replaced => {
                    polled.events.push(FollowEvent::Rewritten);
                    if let Some(view) = View::open(&self.path, &self.kept)? {
                        self.current = restart(&view, self.last_id.as_deref())?;
                    }
                }
            }
        }
    }

    /// Messages that came into files after their rotation.
    fn poll_late(&mut self, limit: usize, polled: &mut Polled) -> Result<(), ReadErrorKind> {
        let now = Instant::now();
        self.rotated.retain(|(_, until)| *until > now);
        for (reading, _) in &mut self.rotated {
            // Their ids are no resume point: the order has moved on.
            reading.read(limit, Patience::Since(now), &mut None, polled)?;
            polled.recheck.get_or_insert(LATE_RECHECK);
        }
        Ok(())
    }
}

/// Goes on behind the last message shown, or from the start of the live file.
fn restart(view: &View<'_>, last_id: Option<&str>) -> Result<Option<Reading>, ReadErrorKind> {
    if let Some(id) = last_id.filter(|id| !id.is_empty())
        && let Some(found) = view.find(Key::Id(id))?
        && let Some(segment) = view.segment_of(found.rank)?
    {
        return Ok(Some(Reading::new(segment, found.start.position, true)));
    }
    Ok(view.live().map(|live| Reading::new(live.clone(), Position::START, false)))
}

impl Reading {
    fn new(segment: Segment, position: Position, skip_first: bool) -> Self {
        Self { segment, position, skip_first, evidence: Vec::new(), undecided: None, seen_len: None }
    }

    fn read(
        &mut self,
        limit: usize,
        patience: Patience,
        last_id: &mut Option<String>,
        polled: &mut Polled,
    ) -> Result<(), ReadErrorKind> {
        let len = self.segment.len()?;
        if self.seen_len == Some(len) && self.undecided.is_none() {
            return Ok(());
        }
        let patience = match (patience, self.undecided) {
            (Patience::Since(_), Some((undecided_len, since))) if undecided_len == len => {
                Patience::Since(since)
            }
            (patience, _) => patience,
        };
        let mut skip = self.skip_first;
        let mut full = false;
        let end = segment::scan(&self.segment, self.position, len, patience, &mut |_, record| {
            if std::mem::take(&mut skip) {
                return ControlFlow::Continue(());
            }
            *last_id = Some(record.id.to_string());
            polled.events.push(FollowEvent::Message(Box::new(record.into_message())));
            full = polled.events.len() >= limit;
            if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        self.skip_first = skip;
        self.undecided = match (end.undecided, patience) {
            (false, _) => None,
            (true, Patience::Since(since)) => Some((len, since)),
            (true, _) => Some((len, Instant::now())),
        };
        if self.undecided.is_some() {
            polled.recheck = Some(UNDECIDED_RECHECK);
        }
        self.seen_len = (!full).then_some(len);
        self.move_to(end.resume)
    }

    fn move_to(&mut self, position: Position) -> Result<(), ReadErrorKind> {
        if position != self.position || self.evidence.is_empty() {
            self.position = position;
            self.evidence = self.bytes_before(position.offset)?;
        }
        Ok(())
    }

    fn bytes_before(&self, offset: u64) -> Result<Vec<u8>, ReadErrorKind> {
        let start = offset.saturating_sub(EVIDENCE as u64);
        let mut bytes = Vec::new();
        self.segment.read_at(&mut bytes, start, usize::try_from(offset - start).unwrap_or(EVIDENCE))?;
        Ok(bytes)
    }

    /// Whether what was read before is no longer there.
    fn was_rewritten(&mut self) -> Result<bool, ReadErrorKind> {
        let len = self.segment.len()?;
        if self.seen_len == Some(len) || self.evidence.is_empty() {
            return Ok(false);
        }
        if len + 1 == self.position.offset {
            // A writer cut a torn record and the separator before it.
            self.position.offset = len;
            self.evidence.pop();
        }
        Ok(self.bytes_before(self.position.offset)? != self.evidence)
    }
}
