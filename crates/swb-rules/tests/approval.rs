//! Approvals: who is asked, how long, and what an answer is worth.

use std::time::Duration;

use serde_json::json;
use swb_rules::approval::{
    Announced, ApprovalEvent, ApprovalRequest, Binding, Choice, Desk, IssueError, MAX_PENDING, MAX_RESOLVED,
    Patience, RequestError, Resolve, ResolveError, Status, TokenError,
};
use swb_rules::policy::{Actor, Ancestor, GrantScope, Input, Resource, ShellFacts};
use swb_rules::shell::{Mode, Scope, parse};

const MINUTE: u64 = 60_000;
const START: u64 = 1_700_000_000_000;

fn ann() -> Actor {
    Actor::User { id: "ann".into() }
}

fn agent(id: &str, above: &[&str]) -> Actor {
    let ancestry = above.iter().map(|id| Ancestor { id: (*id).into(), workspace: "ws_1".into() }).collect();
    Actor::Agent { id: id.into(), workspace: "ws_1".into(), ancestry }
}

fn line(actor: Actor, text: &str) -> Input {
    let scope = Scope {
        mode: Mode::Workspace,
        directory: "/home/ann/project".into(),
        home: Some("/home/ann".into()),
        writable: Vec::new(),
    };
    let (facts, risk, _) = ShellFacts::of(&parse(text), &scope);
    let folder = Resource::folder("/home/ann/project", Some("ws_1".into()));
    // A stand-in for the keyed hash.
    let arguments = Some(format!("hash of {text}"));
    Input { shell: Some(facts), risk, arguments, contained: true, ..Input::new(actor, "tool.bash", folder) }
}

fn question(id: &str, input: Input) -> ApprovalRequest {
    ApprovalRequest {
        id: id.into(),
        risk: input.risk,
        contained: input.contained,
        input,
        subject: json!({ "tool": "bash" }),
        reason: "it sends work to another machine".into(),
        rules: vec!["agents-run-when-approved".into()],
        session_id: Some("sess_a".into()),
        correlation_id: None,
        call_id: None,
        token_for: None,
    }
}

fn push(id: &str) -> ApprovalRequest {
    question(id, line(agent("sess_a", &[]), "git push"))
}

fn answer<'a>(id: &'a str, choice: Choice, by: &'a Actor) -> Resolve<'a> {
    Resolve { id, choice, by, reason: Some("looks fine".into()), grant_id: "grant_1" }
}

#[test]
fn the_first_answer_wins_and_the_second_is_told() {
    let mut desk = Desk::default();
    desk.request(START, push("apr_1"), Patience::Interactive).unwrap();
    let first = desk.resolve(START + 1, answer("apr_1", Choice::Allow, &ann())).unwrap();
    assert_eq!(first.outcome.status, Status::Approved);
    assert_eq!(first.outcome.resolved_by.as_deref(), Some("ann"));
    let second = desk.resolve(START + 2, answer("apr_1", Choice::Deny, &ann())).unwrap_err();
    assert_eq!(
        second,
        ResolveError::AlreadyResolved {
            id: "apr_1".into(),
            outcome: Box::new(first.outcome.clone()),
            events: vec![]
        }
    );
    assert_eq!(desk.get("apr_1").unwrap().outcome, Some(first.outcome));
    let unknown = desk.resolve(START, answer("apr_9", Choice::Allow, &ann())).unwrap_err();
    assert_eq!(unknown, ResolveError::Unknown { id: "apr_9".into() });
}

#[test]
fn every_question_has_its_deadline_and_no_answer_is_no() {
    for (patience, millis) in [
        (Patience::Interactive, 15 * MINUTE),
        (Patience::Detached, 24 * 60 * MINUTE),
        (Patience::Within(Duration::from_secs(5)), 5_000),
        (Patience::Within(Duration::MAX), 24 * 60 * MINUTE),
    ] {
        let mut desk = Desk::default();
        desk.request(START, push("apr_1"), patience).unwrap();
        assert_eq!(desk.next_deadline(), Some(START + millis), "{patience:?}");
        assert_eq!(desk.expire(START + millis - 1), []);
        let events = desk.expire(START + millis);
        assert_eq!(events.len(), 1);
        let outcome = desk.get("apr_1").unwrap().outcome.clone().unwrap();
        assert_eq!((outcome.status, outcome.is_approved()), (Status::TimedOut, false));
        assert_eq!((desk.next_deadline(), desk.expire(u64::MAX)), (None, vec![]));
    }
}

