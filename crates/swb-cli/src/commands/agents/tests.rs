//! Which session is meant.

use super::*;
use serde_json::json;

fn run(id: &str, session: &str, state: &str) -> Run {
    serde_json::from_value(json!({
        "run_id": id, "session_id": session, "workspace_id": "ws_1", "project_id": "proj_1", "agent": "builtin",
        "state": state, "title": "t", "created_at": "2026-01-01T00:00:00.000Z",
    }))
    .unwrap()
}

#[test]
fn a_session_is_meant_by_an_end_of_its_id_or_by_being_alone_at_work() {
    let runs = [
        run("run_1", "sess_01AAA", "completed"),
        run("run_2", "sess_01ABB", "running"),
        run("run_3", "sess_01ABB", "queued"),
    ];
    let found = |runs: &[Run], wanted| meant(runs, wanted).map(|run| run.run_id.as_str().to_owned());
    assert_eq!(found(&runs, Some("aaa")).unwrap(), "run_1");
    assert_eq!(found(&runs, None).unwrap(), "run_2", "the first that is live");
    assert!(found(&runs, Some("01")).unwrap_err().message.contains("more than one session"));
    assert!(found(&runs, Some("zz")).unwrap_err().message.contains("no session"));
    assert!(found(&runs[..1], None).unwrap_err().message.contains("nothing is at work"));
    let two = [run("run_1", "sess_1", "running"), run("run_2", "sess_2", "running")];
    assert!(found(&two, None).unwrap_err().message.contains("2 are at work"));
}
