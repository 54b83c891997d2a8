//! The OpenRPC document of the control socket, printed from the table of methods.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::LOCALBUS_NAMESPACE;
use crate::method::{METHODS, dotted};
use crate::rpc::{Components, ContentDescriptor, DiscoverResponse, Info, MethodObject};

/// The document that `rpc.discover` answers with.
pub fn document() -> DiscoverResponse {
    let mut generator = generator();
    let methods = METHODS
        .iter()
        .map(|spec| {
            let mut params = object((spec.params_schema)(&mut generator).to_value());
            let required: Vec<Value> =
                params.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            let properties = params.get_mut("properties").map(Value::take).map(object).unwrap_or_default();
            // By name, whatever order the JSON library keeps them in.
            let properties = BTreeMap::from_iter(properties);
            MethodObject {
                name: dotted(spec.name),
                summary: spec.summary.to_owned(),
                param_structure: "by-name".to_owned(),
                params: properties
                    .into_iter()
                    .map(|(name, schema)| ContentDescriptor {
                        required: Some(required.iter().any(|known| known == name.as_str())),
                        schema: object(schema),
                        name,
                    })
                    .collect(),
                result: ContentDescriptor {
                    name: "result".to_owned(),
                    required: None,
                    schema: object((spec.result_schema)(&mut generator).to_value()),
                },
            }
        })
        .collect();
    let schemas = generator.take_definitions(true);
    DiscoverResponse {
        openrpc: "1.3.2".to_owned(),
        info: Info { title: "Switchboard control socket".to_owned(), version: LOCALBUS_NAMESPACE.to_owned() },
        methods,
        components: Components { schemas },
    }
}

/// Schemas refer to each other through `#/components/schemas/`, where OpenRPC and OpenAPI both look.
pub fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .into_generator()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => unreachable!("a schema of a typed word is an object, not {other}"),
    }
}
