//! The gate on the control socket: who somebody is, what they may do, and that nothing is answered unrecorded.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use support::wire::{Wire, command, message, rpc};
use support::{TestBus, wait_until};
use swb_bus::Caller;
use swb_bus::gate::{Admission, Closing, Command, Gate, Guest, Receipt, Visitor};
use swb_bus::transport::{ControlServer, ServerLimits};
use swb_proto::error::{ERR_CANCELLED, ERR_POLICY_DENIED, ERR_SHUTTING_DOWN, ERR_TIMEOUT};
use swb_proto::{Actor, BusError, BusResult, Meta};
use tokio::sync::watch;

/// A gate that does what the content of a message says, and notes everything.
#[derive(Debug)]
struct Scripted {
    seen: Mutex<Vec<String>>,
    agreed: watch::Sender<bool>,
}

#[derive(Debug)]
struct Door(Arc<Scripted>);

struct Note(Option<Arc<Scripted>>, bool);

impl Gate for Door {
    fn meet(&self, visitor: &Visitor<'_>) -> Arc<dyn Guest> {
        assert!(matches!(visitor, Visitor::Local(_)));
        self.0.note("met");
        Arc::new(Door(Arc::clone(&self.0)))
    }
}

impl Guest for Door {
    fn caller(&self, context: Meta) -> Caller {
        Caller::known(context, Actor::new("agent", "ada").unwrap())
    }

    fn admit(&self, caller: &Arc<Caller>, command: &Command<'_>) -> Admission {
        let params = command.params.map_or("", |raw| raw.get());
        let claimed = caller.claimed().map(|actor| format!(" claims {}", actor.kind.as_str()));
        self.0.note(&format!("{}{}", command.method, claimed.unwrap_or_default()));
        if params.contains("forbidden") {
            return Admission::Refused(BusError::new(ERR_POLICY_DENIED, "no"));
        }
        let unsafe_disk = params.contains("unrecorded");
        let receipt = Note(Some(Arc::clone(&self.0)), unsafe_disk);
        if params.contains("ask") && !command.can_wait {
            return Admission::Wait(
                async { Err(BusError::new(ERR_POLICY_DENIED, "cannot wait").because("NOBODY_ASKED")) }
                    .boxed(),
            );
        }
        if !params.contains("ask") {
            return Admission::Go(Box::new(receipt));
        }
        let mut agreed = self.0.agreed.subscribe();
        Admission::Wait(
            async move {
                agreed.wait_for(|agreed| *agreed).await.unwrap();
                Ok(Box::new(receipt) as Box<dyn Receipt>)
            }
            .boxed(),
        )
    }
}

impl Receipt for Note {
    fn close(mut self: Box<Self>, result: BusResult) -> Closing {
        let book = self.0.take().unwrap();
        book.note(if result.is_ok() { "ended" } else { "failed" });
        if self.1 {
            let refused = BusError::new(ERR_POLICY_DENIED, "not recorded");
            return Closing::Later(async move { Err(refused) }.boxed());
        }
        Closing::Now(result)
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Some(book) = &self.0 {
            book.note("let go");
        }
    }
}

