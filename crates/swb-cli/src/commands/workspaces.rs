//! `swb workspaces`: list, make, open, close and forget workspaces.

use clap::{Args, Subcommand, ValueHint};
use swb_bus::BusHandle;
use swb_proto::Meta;
use swb_proto::comms::Empty;
use swb_proto::id::WorkspaceId;
use swb_proto::workspace::{
    Close, Create, CreateWorkspaceParams, Delete, List, Open, WhichWorkspace, Workspace, WorkspaceState,
};

use crate::connect::connect;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, GOOD, Io, NAME};
use crate::plain;

#[derive(Debug, Args)]
pub(crate) struct WorkspacesArgs {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a workspace.
    Create {
        /// Its name.
        name: String,
        /// Its folder; this one unless said otherwise.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: Option<std::path::PathBuf>,
    },
    /// Open a closed workspace, and look whether its projects are where they were.
    Open {
        /// Its id or its name.
        workspace: String,
    },
    /// Close a workspace that has no live session.
    Close {
        /// Its id or its name.
        workspace: String,
    },
    /// Forget a workspace that has no live session. No file is touched.
    Delete {
        /// Its id or its name.
        workspace: String,
    },
}

pub(crate) async fn run(args: &WorkspacesArgs, io: &Io) -> Result<u8, Failure> {
    let handle = connect(Meta::default()).await?;
    match &args.what {
        None => list(&handle, io).await?,
        Some(What::Create { name, folder }) => {
            let root_path = absolute(folder.as_deref())?;
            let made = handle.call::<Create>(CreateWorkspaceParams { name: name.clone(), root_path }).await?;
            say(io, &made, &format!("{GOOD}made{GOOD:#} {}", made.workspace_id))?;
        }
        Some(What::Open { workspace }) => {
            let opened = handle.call::<Open>(which(&handle, workspace).await?).await?;
            say(io, &opened, &format!("{GOOD}open{GOOD:#} {}", opened.workspace_id))?;
        }
        Some(What::Close { workspace }) => {
            let closed = handle.call::<Close>(which(&handle, workspace).await?).await?;
            say(io, &closed, &format!("closed {}", closed.workspace_id))?;
        }
        Some(What::Delete { workspace }) => {
            let which = which(&handle, workspace).await?;
            handle.call::<Delete>(which.clone()).await?;
            say(io, &which, &format!("forgot {}", plain::text(workspace)))?;
        }
    }
    Ok(exit_code::SUCCESS)
}

async fn list(handle: &BusHandle, io: &Io) -> Result<(), Failure> {
    let workspaces = handle.call::<List>(Empty {}).await?.workspaces;
    if workspaces.is_empty() && !io.json {
        io.note(format!("{DIM}no workspaces yet: `swb workspaces create NAME` makes one{DIM:#}"));
    }
    for workspace in workspaces {
        if io.json {
            io.object(&workspace)?;
            continue;
        }
        let Workspace { workspace_id, name, root_path, state, .. } = workspace;
        let closed = if state == WorkspaceState::Closed { " (closed)" } else { "" };
        let (name, root) = (plain::text(&name), plain::text(&root_path));
        io.line(format!("{NAME}{name}{NAME:#}{closed}  {root}  {DIM}{workspace_id}{DIM:#}"))?;
    }
    Ok(())
}

/// A workspace by its id or its name.
pub(crate) async fn find(handle: &BusHandle, wanted: &str) -> Result<WorkspaceId, Failure> {
    let workspaces = handle.call::<List>(Empty {}).await?.workspaces;
    let found = workspaces.into_iter().find(|workspace| {
        workspace.workspace_id.as_str() == wanted || workspace.name.to_lowercase() == wanted.to_lowercase()
    });
    found.map(|workspace| workspace.workspace_id).ok_or_else(|| {
        Failure::new(format!("there is no workspace {wanted:?}")).hint("`swb workspaces` lists them")
    })
}

/// An absolute form of a folder, or of this one.
pub(crate) fn absolute(folder: Option<&std::path::Path>) -> Result<String, Failure> {
    let folder = std::path::absolute(folder.unwrap_or(std::path::Path::new(".")))?;
    let text = folder.to_str().ok_or_else(|| Failure::new("the folder's name is not UTF-8"))?;
    Ok(text.to_owned())
}

async fn which(handle: &BusHandle, wanted: &str) -> Result<WhichWorkspace, Failure> {
    Ok(WhichWorkspace { workspace_id: Some(find(handle, wanted).await?) })
}

fn say(io: &Io, object: &impl serde::Serialize, text: &str) -> Result<(), Failure> {
    if io.json { io.object(object) } else { io.line(text) }
}
