//! The OpenRPC document says what is really on the wire.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use serde_json::{Map, Value, json};
use swb_proto::envelope::{CommandEnvelope, ResponseEnvelope};
use swb_proto::events::EventNotification;
use swb_proto::rpc::{ContentDescriptor, DiscoverResponse};
use swb_proto::{EventEnvelope, method, openrpc};

const METHOD_WORDS: &str = include_str!("../../../fixtures/wire/methods.jsonl");
const REPLIES: &str = include_str!("../../../fixtures/wire/replies.jsonl");
const EVENTS: &str = include_str!("../../../fixtures/wire/events.jsonl");
const SEED_COMMAND: &str = include_str!("../../../fixtures/wire/seed-command.json");
const SEED_RESPONSE: &str = include_str!("../../../fixtures/wire/seed-response.json");

/// A validator for a schema that refers to the shared ones of `document`.
fn validator(document: &DiscoverResponse, mut schema: Map<String, Value>) -> jsonschema::Validator {
    schema.insert("components".into(), json!({ "schemas": document.components.schemas }));
    jsonschema::validator_for(&Value::Object(schema)).unwrap()
}

/// The parameters of a method as the schema of one object.
fn object_of(params: &[ContentDescriptor]) -> Map<String, Value> {
    let properties: Map<String, Value> =
        params.iter().map(|param| (param.name.clone(), Value::Object(param.schema.clone()))).collect();
    let required: Vec<&str> =
        params.iter().filter(|param| param.required == Some(true)).map(|param| param.name.as_str()).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    schema.as_object().unwrap().clone()
}

fn assert_valid(validator: &jsonschema::Validator, value: &Value, what: &str) {
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{what}: {errors:?}\n{value}");
}

fn method_words() -> Vec<Value> {
    METHOD_WORDS.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn golden_parameters_and_results_are_valid() {
    let document = openrpc::document();
    for words in method_words() {
        let name = words["method"].as_str().unwrap();
        let method = document.methods.iter().find(|method| method.name == name).unwrap();
        assert_valid(&validator(&document, object_of(&method.params)), &words["params"], name);
        assert_valid(&validator(&document, method.result.schema.clone()), &words["result"], name);
    }
}

#[test]
fn what_the_schema_calls_required_the_decoder_requires_and_nothing_else() {
    let document = openrpc::document();
    for words in method_words() {
        let name = words["method"].as_str().unwrap();
        let described = document.methods.iter().find(|method| method.name == name).unwrap();
        let spec = method::lookup(&method::slashed(name).unwrap()).unwrap();
        for param in &described.params {
            let mut params = words["params"].clone();
            params.as_object_mut().unwrap().remove(&param.name);
            let raw = serde_json::value::to_raw_value(&params).unwrap();
            let decoded = spec.decode_params(Some(&raw)).is_ok();
            assert_eq!(decoded, param.required == Some(false), "{name} without {}", param.name);
        }
    }
}

#[test]
fn the_schema_is_not_so_wide_that_anything_fits() {
    let document = openrpc::document();
    for method in &document.methods {
        let result = validator(&document, method.result.schema.clone());
        for wrong in [json!(null), json!(7), json!("x"), json!([])] {
            assert!(!result.is_valid(&wrong), "{} would answer {wrong}", method.name);
        }
        let params = validator(&document, object_of(&method.params));
        for param in &method.params {
            let wrong = json!({ (param.name.clone()): [[[]]] });
            assert!(!params.is_valid(&wrong), "{} would take {wrong}", method.name);
        }
    }
}

/// Every schema inside `schema`, itself included, with the path to it.
fn walk(schema: &Value, path: &str, visit: &mut dyn FnMut(&str, &Value)) {
    visit(path, schema);
    let Some(map) = schema.as_object() else { return };
    for keyword in ["items", "not", "contains"] {
        if let Some(inner) = map.get(keyword) {
            walk(inner, &format!("{path}/{keyword}"), visit);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        for (at, inner) in map.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate() {
            walk(inner, &format!("{path}/{keyword}/{at}"), visit);
        }
    }
    for (name, inner) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        walk(inner, &format!("{path}/{name}"), visit);
    }
}

#[test]
fn no_method_has_an_untyped_schema() {
    const TYPED: [&str; 7] = ["type", "$ref", "enum", "const", "anyOf", "oneOf", "allOf"];
    let document = openrpc::document();
    let mut untyped = Vec::new();
    let mut check = |path: &str, schema: &Value| {
        let typed = schema.as_object().is_some_and(|map| TYPED.iter().any(|key| map.contains_key(*key)));
        if !typed {
            untyped.push(format!("{path}: {schema}"));
        }
    };
    for method in &document.methods {
        for param in &method.params {
            walk(
                &Value::Object(param.schema.clone()),
                &format!("{}({})", method.name, param.name),
                &mut check,
            );
        }
        walk(&Value::Object(method.result.schema.clone()), &method.name, &mut check);
    }
    for (name, schema) in &document.components.schemas {
        walk(schema, name, &mut check);
    }
    assert!(untyped.is_empty(), "{untyped:#?}");
}

#[test]
fn every_reference_leads_somewhere_and_every_method_is_described() {
    let document = openrpc::document();
    let text = serde_json::to_string(&document).unwrap();
    for reference in text.split("\"$ref\":\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let name = reference.strip_prefix("#/components/schemas/").expect(reference);
        assert!(document.components.schemas.contains_key(name), "{reference}");
    }
    let names: Vec<&str> = document.methods.iter().map(|method| method.name.as_str()).collect();
    let expected: Vec<String> = method::METHODS.iter().map(|spec| method::dotted(spec.name)).collect();
    assert_eq!(names, expected);
    assert!(document.methods.iter().all(|method| method.summary.len() > 10));
}

#[test]
fn the_document_is_a_result_of_its_own_method() {
    let document = openrpc::document();
    let discover = document.methods.iter().find(|method| method.name == "rpc.discover").unwrap();
    let result = validator(&document, discover.result.schema.clone());
    assert_valid(&result, &serde_json::to_value(&document).unwrap(), "rpc.discover");
}

#[test]
fn golden_envelopes_are_valid() {
    let schema = |root: schemars::Schema| {
        let value = root.to_value();
        jsonschema::validator_for(&value).unwrap()
    };
    let responses = schema(openrpc::generator().into_root_schema_for::<ResponseEnvelope>());
    assert_valid(&responses, &serde_json::from_str(SEED_RESPONSE).unwrap(), "the seed's response");
    for line in REPLIES.lines().filter(|line| line.contains("\"type\":\"response\"")) {
        assert_valid(&responses, &serde_json::from_str(line).unwrap(), line);
    }
    let commands = schema(openrpc::generator().into_root_schema_for::<CommandEnvelope>());
    assert_valid(&commands, &serde_json::from_str(SEED_COMMAND).unwrap(), "the seed's command");
    let events = schema(openrpc::generator().into_root_schema_for::<EventEnvelope>());
    let notifications = schema(openrpc::generator().into_root_schema_for::<EventNotification>());
    for line in EVENTS.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        match line.get("params") {
            Some(params) => assert_valid(&notifications, params, "a notification"),
            None => assert_valid(&events, &line, "an event"),
        }
    }
}
