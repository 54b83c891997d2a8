//! The files of a session: a copy of each attached file beside the history, in `<id>.files/`.
//!
//! The history only names them, by the hash of their bytes, so it stays small and the same file sent twice is kept once.
//! A copy is on the disk before a message names it. When no message names it any more (the conversation was compacted, or
//! a crash came before the message) it is swept away; that never touches a copy whose message is still to come. What was
//! changed behind our back is as good as gone. Contents in memory are bounded by what a conversation may hold.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use swb_proto::agent::{Message, Source};

use crate::attachments::{Kind, Loaded};
use crate::model::{FileBody, Files};

/// The copies of one session.
#[derive(Debug)]
pub(crate) struct FileStore {
    folder: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    bodies: HashMap<String, FileBody>,
    /// Kept, and not yet named by a message.
    fresh: HashSet<String>,
}

impl FileStore {
    pub(super) fn new(folder: PathBuf) -> Self {
        FileStore { folder, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a file. On the disk when this returns.
    pub(crate) fn keep(&self, file: &Loaded) -> io::Result<Source> {
        let file_id = blake3::hash(&file.bytes).to_hex().to_string();
        // From here on no sweep takes it.
        self.known().fresh.insert(file_id.clone());
        let path = self.folder.join(&file_id);
        if std::fs::metadata(&path).map_or(0, |kept| kept.len()) != file.bytes.len() as u64 {
            write(&self.folder, &path, &file.bytes)?;
        }
        Ok(Source::File {
            file_id,
            media_type: file.kind.media_type().to_owned(),
            size: file.bytes.len() as u64,
        })
    }

    /// A message names these now.
    pub(super) fn named(&self, message: &Message) {
        let mut known = self.known();
        for Source::File { file_id, .. } in message.files() {
            known.fresh.remove(file_id);
        }
    }

    /// The contents of what the messages name, as far as it is still there.
    pub(crate) fn load<'a>(&self, messages: impl Iterator<Item = &'a Message>) -> Files {
        let mut files = HashMap::new();
        for Source::File { file_id, media_type, .. } in messages.flat_map(Message::files) {
            if files.contains_key(file_id) {
                continue;
            }
            let known = self.known().bodies.get(file_id).cloned();
            if let Some(body) = known.or_else(|| self.read(file_id, media_type)) {
                self.known().bodies.insert(file_id.clone(), body.clone());
                files.insert(file_id.clone(), body);
            }
        }
        files.into_iter().collect()
    }

    fn read(&self, file_id: &str, media_type: &str) -> Option<FileBody> {
        // A name that leads elsewhere has no bytes of that hash.
        let bytes = std::fs::read(self.folder.join(file_id)).ok()?;
        (blake3::hash(&bytes).to_hex().as_str() == file_id).then(|| body(media_type, bytes)).flatten()
    }

    /// Removes what no message names.
    pub(super) fn sweep<'a>(&self, messages: impl Iterator<Item = &'a Message>) {
        let live: HashSet<&str> =
            messages.flat_map(Message::files).map(|Source::File { file_id, .. }| file_id.as_str()).collect();
        let mut known = self.known();
        let Known { bodies, fresh } = &mut *known;
        let stays = |name: &str| live.contains(name) || fresh.contains(name);
        bodies.retain(|name, _| stays(name));
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| !entry.file_name().to_str().is_some_and(stays)) {
            // What cannot be removed now is removed another time.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn body(media_type: &str, bytes: Vec<u8>) -> Option<FileBody> {
    if media_type == Kind::Text.media_type() {
        return String::from_utf8(bytes).ok().map(|text| FileBody::Text(text.into()));
    }
    Some(FileBody::Base64(STANDARD.encode(bytes).into()))
}

fn write(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut next = tempfile::NamedTempFile::new_in(folder)?;
    next.write_all(bytes)?;
    next.as_file().sync_data()?;
    next.persist(path)?;
    // The names must survive as well: that of the file and that of its folder.
    for folder in [folder, folder.parent().unwrap_or(folder)] {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use swb_proto::agent::Block;

    fn text(text: &str) -> Loaded {
        Loaded { title: "t".into(), kind: Kind::Text, bytes: text.into() }
    }

    fn message(source: &Source) -> Message {
        Message::with_files("m", vec![Block::Document { title: "t".into(), source: source.clone() }])
    }

    fn names(folder: &Path) -> usize {
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    #[test]
    fn the_same_file_is_kept_once_and_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("s.files");
        let store = FileStore::new(folder.clone());
        let source = store.keep(&text("hello")).unwrap();
        assert_eq!(store.keep(&text("hello")).unwrap(), source);
        assert_eq!(names(&folder), 1);
        let again = FileStore::new(folder.clone());
        let message = message(&source);
        let files = again.load([&message].into_iter());
        assert_eq!(files.get(&source), Some(&FileBody::Text("hello".into())));
        let Source::File { file_id, .. } = &source;
        std::fs::write(folder.join(file_id), "other").unwrap();
        assert_eq!(FileStore::new(folder).load([&message].into_iter()).get(&source), None, "changed is gone");
    }

    #[test]
    fn a_sweep_takes_what_nobody_names_but_not_what_is_about_to_be_named() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("s.files");
        let store = FileStore::new(folder.clone());
        let source = store.keep(&text("one")).unwrap();
        store.sweep(std::iter::empty());
        assert_eq!(names(&folder), 1, "its message is still to come");
        store.named(&message(&source));
        store.sweep([&message(&source)].into_iter());
        assert_eq!(names(&folder), 1);
        store.sweep(std::iter::empty());
        assert_eq!(names(&folder), 0);
        assert_eq!(store.load([&message(&source)].into_iter()).get(&source), None);
    }
}