#[test]
fn an_answer_at_the_deadline_is_too_late_even_if_nobody_has_noticed() {
    let mut desk = Desk::default();
    desk.request(START, push("apr_1"), Patience::Interactive).unwrap();
    let late = desk.resolve(START + 15 * MINUTE, answer("apr_1", Choice::Allow, &ann())).unwrap_err();
    let ResolveError::AlreadyResolved { outcome, events, .. } = late else { panic!("{late:?}") };
    assert_eq!((outcome.status, events.len()), (Status::TimedOut, 1));
}

#[test]
fn where_nobody_can_be_asked_the_answer_is_no_at_once_and_stays_so() {
    let mut desk = Desk::default();
    let requested = desk.request(START, push("apr_1"), Patience::Nobody).unwrap();
    assert_eq!(requested.approval.outcome.unwrap().status, Status::TimedOut);
    assert_eq!(requested.events.len(), 2);
    // Also when the daemon died between the two records.
    let mut desk = Desk::replay(requested.events.into_iter().take(1));
    assert_eq!(desk.restart(START + 1).len(), 2);
    assert_eq!(desk.pending().count(), 0);
}

#[test]
fn after_a_restart_the_time_runs_on_with_at_least_thirty_seconds_left() {
    let mut desk = Desk::default();
    desk.request(START, push("apr_1"), Patience::Interactive).unwrap();
    desk.request(START, push("apr_2"), Patience::Detached).unwrap();
    desk.restart(START + MINUTE);
    assert_eq!(desk.get("apr_1").unwrap().deadline, START + 15 * MINUTE, "enough is left");
    // The daemon was away past the deadline of the first.
    let back = START + 20 * MINUTE;
    desk.restart(back);
    assert_eq!(desk.get("apr_1").unwrap().deadline, back + 30_000);
    assert_eq!(desk.get("apr_2").unwrap().deadline, START + 24 * 60 * MINUTE);
    assert_eq!(desk.expire(back + 29_999), []);
    assert_eq!(desk.expire(back + 30_000).len(), 1);
}

#[test]
fn a_clock_that_goes_back_gives_no_more_time() {
    let mut desk = Desk::default();
    desk.request(START, push("apr_1"), Patience::Interactive).unwrap();
    desk.expire(START + 10 * MINUTE);
    desk.restart(START + 10 * MINUTE);
    let requested = desk.request(START - 60 * MINUTE, push("apr_2"), Patience::Interactive).unwrap();
    assert_eq!(requested.approval.requested_at, START + 10 * MINUTE);
}

#[test]
fn a_question_of_a_subagent_bubbles_to_the_root() {
    let mut desk = Desk::default();
    let input = line(agent("sess_c", &["sess_a", "sess_b"]), "git push");
    desk.request(START, question("apr_1", input), Patience::Interactive).unwrap();
    let audience: Vec<_> = desk.get("apr_1").unwrap().audience().map(str::to_owned).collect();
    assert_eq!(audience, ["sess_c", "sess_b", "sess_a"]);
    for (session, count) in [("sess_a", 1), ("sess_b", 1), ("sess_c", 1), ("sess_d", 0)] {
        assert_eq!(desk.pending_for(session).count(), count, "{session}");
    }
    // When an agent above ends, nobody waits any more.
    let events = desk.end_agent(START + 1, "sess_b");
    assert_eq!(events.len(), 1);
    let outcome = desk.get("apr_1").unwrap().outcome.clone().unwrap();
    assert_eq!((outcome.status, outcome.resolved_by), (Status::Denied, None));
}

#[test]
fn agents_do_not_answer() {
    let mut desk = Desk::default();
    desk.request(START, push("apr_1"), Patience::Interactive).unwrap();
    for by in [agent("sess_a", &[]), agent("sess_b", &[]), agent("sess_x", &["sess_a"])] {
        let refused = desk.resolve(START, answer("apr_1", Choice::Allow, &by)).unwrap_err();
        assert_eq!(refused, ResolveError::NotForAgents);
    }
    assert!(desk.get("apr_1").unwrap().is_pending());
}

