//! MCP servers behind the real agent: a real one, one that misbehaves, and what the gate makes of them.

mod ending;
mod everything;
mod failures;
mod gate;
pub(crate) mod hostile;
mod settings;

use serde_json::{Value, json};
use testkit::World;

use crate::child::{Child, world};

/// A world whose user has this configuration.
fn configured(config: &str) -> World {
    let world = world();
    std::fs::create_dir_all(world.paths().config).unwrap();
    std::fs::write(world.paths().config_file(), config).unwrap();
    world
}

/// An agent that may do anything.
fn agent(world: &World) -> Child {
    Child::start(world, &["--tool-mode", "full"])
}

/// Calls a tool without a model. Returns all frames up to the response, which is the last.
#[track_caller]
fn call(child: &mut Child, tool: &str, args: Value) -> Vec<Value> {
    child.send(json!({ "type": "tool_call", "id": "c", "name": tool, "args": args }));
    child.until_response("c")
}

/// The words of a call that worked.
#[track_caller]
fn result(child: &mut Child, tool: &str, args: Value) -> String {
    let response = call(child, tool, args).pop().unwrap();
    assert_eq!(response["ok"], true, "{response}");
    response["result"].as_str().unwrap().to_owned()
}

/// The words of a call that did not, and its record.
#[track_caller]
fn failure(child: &mut Child, tool: &str, args: Value) -> (String, Value) {
    let frames = call(child, tool, args);
    let response = &frames[frames.len() - 1];
    assert_eq!(response["ok"], false, "{response}");
    (response["error"].as_str().unwrap().to_owned(), record(&frames))
}

/// The one record among the frames.
#[track_caller]
fn record(frames: &[Value]) -> Value {
    let records: Vec<_> = frames.iter().filter(|frame| frame["type"] == "mcp_call").collect();
    assert_eq!(records.len(), 1, "one call, one record: {frames:#?}");
    records[0].clone()
}

/// Waits until a server is said to be in this state.
#[track_caller]
fn until_state(child: &mut Child, server: &str, state: &str) -> Value {
    let fits =
        |frame: &Value| frame["type"] == "mcp_server" && frame["server"] == server && frame["state"] == state;
    child.until(&format!("{server} to be {state}"), fits).pop().unwrap()
}

#[track_caller]
fn tools(child: &mut Child) -> Vec<String> {
    let mut list = child.ask(json!({ "type": "tools_list", "id": "l" }));
    let tools: Vec<Value> = serde_json::from_value(list["tools"].take()).unwrap();
    tools.into_iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}
