//! Workspaces, projects and sessions, and what a crash leaves of them.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use testkit::{Wire, World, wait};

/// A world with a workspace in it.
struct Estate {
    world: World,
    workspace: String,
}

fn call(wire: &mut Wire, method: &str, workspace: Option<&str>, params: Value) -> Result<Value, Value> {
    let mut params = params;
    if let Some(workspace) = workspace {
        params["_meta"] = json!({ "workspace_id": workspace });
    }
    let answer = wire.ask(&json!({"jsonrpc":"2.0","id":method,"method":method,"params":params}));
    answer.get("result").cloned().ok_or_else(|| answer["error"].clone())
}

impl Estate {
    fn new() -> Self {
        let mut world = World::new();
        world.start();
        let root = world.folder().join("root");
        std::fs::create_dir(&root).unwrap();
        let made =
            call(&mut world.wire(), "workspace.create", None, json!({"name":"w","root_path":root})).unwrap();
        Estate { workspace: made["workspace_id"].as_str().unwrap().to_owned(), world }
    }

    fn call(&self, method: &str, params: Value) -> Result<Value, Value> {
        call(&mut self.world.wire(), method, Some(&self.workspace), params)
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.world.folder().join("root").join(name)
    }

    fn project(&self) -> String {
        std::fs::create_dir_all(self.folder("p")).unwrap();
        let made = self.call("project.init", json!({"root_path": self.folder("p")})).unwrap();
        made["project_id"].as_str().unwrap().to_owned()
    }

    fn session(&self) -> String {
        let made = self.call("session.create", json!({"project_id": self.project()})).unwrap();
        made["session_id"].as_str().unwrap().to_owned()
    }

    /// The topics of all events so far, without those of the bus itself.
    fn topics(&self) -> Vec<String> {
        self.events().iter().map(|event| event["topic"].as_str().unwrap().to_owned()).collect()
    }

    fn events(&self) -> Vec<Value> {
        let page = self.call("events.read", json!({"limit": 1000})).unwrap();
        let all = page["events"].as_array().unwrap().iter();
        all.filter(|event| !event["topic"].as_str().unwrap().starts_with("bus.")).cloned().collect()
    }
}

fn reason(error: &Value) -> &str {
    error["data"]["reason"].as_str().unwrap_or_default()
}

#[test]
fn a_workspace_lives_from_create_to_delete() {
    let estate = Estate::new();
    let id = &estate.workspace;
    assert!(id.starts_with("ws_"), "{id}");
    let taken = estate.call("workspace.create", json!({"name":" W ","root_path":"/"})).unwrap_err();
    assert_eq!(reason(&taken), "WORKSPACE_NAME_CONFLICT");
    for bad in [json!({"name":" ","root_path":"/"}), json!({"name":"x","root_path":"relative"})] {
        assert_eq!(estate.call("workspace.create", bad).unwrap_err()["code"], -32602);
    }
    let session = estate.session();
    let lived_in = estate.call("workspace.close", json!({})).unwrap_err();
    assert_eq!(reason(&lived_in), "WORKSPACE_HAS_ACTIVE_SESSIONS");
    assert_eq!(lived_in["data"]["sessions"], json!([session]));
    estate.call("session.terminate", json!({"session_id": session, "reason": "done"})).unwrap();
    assert_eq!(estate.call("workspace.close", json!({})).unwrap()["state"], "closed");
    let closed = estate.call("project.init", json!({"root_path": "/"})).unwrap_err();
    assert_eq!(reason(&closed), "WORKSPACE_CLOSED");
    assert_eq!(estate.call("workspace.open", json!({})).unwrap()["state"], "active");
    estate.call("workspace.delete", json!({})).unwrap();
    assert_eq!(estate.call("workspace.list", json!({})).unwrap(), json!({"workspaces":[]}));
    assert_eq!(reason(&estate.call("workspace.open", json!({})).unwrap_err()), "WORKSPACE_NOT_FOUND");
    assert_eq!(
        estate.topics(),
        [
            "workspace.created",
            "project.ready",
            "session.created",
            "session.terminated",
            "workspace.closed",
            "workspace.opened",
            "workspace.deleted"
        ]
    );
}