#[test]
fn asking_again_is_the_same_question() {
    let mut desk = Desk::default();
    desk.request(START, push("apr_1"), Patience::Interactive).unwrap();
    let again = desk.request(START + MINUTE, push("apr_1"), Patience::Detached).unwrap();
    assert_eq!((again.events.len(), again.approval.deadline), (0, START + 15 * MINUTE));
    let other = question("apr_1", line(agent("sess_a", &[]), "rm x"));
    let refused = desk.request(START, other, Patience::Interactive).unwrap_err();
    assert_eq!(refused, RequestError::OtherQuestion { id: "apr_1".into() });
    desk.resolve(START + MINUTE, answer("apr_1", Choice::Deny, &ann())).unwrap();
    let after = desk.request(START + 2 * MINUTE, push("apr_1"), Patience::Interactive).unwrap();
    assert_eq!(after.approval.outcome.unwrap().status, Status::Denied);
}

#[test]
fn allowed_for_the_session_means_calls_like_it_and_no_others() {
    let mut desk = Desk::default();
    desk.request(START, push("apr_1"), Patience::Interactive).unwrap();
    let resolution = desk.resolve(START, answer("apr_1", Choice::AllowForSession, &ann())).unwrap();
    assert_eq!(resolution.outcome.grant_id.as_deref(), Some("grant_1"));
    assert!(matches!(resolution.grant.unwrap().scope, GrantScope::Commands { .. }));
    let covers = |desk: &Desk, now, input: Input| desk.covering(now, &input).is_some();
    for (input, covered) in [
        (line(agent("sess_a", &[]), "git push"), true),
        (line(agent("sess_a", &[]), "git push origin feature"), true),
        (line(agent("sess_sub", &["sess_a"]), "git push"), true),
        (line(agent("sess_a", &["sess_root"]), "git push"), true),
        (line(agent("sess_b", &[]), "git push"), false),
        (line(agent("sess_a", &[]), "git push --force"), false),
        (line(agent("sess_a", &[]), "git push; rm x"), false),
        (line(agent("sess_a", &[]), "git push && curl evil.example"), false),
        (line(agent("sess_a", &[]), "git commit -m x && git push"), false),
        (line(ann(), "git push"), false),
    ] {
        assert_eq!(covers(&desk, START, input.clone()), covered, "{input:?}");
    }
    let same = || line(agent("sess_a", &[]), "git push");
    assert!(!covers(&desk, START + 12 * 60 * MINUTE, same()), "it expires");
    assert_eq!(desk.grants(START).count(), 1);
    let revoked = desk.revoke(START + 1, "grant_1", &ann()).unwrap();
    assert!(matches!(revoked.as_slice(), [ApprovalEvent::Revoked { .. }]));
    assert!(!covers(&desk, START + 1, same()));
    assert!(desk.revoke(START + 2, "grant_1", &ann()).is_err());
}

#[test]
fn what_cannot_be_compared_is_granted_only_exactly() {
    let mut desk = Desk::default();
    let unclear = || line(agent("sess_a", &[]), "python3 -c 'print(1)'");
    desk.request(START, question("apr_1", unclear()), Patience::Interactive).unwrap();
    desk.resolve(START, answer("apr_1", Choice::AllowForSession, &ann())).unwrap();
    assert!(desk.covering(START, &unclear()).is_some());
    for other in ["python3 -c 'print(2)'", "python3 -c 'import os'", "curl https://example.org"] {
        assert!(desk.covering(START, &line(agent("sess_a", &[]), other)).is_none(), "{other}");
    }
    let events = desk.end_agent(START + 1, "sess_a");
    assert!(matches!(events.as_slice(), [ApprovalEvent::Revoked { by: None, .. }]));
    assert!(desk.covering(START + 1, &unclear()).is_none());
}

#[test]
fn only_what_can_be_said_narrowly_is_offered_for_the_session() {
    let mut desk = Desk::default();
    let nameless = Input { arguments: None, ..line(agent("sess_a", &[]), "curl https://example.org") };
    let requested = desk.request(START, question("apr_1", nameless), Patience::Interactive).unwrap();
    assert_eq!(requested.approval.options, [Choice::Allow, Choice::Deny]);
    let refused = desk.resolve(START, answer("apr_1", Choice::AllowForSession, &ann())).unwrap_err();
    assert_eq!(refused, ResolveError::NoSuchOption { id: "apr_1".into() });
    assert!(desk.get("apr_1").unwrap().is_pending());
}

