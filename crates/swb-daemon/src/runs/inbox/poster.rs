//! Who has posted a message, as seen from the session it is for.

use swb_proto::Actor;
use swb_proto::id::RunId;
use swb_rules::inbox::Poster;

use crate::records::Estate;

/// Runs that can stand above one another.
const MOST_ABOVE: usize = 64;

/// Whose words nobody answers for.
pub(super) fn unverified() -> Actor {
    Actor::new("service", "unverified").unwrap_or_else(|_| Actor::system())
}

/// Who it is to the agent of a session.
pub(super) fn poster(estate: &Estate, session: &str, actor: Option<&Actor>) -> Poster {
    match actor {
        None => Poster::Unverified,
        Some(actor) if actor.kind.as_str() == "user" => Poster::Person,
        Some(actor) if actor.kind.as_str() == "agent" && is_above(estate, actor.id.as_str(), session) => {
            Poster::Above
        }
        Some(_) => Poster::Elsewhere,
    }
}

/// Whether a message comes from the agent of a session itself, or from anything below it. What a file says of a run is
/// only believed where that keeps a message out; a person is a person whatever run they name.
pub(super) fn is_own(estate: &Estate, session: &str, actor: Option<&Actor>, run: &str) -> bool {
    match actor {
        Some(actor) if actor.kind.as_str() == "user" => return false,
        Some(actor)
            if actor.kind.as_str() == "agent" && is_at_or_below(estate, session, actor.id.as_str()) =>
        {
            return true;
        }
        _ => {}
    }
    let mut next = RunId::try_from(run.to_owned()).ok();
    for _ in 0..MOST_ABOVE {
        let Some(kept) = next.as_ref().and_then(|id| estate.runs.get(id.as_str())) else { return false };
        if is_at_or_below(estate, session, kept.run.session_id.as_str()) {
            return true;
        }
        next.clone_from(&kept.run.parent_run_id);
    }
    false
}

fn is_at_or_below(estate: &Estate, session: &str, other: &str) -> bool {
    other == session || is_above(estate, session, other)
}

fn is_above(estate: &Estate, above: &str, session: &str) -> bool {
    estate.above(session).iter().any(|ancestor| ancestor.session_id.as_str() == above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Records;
    use serde_json::json;

    /// `sess_top` has started `sess_mid`, which has started `sess_low`; `sess_else` is by itself, and so is `sess_lent`,
    /// which works for a run of `sess_mid`.
    fn records(folder: &std::path::Path) -> Records {
        let records = Records::open(folder).unwrap();
        let at = crate::records::now();
        let parents = [
            ("top", None),
            ("mid", Some("sess_top")),
            ("low", Some("sess_mid")),
            ("else", None),
            ("lent", None),
        ];
        for (name, parent) in parents {
            let session = json!({
                "session_id": format!("sess_{name}"), "workspace_id": "ws_1", "project_id": "proj_1",
                "parent_session_id": parent, "mode": "agent", "state": "detached", "created_at": at, "updated_at": at,
            });
            let run = json!({
                "run_id": format!("run_{name}"), "session_id": format!("sess_{name}"), "workspace_id": "ws_1",
                "project_id": "proj_1", "agent": "builtin", "state": "running", "title": "", "created_at": at,
                "parent_run_id": (name == "lent").then_some("run_mid"),
                "prompt": "", "actor": Actor::local_user(), "after": 0,
            });
            let mut estate = records.look();
            estate.sessions.put(serde_json::from_value(session).unwrap()).unwrap();
            estate.runs.put(serde_json::from_value(run).unwrap()).unwrap();
        }
        records
    }

    #[test]
    fn only_people_and_those_above_have_a_say() {
        let folder = tempfile::tempdir().unwrap();
        let records = records(folder.path());
        let agent = |id: &str| Actor::new("agent", id).unwrap();
        let to_mid = |actor: Option<Actor>| poster(&records.look(), "sess_mid", actor.as_ref());
        assert_eq!(to_mid(Some(Actor::local_user())), Poster::Person);
        assert_eq!(to_mid(Some(agent("sess_top"))), Poster::Above);
        for elsewhere in [agent("sess_low"), agent("sess_else"), Actor::new("service", "sess_top").unwrap()] {
            assert_eq!(to_mid(Some(elsewhere)), Poster::Elsewhere);
        }
        assert_eq!(to_mid(None), Poster::Unverified);
    }

    #[test]
    fn what_comes_from_below_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let records = records(folder.path());
        let own = |actor: Option<&Actor>, run: &str| is_own(&records.look(), "sess_mid", actor, run);
        for run in ["run_mid", "run_low", "run_lent"] {
            assert!(own(None, run), "{run}");
            assert!(!own(Some(&Actor::local_user()), run), "a person is none of its agents: {run}");
        }
        for run in ["run_top", "run_else", "run_unknown", "", "no id"] {
            assert!(!own(None, run), "{run}");
        }
        for (agent, is) in [("sess_mid", true), ("sess_low", true), ("sess_top", false), ("sess_else", false)]
        {
            assert_eq!(own(Some(&Actor::new("agent", agent).unwrap()), ""), is, "{agent}");
        }
    }
}
