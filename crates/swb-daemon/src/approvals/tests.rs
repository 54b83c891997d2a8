//! The desk in the daemon: what is kept, said and waited for.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use swb_bus::topics::{Retention, Topics};
use swb_proto::Meta;
use swb_rules::approval::{ApprovalRequest, Binding, Choice, Patience, Status};
use swb_rules::policy::{Actor, Input, Resource};
use swb_rules::shell::Risk;
use tempfile::TempDir;

use super::*;

/// A folder, and a daemon's approvals in it that can end without warning.
struct Office {
    folder: TempDir,
    topics: Arc<Topics>,
    approvals: Arc<Approvals>,
}

impl Office {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let topics = Topics::in_memory(Retention::default());
        let path = folder.path().join("approvals.jsonl");
        let approvals = Approvals::open(&path, Arc::clone(&topics), SystemTime::now).unwrap();
        Office { folder, topics, approvals }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("approvals.jsonl")
    }

    /// As kill -9 does it: nothing more is written. Events of before stay in sight.
    fn again(&mut self) {
        self.approvals = Approvals::open(&self.file(), Arc::clone(&self.topics), SystemTime::now).unwrap();
    }

    /// Nothing of what was said is kept; the numbers go on.
    fn forget_events(&mut self) {
        let (head, topics) = (self.topics.head(), Topics::in_memory(Retention::default()));
        for _ in 0..head {
            topics.publish("test.filler", &Meta::default(), None, &json!({})).unwrap();
        }
        self.topics = topics;
    }

    fn said(&self) -> Vec<(String, Value)> {
        let globs = ["approval.*", "grant.*"].map(|glob| glob.to_owned().try_into().unwrap());
        let page = self.topics.read(globs.to_vec(), Some(0), 1000).unwrap();
        let payload = |text: &str| serde_json::from_str(text).unwrap();
        page.events.iter().map(|event| (event.topic.to_string(), payload(event.payload.get()))).collect()
    }

    fn topics(&self) -> Vec<String> {
        self.said().into_iter().map(|(topic, _)| topic).collect()
    }
}

fn question(id: &str) -> ApprovalRequest {
    let actor = Actor::Agent { id: "sess_a".into(), workspace: "ws_1".into(), ancestry: vec![] };
    let input = Input {
        risk: Risk::Medium,
        ..Input::new(actor, "session.create", Resource::Workspace { id: "ws_1".into() })
    };
    ApprovalRequest {
        id: id.into(),
        input,
        subject: json!({ "method": "session.create", "token": "hunter2" }),
        reason: "agents do not make sessions on their own".into(),
        risk: Risk::Medium,
        rules: vec!["rule_1".into()],
        contained: false,
        session_id: Some("sess_a".into()),
        correlation_id: Some("cor_1".into()),
        call_id: None,
        token_for: None,
    }
}

fn answer(id: &str, choice: Choice) -> Answer {
    let by = Actor::User { id: "ann".into() };
    Answer { approval: id.into(), choice, by, reason: Some("fine".into()) }
}

#[tokio::test]
async fn a_question_is_said_answered_and_told_to_whoever_waits() {
    let office = Office::new();
    let waiting = office.approvals.ask(question("apr_1"), Patience::Interactive).await.unwrap();
    let also = office.approvals.wait_for("apr_1").unwrap();
    let answered = office.approvals.resolve(answer("apr_1", Choice::Allow)).await.unwrap();
    assert_eq!((answered.outcome.status, answered.token), (Status::Approved, None));
    assert_eq!(waiting.outcome().await.unwrap(), answered.outcome);
    assert_eq!(also.outcome().await.unwrap(), answered.outcome);
    let late = office.approvals.wait_for("apr_1").unwrap();
    assert_eq!(late.outcome().await.unwrap(), answered.outcome);

    let said = office.said();
    let [(requested, put), (resolved, end)] = &said[..] else { panic!("{said:?}") };
    assert_eq!((requested.as_str(), resolved.as_str()), ("approval.requested", "approval.resolved"));
    assert_eq!(put["approval_id"], "apr_1");
    assert_eq!(put["status"], "pending");
    assert_eq!(put["actor"], json!({"kind": "agent", "id": "sess_a"}));
    assert_eq!(put["subject"], json!({"method": "session.create", "token": "[REDACTED]"}));
    assert_eq!((&put["containment"], &put["timeout_action"]), (&json!("advisory"), &json!("deny")));
    assert_eq!(put["options"], json!(["allow", "allow_for_session", "deny"]));
    assert_eq!((&end["approval_id"], &end["status"]), (&json!("apr_1"), &json!("approved")));
    assert_eq!((&end["resolved_by"], &end["reason"]), (&json!("ann"), &json!("fine")));
    assert!(!std::fs::read_to_string(office.file()).unwrap().contains("hunter2"));
}

