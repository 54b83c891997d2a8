//! kill -9 of the daemon under load: what was acknowledged is there, and the record is whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use swb_journal::audit::{AuditReader, Kind, verify};
use testkit::{World, wait};

use crate::client::Client;

#[test]
fn a_killed_daemon_loses_nothing_it_has_answered() {
    let world = World::new().with_binary(env!("CARGO_BIN_EXE_swb"));
    world.swb(["up"]).ok();
    let socket = world.paths().control_socket();
    let (acknowledged, over, tried) =
        (Mutex::new(BTreeMap::new()), AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (acknowledged, over, tried, socket) = (&acknowledged, &over, &tried, &socket);
            scope.spawn(move || {
                let mut number = 0;
                while !over.load(Ordering::Relaxed) {
                    let Some(mut client) = Client::connect(socket) else { continue };
                    while !over.load(Ordering::Relaxed) {
                        number += 1;
                        tried.fetch_add(1, Ordering::Relaxed);
                        let name = format!("{worker}-{number}");
                        let made =
                            client.call("workspace.create", &json!({ "name": name, "root_path": "/tmp" }));
                        let Some(made) = made else { break };
                        let id = made["result"]["workspace_id"].as_str().unwrap_or_else(|| panic!("{made}"));
                        acknowledged.lock().unwrap().insert(name, id.to_owned());
                        client.call("session.list", &json!({}));
                    }
                }
            });
        }
        for round in 1..=5 {
            let enough = tried.load(Ordering::Relaxed) + 40 * round;
            wait("there was work to interrupt", || tried.load(Ordering::Relaxed) >= enough);
            let pid = i32::try_from(world.status("pid").as_i64().unwrap()).unwrap();
            kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
            wait("the next daemon answers", || {
                world
                    .swb(["--json", "status"])
                    .json_lines()
                    .first()
                    .is_some_and(|status| status["pid"].as_i64().is_some_and(|next| next != i64::from(pid)))
            });
        }
        over.store(true, Ordering::Relaxed);
    });
    let listed = world.swb(["--json", "workspaces"]).ok().json_lines();
    let listed: BTreeMap<&str, &str> = listed
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["workspace_id"].as_str().unwrap()))
        .collect();
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > 20, "{} were acknowledged", acknowledged.len());
    for (name, id) in &acknowledged {
        assert_eq!(listed.get(name.as_str()), Some(&id.as_str()), "{name} was acknowledged");
    }
    world.swb(["down"]).ok();
    check_record(&world, &acknowledged);
}

/// The chain holds, every start has one end, and everything acknowledged is in it as done.
fn check_record(world: &World, acknowledged: &BTreeMap<String, String>) {
    let folder = world.paths().audit();
    let report = verify(&folder, &[]).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let mut open = BTreeMap::new();
    let mut done = BTreeSet::new();
    for record in AuditReader::new(&folder).records_after(0).unwrap() {
        let record = record.unwrap();
        match record.entry.kind {
            Kind::Start => {
                let name = record
                    .entry
                    .args
                    .as_ref()
                    .map(|args| args.value()["name"].clone())
                    .unwrap_or(Value::Null);
                open.insert(record.number, name);
            }
            Kind::End => {
                let name = open.remove(&record.entry.of.unwrap()).expect("an end has one start");
                let ok = serde_json::to_value(record.entry.status).unwrap() == "ok";
                if let (true, Some(name)) = (ok, name.as_str()) {
                    done.insert(name.to_owned());
                }
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?} began and did not end");
    for name in acknowledged.keys() {
        assert!(done.contains(name), "{name} was answered, so its end is recorded");
    }
}
