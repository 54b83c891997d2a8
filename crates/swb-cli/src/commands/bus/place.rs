//! Which bus file a command means, and which scope follows from that.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use swb_daemon::Paths;
use swb_journal::message_bus::{BusOptions, BusPath, MessageBus, Scope, discover};

use super::PlaceArgs;
use crate::failure::Failure;

/// The environment that the commands look at, old spelling first.
const BUS: [&str; 2] = ["MESSAGE_BUS", "JRUN_MESSAGE_BUS"];
const RUN_FOLDER: [&str; 2] = ["RUN_FOLDER", "JRUN_RUN_FOLDER"];
const TASK_FOLDER: [&str; 2] = ["TASK_FOLDER", "JRUN_TASK_FOLDER"];

/// The bus to post to: the flag, the environment, the project, the nearest file.
pub(super) fn for_posting(
    args: &PlaceArgs,
    set: &[String],
    options: BusOptions,
) -> Result<MessageBus, Failure> {
    let path = if !args.bus.is_empty() {
        direct(&args.bus)?
    } else if let Some(file) = first_of(BUS) {
        direct(&file)?
    } else if let Some(path) = of_project(args, set)? {
        let root = root(args, set)?;
        std::fs::create_dir_all(&root)
            .map_err(|error| Failure::new(format!("cannot make {}", root.display())).because(error))?;
        path
    } else {
        nearest()?
    };
    Ok(MessageBus::new(path, options))
}

/// The bus to read: the project, the flag, the environment, the nearest file.
pub(super) fn for_reading(args: &PlaceArgs, set: &[String]) -> Result<MessageBus, Failure> {
    if !args.bus.is_empty() && !args.project.trim().is_empty() {
        return Err(Failure::new("cannot specify both --bus and --project"));
    }
    let path = if let Some(path) = of_project(args, set)? {
        path
    } else if !args.bus.is_empty() {
        direct(&args.bus)?
    } else if let Some(file) = first_of(BUS) {
        direct(&file)?
    } else {
        nearest()?
    };
    Ok(MessageBus::new(path, BusOptions::default()))
}

/// What a message says of its place: flags, then the bus file, then the folders and ids of the environment.
pub(super) fn scope(args: &PlaceArgs, run: &str, bus: &Path) -> Scope {
    let flags = Scope {
        project_id: args.project.trim().to_owned(),
        task_id: args.task.trim().to_owned(),
        run_id: run.trim().to_owned(),
    };
    let folder = |names| first_of(names).map(PathBuf::from);
    let variable = |name: &str| std::env::var(name).unwrap_or_default().trim().to_owned();
    flags
        .or(Scope::from_bus_path(bus))
        .or(folder(RUN_FOLDER).map(|path| Scope::from_run_folder(&path)).unwrap_or_default())
        .or(folder(TASK_FOLDER).map(|path| Scope::from_task_folder(&path)).unwrap_or_default())
        .or(Scope {
            project_id: variable("JRUN_PROJECT_ID"),
            task_id: variable("JRUN_TASK_ID"),
            run_id: variable("JRUN_ID"),
        })
}

fn of_project(args: &PlaceArgs, set: &[String]) -> Result<Option<BusPath>, Failure> {
    let (project, task) = (args.project.trim(), args.task.trim());
    if project.is_empty() {
        return Ok(None);
    }
    let path = BusPath::in_root(root(args, set)?, project, (!task.is_empty()).then_some(task));
    path.map(Some).map_err(|error| Failure::new("cannot use this project or task").because(error))
}

fn root(args: &PlaceArgs, set: &[String]) -> Result<PathBuf, Failure> {
    if !args.root.is_empty() {
        return Ok(PathBuf::from(&args.root));
    }
    let paths = Paths::from_env()?;
    let config = crate::io::layers(&paths, set)?.finish()?;
    Ok(paths.message_root(&config))
}

fn direct(file: impl AsRef<OsStr>) -> Result<BusPath, Failure> {
    let file = Path::new(file.as_ref());
    BusPath::new(file)
        .map_err(|error| Failure::new(format!("{} is not a bus", file.display())).because(error))
}

fn nearest() -> Result<BusPath, Failure> {
    let here = std::env::current_dir()?;
    let found = discover(&here).map_err(|error| {
        Failure::new(error.to_string()).hint("name one with --project, --bus or $MESSAGE_BUS")
    })?;
    direct(found)
}

fn first_of(names: [&str; 2]) -> Option<std::ffi::OsString> {
    names.into_iter().filter_map(std::env::var_os).find(|value| !value.is_empty())
}
