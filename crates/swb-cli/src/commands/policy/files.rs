//! The rule files that hold here, read as the daemon reads them.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use swb_daemon::Paths;
use swb_daemon::policy::{RuleFile, RuleFolder, load_of};
use swb_rules::policy::{LoadError, Loaded, Restrictions, Rules, Source};

use crate::exit_code;
use crate::failure::Failure;
use crate::io::layers;

/// Where rules are asked.
#[derive(Debug, Args)]
pub(crate) struct HereArgs {
    /// The project whose rules hold too; the one around this folder unless said otherwise.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    project: Option<PathBuf>,
}

impl HereArgs {
    /// The root of the project, if there is one.
    pub(super) fn project_root(&self) -> Option<PathBuf> {
        match &self.project {
            Some(project) => Some(project.canonicalize().unwrap_or_else(|_| project.clone())),
            None => {
                let here = std::env::current_dir().ok()?;
                here.ancestors().find(|folder| folder.join(".switchboard").is_dir()).map(Path::to_owned)
            }
        }
    }
}

/// The rules that hold in a place.
#[derive(Debug)]
pub(in crate::commands) struct RulesHere {
    pub(in crate::commands) own: Loaded<Rules>,
    pub(super) project: Option<Loaded<Restrictions>>,
}

impl RulesHere {
    pub(super) fn read(set: &[String], project_root: Option<&Path>) -> Result<Self, Failure> {
        Self::try_read(set, project_root)?.map_err(|problems| unusable(&problems))
    }

    /// The rules, or everything that is wrong with them.
    pub(in crate::commands) fn try_read(
        set: &[String],
        project_root: Option<&Path>,
    ) -> Result<Result<Self, Vec<LoadError>>, Failure> {
        let paths = Paths::from_env()?;
        let defaults = layers(&paths, set)?.finish()?.policy.defaults;
        let own = own_files(&paths).and_then(|files| load_of(defaults)(&sources(&files)));
        let project = project_root.map(|root| {
            let files = RuleFolder::of_project(root).files();
            files.and_then(|files| Restrictions::load_project(&sources(&files)))
        });
        Ok(match (own, project.transpose()) {
            (Ok(own), Ok(project)) => Ok(RulesHere { own, project }),
            (Err(mut problems), Err(more)) => {
                problems.extend(more);
                Err(problems)
            }
            (Err(problems), _) | (_, Err(problems)) => Err(problems),
        })
    }

    pub(super) fn restrictions(&self) -> Vec<&Restrictions> {
        self.project.iter().map(|loaded| &loaded.rules).collect()
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = &LoadError> {
        self.own.warnings.iter().chain(self.project.iter().flat_map(|loaded| &loaded.warnings))
    }
}

pub(super) fn own_files(paths: &Paths) -> Result<Vec<RuleFile>, Vec<LoadError>> {
    RuleFolder::of_user(&paths.config).files()
}

pub(super) fn sources(files: &[RuleFile]) -> Vec<Source<'_>> {
    files.iter().map(|file| Source { file: &file.name, text: &file.text }).collect()
}

/// Rules that cannot be used, each problem on a line of its own.
pub(super) fn unusable(problems: &[LoadError]) -> Failure {
    let mut failure = Failure::new("the rules cannot be used").code(exit_code::CONFIG);
    for problem in problems {
        failure = failure.cause(crate::plain::line(&problem.to_string(), 400));
    }
    failure.hint("mend the file; `swb policy check` checks it again")
}
