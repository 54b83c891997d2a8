//! What the message bus hears of a run, and what a run's agent is told about the message bus.
//!
//! Each session is a task of its project there. The notes and the variables are those that programs of other makes know
//! (seed 001); both spellings of a variable are set.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use swb_journal::message_bus::{BusOptions, BusPath, Draft, MessageBus};

use super::agent::Place;
use super::kept::KeptRun;

/// Where the parts of a run lie.
struct Folders {
    task: PathBuf,
    runs: PathBuf,
    run: PathBuf,
    bus: PathBuf,
}

impl Folders {
    fn new(place: &Place, kept: &KeptRun) -> Self {
        let task = place.message_bus.join(&place.session);
        let runs = task.join("runs");
        let run = runs.join(kept.id().as_str());
        let bus = task.join(swb_journal::message_bus::TASK_BUS);
        Folders { task, runs, run, bus }
    }
}

/// The variables that tell an agent where it is.
pub(super) fn environment(place: &Place, kept: &KeptRun) -> Vec<(OsString, OsString)> {
    let folders = Folders::new(place, kept);
    let project = place.message_bus.file_name().unwrap_or_default();
    let parent = kept.run.parent_run_id.as_ref().map_or("", |parent| parent.as_str());
    let mut variables: Vec<(OsString, OsString)> = vec![
        ("JRUN_PROJECT_ID".into(), project.into()),
        ("JRUN_TASK_ID".into(), place.session.clone().into()),
        ("JRUN_ID".into(), kept.id().as_str().into()),
        ("JRUN_PARENT_ID".into(), parent.into()),
    ];
    let places: [(&str, &Path); 4] = [
        ("RUNS_DIR", &folders.runs),
        ("MESSAGE_BUS", &folders.bus),
        ("TASK_FOLDER", &folders.task),
        ("RUN_FOLDER", &folders.run),
    ];
    for (name, path) in places {
        variables.push((name.into(), path.into()));
        variables.push((format!("JRUN_{name}").into(), path.into()));
    }
    variables
}

/// Posts a note about a run to the bus of its task. A bus that takes none keeps no run from working.
pub(super) fn post(place: &Place, kept: &KeptRun, kind: &str) {
    let folders = Folders::new(place, kept);
    let project = place.message_bus.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let said = match kind {
        "RUN_START" => "run started".to_owned(),
        "RUN_STOP" => "run stopped with code 0".to_owned(),
        _ => {
            let error = kept.run.error.as_ref().map(|error| error.message.as_str()).unwrap_or_default();
            format!("run stopped with code 1\nerror: {error}")
        }
    };
    let body = format!("{said}\nrun_dir: {}\n", folders.run.display());
    let mut draft = Draft::new(kind, project.clone(), body);
    draft.task_id = place.session.clone();
    draft.run_id = kept.id().as_str().to_owned();
    let (root, session) = (place.message_bus.parent().map(Path::to_owned), place.session.clone());
    tokio::task::spawn_blocking(move || {
        let Some(root) = root else { return };
        if let Err(error) = std::fs::create_dir_all(&folders.run) {
            tracing::warn!(%error, "the folder of a run could not be made");
        }
        let posted = BusPath::in_root(&root, &project, Some(&session))
            .map_err(|error| error.to_string())
            .map(|path| MessageBus::new(path, BusOptions::default()))
            .and_then(|bus| bus.append(&draft).map_err(|error| error.to_string()));
        if let Err(error) = posted {
            tracing::warn!(error, kind = draft.kind, "the message bus did not take a note about a run");
        }
    });
}
