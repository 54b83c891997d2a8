//! Whose act is it: actor and correlation go along with every call and event that a request causes.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use serde_json::Value;
use support::{TestBus, comms, event_seq, globs, meta, text, within};
use swb_bus::BusHandle;
use swb_bus::topics::Delivery;
use swb_proto::error::ERR_DEPTH;

const AGENT: &str = r#"{"actor":{"kind":"agent","id":"ada"},"workspace_id":"ws_1","correlation_id":"cor_1"}"#;

async fn who(handle: &BusHandle, content: &str, method: &str) -> Value {
    let reply = within("who", handle.request(method, comms(content))).await.unwrap().unwrap();
    serde_json::from_str(text(&reply)).unwrap()
}

#[tokio::test]
async fn a_handler_knows_who_asks() {
    let bus = TestBus::new().bus;
    let daemon = who(&bus.handle(), "", "agents/who").await;
    assert_eq!((daemon["actor"].as_str(), daemon["depth"].as_u64()), (Some("system:system_daemon"), Some(0)));
    let agent = who(&bus.handle().with(meta(AGENT)), "", "agents/who").await;
    assert_eq!(agent["actor"], "agent:ada");
    assert_eq!((&agent["workspace"], &agent["correlation"]), (&"ws_1".into(), &"cor_1".into()));
    let nobody = who(&bus.handle().with(meta("{}")), "", "agents/who").await;
    assert_eq!(nobody["actor"], "user:user_local");
}

#[tokio::test]
async fn what_an_agent_causes_three_hops_later_is_still_its_own() {
    let bus = TestBus::new().bus;
    let agent = bus.handle().with(meta(AGENT));
    let third = who(&agent, "agents/relay agents/relay agents/who", "agents/relay").await;
    assert_eq!(third["actor"], "agent:ada");
    assert_eq!((&third["correlation"], &third["depth"]), (&"cor_1".into(), &3.into()));
}

#[tokio::test]
async fn an_event_carries_the_context_of_the_request_that_caused_it() {
    let bus = TestBus::new().bus;
    let mut events = bus.topics().subscribe(globs(&["made.*"]), None).unwrap();
    let agent = bus.handle().with(meta(AGENT));
    within("the reply", agent.request("agents/relay", comms("agents/publish made.here")))
        .await
        .unwrap()
        .unwrap();
    let delivery = within("the event", events.next()).await.unwrap();
    assert_eq!(event_seq(&delivery), 1);
    let Delivery::Event(event) = delivery else { unreachable!() };
    let envelope = event.envelope();
    assert_eq!(envelope.actor.as_ref().unwrap().id.as_str(), "ada");
    assert_eq!(envelope.correlation_id.as_ref().unwrap().as_str(), "cor_1");
    assert_eq!(envelope.workspace_id.as_ref().unwrap().as_str(), "ws_1");
}

#[tokio::test]
async fn a_loop_of_calls_ends_with_an_error_at_depth_ten() {
    let bus = TestBus::new().bus;
    let reply = within("the loop", bus.handle().request("agents/loop", comms("x"))).await.unwrap();
    let error = reply.unwrap_err();
    assert_eq!(error.code, ERR_DEPTH);
    assert_eq!(error.data.unwrap()["deepest"], 10);
    assert_eq!(bus.in_flight(), 0);
}

#[tokio::test]
async fn speaking_as_another_does_not_forget_how_deep_the_call_is() {
    use swb_bus::{Bus, BusHandler, CallContext};
    use swb_proto::{BusError, BusPayload, BusResult, Meta};
    use tokio::sync::oneshot;

    struct Disguised;
    impl BusHandler for Disguised {
        fn prefix(&self) -> &str {
            "disguised"
        }
        fn handle_request(&self, _: &str, _: BusPayload, _: oneshot::Sender<BusResult>) {}
        fn handle_call(&self, ctx: CallContext, m: &str, p: BusPayload, reply: oneshot::Sender<BusResult>) {
            assert_eq!(ctx.caller().actor().id.as_str(), "ada", "what is not replaced stays");
            let (bus, method) = (ctx.bus().with(Meta::default()), m.to_owned());
            ctx.spawn(reply, async move {
                bus.request(method, p).await.map_err(|error| BusError::new(0, error.to_string()))?
            });
        }
    }
    let topics = swb_bus::topics::Topics::in_memory(swb_bus::topics::Retention::default());
    let bus = Bus::builder(topics).register(Disguised).build();
    let agent = bus.handle().with(meta(AGENT));
    let reply = within("the loop", agent.request("disguised", BusPayload::Empty)).await.unwrap();
    assert_eq!(reply.unwrap_err().code, ERR_DEPTH);
}
