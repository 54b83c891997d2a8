//! The gate on the socket of a daemon in process: what cannot wait, and a record that has to be on the disk.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use serde_json::{Value, json};
use swb_journal::audit::{AuditReader, Kind, Status};
use testkit::World;

fn rpc(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn message(content: &str) -> Value {
    json!({"channel_id": "c", "content": content})
}

/// How the commands of a method have ended, according to the record.
fn ends(world: &World, method: &str) -> Vec<Status> {
    let records = AuditReader::new(world.paths().audit()).records_after(0).unwrap();
    let entries = records.map(|record| record.unwrap().entry);
    let ends = entries.filter(|entry| entry.kind == Kind::End && entry.method.as_deref() == Some(method));
    ends.map(|entry| entry.status.unwrap()).collect()
}

#[test]
fn a_record_that_has_to_be_on_the_disk_holds_up_nobody_for_good() {
    let mut world = World::new().with_config(|config| config.audit.durability = "synced".to_owned());
    world.start();
    let mut wire = world.wire();
    let subscribed = wire.ask(&rpc("events.subscribe", &json!({"topics": ["agents.*"]})));
    assert!(subscribed["result"]["subscription"].is_string(), "{subscribed}");
    wire.send(&json!({"jsonrpc": "2.0", "method": "agents.echo.handle", "params": message("quietly")}));
    assert!(wire.ask(&rpc("workspace.list", &json!({})))["result"].is_object());
    let answered = wire.ask(&rpc("bus.hello", &json!({"actor": {"kind": "system", "id": "system_daemon"}})));
    assert_eq!(answered["error"]["data"]["reason"], "ACTOR_MISMATCH");
    for method in ["events.subscribe", "agents.echo.handle", "workspace.list"] {
        testkit::wait(&format!("the end of {method}"), || ends(&world, method) == [Status::Ok]);
    }
    assert_eq!(ends(&world, "bus.hello"), [Status::Denied]);
    world.stop();
}

#[test]
fn what_cannot_wait_for_a_person_is_refused_and_recorded() {
    for durability in ["written", "synced"] {
        let mut world = World::new().with_config(|config| config.audit.durability = durability.to_owned());
        let rules = world.paths().config.join("policy");
        std::fs::create_dir_all(&rules).unwrap();
        let rule = r#"@id("ask") @ask("listening is asked about")
            forbid (principal, action in [Action::"events.subscribe", Action::"agents"], resource);"#;
        std::fs::write(rules.join("ask.cedar"), rule).unwrap();
        world.start();
        let mut wire = world.wire();
        let refused = wire.ask(&rpc("events.subscribe", &json!({"topics": ["agents.*"]})));
        assert_eq!(refused["error"]["data"]["reason"], "APPROVAL_CANNOT_BE_AWAITED", "{refused}");
        wire.send(&json!({"jsonrpc": "2.0", "method": "agents.echo.handle", "params": message("quietly")}));
        for method in ["events.subscribe", "agents.echo.handle"] {
            testkit::wait(&format!("the end of {method}"), || ends(&world, method) == [Status::Denied]);
        }
        let asked = wire.ask(&rpc("approval.list", &json!({})));
        assert_eq!(asked["result"]["approvals"], json!([]), "nobody is asked in vain");
        world.stop();
    }
}
