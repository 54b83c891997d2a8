//! The interface about itself: `rpc.discover`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::comms::Empty;
use crate::method::Method;
use crate::payload::body;

/// An OpenRPC document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiscoverResponse {
    /// The version of OpenRPC.
    pub openrpc: String,
    /// Title and version of the interface.
    pub info: Info,
    /// Every method.
    pub methods: Vec<MethodObject>,
    /// Schemas that the methods refer to.
    pub components: Components,
}

/// Title and version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Info {
    /// The interface's name.
    pub title: String,
    /// The protocol namespace.
    pub version: String,
}

/// One method, as OpenRPC describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MethodObject {
    /// The dotted name.
    pub name: String,
    /// One sentence.
    pub summary: String,
    /// Parameters are given by name.
    pub param_structure: String,
    /// One entry per parameter.
    pub params: Vec<ContentDescriptor>,
    /// What it answers.
    pub result: ContentDescriptor,
}

/// A named, typed value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentDescriptor {
    /// Its name.
    pub name: String,
    /// Whether it must be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Its JSON Schema.
    pub schema: Map<String, Value>,
}

/// Shared schemas.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Components {
    /// By name.
    pub schemas: Map<String, Value>,
}

body! {
    /// Words of `rpc/*`.
    RpcBody in Rpc {
        /// The interface.
        Document(DiscoverResponse),
    }
}

/// `rpc/discover`.
#[derive(Debug)]
pub enum Discover {}
impl Method for Discover {
    const NAME: &'static str = "rpc/discover";
    const SUMMARY: &'static str = "The interface as an OpenRPC document";
    type Params = Empty;
    type Response = DiscoverResponse;
}
