//! The table of methods: names, types, documentation. A method that is not in it does not exist outside the process.
//!
//! The bus name is slashed (`events/subscribe`), the wire name dotted (`events.subscribe`); both mean the same. The table
//! turns the bare object of a line into the typed payload of its method and back, and `rpc.discover` is printed from it.

use std::collections::HashMap;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::{BusError, ERR_INTERNAL, ERR_INVALID_PARAMS};
use crate::{
    BusPayload, approval, audit, comms, control, events, grant, policy, project, rpc, run, session, workspace,
};

/// One request and its answer, as types.
pub trait Method {
    /// The slashed name.
    const NAME: &'static str;
    /// One sentence for the documentation.
    const SUMMARY: &'static str;
    /// What it takes.
    type Params: Serialize + DeserializeOwned + JsonSchema + Into<BusPayload> + TryFrom<BusPayload>;
    /// What it answers.
    type Response: Serialize + DeserializeOwned + JsonSchema + Into<BusPayload> + TryFrom<BusPayload>;
}

/// A row of the table.
#[derive(Clone, Copy)]
pub struct MethodSpec {
    /// The slashed name.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The parameters' schema.
    pub params_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The result's schema.
    pub result_schema: fn(&mut SchemaGenerator) -> Schema,
    decode_params: fn(&str) -> Result<BusPayload, serde_json::Error>,
    decode_result: fn(&str) -> Result<BusPayload, serde_json::Error>,
}

impl std::fmt::Debug for MethodSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MethodSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

impl MethodSpec {
    const fn of<M: Method>() -> Self {
        MethodSpec {
            name: M::NAME,
            summary: M::SUMMARY,
            params_schema: <M::Params as JsonSchema>::json_schema,
            result_schema: <M::Response as JsonSchema>::json_schema,
            decode_params: |text| serde_json::from_str::<M::Params>(text).map(Into::into),
            decode_result: |text| serde_json::from_str::<M::Response>(text).map(Into::into),
        }
    }

    /// The payload of `params`, or why they do not fit. Absent parameters are the empty object.
    pub fn decode_params(&self, params: Option<&RawValue>) -> Result<BusPayload, BusError> {
        (self.decode_params)(params.map_or("{}", RawValue::get)).map_err(|error| {
            let message =
                format!("{} does not take these parameters: {}", dotted(self.name), place_free(&error));
            BusError::new(ERR_INVALID_PARAMS, message)
        })
    }

    /// The payload of a result that came over the wire.
    pub fn decode_result(&self, result: &RawValue) -> Result<BusPayload, BusError> {
        (self.decode_result)(result.get()).map_err(|error| {
            let message =
                format!("the answer to {} is not of its type: {}", dotted(self.name), place_free(&error));
            BusError::new(ERR_INTERNAL, message)
        })
    }
}

/// A serde message without its "at line 1 column 9": parameters are a part of a line, so the place would mislead.
fn place_free(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.split(" at line ").next().unwrap_or(&message).to_owned()
}

/// Every method of the wire, in the order of the documentation.
pub const METHODS: &[MethodSpec] = &[
    MethodSpec::of::<control::Hello>(),
    MethodSpec::of::<control::Status>(),
    MethodSpec::of::<control::Shutdown>(),
    MethodSpec::of::<events::Subscribe>(),
    MethodSpec::of::<events::Unsubscribe>(),
    MethodSpec::of::<events::Read>(),
    MethodSpec::of::<rpc::Discover>(),
    MethodSpec::of::<control::Ping>(),
    MethodSpec::of::<control::Cancel>(),
    MethodSpec::of::<comms::Agents>(),
    MethodSpec::of::<comms::AgentsEchoHandle>(),
    MethodSpec::of::<comms::LlmComplete>(),
    MethodSpec::of::<workspace::Create>(),
    MethodSpec::of::<workspace::Open>(),
    MethodSpec::of::<workspace::Close>(),
    MethodSpec::of::<workspace::Delete>(),
    MethodSpec::of::<workspace::List>(),
    MethodSpec::of::<project::Clone>(),
    MethodSpec::of::<project::Init>(),
    MethodSpec::of::<project::List>(),
    MethodSpec::of::<session::Create>(),
    MethodSpec::of::<session::Attach>(),
    MethodSpec::of::<session::Terminate>(),
    MethodSpec::of::<session::Get>(),
    MethodSpec::of::<session::List>(),
    MethodSpec::of::<run::Start>(),
    MethodSpec::of::<run::Cancel>(),
    MethodSpec::of::<run::Steer>(),
    MethodSpec::of::<run::FollowUp>(),
    MethodSpec::of::<run::Answer>(),
    MethodSpec::of::<run::Get>(),
    MethodSpec::of::<run::List>(),
    MethodSpec::of::<approval::Resolve>(),
    MethodSpec::of::<approval::List>(),
    MethodSpec::of::<approval::Get>(),
    MethodSpec::of::<approval::Wait>(),
    MethodSpec::of::<grant::List>(),
    MethodSpec::of::<grant::Revoke>(),
    MethodSpec::of::<audit::Hold>(),
    MethodSpec::of::<audit::Release>(),
    MethodSpec::of::<audit::Purge>(),
    MethodSpec::of::<policy::Decide>(),
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static MethodSpec>> =
    LazyLock::new(|| METHODS.iter().map(|spec| (spec.name, spec)).collect());

/// The row of a slashed name. `agents/<agent>/<action>` has the types of `agents`: who is asked does not change the words.
pub fn lookup(method: &str) -> Option<&'static MethodSpec> {
    BY_NAME.get(method).copied().or_else(|| {
        let family = method.split('/').next().filter(|first| *first == comms::Agents::NAME)?;
        BY_NAME.get(family).copied()
    })
}

