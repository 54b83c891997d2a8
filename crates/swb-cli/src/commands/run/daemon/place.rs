//! Where a run works: the project of this folder, taken in if nobody has.
//!
//! The folder is the root of the git repository around this one, or this one. A workspace that it lies in takes it in;
//! else one is made for it. Two commands at once may want the same: whoever comes second finds what the first has made.

use std::path::{Path, PathBuf};

use swb_bus::BusHandle;
use swb_proto::Meta;
use swb_proto::comms::Empty;
use swb_proto::id::{ProjectId, WorkspaceId};
use swb_proto::project::{self, Init, InitParams, ListProjectsParams};
use swb_proto::workspace::{self, Create, CreateWorkspaceParams, Workspace, WorkspaceState};

use crate::failure::Failure;
use crate::plain;

/// How often somebody else may be quicker.
const ATTEMPTS: u32 = 3;

/// A project and the workspace it lies in.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) workspace: WorkspaceId,
    pub(super) project: ProjectId,
}

impl Place {
    pub(super) async fn of_this_folder(handle: &BusHandle) -> Result<Self, Failure> {
        let root = root_of(&std::env::current_dir()?.canonicalize()?);
        let text = root.to_str().ok_or_else(|| Failure::new("the folder's name is not UTF-8"))?;
        let mut attempt = 0;
        loop {
            if let Some(found) = known(handle, text).await? {
                return Ok(found);
            }
            attempt += 1;
            match taken_in(handle, &root, text).await {
                Ok(place) => return Ok(place),
                Err(failure) if attempt == ATTEMPTS => return Err(failure),
                Err(_) => {}
            }
        }
    }
}

/// The root of the git repository around a folder, or the folder.
fn root_of(folder: &Path) -> PathBuf {
    let mut around = folder.ancestors();
    around.find(|folder| folder.join(".git").exists()).unwrap_or(folder).to_owned()
}

async fn known(handle: &BusHandle, root: &str) -> Result<Option<Place>, Failure> {
    let projects = handle.call::<project::List>(ListProjectsParams::default()).await?.projects;
    let Some(project) = projects.into_iter().find(|project| project.root_path == root) else {
        return Ok(None);
    };
    let workspaces = handle.call::<workspace::List>(Empty {}).await?.workspaces;
    let workspace = workspaces.iter().find(|workspace| workspace.workspace_id == project.workspace_id);
    if let Some(Workspace { name, state: WorkspaceState::Closed, .. }) = workspace {
        let name = plain::line(name, 80);
        return Err(Failure::new(format!("the workspace {name} of this project is closed"))
            .hint(format!("`swb workspaces open {name}` opens it")));
    }
    Ok(Some(Place { workspace: project.workspace_id, project: project.project_id }))
}

async fn taken_in(handle: &BusHandle, root: &Path, text: &str) -> Result<Place, Failure> {
    let workspaces = handle.call::<workspace::List>(Empty {}).await?.workspaces;
    let around = |workspace: &&Workspace| {
        workspace.state == WorkspaceState::Active && root.starts_with(&workspace.root_path)
    };
    let nearest = workspaces.iter().filter(around).max_by_key(|workspace| workspace.root_path.len());
    let workspace = match nearest {
        Some(workspace) => workspace.workspace_id.clone(),
        None => {
            let name = free_name(root, &workspaces);
            let params = CreateWorkspaceParams { name, root_path: text.to_owned() };
            handle.call::<Create>(params).await?.workspace_id
        }
    };
    let inside = handle.with(Meta { workspace_id: Some(workspace.clone()), ..Meta::default() });
    let params = InitParams { root_path: text.to_owned(), git_init: false };
    let project = inside.call::<Init>(params).await?.project_id;
    Ok(Place { workspace, project })
}

/// The folder's name, with a number if another workspace has it.
fn free_name(root: &Path, workspaces: &[Workspace]) -> String {
    let name = root.file_name().and_then(|name| name.to_str()).unwrap_or("root");
    let is_taken = |wish: &String| {
        workspaces.iter().any(|workspace| workspace.name.to_lowercase() == wish.to_lowercase())
    };
    let mut wishes =
        std::iter::once(name.to_owned()).chain((2_u32..).map(|number| format!("{name}-{number}")));
    wishes.find(|wish| !is_taken(wish)).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_repository_around_it_or_itself() {
        let world = tempfile::tempdir().unwrap();
        let deep = world.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(root_of(&deep), deep);
        std::fs::create_dir(world.path().join("a/.git")).unwrap();
        assert_eq!(root_of(&deep), world.path().join("a"));
        // A work tree of git has a file of that name.
        std::fs::write(deep.join(".git"), "gitdir: elsewhere").unwrap();
        assert_eq!(root_of(&deep), deep);
    }
}
