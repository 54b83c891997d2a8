//! The rules of projects, read when a project is first met.
//!
//! So many are kept as are in use; a project that was not asked about for long makes room and is read again when it is
//! met again. Reading happens outside the lock of the list, so that one project never waits for another.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use swb_journal::watch::Signal;
use swb_policy::RuleFolder;
use swb_rules::policy::Restrictions;

use super::layer::{Kept, Layer};

/// Most projects whose rules are kept.
const MAX_PROJECTS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Projects {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_root: HashMap<PathBuf, Project>,
    /// Grows with every question: who was asked about last.
    clock: u64,
}

#[derive(Debug, Clone)]
struct Project {
    layer: Arc<OnceLock<Layer<Restrictions>>>,
    asked_at: u64,
}

impl Projects {
    /// The rules of a project now.
    pub(super) fn kept(&self, root: &Path, bell: &Arc<Signal>) -> Arc<Kept<Restrictions>> {
        let slot = self.lock().slot(root);
        let open = || Layer::open(RuleFolder::of_project(root), Restrictions::load_project, bell);
        slot.get_or_init(open).kept()
    }

    /// All that were read, by their roots.
    pub(super) fn all(&self) -> Vec<(PathBuf, Arc<OnceLock<Layer<Restrictions>>>)> {
        let known = self.lock();
        known.by_root.iter().map(|(root, project)| (root.clone(), Arc::clone(&project.layer))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn slot(&mut self, root: &Path) -> Arc<OnceLock<Layer<Restrictions>>> {
        self.clock += 1;
        if let Some(project) = self.by_root.get_mut(root) {
            project.asked_at = self.clock;
            return Arc::clone(&project.layer);
        }
        if self.by_root.len() >= MAX_PROJECTS {
            let oldest = self.by_root.iter().min_by_key(|(_, project)| project.asked_at);
            if let Some(root) = oldest.map(|(root, _)| root.clone()) {
                self.by_root.remove(&root);
            }
        }
        let project = Project { layer: Arc::default(), asked_at: self.clock };
        self.by_root.insert(root.to_owned(), project.clone());
        project.layer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_kept_and_the_one_asked_about_last_is_among_them() {
        let (projects, bell) = (Projects::default(), Arc::default());
        let dir = tempfile::tempdir().unwrap();
        let first = dir.path().join("first");
        for number in 0..MAX_PROJECTS + 20 {
            projects.kept(&first, &bell);
            projects.kept(&dir.path().join(number.to_string()), &bell);
        }
        let all = projects.all();
        assert_eq!(all.len(), MAX_PROJECTS);
        assert!(all.iter().any(|(root, _)| *root == first));
    }
}
