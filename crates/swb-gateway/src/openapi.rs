//! The interface as an OpenAPI 3.1 document, committed as `schema/openapi.json`.
//!
//! It is put together by hand from schemas that `schemars` derives: OpenAPI 3.1 schemas *are* JSON Schema 2020-12, the
//! workspace derives those already, and a dozen routes need no second macro crate.

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};
use swb_proto::message::{EventItem, MessageList};

use crate::agui::RunAgentInput;
use crate::failure::ErrorBody;
use crate::messages::{PostProjectMessage, PostV1Message, Posted};
use crate::routes::{Health, Version};

/// The document, as it is committed.
pub fn text() -> String {
    let mut document = document();
    // The same text whatever order the value has, which depends on who else uses the JSON library.
    document.sort_all_objects();
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn document() -> Value {
    let mut schemas = Schemas(swb_proto::openrpc::generator());
    let mut paths = Map::new();
    paths.insert("/healthz".to_owned(), open("health", "Whether the server is well", schemas.of::<Health>()));
    paths.insert(
        "/api/v1/health".to_owned(),
        open("healthV1", "Whether the server is well", schemas.of::<Health>()),
    );
    paths.insert(
        "/api/v1/version".to_owned(),
        open("version", "Which version it is", schemas.of::<Version>()),
    );
    let text = json!({ "text/plain": { "schema": { "type": "string" } } });
    paths.insert(
        "/metrics".to_owned(),
        json!({ "get": operation("metrics", "Counts for Prometheus", &[], &text, &[]) }),
    );
    let object = json!({ "application/json": { "schema": { "type": "object" } } });
    paths.insert(
        "/api/openapi.json".to_owned(),
        json!({ "get": operation("openapi", "This document", &[], &object, &[]) }),
    );
    agui(&mut paths, &mut schemas);
    let (project, task) = (name("project_id", "query", true), name("task_id", "query", false));
    let v1 = Door { path: "/api/v1/messages", suffix: "V1", scope: &[project, task], cursor: "after" };
    v1.add(&mut paths, &mut schemas, true);
    let (project, task) = (name("project", "path", true), name("task", "path", true));
    let projects = Door {
        path: "/api/projects/{project}/messages",
        suffix: "OfProject",
        scope: std::slice::from_ref(&project),
        cursor: "since",
    };
    projects.add(&mut paths, &mut schemas, false);
    let tasks = Door {
        path: "/api/projects/{project}/tasks/{task}/messages",
        suffix: "OfTask",
        scope: &[project.clone(), task],
        cursor: "since",
    };
    tasks.add(&mut paths, &mut schemas, false);
    let error = schemas.of::<ErrorBody>();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Switchboard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The message bus and runs of agents over HTTP. Every answer carries X-Request-ID.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:14355" }],
        "security": [{ "bearer": [] }, { "apiKey": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "What `swb token` prints" },
                "apiKey": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
            },
            "responses": {
                "Error": {
                    "description": "It did not work, and why",
                    "content": { "application/json": { "schema": error } },
                },
                "Unauthorized": {
                    "description": "No token, or none that counts",
                    "content": { "application/json": { "schema": {
                        "type": "object",
                        "required": ["error", "message"],
                        "properties": { "error": { "const": "unauthorized" }, "message": { "type": "string" } },
                    } } },
                },
            },
            "schemas": schemas.0.take_definitions(true),
        },
    })
}

struct Schemas(SchemaGenerator);

impl Schemas {
    fn of<T: schemars::JsonSchema>(&mut self) -> Value {
        self.0.subschema_for::<T>().to_value()
    }
}

/// One way to a bus: list, post and stream.
struct Door<'a> {
    path: &'a str,
    suffix: &'a str,
    scope: &'a [Value],
    cursor: &'a str,
}

