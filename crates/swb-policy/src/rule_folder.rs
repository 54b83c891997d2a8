//! A folder of rule files: what stands in its `*.cedar`, by name.
//!
//! Only plain files are read, and no more than the limits allow: whoever can write there must not be able to make us wait
//! or grow. Names that begin with a dot are an editor's. A folder that does not exist has no rules.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use swb_rules::policy::{LoadError, MAX_FILE_BYTES, Source};

/// Most files of one folder.
const MAX_FILES: usize = 200;
/// Most bytes of all files of one folder.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Where rules lie, and how that is called in messages: never by its absolute path.
#[derive(Debug, Clone)]
pub struct RuleFolder {
    path: PathBuf,
    shown: &'static str,
    /// The folder above which nothing of this layer lies.
    anchor: PathBuf,
    is_users: bool,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFile {
    /// Its name as it is shown.
    pub name: String,
    /// What stands in it.
    pub text: String,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// The files, by name.
    pub files: Vec<RuleFile>,
    /// Where files really lie that are links.
    pub linked: Vec<PathBuf>,
}

impl RuleFolder {
    /// The user's.
    #[must_use]
    pub fn of_user(config: &Path) -> Self {
        Self { path: config.join("policy"), shown: "policy", anchor: config.to_owned(), is_users: true }
    }

    /// A project's.
    #[must_use]
    pub fn of_project(root: &Path) -> Self {
        let path = root.join(".switchboard/policy");
        Self { path, shown: ".switchboard/policy", anchor: root.to_owned(), is_users: false }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder above which nothing of it lies.
    #[must_use]
    pub fn anchor(&self) -> &Path {
        &self.anchor
    }

    /// The files, by name.
    pub fn files(&self) -> Result<Vec<RuleFile>, Vec<LoadError>> {
        self.read().map(|found| found.files)
    }

    /// The files, and where they really lie.
    pub fn read(&self) -> Result<Found, Vec<LoadError>> {
        let names = self.names().map_err(|error| vec![unreadable(self.shown, &error.to_string())])?;
        if names.len() > MAX_FILES {
            return Err(vec![unreadable(self.shown, &format!("there are more than {MAX_FILES} files"))]);
        }
        let (mut found, mut errors, mut bytes) = (Found::default(), Vec::new(), 0);
        for name in names {
            let (path, shown) = (self.path.join(&name), format!("{}/{name}", self.shown));
            match self.read_file(&path) {
                Ok(text) => {
                    bytes += text.len();
                    if path.is_symlink() {
                        found.linked.extend(path.canonicalize());
                    }
                    found.files.push(RuleFile { name: shown, text });
                }
                // It was there a moment ago: an editor is at work, and will be heard of again.
                Err(Unfit::Io(error)) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {}
                Err(unfit) => errors.push(unreadable(&shown, &unfit.to_string())),
            }
            if bytes > MAX_BYTES {
                errors.push(unreadable(self.shown, &format!("there are more than {MAX_BYTES} bytes")));
                break;
            }
        }
        if errors.is_empty() { Ok(found) } else { Err(errors) }
    }

    /// Names of rule files, sorted, so that the same files always give the same rules.
    fn names(&self) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries.take(MAX_FILES * 50) {
            // A name that is not UTF-8 would be an unreadable rule, not an absent one.
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".cedar") && !name.starts_with('.') {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn read_file(&self, path: &Path) -> Result<String, Unfit> {
        // Without waiting, should it be a pipe. A link in a project could lead to what the project's author may not see,
        // and messages quote what they complain about.
        let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if !self.is_users {
            flags |= OFlags::NOFOLLOW;
        }
        let file = File::from(openat(CWD, path, flags, Mode::empty()).map_err(io::Error::from)?);
        read_plain(&file, MAX_FILE_BYTES).and_then(|(metadata, bytes)| {
            if self.is_users && metadata.mode() & 0o002 != 0 {
                return Err(Unfit::Open);
            }
            String::from_utf8(bytes).map_err(|_| Unfit::NotText)
        })
    }
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// The system says so.
    #[error("cannot be read: {}", .0.kind())]
    Io(#[from] io::Error),
    /// A folder, a pipe, a device.
    #[error("is not a plain file")]
    NotPlain,
    /// More than anybody needs.
    #[error("is larger than {0} bytes")]
    TooLarge(usize),
    /// Bytes that are no text.
    #[error("is not UTF-8")]
    NotText,
    /// Anybody could have written it.
    #[error("can be written by everyone (chmod o-w)")]
    Open,
}

/// The bytes of a plain file, at most so many.
pub fn read_plain(file: &File, most: usize) -> Result<(std::fs::Metadata, Vec<u8>), Unfit> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(Unfit::NotPlain);
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(Unfit::TooLarge(most));
    }
    Ok((metadata, bytes))
}

fn unreadable(file: &str, reason: &str) -> LoadError {
    LoadError { file: file.to_owned(), line: 1, column: 1, reason: reason.to_owned(), help: None }
}

/// The files as the loader wants them.
#[must_use]
pub fn sources(files: &[RuleFile]) -> Vec<Source<'_>> {
    files.iter().map(|file| Source { file: &file.name, text: &file.text }).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(found: &Found) -> Vec<&str> {
        found.files.iter().map(|file| file.name.as_str()).collect()
    }

