//! What projects around this folder would have run, and whether the user has trusted it.

use std::path::{Path, PathBuf};

use swb_daemon::Paths;
use swb_daemon::trust::{self, ProjectFile, Trust, TrustBook};

/// The user's book of trust, as far as it can be read: in doubt nothing is trusted.
#[derive(Debug)]
pub(crate) struct ProjectTrust {
    book: TrustBook,
    /// Why nothing is trusted although something may have been.
    trouble: Option<String>,
}

impl ProjectTrust {
    pub(crate) fn read(paths: &Paths) -> Self {
        match TrustBook::open(&paths.trust_file()) {
            Ok(book) => ProjectTrust { book, trouble: None },
            Err(error) => ProjectTrust { book: TrustBook::empty(), trouble: Some(error.to_string()) },
        }
    }

    /// How a file of a project stands, given what was read from it.
    pub(crate) fn of_file(&self, file: &Path, bytes: &[u8]) -> Trust {
        let named = trust::FILES.iter().find_map(|name| Some((root_of(file, name)?, *name)));
        named.map_or(Trust::Unknown, |(root, name)| self.book.trust(root, name, bytes))
    }

    /// Why something of this file was not started, and what would change that.
    pub(crate) fn why_not(&self, file: &Path) -> String {
        let root = trust::FILES.iter().find_map(|name| root_of(file, name));
        let shown = root.unwrap_or(Path::new(".")).display();
        let bytes = std::fs::read(file).unwrap_or_default();
        let state = match (&self.trouble, self.of_file(file, &bytes)) {
            (Some(trouble), _) => format!("{trouble}; once that is mended, "),
            (None, Trust::Changed) => "the file has changed since it was trusted; ".to_owned(),
            (None, _) => String::new(),
        };
        format!("{state}`swb trust {shown}` shows what it would run and lets it")
    }
}

/// The files of this name that may name programs: the nearest, in this folder or above it.
pub(crate) fn nearest(name: &'static str) -> Option<(PathBuf, ProjectFile)> {
    let here = std::env::current_dir().ok()?;
    let root = here.ancestors().find(|folder| folder.join(name).is_file())?.to_owned();
    let file = trust::project_files(&root).ok()?.into_iter().find(|file| file.name == name)?;
    Some((root.join(name), file))
}

fn root_of<'a>(file: &'a Path, name: &str) -> Option<&'a Path> {
    let depth = Path::new(name).components().count();
    file.ends_with(name).then(|| file.ancestors().nth(depth)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_folder_it_is_named_from() {
        let root = |file: &str, name| root_of(Path::new(file), name).map(Path::to_owned);
        assert_eq!(root("/p/.switchboard/config.toml", ".switchboard/config.toml"), Some("/p".into()));
        assert_eq!(root("/p/.mcp.json", ".mcp.json"), Some("/p".into()));
        assert_eq!(root("/p/config.toml", ".switchboard/config.toml"), None);
    }
}