impl Scripted {
    fn note(&self, what: &str) {
        self.seen.lock().unwrap().push(what.to_owned());
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

struct House {
    bus: TestBus,
    gate: Arc<Scripted>,
    server: ControlServer,
    dir: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bus = TestBus::new();
        let gate = Arc::new(Scripted { seen: Mutex::default(), agreed: watch::Sender::new(false) });
        let door: Arc<dyn Gate> = Arc::new(Door(Arc::clone(&gate)));
        let server = ControlServer::listen_behind(
            Some(door),
            Arc::clone(&bus.bus),
            &dir.path().join("control.sock"),
            ServerLimits::default(),
        );
        House { bus, gate, server: server.unwrap(), dir }
    }

    async fn client(&self) -> Wire {
        Wire::connect(&self.dir.path().join("control.sock")).await
    }
}

#[tokio::test]
async fn a_command_is_admitted_carried_out_and_closed_in_this_order() {
    let house = House::new();
    let mut client = house.client().await;
    client.call(1, "agents.echo", message("hi")).await;
    assert_eq!(house.gate.seen(), ["met", "agents/echo", "ended"]);
    client.ask(&rpc(2, "agents.refuse", message("hi"))).await;
    assert_eq!(house.gate.seen(), ["agents/refuse", "failed"]);
    let reply = client.ask(&rpc(3, "agents.echo", message("forbidden"))).await;
    assert_eq!(reply["error"]["code"], ERR_POLICY_DENIED);
    assert_eq!(house.gate.seen(), ["agents/echo"]);
    // What belongs to the bus itself, and what is no command at all, is not the gate's business.
    client.call(4, "$/ping", json!({})).await;
    client.ask(&rpc(5, "agents.echo", json!({ "content": 5 }))).await;
    assert!(house.gate.seen().is_empty());
}

#[tokio::test]
async fn a_line_is_whoever_the_gate_says_it_is() {
    let house = House::new();
    let mut client = house.client().await;
    let claims = json!({ "actor": { "kind": "user", "id": "user_local" } });
    client.ask(&command("req_1", "agents.echo", message("hi"), claims)).await;
    assert_eq!(house.gate.seen(), ["met", "agents/echo claims user", "ended"]);
    let honest = json!({ "actor": { "kind": "agent", "id": "ada" } });
    client.ask(&command("req_2", "agents.echo", message("hi"), honest)).await;
    assert_eq!(house.gate.seen(), ["agents/echo", "ended"]);
}

#[tokio::test]
async fn subscriptions_and_notifications_pass_the_gate_too() {
    let house = House::new();
    let mut client = house.client().await;
    let reply = client.ask(&rpc(1, "events.subscribe", json!({ "topics": ["forbidden.*"] }))).await;
    assert_eq!(reply["error"]["code"], ERR_POLICY_DENIED);
    let reply = client.ask(&rpc(2, "events.subscribe", json!({ "topics": ["ask.*"] }))).await;
    assert_eq!(reply["error"]["data"]["reason"], "NOBODY_ASKED");
    client.call(3, "events.subscribe", json!({ "topics": ["a.*"] })).await;
    for content in ["hi", "forbidden", "ask"] {
        client
            .send(
                &json!({ "jsonrpc": "2.0", "method": "agents.note", "params": message(content) }).to_string(),
            )
            .await;
    }
    client.assert_usable().await;
    wait_until("the notification arrived", || !house.bus.record.notices().is_empty()).await;
    assert_eq!(house.bus.record.notices(), ["agents/note"]);
}

#[tokio::test]
async fn what_needs_an_approval_waits_and_can_be_cancelled() {
    let house = House::new();
    let mut client = house.client().await;
    client.send(&rpc(1, "agents.echo", message("ask"))).await;
    client.assert_usable().await;
    assert_eq!(house.bus.record.started(), 0);
    let reply = client.ask(&rpc(2, "$/cancel", json!({ "id": 1 }))).await;
    assert_eq!(reply["id"], 2);
    let reply = client.recv().await;
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(1), &json!(ERR_CANCELLED)));
    assert_eq!(house.gate.seen(), ["met", "agents/echo", "let go"]);

    let impatient = json!({ "channel_id": "c", "content": "ask", "_meta": { "timeout_ms": 5 } });
    let reply = client.ask(&rpc(3, "agents.echo", impatient)).await;
    assert_eq!(reply["error"]["code"], ERR_TIMEOUT);
    assert_eq!(house.gate.seen(), ["agents/echo", "let go"]);

    client.send(&rpc(4, "agents.echo", message("ask"))).await;
    client.assert_usable().await;
    house.gate.agreed.send_replace(true);
    let reply = client.recv().await;
    assert_eq!((&reply["id"], &reply["result"]["content"]), (&json!(4), &json!("ask")));
    assert_eq!(house.gate.seen(), ["agents/echo", "ended"]);
}

#[tokio::test]
async fn a_caller_that_leaves_takes_its_question_along() {
    let house = House::new();
    let mut client = house.client().await;
    client.send(&rpc(1, "agents.echo", message("ask"))).await;
    client.assert_usable().await;
    drop(client);
    wait_until("the question is taken back", || house.gate.seen.lock().unwrap().contains(&"let go".into()))
        .await;
}

#[tokio::test]
async fn work_that_was_agreed_to_can_still_be_cancelled() {
    let house = House::new();
    house.gate.agreed.send_replace(true);
    let mut client = house.client().await;
    client.send(&rpc(1, "agents.wait", message("ask"))).await;
    wait_until("the work began", || house.bus.record.started() == 1).await;
    client.send(&rpc(2, "$/cancel", json!({ "id": 1 }))).await;
    let (one, two) = (client.recv().await, client.recv().await);
    let cancelled = if one["id"] == 1 { &one } else { &two };
    assert_eq!(cancelled["error"]["code"], ERR_CANCELLED);
    wait_until("the work was let go", || house.bus.record.dropped() == 1).await;
    assert_eq!(house.gate.seen(), ["met", "agents/wait", "failed"]);
}

#[tokio::test]
async fn an_answer_that_could_not_be_recorded_is_not_given() {
    let house = House::new();
    let mut client = house.client().await;
    let reply = client.ask(&rpc(1, "agents.echo", message("unrecorded"))).await;
    assert_eq!(reply["error"]["message"], "not recorded");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_people() {
    let house = House::new();
    let mut client = house.client().await;
    client.send(&rpc(1, "agents.echo", message("ask"))).await;
    client.assert_usable().await;
    house.server.close(Duration::from_secs(30)).await;
    let reply = client.recv().await;
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(1), &json!(ERR_SHUTTING_DOWN)));
}