#[test]
fn a_session_is_attached_restored_and_ended_in_order() {
    let estate = Estate::new();
    let id = estate.session();
    assert_eq!(estate.call("session.get", json!({"session_id": id})).unwrap()["state"], "detached");
    let attached = estate.call("session.attach", json!({"session_id": id, "restore": true})).unwrap();
    assert_eq!(attached, json!({"session_id": id, "state": "attached"}));
    for _ in 0..2 {
        let ended = estate.call("session.terminate", json!({"session_id": id, "reason": "done"})).unwrap();
        assert_eq!(ended, json!({"session_id": id, "status": "terminated"}));
    }
    let again = estate.call("session.attach", json!({"session_id": id})).unwrap_err();
    assert_eq!(reason(&again), "INVALID_STATE_TRANSITION");
    let topics = estate.topics();
    assert_eq!(
        topics[2..],
        [
            "session.created",
            "session.attach.started",
            "session.attached",
            "session.restore.started",
            "session.restore.completed",
            "session.terminated"
        ]
    );
    assert!(estate.events()[3..].iter().all(|event| event["session_id"] == json!(id)));
    assert_eq!(estate.call("session.list", json!({})).unwrap(), json!({"sessions":[]}));
    assert_eq!(estate.call("session.list", json!({"ended":true})).unwrap()["sessions"][0]["reason"], "done");
    let unknown = estate.call("session.get", json!({"session_id":"sess_none"})).unwrap_err();
    assert_eq!(unknown["code"], -32020);
}

#[test]
fn what_was_acknowledged_survives_a_crash() {
    let mut estate = Estate::new();
    let session = estate.session();
    estate.call("session.attach", json!({"session_id": session})).unwrap();
    let before = [
        estate.call("workspace.list", json!({})).unwrap(),
        estate.call("project.list", json!({})).unwrap(),
        estate.call("session.list", json!({})).unwrap(),
    ];
    estate.world.crash();
    estate.world.start();
    let after = [
        estate.call("workspace.list", json!({})).unwrap(),
        estate.call("project.list", json!({})).unwrap(),
        estate.call("session.list", json!({})).unwrap(),
    ];
    assert_eq!(before, after);
}

#[test]
fn a_folder_that_goes_and_comes_back_is_stale_and_heals() {
    let estate = Estate::new();
    estate.project();
    let status = || estate.call("workspace.open", json!({})).unwrap()["projects"][0]["status"].clone();
    assert_eq!(status(), "active");
    std::fs::rename(estate.folder("p"), estate.folder("away")).unwrap();
    assert_eq!(status(), "stale");
    std::fs::rename(estate.folder("away"), estate.folder("p")).unwrap();
    assert_eq!(status(), "active");
    let twice = estate.call("project.init", json!({"root_path": estate.folder("p")})).unwrap_err();
    assert_eq!(reason(&twice), "PROJECT_CONFLICT");
    assert!(estate.call("project.init", json!({"root_path": estate.folder("none")})).is_err());
}

fn git(folder: &Path, args: &[&str]) {
    let told = Command::new("git").current_dir(folder).args(args).output().unwrap();
    assert!(told.status.success(), "{told:?}");
}

