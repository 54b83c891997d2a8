//! Frozen bytes of the agent's stdio protocol: every word is written exactly like this, read back from this, and may grow.
//!
//! `fixtures/agent-rpc/` holds the bytes. A change there is a change of the protocol: add lines, do not edit them.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use swb_proto::agent::{AddedCommand, AddedEvent, Command, Event, Message, Request, decode, encode};

const COMMANDS: &str = include_str!("../../../fixtures/agent-rpc/commands.jsonl");
const ADDED_COMMANDS: &str = include_str!("../../../fixtures/agent-rpc/added-commands.jsonl");
const EVENTS: &str = include_str!("../../../fixtures/agent-rpc/events.jsonl");
const ADDED_EVENTS: &str = include_str!("../../../fixtures/agent-rpc/added-events.jsonl");
const MESSAGES: &str = include_str!("../../../fixtures/agent-rpc/messages.jsonl");

fn with_novelty(object: &str) -> String {
    object.replacen('{', r#"{"novelty":{"x":[1,null]},"#, 1)
}

fn written(word: &impl Serialize) -> String {
    let mut line = Vec::new();
    encode(word, &mut line).unwrap();
    String::from_utf8(line).unwrap().trim_end().to_owned()
}

fn golden<T: Serialize + DeserializeOwned + PartialEq + Debug>(lines: &str) {
    for json in lines.lines() {
        let word: T = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
        assert_eq!(written(&word), json);
    }
}

#[test]
fn words_are_written_and_read_exactly_so() {
    golden::<Command>(COMMANDS);
    golden::<AddedCommand>(ADDED_COMMANDS);
    golden::<Event>(EVENTS);
    golden::<AddedEvent>(ADDED_EVENTS);
    golden::<Message>(MESSAGES);
}

#[test]
fn a_field_more_changes_nothing() {
    for (json, contract) in
        COMMANDS.lines().map(|json| (json, true)).chain(ADDED_COMMANDS.lines().map(|json| (json, false)))
    {
        let request = decode(json.as_bytes()).unwrap().unwrap();
        assert_eq!(matches!(request, Request::Contract(_)), contract, "{json}");
        assert_eq!(written(&request), json);
        assert_eq!(decode(with_novelty(json).as_bytes()), Ok(Some(request)), "{json}");
    }
}

#[test]
fn a_parent_reads_events_of_a_later_child() {
    for json in EVENTS.lines().filter(|json| !json.contains("response")) {
        let event: Event = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&with_novelty(json)).unwrap(), event, "{json}");
    }
}

#[test]
fn attachments_may_be_missing() {
    let prompt = decode(br#"{"type":"prompt","id":"p","message":""}"#).unwrap().unwrap();
    assert!(
        matches!(prompt, Request::Contract(Command::Prompt { attachments, .. }) if attachments.is_empty())
    );
}
