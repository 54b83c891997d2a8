//! The files of a bus at one moment: the live one and the archives before it, in the order of rotation.
//!
//! The live file is opened first and the archives are listed afterwards, so a rotation in between can only add names
//! that are then left out: the picture is that of one moment, without gap or duplicate.
//!
//! What was opened for one look is kept for the next one ([`Kept`]). One `stat` of the path then says whether the kept
//! file still is the bus, and how long it is; everything else is opened only if it is needed. A kept file is the one
//! that was opened without following links, so nothing can be slipped in under its name.

use std::cell::OnceCell;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::folder::Folder;
use super::identity::FileIdentity;
use super::index::{Index, Key};
use super::lookup;
use super::place::BusPath;
use super::read::ReadErrorKind;
use super::segment::{self, Archive, Patience, Position, Segment, Start};

/// Files left open for the next look.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<Option<Files>>);

#[derive(Debug)]
struct Files {
    live: Segment,
    index: Option<Arc<Index>>,
}

impl Kept {
    /// The live file as it is now, if it still is the one that was kept.
    fn live(&self, path: &BusPath) -> Option<Segment> {
        let kept = self.files().as_ref()?.live.clone();
        if let Ok((identity, opened_len)) = FileIdentity::at(path.file())
            && identity == kept.identity
        {
            return Some(Segment { opened_len, ..kept });
        }
        // Rotated, replaced or removed: holding on to it would only keep its space on the disk.
        *self.files() = None;
        None
    }

    fn keep(&self, live: &Segment) {
        *self.files() = Some(Files { live: live.clone(), index: None });
    }

    fn index(&self, segment: &Segment) -> Option<Arc<Index>> {
        let files = self.files();
        files.as_ref().filter(|files| files.live.identity == segment.identity)?.index.clone()
    }

    fn keep_index(&self, segment: &Segment, index: &Arc<Index>) {
        if let Some(files) = &mut *self.files()
            && files.live.identity == segment.identity
        {
            files.index = Some(Arc::clone(index));
        }
    }

    fn files(&self) -> MutexGuard<'_, Option<Files>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place on a bus that later places can be compared with: how many archives lie before it, and the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    archive: usize,
    offset: u64,
}

/// A message that was looked up.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) rank: Rank,
    /// Where its record starts.
    pub(super) start: Start,
}

/// What comes after a file.
#[derive(Debug)]
pub(super) enum Successor {
    /// Nothing: it is the live one, or the bus is gone for now.
    None,
    /// This one.
    Next(Segment),
    /// It is neither live nor archived: someone put another file in its place.
    Replaced,
}

/// The files of a bus at one moment.
#[derive(Debug)]
pub(super) struct View<'a> {
    path: &'a BusPath,
    kept: &'a Kept,
    folder: OnceCell<Folder>,
    live: Option<Segment>,
    pub(super) patience: Patience,
}