/// The first segment: which subsystem a method belongs to.
pub fn prefix(method: &str) -> &str {
    method.split('/').next().unwrap_or(method)
}

/// The slashed form of a wire name, if it follows `[A-Za-z0-9_$]+([./][A-Za-z0-9_]+)*`.
pub fn slashed(wire_name: &str) -> Option<String> {
    // One copy, changed in place: this runs for every line.
    let mut name = wire_name.as_bytes().to_owned();
    let (mut in_first_segment, mut at_segment_start) = (true, true);
    for byte in &mut name {
        match *byte {
            b'.' | b'/' if !at_segment_start => {
                *byte = b'/';
                (in_first_segment, at_segment_start) = (false, true);
            }
            b'$' if in_first_segment => at_segment_start = false,
            word if word.is_ascii_alphanumeric() || word == b'_' => at_segment_start = false,
            _ => return None,
        }
    }
    if at_segment_start { None } else { String::from_utf8(name).ok() }
}

/// The wire form of a bus name. The system methods keep their slash: `$/cancel`.
pub fn dotted(method: &str) -> String {
    if method.starts_with('$') { method.to_owned() } else { method.replace('/', ".") }
}

/// Whether an envelope for this method may leave out `workspace_id`.
pub fn workspace_is_optional(method: &str) -> bool {
    matches!(prefix(method), "approval" | "audit" | "bus" | "events" | "grant" | "rpc" | "$")
        || matches!(method, "workspace/create" | "workspace/list")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dots_and_slashes_mean_the_same() {
        assert_eq!(slashed("session.create").as_deref(), Some("session/create"));
        assert_eq!(slashed("agents/echo.handle").as_deref(), Some("agents/echo/handle"));
        assert_eq!(slashed("$/cancel").as_deref(), Some("$/cancel"));
        for bad in ["", ".", "a.", ".a", "a..b", "a b", "a-b", "a/$b", "ä", "a/", "/"] {
            assert_eq!(slashed(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_agent_and_action_has_the_words_of_agents() {
        for name in ["agents", "agents/echo", "agents/echo/handle", "agents/ada/review"] {
            assert!(lookup(name).is_some(), "{name}");
        }
        for name in ["agentsx", "agent", "llm", "llm/other", ""] {
            assert!(lookup(name).is_none(), "{name}");
        }
    }

    #[test]
    fn names_are_unique_and_well_formed() {
        assert_eq!(BY_NAME.len(), METHODS.len());
        for spec in METHODS {
            assert_eq!(slashed(&dotted(spec.name)).as_deref(), Some(spec.name));
        }
    }

    #[test]
    fn wrong_parameters_name_the_method_and_the_field() {
        let raw = RawValue::from_string(r#"{"channel_id":"c"}"#.into()).unwrap();
        let error = lookup("llm/complete").unwrap().decode_params(Some(&raw)).unwrap_err();
        assert_eq!(error.code, ERR_INVALID_PARAMS);
        assert_eq!(error.message, "llm.complete does not take these parameters: missing field `content`");
    }

    proptest! {
        #[test]
        fn the_grammar_is_the_documented_one(name in "[ab$./_ ]{0,8}") {
            let bytes = name.as_bytes();
            let mut segments = name.split(['.', '/']);
            let first = segments.next().unwrap();
            let ok = |s: &str, dollar: bool| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || (dollar && b == b'$'));
            let expected = !bytes.is_empty() && ok(first, true) && segments.all(|s| ok(s, false));
            prop_assert_eq!(slashed(&name).is_some(), expected);
        }
    }
}