#[tokio::test]
async fn the_second_answer_is_told_the_outcome_and_changes_nothing() {
    let office = Office::new();
    office.approvals.ask(question("apr_1"), Patience::Interactive).await.unwrap();
    office.approvals.resolve(answer("apr_1", Choice::Deny)).await.unwrap();
    let late = office.approvals.resolve(answer("apr_1", Choice::Allow)).await.unwrap_err();
    let AnswerError::AlreadyResolved { outcome, .. } = late else { panic!("{late}") };
    assert_eq!(outcome.status, Status::Denied);
    assert_eq!(office.topics(), ["approval.requested", "approval.resolved"]);
    let unknown = office.approvals.resolve(answer("apr_2", Choice::Allow)).await;
    assert!(matches!(unknown, Err(AnswerError::Unknown { .. })));
    for by in [question("x").input.actor, Actor::Service { id: "bridge".into() }] {
        let refused = office.approvals.resolve(Answer { by, ..answer("apr_1", Choice::Allow) }).await;
        assert!(matches!(refused, Err(AnswerError::NotAPerson)));
    }
}

#[tokio::test]
async fn the_same_id_is_the_same_question_also_after_a_crash() {
    let mut office = Office::new();
    office.approvals.ask(question("apr_1"), Patience::Interactive).await.unwrap();
    office.again();
    let waiting = office.approvals.ask(question("apr_1"), Patience::Interactive).await.unwrap();
    let other = ApprovalRequest { reason: "another".into(), ..question("apr_1") };
    let refused = office.approvals.ask(other, Patience::Interactive).await.unwrap_err();
    assert!(matches!(refused, AskError::Refused(_)), "{refused}");
    office.approvals.resolve(answer("apr_1", Choice::Allow)).await.unwrap();
    assert_eq!(waiting.outcome().await.unwrap().status, Status::Approved);
    office.again();
    let waiting = office.approvals.ask(question("apr_1"), Patience::Interactive).await.unwrap();
    assert_eq!(waiting.outcome().await.unwrap().status, Status::Approved);
    assert_eq!(office.topics(), ["approval.requested", "approval.resolved"]);
}

#[tokio::test]
async fn what_a_crash_kept_from_being_said_is_said_once() {
    let mut office = Office::new();
    office.approvals.ask(question("apr_1"), Patience::Interactive).await.unwrap();
    office.approvals.resolve(answer("apr_1", Choice::Deny)).await.unwrap();
    let both = office.topics();
    let all = std::fs::read_to_string(office.file()).unwrap();
    let whole = |lines: usize| all.split_inclusive('\n').take(lines).collect::<String>();
    assert_eq!(all, whole(3), "the start, the question, the answer");
    // It died after the last word: whoever keeps events knows that everything was said.
    for _ in 0..2 {
        office.again();
        assert_eq!(office.topics(), both);
    }
    // It died before it could say what it had written.
    for (lines, unsaid) in [(2, "approval.requested"), (3, "approval.resolved")] {
        std::fs::write(office.file(), whole(lines)).unwrap();
        office.forget_events();
        for _ in 0..3 {
            office.again();
            assert_eq!(office.topics(), [unsaid], "{lines}");
        }
    }
    // It stopped in order, so there is nothing to look up.
    office.approvals.stop();
    office.forget_events();
    office.again();
    assert_eq!(office.topics(), [""; 0]);
}

#[tokio::test]
async fn nobody_waits_past_the_deadline() {
    let office = Office::new();
    let time = tokio::spawn(Arc::clone(&office.approvals).keep_time());
    let at_once = office.approvals.ask(question("apr_1"), Patience::Nobody).await.unwrap();
    assert_eq!(at_once.outcome().await.unwrap().status, Status::TimedOut);
    let soon = Patience::Within(Duration::from_millis(30));
    let later = office.approvals.ask(question("apr_2"), Patience::Interactive).await.unwrap();
    let soon = office.approvals.ask(question("apr_3"), soon).await.unwrap();
    let outcome = soon.outcome().await.unwrap();
    assert_eq!((outcome.status, outcome.resolved_by), (Status::TimedOut, None));
    assert!(office.approvals.get("apr_2").unwrap().is_pending());
    office.approvals.stop();
    assert_eq!(later.outcome().await, Err(WaitError::Stopping));
    time.await.unwrap();
    assert!(matches!(
        office.approvals.ask(question("apr_4"), Patience::Interactive).await,
        Err(AskError::Stopping)
    ));
    assert!(office.approvals.get("apr_2").unwrap().is_pending(), "it stays for the next daemon");
}