fn share() -> (ApprovalRequest, Binding) {
    let terminal =
        Resource::Terminal { id: "term_1".into(), session: "sess_a".into(), workspace: "ws_1".into() };
    let binding = Binding {
        method: "share.upterm.start".into(),
        terminal_id: "term_1".into(),
        actor: "user:ann".into(),
        workspace_id: "ws_1".into(),
    };
    let mut request = question("apr_1", Input::new(ann(), "share.upterm.start", terminal));
    request.token_for = Some(binding.clone());
    (request, binding)
}

#[test]
fn a_token_is_good_once_for_one_thing_and_not_for_long() {
    let (request, binding) = share();
    let mut desk = Desk::default();
    let requested = desk.request(START, request, Patience::Interactive).unwrap();
    assert_eq!(requested.approval.options, [Choice::Allow, Choice::Deny], "never for a whole session");
    assert_eq!(desk.issue_token(START, "apr_1", &[7; 32]), Err(IssueError::NotApproved));
    desk.resolve(START, answer("apr_1", Choice::Allow, &ann())).unwrap();
    let (token, events) = desk.issue_token(START, "apr_1", &[7; 32]).unwrap();
    assert_eq!(desk.issue_token(START, "apr_1", &[8; 32]), Err(IssueError::AlreadyIssued));
    let kept = serde_json::to_string(&(&desk, &events)).unwrap();
    assert!(
        !kept.contains(&token) && !kept.contains(token.trim_start_matches("apt_")),
        "only the hash is kept"
    );

    for foreign in [
        Binding { method: "share.tmate.start".into(), ..binding.clone() },
        Binding { terminal_id: "term_2".into(), ..binding.clone() },
        Binding { actor: "agent:sess_a".into(), ..binding.clone() },
        Binding { workspace_id: "ws_2".into(), ..binding.clone() },
    ] {
        assert_eq!(desk.spend_token(START, &token, &foreign), Err(TokenError::Foreign));
    }
    assert_eq!(desk.spend_token(START, "apt_00", &binding), Err(TokenError::Unknown));
    let mut expired = desk.clone();
    assert_eq!(expired.spend_token(START + 5 * MINUTE, &token, &binding), Err(TokenError::Expired));
    desk.spend_token(START + 1, &token, &binding).unwrap();
    assert_eq!(desk.spend_token(START + 2, &token, &binding), Err(TokenError::Spent));
}

#[test]
fn a_refused_share_gives_no_token() {
    let (request, _) = share();
    let mut desk = Desk::default();
    desk.request(START, request, Patience::Interactive).unwrap();
    desk.resolve(START, answer("apr_1", Choice::Deny, &ann())).unwrap();
    assert_eq!(desk.issue_token(START, "apr_1", &[7; 32]), Err(IssueError::NotApproved));
}

#[test]
fn the_desk_is_bounded() {
    let mut desk = Desk::default();
    for number in 0..MAX_PENDING {
        desk.request(START, push(&format!("apr_{number:05}")), Patience::Interactive).unwrap();
    }
    assert_eq!(desk.request(START, push("apr_more"), Patience::Interactive), Err(RequestError::Full));
    let ann = ann();
    for number in 0..MAX_PENDING {
        desk.resolve(START, answer(&format!("apr_{number:05}"), Choice::Deny, &ann)).unwrap();
    }
    for number in 0..10 {
        let id = format!("apr_late_{number}");
        desk.request(START, push(&id), Patience::Interactive).unwrap();
        desk.resolve(START, answer(&id, Choice::Deny, &ann)).unwrap();
    }
    assert!(desk.get("apr_00009").is_none(), "the oldest is forgotten");
    assert!(desk.get("apr_00010").is_some());
    assert!(serde_json::to_string(&desk).unwrap().len() < (MAX_PENDING + MAX_RESOLVED) * 2_000);
}