fn repository(estate: &Estate) -> PathBuf {
    let source = estate.world.folder().join("source");
    std::fs::create_dir(&source).unwrap();
    git(&source, &["init", "-q", "-b", "main"]);
    std::fs::write(source.join("file"), "text").unwrap();
    git(&source, &["add", "."]);
    git(&source, &["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "first"]);
    source
}

fn hidden(estate: &Estate) -> Vec<String> {
    let all = std::fs::read_dir(estate.world.folder().join("root")).unwrap().flatten();
    all.map(|entry| entry.file_name().into_string().unwrap()).filter(|name| name.starts_with('.')).collect()
}

#[test]
fn a_clone_is_there_whole_or_not_at_all() {
    let estate = Estate::new();
    let source = repository(&estate);
    let wish = json!({"git_url": format!("file://{}", source.display()), "target_dir": estate.folder("copy"), "branch": "main"});
    let project = estate.call("project.clone", wish.clone()).unwrap();
    assert_eq!((&project["status"], &project["slug"]), (&json!("active"), &json!("copy")));
    assert_eq!(std::fs::read_to_string(estate.folder("copy").join("file")).unwrap(), "text");
    assert_eq!(reason(&estate.call("project.clone", wish).unwrap_err()), "PROJECT_CONFLICT");

    let missing = json!({"git_url": "/no/such/repository", "target_dir": estate.folder("other")});
    let failed = estate.call("project.clone", missing).unwrap_err();
    assert_eq!(reason(&failed), "GIT_FAILED");
    assert!(!failed["message"].as_str().unwrap().contains("/no/such"), "{failed}");
    assert!(!estate.folder("other").exists());
    assert_eq!(hidden(&estate), [""; 0]);
    for bad in ["ext::sh -c true", "--upload-pack=true", ""] {
        let refused =
            estate.call("project.clone", json!({"git_url": bad, "target_dir": estate.folder("bad")}));
        assert_eq!(refused.unwrap_err()["code"], -32602, "{bad}");
    }
    let topics = estate.topics();
    let of_clones: Vec<&str> = topics
        .iter()
        .map(String::as_str)
        .filter(|topic| *topic != "project.clone.progress")
        .skip(1)
        .collect();
    assert_eq!(
        of_clones,
        ["project.clone.started", "project.ready", "project.clone.started", "project.clone.failed"]
    );
    assert_eq!(estate.call("project.list", json!({})).unwrap()["projects"].as_array().unwrap().len(), 1);
}

/// A git that stalls in the middle of a clone.
fn stalling_git(estate: &Estate) -> String {
    let git = estate.world.folder().join("git");
    let script = "#!/bin/sh\nfor last; do :; done\nmkdir -p \"$last/.git\"\necho 'Receiving objects:  50% (1/2)' >&2\nexec sleep 1000\n";
    std::fs::write(&git, script).unwrap();
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
    git.to_str().unwrap().to_owned()
}

fn begin_clone(estate: &Estate) -> Wire {
    let before = estate.topics().len();
    let mut wire = estate.world.wire();
    let params = json!({"git_url": "/x", "target_dir": estate.folder("copy"), "_meta": {"workspace_id": estate.workspace}});
    wire.send(&json!({"jsonrpc":"2.0","id":"clone","method":"project.clone","params":params}));
    wait("the clone to begin", || estate.topics().len() == before + 2);
    assert_eq!(estate.topics()[before..], ["project.clone.started", "project.clone.progress"]);
    assert_eq!(hidden(estate).len(), 1);
    wire
}

#[test]
fn a_clone_that_is_cancelled_or_cut_short_leaves_nothing_and_has_its_end() {
    let mut estate = Estate::new();
    let git = stalling_git(&estate);
    estate.world.stop();
    estate.world = std::mem::take(&mut estate.world).with_config(|config| config.projects.git_program = git);
    estate.world.start();

    let mut wire = begin_clone(&estate);
    wire.send(&json!({"jsonrpc":"2.0","method":"$/cancel","params":{"id":"clone"}}));
    wait("the end to be told", || estate.topics().last().is_some_and(|last| last == "project.clone.failed"));
    assert_eq!(hidden(&estate), [""; 0]);

    let _wire = begin_clone(&estate);
    // A daemon in this process can still tidy up when it is dropped; one that is killed cannot. So what a killed one
    // leaves is put back.
    let (file, half) =
        (estate.world.paths().state.join("projects.jsonl"), estate.folder(&hidden(&estate)[0]));
    let left = std::fs::read(&file).unwrap();
    estate.world.crash();
    std::fs::write(&file, left).unwrap();
    std::fs::create_dir_all(half.join(".git")).unwrap();
    estate.world.start();
    let events = estate.events();
    let last = events.last().unwrap();
    assert_eq!(last["topic"], "project.clone.failed");
    assert!(last["payload"]["error"].as_str().unwrap().contains("daemon ended"));
    assert_eq!(hidden(&estate), [""; 0]);
    assert_eq!(estate.call("project.list", json!({})).unwrap(), json!({"projects":[]}));
}