    #[test]
    fn rule_files_are_read_by_name_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RuleFolder::of_user(dir.path());
        assert!(folder.read().unwrap().files.is_empty(), "no folder, no rules");
        std::fs::create_dir(folder.path()).unwrap();
        for name in ["b.cedar", "a.cedar", "a.cedar~", ".#a.cedar", "notes.md"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        symlink("/nowhere", folder.path().join(".#b.cedar")).unwrap();
        assert_eq!(names(&folder.read().unwrap()), ["policy/a.cedar", "policy/b.cedar"]);
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_never_an_absent_rule() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RuleFolder::of_user(dir.path());
        std::fs::create_dir(folder.path()).unwrap();
        let file = folder.path().join("a.cedar");
        let errors = |expected: &str, make: &dyn Fn(&Path)| {
            make(&file);
            let errors = folder.read().unwrap_err();
            assert_eq!(errors[0].file, "policy/a.cedar");
            assert!(errors[0].reason.contains(expected), "{errors:?}");
            let _ = std::fs::remove_file(&file).or_else(|_| std::fs::remove_dir(&file));
        };
        errors("UTF-8", &|file| std::fs::write(file, [0xff, 0xfe]).unwrap());
        errors("larger", &|file| std::fs::write(file, vec![b' '; MAX_FILE_BYTES + 1]).unwrap());
        errors("plain file", &|file| std::fs::create_dir(file).unwrap());
        errors("plain file", &|file| {
            rustix::fs::mknodat(CWD, file, rustix::fs::FileType::Fifo, Mode::from(0o600), 0).unwrap();
        });
        errors("cannot be read", &|file| symlink("/nowhere", file).unwrap());
        errors("everyone", &|file| {
            std::fs::write(file, "").unwrap();
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o666)).unwrap();
        });
        std::fs::remove_dir(folder.path()).unwrap();
        std::fs::write(folder.path(), "").unwrap();
        assert_eq!(folder.read().unwrap_err()[0].file, "policy");
    }

    #[test]
    fn links_are_for_users_and_not_for_projects() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap().join("elsewhere.cedar");
        std::fs::write(&real, "x").unwrap();
        let (user, project) = (RuleFolder::of_user(dir.path()), RuleFolder::of_project(dir.path()));
        for folder in [&user, &project] {
            std::fs::create_dir_all(folder.path()).unwrap();
            symlink(&real, folder.path().join("a.cedar")).unwrap();
        }
        assert_eq!(user.read().unwrap().linked, [real]);
        assert_eq!(project.read().unwrap_err()[0].file, ".switchboard/policy/a.cedar");
    }
}
