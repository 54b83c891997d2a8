//! From a path to bytes that may be sent.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use swb_proto::agent::Attachment;

use super::kind::{Kind, NoKind};
use super::{Loaded, MAX_FILE_BYTES, MAX_FILES, MAX_IMAGE_BYTES, MAX_TEXT_BYTES, MAX_TOTAL_BYTES};
use crate::gate::paths;
use crate::model::Inputs;
use crate::regular_file::{NotUsable, RegularFile};

/// Why a file cannot be attached. The text is for people.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachmentError {
    #[error("attachment path must be absolute: {0}")]
    NotAbsolute(String),
    #[error("attachment path must not contain ..: {0}")]
    Upwards(String),
    #[error("{0} files are attached; the limit is {MAX_FILES}")]
    TooMany(usize),
    #[error("attachment {path} cannot be used: {source}")]
    NotUsable { path: String, source: NotUsable },
    #[error("attachment {0} is empty")]
    Empty(String),
    #[error("attachment {path} is larger than {limit}")]
    TooLarge { path: String, limit: &'static str },
    #[error("the attachments are larger than 15 MiB together")]
    TooLargeTogether,
    #[error("{source}: {path}")]
    NoKind { path: String, source: NoKind },
    #[error("Selected model lacks exact {what} input capability metadata: {path}")]
    NotForThisModel { what: &'static str, path: String },
    #[error("attachment {path} is not allowed: {reason}")]
    Denied { path: String, reason: String },
    #[error("the files of this conversation would be larger than 20 MiB; compact it or begin a new session")]
    ConversationTooLarge,
    #[error("the attachments cannot be kept: {0}")]
    NotKept(io::Error),
}

/// A file that is open and has not been judged yet.
#[derive(Debug)]
pub(crate) struct Opened {
    file: RegularFile,
    /// As it was named.
    pub(crate) path: String,
    /// Where it really lies.
    pub(crate) real_path: PathBuf,
}

/// What can be said about the paths alone.
pub(crate) fn check(attachments: &[Attachment]) -> Result<(), AttachmentError> {
    if attachments.len() > MAX_FILES {
        return Err(AttachmentError::TooMany(attachments.len()));
    }
    for Attachment { path, .. } in attachments {
        if !Path::new(path).is_absolute() {
            return Err(AttachmentError::NotAbsolute(path.clone()));
        }
        if Path::new(path).components().any(|part| part == Component::ParentDir) {
            return Err(AttachmentError::Upwards(path.clone()));
        }
    }
    Ok(())
}

/// Opens the files, reading nothing yet.
pub(crate) fn open(attachments: Vec<Attachment>) -> Result<Vec<Opened>, AttachmentError> {
    let open = |Attachment { path, .. }: Attachment| match RegularFile::open(Path::new(&path)) {
        Ok(file) => {
            let real_path = file.real_path().unwrap_or_else(|_| paths::resolve(Path::new("/"), &path));
            Ok(Opened { file, path, real_path })
        }
        Err(source) => Err(AttachmentError::NotUsable { path, source }),
    };
    attachments.into_iter().map(open).collect()
}

/// Reads the files and says what they are.
pub(crate) fn read(opened: Vec<Opened>, inputs: Inputs) -> Result<Vec<Loaded>, AttachmentError> {
    let mut left = MAX_TOTAL_BYTES;
    let mut files = Vec::new();
    for Opened { file, path, .. } in opened {
        // What claims to be empty may be a window into the system that never ends.
        if file.size == 0 {
            return Err(AttachmentError::Empty(path));
        }
        if file.size > MAX_FILE_BYTES {
            return Err(AttachmentError::TooLarge { path, limit: "10 MiB" });
        }
        let mut bytes = Vec::new();
        // It may have grown since.
        if let Err(error) = file.file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes) {
            return Err(AttachmentError::NotUsable { path, source: error.into() });
        }
        let size = bytes.len() as u64;
        if size > MAX_FILE_BYTES {
            return Err(AttachmentError::TooLarge { path, limit: "10 MiB" });
        }
        left = left.checked_sub(size).ok_or(AttachmentError::TooLargeTogether)?;
        let kind = match Kind::of(&bytes) {
            _ if bytes.is_empty() => return Err(AttachmentError::Empty(path)),
            Ok(kind) => kind,
            Err(source) => return Err(AttachmentError::NoKind { path, source }),
        };
        match kind {
            Kind::Text if size > MAX_TEXT_BYTES => {
                return Err(AttachmentError::TooLarge { path, limit: "256 KiB, the limit for text" });
            }
            Kind::Pdf if !inputs.pdf => {
                return Err(AttachmentError::NotForThisModel { what: "PDF", path });
            }
            kind if kind.is_image() && size > MAX_IMAGE_BYTES => {
                return Err(AttachmentError::TooLarge { path, limit: "3.5 MiB, the limit for images" });
            }
            kind if kind.is_image() && !inputs.images => {
                return Err(AttachmentError::NotForThisModel { what: "image", path });
            }
            _ => {}
        }
        let title = Path::new(&path).file_name().map(|name| name.to_string_lossy().into_owned());
        files.push(Loaded { title: title.unwrap_or_default(), kind, bytes });
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Inputs = Inputs { images: true, pdf: true };

    fn attachment(path: impl AsRef<Path>) -> Attachment {
        Attachment { path: path.as_ref().to_str().unwrap().to_owned(), name: None, mime: None }
    }

    fn load(paths: &[PathBuf], inputs: Inputs) -> Result<Vec<Loaded>, String> {
        let attachments: Vec<_> = paths.iter().map(attachment).collect();
        check(&attachments).and_then(|()| open(attachments)).and_then(|opened| read(opened, inputs)).map_err(
            |error| {
                let text = error.to_string();
                paths.iter().fold(text, |text, path| text.replace(path.to_str().unwrap(), "P"))
            },
        )
    }

    #[test]
    fn paths_are_absolute_and_do_not_lead_up() {
        let error = |path: &str| load(&[path.into()], ALL).unwrap_err();
        assert_eq!(error("a.txt"), "attachment path must be absolute: P");
        assert_eq!(error("./a"), "attachment path must be absolute: P");
        assert_eq!(error("/tmp/../etc/hosts"), "attachment path must not contain ..: P");
        assert!(error("/a\0b").starts_with("attachment P cannot be used"));
        assert_eq!(load(&vec!["/x".into(); 9], ALL).unwrap_err(), "9 files are attached; the limit is 8");
    }

    #[test]
    fn sizes_have_limits_and_a_file_is_named_by_the_end_of_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let image = |length: usize| {
            let mut bytes = b"GIF89a\x01\0\x01\0".to_vec();
            bytes.resize(length, 7);
            bytes
        };
        let pdf = |length: usize| {
            let mut bytes = b"%PDF-1.4 %%EOF".to_vec();
            bytes.resize(length, b' ');
            bytes
        };
        let mib = 1024 * 1024;
        let error = |path: PathBuf| load(&[path], ALL).unwrap_err();
        assert_eq!(error(file("e", b"")), "attachment P is empty");
        assert_eq!(
            error(file("t", &vec![b'a'; mib / 4 + 1])),
            "attachment P is larger than 256 KiB, the limit for text"
        );
        assert_eq!(
            error(file("i", &image(7 * mib / 2 + 1))),
            "attachment P is larger than 3.5 MiB, the limit for images"
        );
        assert_eq!(error(file("p", &pdf(10 * mib + 1))), "attachment P is larger than 10 MiB");
        let sparse = dir.path().join("sparse");
        std::fs::File::create(&sparse).unwrap().set_len(10 << 30).unwrap();
        assert_eq!(error(sparse), "attachment P is larger than 10 MiB");
        assert_eq!(error("/proc/version".into()), "attachment P is empty");

        let large = file("large.pdf", &pdf(8 * mib));
        assert_eq!(
            load(&[large.clone(), large], ALL).unwrap_err(),
            "the attachments are larger than 15 MiB together"
        );
        let good = [
            file("a b.txt", &vec![b'a'; mib / 4]),
            file("i.gif", &image(7 * mib / 2)),
            file("p.pdf", &pdf(10 * mib)),
        ];
        let loaded = load(&good, ALL).unwrap();
        assert_eq!(
            loaded.iter().map(|file| file.title.as_str()).collect::<Vec<_>>(),
            ["a b.txt", "i.gif", "p.pdf"]
        );
        assert_eq!(loaded[1].kind, Kind::Gif);
        for (at, what) in [(1, "image"), (2, "PDF")] {
            let refused = load(&good[at..=at], Inputs::default()).unwrap_err();
            assert_eq!(refused, format!("Selected model lacks exact {what} input capability metadata: P"));
        }
        assert!(load(&good[..1], Inputs::default()).is_ok(), "every model takes text");
    }
}