#[tokio::test]
async fn after_a_restart_somebody_can_still_answer() {
    static NOW: AtomicU64 = AtomicU64::new(1_000_000);
    fn clock() -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(NOW.load(Ordering::Relaxed))
    }
    let office = Office::new();
    let path = office.folder.path().join("other.jsonl");
    let approvals = Approvals::open(&path, Arc::clone(&office.topics), clock).unwrap();
    approvals.ask(question("apr_1"), Patience::Interactive).await.unwrap();
    NOW.fetch_add(10 * 60 * 60_000, Ordering::Relaxed);
    let approvals = Approvals::open(&path, Arc::clone(&office.topics), clock).unwrap();
    assert_eq!(approvals.get("apr_1").unwrap().deadline, NOW.load(Ordering::Relaxed) + 30_000);
    NOW.fetch_add(30_000, Ordering::Relaxed);
    let late = approvals.resolve(answer("apr_1", Choice::Allow)).await.unwrap_err();
    assert!(matches!(late, AnswerError::AlreadyResolved { .. }), "{late}");
    assert_eq!(office.topics(), ["approval.requested", "approval.resolved"]);
}

#[tokio::test]
async fn a_session_that_ends_takes_its_grants_and_questions_along() {
    let mut office = Office::new();
    office.approvals.ask(question("apr_1"), Patience::Interactive).await.unwrap();
    office.approvals.resolve(answer("apr_1", Choice::AllowForSession)).await.unwrap();
    let waiting = office.approvals.ask(question("apr_2"), Patience::Interactive).await.unwrap();
    let input = question("apr_1").input;
    assert!(office.approvals.covers(&input).is_some());
    office.again();
    assert!(office.approvals.covers(&input).is_some(), "a grant outlives the daemon");
    assert_eq!(office.approvals.sessions(), ["sess_a"]);
    drop(waiting);
    let waiting = office.approvals.wait_for("apr_2").unwrap();
    office.approvals.session_ended("sess_b").unwrap();
    assert!(office.approvals.covers(&input).is_some());
    office.approvals.session_ended("sess_a").unwrap();
    assert!(office.approvals.covers(&input).is_none() && office.approvals.grants().is_empty());
    assert_eq!(waiting.outcome().await.unwrap().status, Status::Denied);
    office.again();
    assert!(office.approvals.covers(&input).is_none());
    let topics = office.topics();
    assert_eq!(topics.iter().filter(|topic| *topic == "approval.resolved").count(), 2);
    assert_eq!(
        topics.iter().filter(|topic| topic.starts_with("grant.")).collect::<Vec<_>>(),
        ["grant.given", "grant.revoked"]
    );
}

#[tokio::test]
async fn a_grant_is_taken_back_by_people_only() {
    let office = Office::new();
    office.approvals.ask(question("apr_1"), Patience::Interactive).await.unwrap();
    let answered = office.approvals.resolve(answer("apr_1", Choice::AllowForSession)).await.unwrap();
    let grant = answered.outcome.grant_id.unwrap();
    let agent = question("x").input.actor;
    assert!(matches!(office.approvals.revoke(grant.clone(), agent).await, Err(AnswerError::NotAPerson)));
    let ann = Actor::User { id: "ann".into() };
    office.approvals.revoke(grant.clone(), ann.clone()).await.unwrap();
    assert!(office.approvals.covers(&question("x").input).is_none());
    assert!(matches!(office.approvals.revoke(grant, ann).await, Err(AnswerError::UnknownGrant { .. })));
}

fn binding() -> Binding {
    Binding {
        method: "share.tmate.start".into(),
        terminal_id: "term_1".into(),
        actor: "user:ann".into(),
        workspace_id: "ws_1".into(),
    }
}

#[tokio::test]
async fn a_token_is_good_once_for_one_thing_and_only_its_hash_is_kept() {
    let mut office = Office::new();
    let share = ApprovalRequest { token_for: Some(binding()), ..question("apr_1") };
    office.approvals.ask(share, Patience::Interactive).await.unwrap();
    let for_session = office.approvals.resolve(answer("apr_1", Choice::AllowForSession)).await.unwrap_err();
    assert!(matches!(for_session, AnswerError::NoSuchOption { .. }), "{for_session}");
    let token = office.approvals.resolve(answer("apr_1", Choice::Allow)).await.unwrap().token.unwrap();
    assert!(!std::fs::read_to_string(office.file()).unwrap().contains(&token));
    assert!(office.said().iter().all(|(_, payload)| !payload.to_string().contains(&token)));

    let mut damaged = token.clone();
    damaged.replace_range(10..11, if &token[10..11] == "0" { "1" } else { "0" });
    let elsewhere = Binding { terminal_id: "term_2".into(), ..binding() };
    for (shown, shown_for) in [(damaged, binding()), (String::new(), binding()), (token.clone(), elsewhere)] {
        let refused = office.approvals.spend(shown, shown_for).await.unwrap_err();
        assert_eq!(refused.to_string(), "the approval token is not valid for this call");
    }
    office.again();
    let (first, second) = tokio::join!(
        office.approvals.spend(token.clone(), binding()),
        office.approvals.spend(token.clone(), binding())
    );
    assert!(first.is_ok() != second.is_ok(), "once: {first:?} {second:?}");
    office.again();
    assert!(office.approvals.spend(token, binding()).await.is_err(), "also after a restart");

    let denied = ApprovalRequest { token_for: Some(binding()), ..question("apr_2") };
    office.approvals.ask(denied, Patience::Interactive).await.unwrap();
    assert_eq!(office.approvals.resolve(answer("apr_2", Choice::Deny)).await.unwrap().token, None);
}

