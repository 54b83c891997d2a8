//! `swb projects`: list projects, clone one, take a folder in.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use swb_bus::BusHandle;
use swb_proto::id::WorkspaceId;
use swb_proto::project::{
    Clone as CloneProject, CloneParams, Init, InitParams, List, ListProjectsParams, Project, ProjectStatus,
};
use swb_proto::{Meta, TopicGlob};

use super::workspaces::{absolute, find};
use crate::connect::connect;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, GOOD, Io, NAME, WARN};
use crate::plain;

#[derive(Debug, Args)]
pub(crate) struct ProjectsArgs {
    /// The workspace, by id or name; needed unless there is only one.
    #[arg(long, global = true, value_name = "WORKSPACE")]
    workspace: Option<String>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Clone a git repository.
    Clone {
        /// From where.
        url: String,
        /// To where; a folder of the repository's name in this one unless said otherwise.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: Option<PathBuf>,
        /// Which branch.
        #[arg(long)]
        branch: Option<String>,
    },
    /// Take a folder in.
    Init {
        /// Which; this one unless said otherwise.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: Option<PathBuf>,
        /// Make it a git repository if it is none.
        #[arg(long)]
        git: bool,
    },
}

pub(crate) async fn run(args: &ProjectsArgs, io: &Io) -> Result<u8, Failure> {
    let handle = connect(Meta::default()).await?;
    let Some(what) = &args.what else {
        list(&handle, args.workspace.as_deref(), io).await?;
        return Ok(exit_code::SUCCESS);
    };
    let workspace = workspace(&handle, args.workspace.as_deref()).await?;
    let inside = handle.with(Meta { workspace_id: Some(workspace), ..Meta::default() });
    let project = match what {
        What::Clone { url, folder, branch } => {
            let target_dir = absolute(Some(&folder.clone().unwrap_or_else(|| name_of(url))))?;
            let params = CloneParams { git_url: url.clone(), target_dir, branch: branch.clone() };
            clone(&handle, &inside, params, io).await?
        }
        What::Init { folder, git } => {
            let root_path = absolute(folder.as_deref())?;
            inside.call::<Init>(InitParams { root_path, git_init: *git }).await?
        }
    };
    if io.json {
        io.object(&project)?;
    } else {
        io.line(format!("{GOOD}ready{GOOD:#} {}", shown(&project)))?;
    }
    Ok(exit_code::SUCCESS)
}

/// Clones and says how far it is, for as long as somebody looks.
async fn clone(
    handle: &BusHandle,
    inside: &BusHandle,
    params: CloneParams,
    io: &Io,
) -> Result<Project, Failure> {
    let glob = TopicGlob::try_from("project.clone.progress".to_owned())
        .map_err(|error| Failure::new("progress cannot be followed").because(error))?;
    let mut progress = handle.subscribe(vec![glob], None).await?;
    let cloned = inside.call::<CloneProject>(params);
    tokio::pin!(cloned);
    loop {
        tokio::select! {
            project = &mut cloned => return Ok(project?),
            step = progress.next() => match step {
                Some(step) if !io.json => {
                    let payload = step.to_envelope(std::time::SystemTime::now()).payload;
                    let payload: serde_json::Value = serde_json::from_str(payload.get()).unwrap_or_default();
                    let (phase, percent) = (payload["phase"].as_str().unwrap_or_default(), &payload["percent"]);
                    io.note(format!("{DIM}{} {percent}%{DIM:#}", plain::text(&phase.replace('_', " "))));
                }
                Some(_) => {}
                // The call itself says what happened.
                None => return Ok(cloned.await?),
            },
        }
    }
}

async fn list(handle: &BusHandle, workspace: Option<&str>, io: &Io) -> Result<(), Failure> {
    let workspace_id = match workspace {
        Some(wanted) => Some(find(handle, wanted).await?),
        None => None,
    };
    let projects = handle.call::<List>(ListProjectsParams { workspace_id }).await?.projects;
    if projects.is_empty() && !io.json {
        io.note(format!("{DIM}no projects yet: `swb projects init` takes this folder in{DIM:#}"));
    }
    for project in projects {
        if io.json {
            io.object(&project)?;
        } else {
            io.line(shown(&project))?;
        }
    }
    Ok(())
}

/// The workspace that is named, or the only one there is.
async fn workspace(handle: &BusHandle, named: Option<&str>) -> Result<WorkspaceId, Failure> {
    if let Some(named) = named {
        return find(handle, named).await;
    }
    let mut all = handle.call::<swb_proto::workspace::List>(swb_proto::comms::Empty {}).await?.workspaces;
    match (all.pop(), all.is_empty()) {
        (Some(only), true) => Ok(only.workspace_id),
        (None, _) => {
            Err(Failure::new("there is no workspace yet").hint("`swb workspaces create NAME` makes one"))
        }
        (Some(_), false) => Err(Failure::new("there are several workspaces")
            .hint("name one with --workspace; `swb workspaces` lists them")),
    }
}

/// The folder that git itself would make of an address.
fn name_of(url: &str) -> PathBuf {
    let last = url.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    Path::new(last.strip_suffix(".git").unwrap_or(last)).to_owned()
}

fn shown(project: &Project) -> String {
    let Project { slug, root_path, project_id, status, .. } = project;
    let state = match status {
        ProjectStatus::Active => String::new(),
        ProjectStatus::Cloning => format!(" {WARN}(being cloned){WARN:#}"),
        ProjectStatus::Stale => format!(" {WARN}(folder not there){WARN:#}"),
    };
    format!(
        "{NAME}{}{NAME:#}{state}  {}  {DIM}{project_id}{DIM:#}",
        plain::text(slug),
        plain::text(root_path)
    )
}
