//! Questions to answer. They are put into the home by a daemon in this process, because agents of the real one would have to
//! be started for it.

use serde_json::{Value, json};
use swb_rules::approval::{ApprovalRequest, Patience};
use swb_rules::policy::{Actor, Input, Resource};
use swb_rules::shell::Risk;
use testkit::World;

pub(crate) fn world() -> World {
    World::new().with_binary(env!("CARGO_BIN_EXE_swb"))
}

/// An agent wants to make a session.
pub(crate) fn question(id: &str, subject: Value) -> ApprovalRequest {
    let actor = Actor::Agent { id: "sess_ada".into(), workspace: "ws_1".into(), ancestry: vec![] };
    let resource = Resource::Workspace { id: "ws_1".into() };
    ApprovalRequest {
        id: id.into(),
        input: Input { risk: Risk::Medium, ..Input::new(actor, "session.create", resource) },
        subject,
        reason: "agents do not make sessions on their own".into(),
        risk: Risk::Medium,
        rules: vec!["agents-manage-when-approved".into()],
        contained: false,
        session_id: Some("sess_ada".into()),
        correlation_id: Some("cor_1".into()),
        call_id: None,
        token_for: None,
    }
}

pub(crate) fn command(line: &str) -> Value {
    json!({ "command": line })
}

pub(crate) fn ask(world: &World, request: ApprovalRequest, patience: Patience) {
    let approvals = world.approvals();
    world.run(async move { approvals.ask(request, patience).await }).unwrap();
}
