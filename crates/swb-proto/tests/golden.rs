//! Frozen bytes: every word of the wire is written exactly like this, read back from this, and may grow.
//!
//! `fixtures/wire/` holds the bytes. A change there is a change of the protocol: add lines, do not edit them.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use swb_proto::envelope::{CommandEnvelope, ResponseEnvelope};
use swb_proto::error::{ERR_INVALID_REQUEST, ERR_METHOD_NOT_FOUND, ERR_PARSE, ErrorEnvelope};
use swb_proto::event::Gap;
use swb_proto::events::EventNotification;
use swb_proto::id::CorrelationId;
use swb_proto::line::{self, Dialect};
use swb_proto::method::{self, METHODS};
use swb_proto::run::{RunCompleted, RunFailed, RunProgress, RunStarted};
use swb_proto::{Actor, BusError, BusPayload, BusResult, EventEnvelope, Meta, reply};

const METHOD_WORDS: &str = include_str!("../../../fixtures/wire/methods.jsonl");
const WORDS: &str = include_str!("../../../fixtures/wire/words.jsonl");
const PAYLOADS: &str = include_str!("../../../fixtures/wire/payloads.jsonl");
const REPLIES: &str = include_str!("../../../fixtures/wire/replies.jsonl");
const EVENTS: &str = include_str!("../../../fixtures/wire/events.jsonl");
const SEED_COMMAND: &str = include_str!("../../../fixtures/wire/seed-command.json");
const SEED_RESPONSE: &str = include_str!("../../../fixtures/wire/seed-response.json");
const SEED_EVENT: &str = include_str!("../../../fixtures/wire/seed-event.json");
const SEED_ERROR: &str = include_str!("../../../fixtures/wire/seed-error.json");

/// The same object with a field that nobody knows yet, at its front.
fn with_novelty(object: &str) -> String {
    let rest = object.strip_prefix('{').unwrap();
    let comma = if rest.starts_with('}') { "" } else { "," };
    format!(r#"{{"novelty":{{"x":[1,null]}}{comma}{rest}"#)
}

/// Written exactly so, read back, and read with a field more.
fn golden<T: Serialize + DeserializeOwned + PartialEq + Debug>(json: &str) {
    let word: T = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(serde_json::to_string(&word).unwrap(), json);
    let grown: T =
        serde_json::from_str(&with_novelty(json)).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(grown, word, "a field more changes nothing");
}

#[derive(serde::Deserialize)]
struct MethodWords<'a> {
    method: &'a str,
    #[serde(borrow)]
    params: &'a RawValue,
    #[serde(borrow)]
    result: &'a RawValue,
}

fn method_words() -> impl Iterator<Item = MethodWords<'static>> {
    METHOD_WORDS.lines().map(|line| serde_json::from_str(line).unwrap())
}

fn bare(payload: &BusPayload) -> String {
    let mut out = Vec::new();
    payload.write_bare(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn parameters_and_results_of_every_method_keep_their_bytes_and_may_grow() {
    for words in method_words() {
        let spec = method::lookup(&method::slashed(words.method).unwrap()).unwrap();
        let grown = |raw: &RawValue| RawValue::from_string(with_novelty(raw.get())).unwrap();
        let params = spec.decode_params(Some(words.params)).unwrap();
        assert_eq!(bare(&params), words.params.get(), "{}", words.method);
        assert_eq!(spec.decode_params(Some(&grown(words.params))).unwrap(), params, "{}", words.method);
        let result = spec.decode_result(words.result).unwrap();
        assert_eq!(bare(&result), words.result.get(), "{}", words.method);
        assert_eq!(spec.decode_result(&grown(words.result)).unwrap(), result, "{}", words.method);
    }
}

#[test]
fn every_method_has_golden_words() {
    for spec in METHODS {
        let wire_name = method::dotted(spec.name);
        assert!(method_words().any(|words| words.method == wire_name), "{wire_name} has none");
    }
}

#[test]
fn every_word_keeps_its_bytes_and_may_grow() {
    #[derive(serde::Deserialize)]
    struct Word<'a> {
        word: &'a str,
        #[serde(borrow)]
        json: &'a RawValue,
    }
    for line in WORDS.lines() {
        let Word { word, json } = serde_json::from_str(line).unwrap();
        let json = json.get();
        match word {
            "Actor" => golden::<Actor>(json),
            "Meta" => golden::<Meta>(json),
            "Gap" => golden::<Gap>(json),
            "BusError" => golden::<BusError>(json),
            "ErrorEnvelope" => golden::<ErrorEnvelope>(json),
            "CommandEnvelope" => golden::<CommandEnvelope>(json),
            "ResponseEnvelope" => golden::<ResponseEnvelope>(json),
            "EventEnvelope" => golden::<EventEnvelope>(json),
            "EventNotification" => golden::<EventNotification>(json),
            "RunStarted" => golden::<RunStarted>(json),
            "RunProgress" => golden::<RunProgress>(json),
            "RunCompleted" => golden::<RunCompleted>(json),
            "RunFailed" => golden::<RunFailed>(json),
            other => panic!("no type for {other}"),
        }
    }
}

#[test]
fn payloads_as_stores_keep_them_do_not_change() {
    for json in PAYLOADS.lines() {
        let payload: BusPayload =
            serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
        assert_eq!(serde_json::to_string(&payload).unwrap(), json);
    }
    for variant in ["CommsMessage", "LlmRequest", "CancelRequest", "Empty", "Control", "Events", "Rpc"] {
        assert!(PAYLOADS.contains(&format!("\"{variant}\"")), "{variant} has no line");
    }
}

/// The moment in the seed's examples.
fn seed_moment() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_772_064_000_050)
}

