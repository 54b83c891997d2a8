//! Where the folder of a project or a task lies under a root.
//!
//! Usually `<project>[/<task>]`. A root may also be the folder *above* the one that projects lie in, as when a program of
//! another make was pointed at a checkout and keeps its projects in `runs/`; and tasks are found below any folder of the
//! root. Whoever posts, lists or follows asks here, so all of them mean the same file.
//!
//! | wanted | looked for, in this order | made if there is none |
//! |---|---|---|
//! | project | `p`, `runs/p` | `p` |
//! | task | `p/t`, `runs/p/t`, `<any>/p/t` by name | beside the project's bus: `p/t`, or `runs/p/t` if the project lies there |
//!
//! Whatever bears the name counts as found, a link too: opening it is then refused, and nothing leads past it to another
//! place. A new task goes where its project is, because a second folder of that name would hide the first.

use std::path::{Path, PathBuf};

/// The second place for projects.
const RUNS: &str = "runs";

/// The folder below the root.
pub(super) fn find(root: &Path, project: &str, task: Option<&str>) -> PathBuf {
    let usual = Path::new(project);
    let Some(task) = task else { return project_folder(root, usual) };
    let wanted = usual.join(task);
    if is_there(&root.join(&wanted)) {
        return wanted;
    }
    let in_runs = Path::new(RUNS).join(&wanted);
    if is_there(&root.join(&in_runs)) {
        return in_runs;
    }
    below_any(root, &wanted).unwrap_or_else(|| project_folder(root, usual).join(task))
}

fn project_folder(root: &Path, usual: &Path) -> PathBuf {
    let in_runs = Path::new(RUNS).join(usual);
    if !is_there(&root.join(usual)) && is_there(&root.join(&in_runs)) { in_runs } else { usual.to_owned() }
}

/// The first folder of the root, by name, that has this below it.
fn below_any(root: &Path, wanted: &Path) -> Option<PathBuf> {
    let entries = root.read_dir().ok()?.filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let found = folders.map(|folder| Path::new(&folder.file_name()).join(wanted));
    // Here a link is no find: nobody named the folder it would be found in.
    let is_folder = |path: &PathBuf| root.join(path).symlink_metadata().is_ok_and(|found| found.is_dir());
    found.filter(is_folder).min()
}

/// Whether anything bears this name.
pub(super) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(folders: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        folders.iter().for_each(|folder| std::fs::create_dir_all(root.path().join(folder)).unwrap());
        root
    }

    #[track_caller]
    fn finds(folders: &[&str], project: &str, task: Option<&str>, expected: &str) {
        assert_eq!(find(root(folders).path(), project, task), Path::new(expected), "{folders:?}");
    }

    #[test]
    fn a_project_lies_in_the_root_or_in_runs() {
        finds(&[], "p", None, "p");
        finds(&["p"], "p", None, "p");
        finds(&["runs/p"], "p", None, "runs/p");
        finds(&["p", "runs/p"], "p", None, "p");
        finds(&["x/p"], "p", None, "p");
        finds(&["runs"], "p", None, "p");
        finds(&["runs"], "runs", None, "runs");
    }

    #[test]
    fn a_task_is_found_below_any_folder_and_made_beside_its_project() {
        finds(&[], "p", Some("t"), "p/t");
        finds(&["p/t", "runs/p/t"], "p", Some("t"), "p/t");
        finds(&["p", "runs/p/t", "a/p/t"], "p", Some("t"), "runs/p/t");
        finds(&["p", "b/p/t", "a/p/t"], "p", Some("t"), "a/p/t");
        finds(&["runs/p", "x/y/p/t"], "p", Some("t"), "runs/p/t");
        finds(&["p", "runs/p"], "p", Some("t"), "p/t");
    }

    #[test]
    fn a_link_hides_nothing_and_leads_nowhere() {
        let outside = root(&["p/t"]);
        let inside = root(&["runs/p/t"]);
        std::os::unix::fs::symlink(outside.path().join("p"), inside.path().join("p")).unwrap();
        assert_eq!(find(inside.path(), "p", None), Path::new("p"), "to be refused when it is opened");
        let walked = root(&["runs"]);
        std::os::unix::fs::symlink(outside.path(), walked.path().join("a")).unwrap();
        assert_eq!(find(walked.path(), "p", Some("t")), Path::new("p/t"));
    }
}