impl<'a> View<'a> {
    /// `None` if even the folder is missing.
    pub(super) fn open(path: &'a BusPath, kept: &'a Kept) -> Result<Option<Self>, ReadErrorKind> {
        let patience = Patience::Decide;
        if let Some(live) = kept.live(path) {
            return Ok(Some(Self { path, kept, folder: OnceCell::new(), live: Some(live), patience }));
        }
        let folder = match path.open_folder() {
            Ok(folder) => folder,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let live = Segment::open(&folder, path.name())?;
        if let Some(live) = &live {
            kept.keep(live);
        }
        Ok(Some(Self { path, kept, folder: OnceCell::from(folder), live, patience }))
    }

    fn folder(&self) -> Result<&Folder, ReadErrorKind> {
        if self.folder.get().is_none() {
            let _ = self.folder.set(self.path.open_folder()?);
        }
        self.folder.get().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound).into())
    }

    /// The live file.
    pub(super) fn live(&self) -> Option<&Segment> {
        self.live.as_ref()
    }

    /// The archives before the live file.
    pub(super) fn archives(&self) -> Result<Vec<Archive>, ReadErrorKind> {
        let mut names = segment::archives(self.folder()?, self.path.name())?;
        if let Some(live) = &self.live
            && let Some(at) = names.iter().rposition(|archive| archive.inode == live.identity.inode)
        {
            // Rotated since we opened it: it and everything newer is not before it.
            names.truncate(at);
        }
        Ok(names)
    }

    /// One of the archives; `None` if it has been removed.
    pub(super) fn open_archive(&self, archive: &Archive) -> Result<Option<Segment>, ReadErrorKind> {
        Ok(Segment::open(self.folder()?, &archive.name)?)
    }

    pub(super) fn is_missing(&self) -> Result<bool, ReadErrorKind> {
        Ok(self.live.is_none() && self.archives()?.is_empty())
    }

    /// The index of a file of this bus, if it is worth having one.
    pub(super) fn index(&self, segment: &Segment) -> Result<Option<Arc<Index>>, ReadErrorKind> {
        if !Index::is_worth_having(segment.opened_len) {
            return Ok(None);
        }
        if let Some(index) = self.kept.index(segment)
            && index.serves(segment)?
        {
            return Ok(Some(index));
        }
        let index = Index::open(self.folder()?, &self.path.side_name(), segment)?.map(Arc::new);
        if let Some(index) = &index {
            self.kept.keep_index(segment, index);
        }
        Ok(index)
    }

    /// Looks a message up: in the live file first, then from the newest archive back.
    pub(super) fn find(&self, key: Key<'_>) -> Result<Option<Located>, ReadErrorKind> {
        let located = |archive, start: Start| {
            Some(Located { rank: Rank { archive, offset: start.position.offset }, start })
        };
        if let Some(live) = &self.live
            && let Some(start) = lookup::find(self, live, key)?
        {
            return Ok(located(usize::MAX, start));
        }
        for (rank, archive) in self.archives()?.iter().enumerate().rev() {
            let Some(segment) = self.open_archive(archive)? else { continue };
            if let Some(start) = lookup::find(self, &segment, key)? {
                return Ok(located(rank, start));
            }
        }
        Ok(None)
    }

    /// Where the last `count` messages start; `None` if there are not so many.
    pub(super) fn start_of_last(&self, count: usize) -> Result<Option<(Segment, Position)>, ReadErrorKind> {
        let mut wanted = count;
        if let Some(live) = &self.live {
            let last = lookup::last(self, live, wanted, |position, _| position)?;
            if last.len() == wanted {
                return Ok(last.first().map(|position| (live.clone(), *position)));
            }
            wanted -= last.len();
        }
        for archive in self.archives()?.iter().rev() {
            let Some(segment) = self.open_archive(archive)? else { continue };
            let last = lookup::last(self, &segment, wanted, |position, _| position)?;
            if last.len() == wanted {
                return Ok(last.first().map(|position| (segment, *position)));
            }
            wanted -= last.len();
        }
        Ok(None)
    }

    /// The file a looked-up message is in.
    pub(super) fn segment_of(&self, rank: Rank) -> Result<Option<Segment>, ReadErrorKind> {
        if rank.archive == usize::MAX {
            return Ok(self.live.clone());
        }
        match self.archives()?.get(rank.archive) {
            Some(archive) => self.open_archive(archive),
            None => Ok(None),
        }
    }

    /// The oldest file.
    pub(super) fn first(self) -> Result<Option<Segment>, ReadErrorKind> {
        for archive in &self.archives()? {
            if let Some(segment) = self.open_archive(archive)? {
                return Ok(Some(segment));
            }
        }
        Ok(self.live)
    }

    /// The file after this one in the order of rotation.
    pub(super) fn after(self, current: FileIdentity) -> Result<Successor, ReadErrorKind> {
        let Some(live) = &self.live else { return Ok(Successor::None) };
        if live.identity == current {
            return Ok(Successor::None);
        }
        // Listed after the live file was opened: if nothing archived comes after the current one, the live one does.
        let archives = segment::archives(self.folder()?, self.path.name())?;
        let Some(at) = archives.iter().rposition(|archive| archive.inode == current.inode) else {
            return Ok(Successor::Replaced);
        };
        for archive in &archives[at + 1..] {
            if let Some(segment) = self.open_archive(archive)? {
                return Ok(Successor::Next(segment));
            }
        }
        Ok(Successor::Next(live.clone()))
    }

    /// The files from a rank on (all for `None`), oldest first, the live one last.
    pub(super) fn segments_from(
        &self,
        rank: Option<Rank>,
    ) -> Result<impl Iterator<Item = Result<Segment, ReadErrorKind>>, ReadErrorKind> {
        let archives = match rank {
            Some(Rank { archive: usize::MAX, .. }) => Vec::new(),
            Some(Rank { archive, .. }) => self.archives()?.split_off(archive),
            None => self.archives()?,
        };
        let archived = archives.into_iter().filter_map(|archive| self.open_archive(&archive).transpose());
        Ok(archived.chain(self.live.iter().cloned().map(Ok)))
    }
}