#[test]
fn what_is_kept_has_its_golden_form() {
    let mut desk = Desk::default();
    let requested = desk.request(1_000, push("apr_1"), Patience::Interactive).unwrap();
    let resolution = desk.resolve(2_000, answer("apr_1", Choice::AllowForSession, &ann())).unwrap();
    let kept: Vec<_> =
        requested.events.iter().chain(&resolution.events).map(|e| serde_json::to_value(e).unwrap()).collect();
    let input = json!({
        "actor": { "kind": "agent", "id": "sess_a", "workspace": "ws_1" },
        "action": "tool.bash",
        "resource": { "type": "path", "path": "/home/ann/project", "workspace": "ws_1" },
        "risk": "medium", "contained": true, "arguments": "hash of git push",
        "shell": { "programs": ["git"], "commands": ["git push"], "concerns": ["pushes"] },
    });
    let wanted = [
        json!({ "event": "requested", "approval": {
            "request": {
                "id": "apr_1", "input": input, "subject": { "tool": "bash" },
                "reason": "it sends work to another machine", "risk": "medium",
                "rules": ["agents-run-when-approved"], "contained": true, "session_id": "sess_a",
            },
            "options": ["allow", "allow_for_session", "deny"], "requested_at": 1_000, "deadline": 901_000,
        } }),
        json!({ "event": "resolved", "id": "apr_1", "outcome": {
            "status": "approved", "resolved_by": "ann", "reason": "looks fine", "resolved_at": 2_000,
            "grant_id": "grant_1",
        } }),
        json!({ "event": "granted", "approval_id": "apr_1", "grant": {
            "id": "grant_1", "agent": "sess_a", "action": "tool.bash",
            "scope": { "commands": {
                "workspace": "ws_1", "programs": ["git"], "commands": ["git push"], "concerns": ["pushes"],
            } },
            "risk": "medium", "granted_by": "ann", "granted_at": 2_000, "expires_at": 43_202_000,
        } }),
    ];
    assert_eq!(kept, wanted);
}

#[test]
fn where_the_record_is_damaged_nothing_that_stands_is_trusted() {
    let mut desk = Desk::default();
    desk.request(START, push("apr_1"), Patience::Interactive).unwrap();
    desk.resolve(START, answer("apr_1", Choice::AllowForSession, &ann())).unwrap();
    let binding = Binding {
        method: "share.tmate.start".into(),
        terminal_id: "term_1".into(),
        actor: "user:ann".into(),
        workspace_id: "ws_1".into(),
    };
    desk.request(
        START,
        ApprovalRequest { token_for: Some(binding.clone()), ..push("apr_2") },
        Patience::Interactive,
    )
    .unwrap();
    desk.resolve(START, answer("apr_2", Choice::Allow, &ann())).unwrap();
    let (token, _) = desk.issue_token(START, "apr_2", &[7; 32]).unwrap();
    let events = desk.distrust(START + 1);
    assert_eq!(events.len(), 2);
    assert_eq!(desk.grants(START + 1).count(), 0);
    assert_eq!(desk.spend_token(START + 1, &token, &binding), Err(TokenError::Spent));
    assert_eq!(desk.distrust(START + 2), []);
}

#[test]
fn what_was_not_said_is_known_after_a_replay() {
    let mut desk = Desk::default();
    let mut events = desk.request(START, push("apr_1"), Patience::Interactive).unwrap().events;
    assert!(desk.get("apr_1").unwrap().is_unannounced());
    events.push(ApprovalEvent::Announced { id: "apr_1".into(), known: Announced::Question });
    let mut desk = Desk::replay(events.clone());
    assert!(!desk.get("apr_1").unwrap().is_unannounced());
    desk.resolve(START, answer("apr_1", Choice::Deny, &ann())).unwrap();
    assert!(desk.get("apr_1").unwrap().is_unannounced());
    desk.apply(ApprovalEvent::Announced { id: "apr_1".into(), known: Announced::Outcome });
    desk.apply(ApprovalEvent::Announced { id: "apr_1".into(), known: Announced::Question });
    assert_eq!(desk.get("apr_1").unwrap().announced, Announced::Outcome, "what is known stays known");
}

#[test]
fn a_session_that_ends_takes_along_what_was_asked_in_it() {
    let mut desk = Desk::default();
    let other = line(agent("agent_7", &[]), "git push");
    desk.request(START, question("apr_1", other), Patience::Interactive).unwrap();
    desk.end_agent(START + 1, "sess_a");
    assert_eq!(desk.get("apr_1").unwrap().outcome.as_ref().unwrap().status, Status::Denied);
}
