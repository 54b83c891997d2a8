//! The desk with its file: a change is on disk when it returns, or it has not happened.

use std::io;
use std::path::{Path, PathBuf};

use swb_journal::event_file::{EventFile, Kept};
use swb_rules::approval::{ApprovalEvent, Desk};

/// A desk whose every change is kept.
#[derive(Debug)]
pub(super) struct KeptDesk {
    path: PathBuf,
    desk: Desk,
    /// None while the disk refuses: then the desk is empty, so that nothing is covered and nothing is answered.
    pub(super) file: Option<EventFile>,
    /// What was told since the last write; it is written with the next one.
    unwritten: Vec<ApprovalEvent>,
}

impl KeptDesk {
    /// Opens the file, or begins it.
    pub(super) fn open(path: &Path, now: u64) -> io::Result<Self> {
        let (desk, file) = load(path, now)?;
        Ok(KeptDesk { path: path.to_owned(), desk, file: Some(file), unwritten: Vec::new() })
    }

    /// The desk as it is.
    pub(super) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Makes a change. The desk runs ahead of the file within this call only: where the file cannot follow, the desk is read
    /// from it again.
    ///
    /// `head` is the place in the order of all that is told behind which this change will be told.
    pub(super) fn change<T>(
        &mut self,
        now: u64,
        head: u64,
        command: impl FnOnce(&mut Desk) -> (T, Vec<ApprovalEvent>),
    ) -> io::Result<T> {
        if self.file.is_none() {
            self.reload(now)?;
        }
        let (result, events) = command(&mut self.desk);
        if !events.is_empty() {
            let telling = ApprovalEvent::Telling { after: head };
            self.desk.apply(telling.clone());
            self.write(now, [telling].into_iter().chain(events))?;
        }
        Ok(result)
    }

    /// Notes what was told. It is written with the next change, when the record of what was told has it for certain.
    pub(super) fn note(&mut self, events: Vec<ApprovalEvent>) {
        for event in &events {
            self.desk.apply(event.clone());
        }
        self.unwritten.extend(events);
    }

    /// Writes what was noted.
    pub(super) fn flush(&mut self, now: u64) -> io::Result<()> {
        if self.unwritten.is_empty() { Ok(()) } else { self.write(now, []) }
    }

    fn write(&mut self, now: u64, events: impl IntoIterator<Item = ApprovalEvent>) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Err(io::Error::other("the file is not open")) };
        let noted = self.unwritten.len();
        self.unwritten.extend(events);
        let written = file.append(&self.unwritten);
        self.unwritten.truncate(noted);
        if let Err(error) = written {
            // What failed is the news; whether the file can be read again shows at the next change.
            let _ = self.reload(now);
            return Err(error);
        }
        self.unwritten.clear();
        if file.is_long()
            && let Err(error) = file.begin_anew(&self.desk)
        {
            tracing::warn!(%error, "the past of approvals could not be summed up");
        }
        Ok(())
    }

    fn reload(&mut self, now: u64) -> io::Result<()> {
        (self.desk, self.file) = (Desk::default(), None);
        let (mut desk, file) = load(&self.path, now)?;
        self.unwritten.iter().for_each(|event| desk.apply(event.clone()));
        (self.desk, self.file) = (desk, Some(file));
        Ok(())
    }
}

fn load(path: &Path, now: u64) -> io::Result<(Desk, EventFile)> {
    let (mut file, Kept { snapshot, events, found }) = EventFile::open::<Desk, ApprovalEvent>(path)?;
    let mut desk = snapshot.unwrap_or_default();
    events.into_iter().for_each(|event| desk.apply(event));
    if found.torn_bytes > 0 {
        tracing::warn!(path = %path.display(), bytes = found.torn_bytes, "a crash had cut the last approval short");
    }
    if found.damaged_lines > 0 {
        let ended = desk.distrust(now).len();
        tracing::error!(
            path = %path.display(), lines = found.damaged_lines, ended,
            "the file of approvals is damaged; what was allowed for sessions is taken back"
        );
        file.begin_anew(&desk)?;
    }
    Ok((desk, file))
}