impl Door<'_> {
    fn add(&self, paths: &mut Map<String, Value>, schemas: &mut Schemas, names_its_bus: bool) {
        let Door { path, suffix, scope, cursor } = self;
        let with = |more: &[Value]| [scope, more].concat();
        let list = json!({ "application/json": { "schema": schemas.of::<MessageList<'_>>() } });
        let list_parameters = with(&[
            parameter(
                cursor,
                "query",
                "Only messages after the one with this id",
                &json!({ "type": "string" }),
            ),
            parameter(
                "limit",
                "query",
                "The latest so many; 5000 at most, all if absent",
                &json!({ "type": "integer", "minimum": 1 }),
            ),
        ]);
        let body =
            if names_its_bus { schemas.of::<PostV1Message>() } else { schemas.of::<PostProjectMessage>() };
        let posted = json!({ "application/json": { "schema": schemas.of::<Posted<'_>>() } });
        let in_path: Vec<Value> =
            scope.iter().filter(|parameter| parameter["in"] == "path").cloned().collect();
        let key = json!({ "type": "string", "pattern": "^[A-Za-z0-9_.:-]{1,200}$" });
        let key = parameter(
            "Idempotency-Key",
            "header",
            "Posting again under one key returns the first message",
            &key,
        );
        let mut post = operation(
            &format!("post{suffix}"),
            "Post a message",
            &[in_path, vec![key]].concat(),
            &posted,
            &["400", "403", "429"],
        );
        post["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": body } } });
        let success = post["responses"]["200"].take();
        post["responses"]["201"] = success;
        if let Some(responses) = post["responses"].as_object_mut() {
            responses.remove("200");
        }
        let errors = ["400", "403", "404"];
        let list = operation(
            &format!("list{suffix}"),
            "List messages, oldest first",
            &list_parameters,
            &list,
            &errors,
        );
        paths.insert((*path).to_owned(), json!({ "get": list, "post": post }));

        let event = json!({ "text/event-stream": {
            "schema": { "type": "string" },
            "x-event-data": schemas.of::<EventItem<'_>>(),
        } });
        let id = json!({ "type": "string" });
        let stream_parameters = with(&[
            parameter("Last-Event-ID", "header", "Go on after the message with this id", &id),
            parameter("after", "query", "The same, for a client that can send no header", &id),
            parameter(
                "tail",
                "query",
                "Begin with the last so many; the whole bus if absent",
                &json!({ "type": "integer", "minimum": 0 }),
            ),
        ]);
        let stream = operation(
            &format!("stream{suffix}"),
            "Messages as they come: events `message` (id: its id), `heartbeat`, and `lagged` to a client that fell behind",
            &stream_parameters,
            &event,
            &["400", "403", "429"],
        );
        paths.insert(format!("{path}/stream"), json!({ "get": stream }));
    }
}

/// Runs of agents for front ends.
fn agui(paths: &mut Map<String, Value>, schemas: &mut Schemas) {
    let text = json!({ "type": "string" });
    let frames = json!({ "text/event-stream": { "schema": { "type": "string" } } });
    let project =
        "The project of a new thread: its id, its name or its folder; may be absent where there is only one";
    let parameters = [
        parameter("project", "query", project, &text),
        parameter("X-Switchboard-Project", "header", project, &text),
    ];
    let mut run = operation(
        "runAgent",
        "Run an agent, or answer what it asked: events of AG-UI 1.0, and each event of the bus as CUSTOM `ui.*`",
        &parameters,
        &frames,
        &["400", "403", "404", "409", "429", "503"],
    );
    let body = schemas.of::<RunAgentInput>();
    run["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": body } } });
    paths.insert("/agui".to_owned(), json!({ "post": run }));
    let seq = json!({ "type": "integer", "minimum": 0 });
    let parameters = [
        parameter("Last-Event-ID", "header", "Go on behind the event with this number", &seq),
        parameter(
            "after",
            "query",
            "The same, for a client that can send no header; absent: from now on",
            &seq,
        ),
    ];
    let stream = operation(
        "streamUi",
        "Everything that happens as `ui.*` (id: its number), outside runs; a range that was lost is a `ui.system.notice`",
        &parameters,
        &frames,
        &["400", "403", "429"],
    );
    paths.insert("/agui/stream".to_owned(), json!({ "get": stream }));
}

fn name(name: &str, place: &str, required: bool) -> Value {
    let schema = json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,200}$" });
    let mut parameter = parameter(name, place, "The name of a folder: no separators, no `..`", &schema);
    parameter["required"] = json!(required);
    parameter
}

fn parameter(name: &str, place: &str, description: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": place, "description": description, "schema": schema })
}

fn open(id: &str, summary: &str, schema: Value) -> Value {
    let content = json!({ "application/json": { "schema": schema } });
    let mut operation = operation(id, summary, &[], &content, &[]);
    operation["security"] = json!([]);
    json!({ "get": operation })
}

fn operation(id: &str, summary: &str, parameters: &[Value], content: &Value, errors: &[&str]) -> Value {
    let mut responses = Map::new();
    responses.insert("200".to_owned(), json!({ "description": "It worked", "content": content }));
    responses.insert("401".to_owned(), json!({ "$ref": "#/components/responses/Unauthorized" }));
    for status in errors.iter().chain(&["405", "500"]) {
        responses.insert((*status).to_owned(), json!({ "$ref": "#/components/responses/Error" }));
    }
    json!({ "operationId": id, "summary": summary, "parameters": parameters, "responses": responses })
}
