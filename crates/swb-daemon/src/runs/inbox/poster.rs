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
