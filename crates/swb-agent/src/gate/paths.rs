//! What a path means: where it really leads, and what may lie there.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// The place a path leads to: absolute, without `..`, and with every link on the way followed. What does not exist yet
/// is taken by its name.
pub(crate) fn resolve(folder: &Path, path: &str) -> PathBuf {
    resolve_links(&folder.join(path), MAX_LINKS)
}

/// So many links that lead nowhere are followed; more are a circle.
const MAX_LINKS: u32 = 40;

fn resolve_links(path: &Path, links: u32) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                // `a/link/..` is not `a`: follow the link first.
                plain = follow(&plain, links);
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    follow(&plain, links)
}

fn follow(path: &Path, links: u32) -> PathBuf {
    for known in path.ancestors() {
        if let Ok(real) = known.canonicalize() {
            let rest = path.strip_prefix(known).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
        // A link that leads nowhere would lead somewhere once that place is written.
        // That place may be named by way of `..` and of further links.
        if links > 0
            && known.is_symlink()
            && let Ok(target) = known.read_link()
        {
            let rest = path.strip_prefix(known).unwrap_or(Path::new(""));
            let target = known.parent().unwrap_or(Path::new("/")).join(target).join(rest);
            return resolve_links(&target, links - 1);
        }
    }
    path.to_owned()
}

const SECRET_FOLDERS: [&str; 8] =
    [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", "gcloud"];
const SECRET_FILES: [&str; 10] = [
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    "credentials.json",
    "shadow",
    "environ",
    "id_rsa",
    "id_ed25519",
];
const SECRET_ENDINGS: [&str; 4] = [".pem", ".key", ".p12", ".kdbx"];

/// Whether a file is of a kind that usually holds secrets. A guard against accidents, not a wall.
pub(crate) fn is_secret(path: &Path) -> bool {
    let folders = path.parent().into_iter().flat_map(Path::components);
    let in_secret_folder = folders
        .chain(path.components().next_back())
        .any(|part| part.as_os_str().to_str().is_some_and(|part| SECRET_FOLDERS.contains(&part)));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let environment = name == ".env" || (name.starts_with(".env.") && !name.ends_with(".example"));
    in_secret_folder
        || environment
        || SECRET_FILES.contains(&name)
        || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether a file decides what other programs do: our own rules, the hooks of a repository.
pub(crate) fn steers_programs(path: &Path) -> bool {
    is_ours(path) || path.components().any(|part| part.as_os_str() == ".git")
}

/// Whether a file belongs to Switchboard.
pub(crate) fn is_ours(path: &Path) -> bool {
    let names = path.components().map(|part| part.as_os_str());
    let config = |(folder, name)| {
        let is = |text: &str| folder == OsStr::new(text);
        name == OsStr::new("switchboard") && (is(".config") || is("state"))
    };
    names.clone().any(|name| name == ".switchboard") || names.clone().zip(names.skip(1)).any(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_and_dots_do_not_hide_where_a_path_leads() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("w/in")).unwrap();
        std::fs::create_dir_all(root.join("out/deep")).unwrap();
        symlink(root.join("out/deep"), root.join("w/link")).unwrap();
        symlink(root.join("out/later"), root.join("w/dangling")).unwrap();
        symlink("../out/later", root.join("w/up")).unwrap();
        symlink("up", root.join("w/twice")).unwrap();
        symlink("circle", root.join("w/circle")).unwrap();
        let folder = root.join("w");
        for (path, wanted) in [
            ("a/b", "w/a/b"),
            ("./in/../c", "w/c"),
            ("../out", "out"),
            ("link/f", "out/deep/f"),
            ("link/../f", "out/f"),
            ("dangling", "out/later"),
            ("up", "out/later"),
            ("twice", "out/later"),
            ("up/f", "out/later/f"),
            ("circle", "w/circle"),
        ] {
            assert_eq!(resolve(&folder, path), root.join(wanted), "{path}");
        }
        assert_eq!(resolve(&folder, "/etc/../nowhere"), Path::new("/nowhere"));
    }
}
