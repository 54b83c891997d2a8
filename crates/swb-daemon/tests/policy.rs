//! `policy.decide` as an agent's process asks it, and rules of a session from its making to its end.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use serde_json::{Value, json};
use swb_bus::{BusHandle, CallError};
use swb_proto::approval::{ApprovalDecision, Resolve, ResolveParams};
use swb_proto::policy::{Decide, DecideParams, Decided, Verdict};
use swb_proto::project::{Init, InitParams};
use swb_proto::session::{Create as CreateSession, CreateSessionParams, Terminate, TerminateParams};
use swb_proto::workspace::{Create as CreateWorkspace, CreateWorkspaceParams};
use swb_proto::{Actor, BusError, Meta};
use testkit::World;

/// A daemon with a project, and an agent at work in it.
struct Office {
    world: World,
    session: String,
    root: std::path::PathBuf,
}

fn office(rules: Option<&str>) -> Office {
    let mut world = World::new();
    world.start();
    let root = world.folder().canonicalize().unwrap().join("project");
    std::fs::create_dir(&root).unwrap();
    let house = world.handle();
    let session = world.run(async {
        let root_path = root.to_str().unwrap().to_owned();
        let params = CreateWorkspaceParams { name: "w".into(), root_path: root_path.clone() };
        let workspace_id = house.call::<CreateWorkspace>(params).await.unwrap().workspace_id;
        let inside = house.with(Meta { workspace_id: Some(workspace_id), ..Meta::default() });
        let project_id =
            inside.call::<Init>(InitParams { root_path, git_init: false }).await.unwrap().project_id;
        let rules = rules.map(str::to_owned);
        let params = CreateSessionParams { project_id, profile_id: None, mode: Default::default(), rules };
        inside.call::<CreateSession>(params).await.unwrap().session_id
    });
    Office { session: session.as_str().to_owned(), world, root }
}

impl Office {
    fn acting(&self, kind: &str, id: &str) -> BusHandle {
        self.world.handle().with(Meta { actor: Some(Actor::new(kind, id).unwrap()), ..Meta::default() })
    }

    fn try_ask(&self, id: Option<&str>, tool: &str, args: Value) -> Result<Decided, BusError> {
        let Value::Object(args) = args else { panic!("an object") };
        let params = DecideParams {
            tool: tool.to_owned(),
            args,
            cwd: self.root.to_str().unwrap().to_owned(),
            ask_id: id.map(|id| id.to_owned().try_into().unwrap()),
            subagents: Vec::new(),
            call_id: None,
            timeout_ms: None,
        };
        let agent = self.acting("agent", &self.session);
        self.world.run(agent.call::<Decide>(params)).map_err(|error| match error {
            CallError::Bus(error) => error,
            other => panic!("{other:?}"),
        })
    }

    fn ask(&self, id: Option<&str>, tool: &str, args: Value) -> Decided {
        self.try_ask(id, tool, args).unwrap()
    }

    fn answer(&self, id: &str, decision: ApprovalDecision, allow_for_session: bool) {
        let params = ResolveParams {
            approval_id: id.to_owned().try_into().unwrap(),
            decision,
            reason: Some("because".to_owned()),
            allow_for_session,
            edited_args: None,
        };
        self.world.run(self.acting("user", "ann").call::<Resolve>(params)).unwrap();
    }
}

#[test]
fn harmless_calls_go_and_forbidden_ones_do_not() {
    let office = office(None);
    let read = office.ask(None, "read", json!({ "path": "src/lib.rs" }));
    assert_eq!((read.decision, read.rules[0].as_str()), (Verdict::Allow, "agents-read"));
    let secret = office.ask(None, "read", json!({ "path": ".env" }));
    assert_eq!((secret.decision, secret.rules[0].as_str()), (Verdict::Deny, "no-secrets"));
    assert_ne!(read.decision_id, secret.decision_id);
    let elsewhere = office.ask(None, "write", json!({ "path": "../other/x" }));
    assert_eq!(elsewhere.decision, Verdict::Ask);
    assert!(elsewhere.approval_id.is_some());
    let wrong = office.try_ask(None, "bash", json!({})).unwrap_err();
    assert!(wrong.message.contains("`command`"), "{wrong:?}");
}

#[test]
fn a_question_is_answered_for_one_call_and_no_other() {
    let office = office(None);
    let push = || json!({ "command": "git push" });
    let asked = office.ask(Some("apr_mine"), "bash", push());
    assert_eq!((asked.decision, asked.approval_id.unwrap().as_str()), (Verdict::Ask, "apr_mine"));
    assert_eq!(office.ask(Some("apr_mine"), "bash", push()).decision, Verdict::Ask, "the same question");
    office.answer("apr_mine", ApprovalDecision::Approve, false);
    assert_eq!(office.ask(Some("apr_mine"), "bash", push()).decision, Verdict::Allow);
    let other =
        office.try_ask(Some("apr_mine"), "bash", json!({ "command": "git push --force" })).unwrap_err();
    assert_eq!(other.reason(), "OTHER_QUESTION");
    assert_eq!(office.ask(None, "bash", push()).decision, Verdict::Ask, "another call is another question");
    office.ask(Some("apr_no"), "bash", push());
    office.answer("apr_no", ApprovalDecision::Deny, false);
    let denied = office.ask(Some("apr_no"), "bash", push());
    assert_eq!(denied.decision, Verdict::Deny);
    assert!(denied.reason.contains("because"), "{}", denied.reason);
}

#[test]
fn what_was_allowed_for_the_session_is_not_asked_again() {
    let office = office(None);
    office.ask(Some("apr_1"), "bash", json!({ "command": "git push" }));
    office.answer("apr_1", ApprovalDecision::Approve, true);
    assert_eq!(office.ask(None, "bash", json!({ "command": "git push" })).decision, Verdict::Allow);
    assert_eq!(office.ask(None, "bash", json!({ "command": "curl example.org" })).decision, Verdict::Ask);
}

#[test]
fn rules_of_a_session_hold_as_long_as_it_does_and_over_a_restart() {
    let rules = "@id(\"no-readme\") forbid (principal, action in Action::\"read\", resource) when { resource.path like \"*/README\" };";
    let mut office = office(Some(rules));
    let readme = || json!({ "path": "README" });
    assert_eq!(office.ask(None, "read", readme()).rules, ["no-readme"]);
    office.world.crash_and_restart();
    assert_eq!(office.ask(None, "read", readme()).decision, Verdict::Deny);
    let session_id = Some(office.session.clone().try_into().unwrap());
    office
        .world
        .run(office.world.handle().call::<Terminate>(TerminateParams { session_id, reason: None }))
        .unwrap();
    assert_eq!(std::fs::read_dir(office.world.paths().session_rules()).unwrap().count(), 0);
}

#[test]
fn a_session_with_rules_that_cannot_be_used_is_not_made() {
    let office = office(None);
    let project_id = office.world.run(async {
        let house = office.world.handle();
        let params = swb_proto::project::ListProjectsParams { workspace_id: None };
        house.call::<swb_proto::project::List>(params).await.unwrap().projects[0].project_id.clone()
    });
    let rules = Some("permit (principal, action, resource);".to_owned());
    let params = CreateSessionParams { project_id, profile_id: None, mode: Default::default(), rules };
    let refused = office.world.run(office.world.handle().call::<CreateSession>(params)).unwrap_err();
    assert!(matches!(&refused, CallError::Bus(error) if error.reason() == "RULES_REJECTED"), "{refused:?}");
}
