//! What may become of workspaces, projects and sessions, and which of their beginnings a crash left without an end.
//!
//! A state may only change along these tables. Whatever says `X.started` says exactly one end; where the daemon died in
//! between, the next one says it. Proof: the tables are tested against every pair of states.

use swb_proto::project::ProjectStatus;
use swb_proto::session::SessionState;
use swb_proto::workspace::WorkspaceState;

/// Whether a workspace may go from one state to the other.
pub fn workspace_may(from: WorkspaceState, to: WorkspaceState) -> bool {
    from != to
}

/// Whether a session may go from one state to the other. Whoever fails to get to one leaves it detached.
pub fn session_may(from: SessionState, to: SessionState) -> bool {
    use SessionState::{Attached, Attaching, Detached, Restoring, Terminated};
    match (from, to) {
        (Terminated, _) => false,
        (_, Terminated) => true,
        (Detached, Attaching) | (Attaching, Attached | Detached) => true,
        // Somebody else may come, and whoever is there may leave or look back.
        (Attached, Attaching | Restoring | Detached) | (Restoring, Attached | Detached) => true,
        _ => false,
    }
}

/// Where a session stands after a crash, and the end of what it had begun. `None`: as before, nothing is open.
pub fn session_after_crash(state: SessionState) -> Option<(SessionState, &'static str)> {
    match state {
        SessionState::Attaching => Some((SessionState::Detached, "session.attach.failed")),
        SessionState::Restoring => Some((SessionState::Detached, "session.restore.failed")),
        SessionState::Detached | SessionState::Attached | SessionState::Terminated => None,
    }
}

/// Whether a session is still of use.
pub fn session_lives(state: SessionState) -> bool {
    state != SessionState::Terminated
}

/// How a project is, given how it was and whether its folder can be read.
pub fn project_status(was: ProjectStatus, readable: bool) -> ProjectStatus {
    match (was, readable) {
        (ProjectStatus::Cloning, _) => ProjectStatus::Cloning,
        (_, true) => ProjectStatus::Active,
        (_, false) => ProjectStatus::Stale,
    }
}

/// Whether a project had begun something that a crash left without an end. It is then taken back.
pub fn project_is_half_made(status: ProjectStatus) -> bool {
    status == ProjectStatus::Cloning
}

#[cfg(test)]
mod tests {
    use super::*;
    use SessionState::{Attached, Attaching, Detached, Restoring, Terminated};

    const STATES: [SessionState; 5] = [Detached, Attaching, Attached, Restoring, Terminated];

    #[test]
    fn a_session_goes_where_the_table_leads() {
        let may: Vec<(SessionState, SessionState)> = STATES
            .into_iter()
            .flat_map(|from| STATES.map(|to| (from, to)))
            .filter(|(from, to)| session_may(*from, *to))
            .collect();
        assert_eq!(
            may,
            [
                (Detached, Attaching),
                (Detached, Terminated),
                (Attaching, Detached),
                (Attaching, Attached),
                (Attaching, Terminated),
                (Attached, Detached),
                (Attached, Attaching),
                (Attached, Restoring),
                (Attached, Terminated),
                (Restoring, Detached),
                (Restoring, Attached),
                (Restoring, Terminated),
            ]
        );
    }

    #[test]
    fn what_a_crash_left_open_is_closed_along_the_table() {
        for state in STATES {
            match session_after_crash(state) {
                Some((then, end)) => {
                    assert!(session_may(state, then) && end.ends_with(".failed"), "{state:?}");
                    assert_eq!(session_after_crash(then), None);
                }
                None => assert!(!matches!(state, Attaching | Restoring)),
            }
        }
    }

    #[test]
    fn a_stale_project_heals_and_a_half_made_one_does_not_become_whole_by_looking() {
        assert_eq!(project_status(ProjectStatus::Active, false), ProjectStatus::Stale);
        assert_eq!(project_status(ProjectStatus::Stale, true), ProjectStatus::Active);
        assert_eq!(project_status(ProjectStatus::Cloning, true), ProjectStatus::Cloning);
    }
}
