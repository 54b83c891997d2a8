//! The document: committed, complete, and true.

use serde_json::Value;

use crate::house::House;

#[test]
fn the_committed_document_is_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/openapi.json");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == swb_gateway::openapi::text(),
        "schema/openapi.json is out of date: run `cargo xtask schema`"
    );
}

#[test]
fn it_is_served_and_every_path_in_it_is_a_route() {
    let house = House::new();
    let served = house.get("/api/openapi.json");
    assert_eq!(served.header("content-type"), Some("application/json"));
    let document = served.json();
    assert_eq!(document["openapi"], "3.1.0");
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path = path.replace("{project}", "p").replace("{task}", "t");
        for method in operations.as_object().unwrap().keys() {
            if path.ends_with("/stream") {
                continue;
            }
            let status = house.ask(&method.to_uppercase(), &path, &[], None).status;
            assert!(![404, 405].contains(&status), "{method} {path} gave {status}");
        }
        assert_eq!(house.ask("PUT", &path, &[], None).status, 405, "{path}");
    }
}

#[test]
fn every_reference_in_it_leads_somewhere() {
    let document: Value = serde_json::from_str(&swb_gateway::openapi::text()).unwrap();
    fn walk<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| walk(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| walk(value, found)),
            _ => {}
        }
    }
    let mut references = Vec::new();
    walk(&document, &mut references);
    assert!(references.len() > 10);
    for reference in references {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
}
