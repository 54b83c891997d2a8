//! The words of the rules keep step with the words of the wire.

use swb_proto::method::{METHODS, dotted, prefix};
use swb_rules::policy::{Resource, fits, is_action};

/// The action that a method is; none for what belongs to the connection and not to the house.
fn action(name: &str) -> Option<String> {
    match prefix(name) {
        "$" => None,
        // Whom a message is for does not change what is done.
        "agents" => Some("agents".to_owned()),
        _ => Some(dotted(name)),
    }
}

#[test]
fn rules_can_speak_of_every_method() {
    let unknown: Vec<_> =
        METHODS.iter().filter_map(|method| action(method.name)).filter(|action| !is_action(action)).collect();
    assert!(unknown.is_empty(), "add these to switchboard.cedarschema: {unknown:?}");
}

#[test]
fn every_action_can_be_done_to_something() {
    let (id, workspace) = (String::from("x"), String::from("w"));
    let things = [
        Resource::House,
        Resource::Workspace { id: id.clone() },
        Resource::Project { id: id.clone(), workspace: workspace.clone() },
        Resource::Session { id: id.clone(), workspace: workspace.clone(), project: None },
        Resource::Terminal { id, session: "s".into(), workspace },
        Resource::folder("/x", None),
    ];
    for action in swb_rules::policy::actions() {
        assert!(things.iter().any(|thing| fits(action, thing)), "{action}");
    }
    assert!(fits("session.get", &things[3]) && !fits("session.get", &things[0]));
    assert!(!fits("no.such", &things[0]));
}