#[tokio::test]
async fn a_full_disk_means_no_and_forgets_nothing() {
    let office = Office::new();
    office.approvals.ask(question("apr_1"), Patience::Interactive).await.unwrap();
    office.approvals.resolve(answer("apr_1", Choice::AllowForSession)).await.unwrap();
    let soon = Patience::Within(Duration::from_millis(50));
    let waiting = office.approvals.ask(question("apr_2"), soon).await.unwrap();
    // A write has failed, and a folder stands where the file was, so that it cannot be read again.
    let aside = office.folder.path().join("aside");
    office.approvals.state.lock().unwrap().desk.file = None;
    std::fs::rename(office.file(), &aside).unwrap();
    std::fs::create_dir(office.file()).unwrap();
    let refused = office.approvals.resolve(answer("apr_2", Choice::Allow)).await.unwrap_err();
    assert!(matches!(refused, AnswerError::NotKept(_)), "{refused}");
    let refused = office.approvals.ask(question("apr_3"), Patience::Interactive).await.unwrap_err();
    assert!(matches!(refused, AskError::NotKept(_)), "{refused}");
    assert!(
        office.approvals.covers(&question("x").input).is_none(),
        "what cannot be kept cannot be relied on"
    );
    let time = tokio::spawn(Arc::clone(&office.approvals).keep_time());
    assert_eq!(waiting.outcome().await, Err(WaitError::NotKept));

    std::fs::remove_dir(office.file()).unwrap();
    std::fs::rename(&aside, office.file()).unwrap();
    office.approvals.ask(question("apr_4"), Patience::Interactive).await.unwrap();
    assert!(office.approvals.covers(&question("x").input).is_some());
    assert_eq!(office.approvals.get("apr_3"), None);
    office.approvals.stop();
    time.await.unwrap();
}

#[tokio::test]
async fn damage_ends_what_was_allowed_and_keeps_the_rest() {
    let mut office = Office::new();
    office.approvals.ask(question("apr_1"), Patience::Interactive).await.unwrap();
    office.approvals.resolve(answer("apr_1", Choice::AllowForSession)).await.unwrap();
    office.approvals.ask(question("apr_2"), Patience::Interactive).await.unwrap();
    let mut bytes = std::fs::read(office.file()).unwrap();
    // In the line of the start.
    bytes[20] ^= 1;
    std::fs::write(office.file(), &bytes).unwrap();
    office.again();
    assert!(office.approvals.covers(&question("x").input).is_none());
    assert!(office.approvals.get("apr_2").unwrap().is_pending());
    assert_eq!(std::fs::read(office.folder.path().join("approvals.jsonl.damaged")).unwrap(), bytes);
    let healed = std::fs::read(office.file()).unwrap();
    assert!(healed.starts_with(br#"{"sum":"#) && healed != bytes);
}

#[tokio::test]
async fn the_file_stays_bounded_and_one_agent_cannot_ask_without_end() {
    let mut office = Office::new();
    for n in 0..700 {
        let id = format!("apr_{n:03}");
        office.approvals.ask(question(&id), Patience::Nobody).await.unwrap();
    }
    let lines = std::fs::read(office.file()).unwrap().iter().filter(|byte| **byte == b'\n').count();
    assert!(lines < 1000, "{lines}");
    office.again();
    assert_eq!(office.approvals.list(|_| true).len(), 700);
    for n in 0..250 {
        office.approvals.ask(question(&format!("open_{n}")), Patience::Interactive).await.unwrap();
    }
    let one_more = office.approvals.ask(question("open_x"), Patience::Interactive).await.unwrap_err();
    assert!(matches!(one_more, AskError::TooMany { limit: 250 }), "{one_more}");
    let bad = office.approvals.ask(question("no id"), Patience::Interactive).await.unwrap_err();
    assert!(matches!(bad, AskError::BadId(_)), "{bad}");
}