fn message() -> BusPayload {
    BusPayload::CommsMessage { channel_id: "pty0".into(), content: "hello".into() }
}

#[test]
fn replies_are_written_exactly_so_in_both_dialects() {
    let correlation = CorrelationId::try_from("cor_1".to_owned()).unwrap();
    let correlated = Some(&correlation);
    let bad_ts = BusError::new(ERR_INVALID_REQUEST, "\"ts\" must be an RFC 3339 timestamp with a zone")
        .because("INVALID_TIMESTAMP")
        .with("field", "ts");
    let unknown = BusError::new(ERR_METHOD_NOT_FOUND, "no handler for nobody.x");
    let no_id = BusError::new(ERR_INVALID_REQUEST, "\"id\" is missing or blank")
        .because("MISSING_REQUIRED_FIELD")
        .with("field", "id");
    let parse = BusError::new(ERR_PARSE, "the line is not JSON");
    type Case<'a> = (Dialect, Option<&'a str>, Option<&'a CorrelationId>, BusResult);
    let cases: [Case<'_>; 8] = [
        (Dialect::JsonRpc, Some("1"), None, Ok(message())),
        (Dialect::JsonRpc, Some("\"a-b\""), correlated, Ok(BusPayload::Empty)),
        (Dialect::JsonRpc, None, None, Err(parse)),
        (Dialect::JsonRpc, Some("7"), None, Err(bad_ts)),
        (Dialect::Envelope, Some("\"req_1\""), None, Ok(message())),
        (Dialect::Envelope, Some("\"req_2\""), correlated, Ok(BusPayload::Empty)),
        (Dialect::Envelope, Some("\"req_3\""), correlated, Err(unknown)),
        (Dialect::Envelope, None, None, Err(no_id)),
    ];
    let mut out = Vec::new();
    for (dialect, id, correlation, result) in &cases {
        reply::write(&mut out, *dialect, *id, *correlation, seed_moment(), result);
    }
    assert_eq!(String::from_utf8(out).unwrap(), REPLIES);
}

#[test]
fn a_written_response_reads_back_as_the_typed_envelope() {
    for line in REPLIES.lines().filter(|line| line.contains("\"type\":\"response\"")) {
        golden::<ResponseEnvelope>(line);
    }
}

#[test]
fn events_are_written_exactly_so_in_both_dialects() {
    #[derive(serde::Deserialize)]
    struct Line {
        params: EventNotification,
    }
    let notified = EVENTS.lines().step_by(2).map(|line| serde_json::from_str::<Line>(line).unwrap());
    let envelopes: Vec<EventEnvelope> = notified.map(|line| line.params.event).collect();
    let mut out = Vec::new();
    for (envelope, subscription) in envelopes.iter().zip(["sub_1", "sub_2"]) {
        let json = serde_json::to_string(envelope).unwrap();
        for dialect in [Dialect::JsonRpc, Dialect::Envelope] {
            reply::write_event(&mut out, dialect, subscription, &json);
        }
    }
    assert_eq!(String::from_utf8(out).unwrap(), EVENTS);
    for line in EVENTS.lines().skip(1).step_by(2) {
        golden::<EventEnvelope>(line);
    }
}

#[test]
fn the_seeds_command_is_understood_as_it_stands() {
    // One object per line is ours; the seed prints it over several.
    let line = serde_json::from_str::<Value>(SEED_COMMAND).unwrap().to_string();
    let call = line::read(line.as_bytes()).unwrap();
    assert_eq!((call.id, call.method.as_ref()), (Some("\"req_01J...\""), "session/create"));
    let typed: CommandEnvelope = serde_json::from_str(SEED_COMMAND).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), serde_json::from_str::<Value>(SEED_COMMAND).unwrap());
}

#[test]
fn the_seeds_response_and_error_read_and_write_as_they_stand() {
    let response: ResponseEnvelope = serde_json::from_str(SEED_RESPONSE).unwrap();
    let value: Value = serde_json::from_str(SEED_RESPONSE).unwrap();
    assert_eq!(serde_json::to_value(&response).unwrap(), value);
    let error: ErrorEnvelope = serde_json::from_str(SEED_ERROR).unwrap();
    assert_eq!(serde_json::to_value(&error).unwrap(), serde_json::from_str::<Value>(SEED_ERROR).unwrap());
    // The field order of the seed is ours as well.
    let keys = |json: &str| -> Vec<String> {
        let lines = json.lines().filter(|line| line.starts_with("  \""));
        lines.map(|line| line.trim().split('"').nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(keys(SEED_RESPONSE), ["id", "type", "status", "ts", "result", "error"]);
    let written = serde_json::to_string_pretty(&response).unwrap();
    assert_eq!(keys(&written), keys(SEED_RESPONSE));
}

#[test]
fn the_seeds_event_is_ours_without_its_place_in_the_order() {
    // The seed knows no `seq`; ours always has one. Everything else stands as it is.
    let mut value: Value = serde_json::from_str(SEED_EVENT).unwrap();
    assert!(serde_json::from_value::<EventEnvelope>(value.clone()).is_err());
    value["seq"] = 1.into();
    let event: EventEnvelope = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&event).unwrap(), value);
}
