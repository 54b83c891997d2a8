//! What a crash left open is closed before anybody is let in: every beginning has its one end.

use serde_json::json;
use swb_bus::Bus;
use swb_proto::{Actor, Meta};
use swb_rules::lifecycle;

use crate::approvals::Approvals;
use crate::records::{Records, now};
use crate::subsystems::project::{ready_payload, settle};

/// Why, for people.
const REASON: &str = "the daemon ended while this was under way";

/// Takes back what is half made and says the ends that were not said.
pub(crate) fn close_what_is_open(records: &Records, approvals: &Approvals, bus: &Bus) {
    let mut estate = records.look();
    let half_made: Vec<_> = estate
        .projects
        .iter()
        .filter(|project| lifecycle::project_is_half_made(project.status))
        .cloned()
        .collect();
    for project in half_made {
        let meta = Meta { workspace_id: Some(project.workspace_id.clone()), ..Meta::default() };
        match settle(&mut estate, &project) {
            Some(whole) => say(bus, "project.ready", &meta, &ready_payload(&whole, "clone")),
            None => {
                let payload = json!({ "project_id": project.project_id, "error": REASON });
                say(bus, "project.clone.failed", &meta, &payload);
            }
        }
    }
    let open: Vec<_> = estate
        .sessions
        .iter()
        .filter_map(|session| Some((session.clone(), lifecycle::session_after_crash(session.state)?)))
        .collect();
    for (mut session, (state, end)) in open {
        (session.state, session.updated_at) = (state, now());
        let meta = Meta {
            workspace_id: Some(session.workspace_id.clone()),
            session_id: Some(session.session_id.clone()),
            ..Meta::default()
        };
        let payload = json!({ "session_id": session.session_id, "error": REASON });
        if let Err(error) = estate.sessions.put(session) {
            tracing::error!(%error, "a session that a crash left open could not be closed");
            continue;
        }
        say(bus, end, &meta, &payload);
    }
    for session in approvals.sessions() {
        let ended = estate.sessions.get(&session).is_some_and(|known| !lifecycle::session_lives(known.state));
        if ended && let Err(error) = approvals.session_ended(&session) {
            tracing::error!(%error, session, "what an ended session has left open could not be closed");
        }
    }
}

fn say(bus: &Bus, topic: &str, meta: &Meta, payload: &serde_json::Value) {
    if let Err(error) = bus.topics().publish(topic, meta, Some(&Actor::system()), payload) {
        tracing::warn!(%error, topic, "not published");
    }
}
