use proptest::prelude::*;

use super::*;

fn rejected(line: &str) -> Rejection {
    read(line.as_bytes()).expect_err(line)
}

const COMMAND: &str = r#"{"id":"req_1","type":"command","method":"session.create","ts":"2026-02-26T00:00:00.000Z","actor":{"kind":"user","id":"user_local"},"workspace_id":"ws_123","payload":{"project_id":"proj_123"}}"#;

/// `COMMAND` with one field replaced by other JSON text, or removed.
fn command_with(field: &str, value: Option<&str>) -> String {
    let mut object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(COMMAND).unwrap();
    match value {
        Some(value) => object.insert(field.to_owned(), serde_json::from_str(value).unwrap()),
        None => object.remove(field),
    };
    serde_json::to_string(&object).unwrap()
}

#[test]
fn the_seeds_command_is_a_call() {
    let call = read(COMMAND.as_bytes()).unwrap();
    assert_eq!(
        (call.dialect, call.id, call.method.as_str()),
        (Dialect::Envelope, Some("\"req_1\""), "session/create")
    );
    let meta = call.meta.unwrap();
    assert_eq!(meta.actor.as_ref().unwrap().id.as_str(), "user_local");
    assert_eq!(meta.workspace_id.as_ref().unwrap().as_str(), "ws_123");
    assert_eq!(call.params.unwrap().get(), r#"{"project_id":"proj_123"}"#);
}

#[test]
fn a_remembered_context_changes_no_judgement() {
    let huge = format!(r#"{{"kind":"user","id":"a","note":"{}"}}"#, "x".repeat(2000));
    let lines = [
        COMMAND.to_owned(),
        COMMAND.to_owned(),
        command_with("lane_id", Some(r#""ws_123""#)),
        command_with("session_id", Some(r#""ws_123""#)),
        command_with("actor", Some(r#"{"kind":"agent","id":"ada"}"#)),
        command_with("actor", Some(r#"{"kind":""}"#)),
        command_with("actor", Some(&huge)),
        command_with("actor", Some(&huge)),
        command_with("workspace_id", None),
        command_with("workspace_id", Some(r#""""#)),
        command_with("correlation_id", Some(r#""cor_1""#)),
        command_with("envelope_id", Some(r#""a/b""#)),
        COMMAND.to_owned(),
    ];
    // Every line after every other, so that each is judged with each other's context in memory.
    for (first, second) in lines.iter().flat_map(|first| lines.iter().map(move |second| (first, second))) {
        let mut last = LastContext::default();
        for line in [first, second, second] {
            let (alone, after) = (read(line.as_bytes()), read_after(&mut last, line.as_bytes()));
            let meta = |judged: Result<Call<'_>, Rejection>| judged.map(|call| call.meta);
            assert_eq!(meta(after), meta(alone), "{line} after {first}");
        }
    }
    let mut last = LastContext::default();
    let mut meta = || read_after(&mut last, COMMAND.as_bytes()).unwrap().meta.unwrap();
    assert!(Arc::ptr_eq(&meta(), &meta()), "it is not built twice");
}

#[test]
fn a_json_rpc_request_keeps_its_id_as_it_was_written() {
    for (id, raw) in [
        ("1", "1"),
        ("\"a\"", "\"a\""),
        ("null", "null"),
        ("-2.5e3", "-2.5e3"),
        ("\"\\u0061\"", "\"\\u0061\""),
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"$/ping"}}"#);
        assert_eq!(read(line.as_bytes()).unwrap().id, Some(raw));
    }
    assert_eq!(read(br#"{"jsonrpc":"2.0","method":"$/ping"}"#).unwrap().id, None, "no id is a notification");
}

#[test]
fn the_examples_of_the_json_rpc_specification_are_answered_by_the_book() {
    let invalid = rejected(r#"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#);
    assert_eq!((invalid.error.code, invalid.id), (ERR_INVALID_REQUEST, None));
    let garbled = rejected(r#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#);
    assert_eq!((garbled.error.code, garbled.id), (ERR_PARSE, None));
    for batch in ["[]", "[1,2,3]", r#"[{"jsonrpc":"2.0","id":1,"method":"$/ping"}]"#] {
        let rejection = rejected(batch);
        assert_eq!(
            (rejection.error.code, rejection.error.reason()),
            (ERR_INVALID_REQUEST, "BATCH_NOT_SUPPORTED")
        );
    }
    assert_eq!(rejected("[1,").error.code, ERR_PARSE);
}

#[test]
fn a_line_of_no_known_dialect_gets_a_json_rpc_error_with_id_null() {
    for line in ["{}", r#"{"id":1,"method":"x"}"#, "null", "1", "\"x\"", "true"] {
        let rejection = rejected(line);
        assert_eq!(
            (rejection.dialect, rejection.id, rejection.error.code),
            (Dialect::JsonRpc, None, ERR_INVALID_REQUEST),
            "{line}"
        );
    }
    for line in ["", "{", "nonsense", "{}}", "\u{feff}{}"] {
        assert_eq!(rejected(line).error.code, ERR_PARSE, "{line:?}");
    }
    assert_eq!(
        read(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}").unwrap_err().error.reason(),
        "INVALID_UTF8"
    );
}

#[test]
fn positional_parameters_and_bad_versions_are_refused_with_the_id() {
    let positional = rejected(r#"{"jsonrpc":"2.0","id":7,"method":"agents","params":[1]}"#);
    assert_eq!((positional.error.code, positional.id.as_deref()), (ERR_INVALID_PARAMS, Some("7")));
    let old = rejected(r#"{"jsonrpc":"1.0","id":7,"method":"agents"}"#);
    assert_eq!((old.error.reason(), old.id.as_deref()), ("INVALID_JSONRPC_VERSION", Some("7")));
    let odd_id = rejected(r#"{"jsonrpc":"2.0","id":{"a":1},"method":"agents"}"#);
    assert_eq!((odd_id.error.reason(), odd_id.id), ("INVALID_ID", None));
}

#[test]
fn each_defect_of_a_command_has_its_own_reason() {
    let cases: &[(&str, Option<&str>, &str)] = &[
        ("type", Some("\" \""), "MISSING_REQUIRED_FIELD"),
        ("type", Some("\"query\""), "INVALID_ENVELOPE_TYPE"),
        ("type", Some("7"), "INVALID_ENVELOPE_TYPE"),
        ("type", Some("\"event\""), "NOT_A_COMMAND"),
        ("type", Some("\"response\""), "NOT_A_COMMAND"),
        ("id", None, "MISSING_REQUIRED_FIELD"),
        ("id", Some("\"  \""), "MISSING_REQUIRED_FIELD"),
        ("id", Some("5"), "MISSING_REQUIRED_FIELD"),
        ("ts", None, "MISSING_REQUIRED_FIELD"),
        ("ts", Some("\"2026-02-26T00:00:00\""), "INVALID_TIMESTAMP"),
        ("ts", Some("\"yesterday\""), "INVALID_TIMESTAMP"),
        ("ts", Some("1772064000"), "MISSING_REQUIRED_FIELD"),
        ("method", None, "MISSING_REQUIRED_FIELD"),
        ("method", Some("\"\""), "MISSING_REQUIRED_FIELD"),
        ("method", Some("\"a b\""), "INVALID_METHOD"),
        ("payload", None, "MISSING_REQUIRED_FIELD"),
        ("payload", Some("[]"), "VALIDATION_ERROR"),
        ("actor", None, "MISSING_REQUIRED_FIELD"),
        ("actor", Some("[\"user\",\"user_local\"]"), "MISSING_REQUIRED_FIELD"),
        ("actor", Some("{\"kind\":\"user\"}"), "MISSING_REQUIRED_FIELD"),
        ("actor", Some("{\"kind\":\"user\",\"id\":\"\"}"), "MISSING_REQUIRED_FIELD"),
        ("workspace_id", None, "MISSING_CONTEXT_ID"),
        ("workspace_id", Some("\"\""), "MISSING_CONTEXT_ID"),
        ("session_id", Some("5"), "MISSING_CONTEXT_ID"),
        ("correlation_id", Some("\" \""), "MISSING_CONTEXT_ID"),
        ("terminal_id", Some("\"a/../b\""), "INVALID_CONTEXT_ID"),
    ];
    for (field, value, reason) in cases {
        let rejection = rejected(&command_with(field, *value));
        assert_eq!(rejection.dialect, Dialect::Envelope, "{field} {value:?}");
        assert_eq!(rejection.error.reason(), *reason, "{field} {value:?}");
        assert_eq!(rejection.id.is_some(), *field != "id", "{field} {value:?}");
    }
}

#[test]
fn what_is_absent_or_null_or_new_is_fine() {
    for (field, value) in [
        ("session_id", "null"),
        ("lane_id", "null"),
        ("correlation_id", "null"),
        ("novelty", "{\"x\":1}"),
        ("ts", "\"2026-02-26T00:00:00+00:00\""),
    ] {
        assert!(read(command_with(field, Some(value)).as_bytes()).is_ok(), "{field}");
    }
    let line = command_with("method", Some("\"bus.hello\""));
    let mut object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line).unwrap();
    object.remove("workspace_id");
    assert!(
        read(serde_json::to_string(&object).unwrap().as_bytes()).is_ok(),
        "the bus itself belongs to no workspace"
    );
}

#[test]
fn a_payload_at_the_limit_passes_and_one_byte_more_does_not() {
    let filled = |bytes: usize| {
        let payload = format!(r#"{{"x":"{}"}}"#, "a".repeat(bytes - 8));
        assert_eq!(payload.len(), bytes);
        (
            COMMAND.replace(r#"{"project_id":"proj_123"}"#, &payload),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"agents","params":{payload}}}"#),
        )
    };
    let (envelope, json_rpc) = filled(MAX_PAYLOAD_BYTES);
    assert!(read(envelope.as_bytes()).is_ok() && read(json_rpc.as_bytes()).is_ok());
    let (envelope, json_rpc) = filled(MAX_PAYLOAD_BYTES + 1);
    for (line, id) in [(envelope, "\"req_1\""), (json_rpc, "1")] {
        let rejection = rejected(&line);
        assert_eq!((rejection.error.reason(), rejection.id.as_deref()), ("BACKPRESSURE", Some(id)));
    }
}

#[test]
fn the_context_of_a_json_rpc_call_stands_in_meta() {
    let call = read(br#"{"jsonrpc":"2.0","id":1,"method":"agents","params":{"_meta":{"workspace_id":"ws_1","actor":{"kind":"agent","id":"ada"},"progressToken":4}}}"#).unwrap();
    let meta = call.meta.unwrap();
    assert_eq!(meta.workspace_id.as_ref().unwrap().as_str(), "ws_1");
    assert_eq!(meta.actor.as_ref().unwrap().kind.as_str(), "agent");
    let bad =
        rejected(r#"{"jsonrpc":"2.0","id":1,"method":"agents","params":{"_meta":{"workspace_id":""}}}"#);
    assert_eq!(bad.error.reason(), "MISSING_CONTEXT_ID");
    assert!(read(br#"{"jsonrpc":"2.0","id":1,"method":"agents","params":{"content":"the text \"_meta\" alone is no context"}}"#).unwrap().meta.is_none());
    for (meta, correlation) in [
        (
            r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}"#,
            Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ),
        (r#"{"traceparent":"nonsense"}"#, None),
        (r#"{"traceparent":7}"#, None),
        (
            r#"{"correlation_id":"mine","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}"#,
            Some("mine"),
        ),
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"agents","params":{{"_meta":{meta}}}}}"#);
        let call = read(line.as_bytes()).unwrap();
        let meta = call.meta.unwrap();
        assert_eq!(meta.correlation_id.as_ref().map(|id| id.as_str()), correlation, "{line}");
    }
}

#[test]
fn a_line_that_was_cut_is_still_answered_in_kind() {
    let rejection = oversized(br#"{"id":"req_9","type":"command","payload":{"x":"aaaa"#, 10);
    assert_eq!(
        (rejection.dialect, rejection.id.as_deref(), rejection.error.reason()),
        (Dialect::Envelope, Some("\"req_9\""), "BACKPRESSURE")
    );
    let rejection = oversized(br#"{"jsonrpc":"2.0","id":4,"params":{"x":"aaaa"#, 10);
    assert_eq!((rejection.dialect, rejection.id.as_deref()), (Dialect::JsonRpc, Some("4")));
    assert_eq!(oversized(b"aaaaaaaaaaaaaa\xff", 10).id, None);
    let correlation = |head: &[u8]| oversized(head, 10).correlation.map(|id| id.to_string());
    let head = br#"{"correlation_id":"cor_1","type":"command","payload":{"x":"aaaa"#;
    assert_eq!(correlation(head).as_deref(), Some("cor_1"));
    assert_eq!(correlation(br#"{"correlation_id":7,"id":"req_9","type":"command","payload":{"x"#), None);
    assert_eq!(correlation(br#"{"correlation_id":"cor_1","jsonrpc":"2.0","params":{"x"#), None);
}

#[test]
fn deep_nesting_is_no_way_to_fell_the_daemon() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"agents","params":{{"x":{}{}}}}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    let _ = read(deep.as_bytes());
}

fn jsonish() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "\\PC{0,12}".prop_map(Into::into),
        prop_oneof![
            Just("command"),
            Just("2.0"),
            Just("event"),
            Just("bus.hello"),
            Just("2026-02-26T00:00:00Z")
        ]
        .prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::hash_map(field_name(), inner, 0..8)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

fn field_name() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "jsonrpc",
            "type",
            "id",
            "method",
            "params",
            "payload",
            "ts",
            "actor",
            "workspace_id",
            "_meta",
            "kind",
            "correlation_id"
        ])
        .prop_map(str::to_owned),
        "[a-z]{0,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_are_judged_without_a_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&line);
        let _ = oversized(&line, 10);
    }

    #[test]
    fn any_json_is_judged_and_a_rejection_can_be_answered(value in jsonish(), cut in 0usize..400) {
        let line = value.to_string();
        if let Err(rejection) = read(line.as_bytes())
            && let Some(id) = rejection.id {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&id).is_ok(), "an id we echo is JSON: {}", id);
            }
        let cut = &line.as_bytes()[..cut.min(line.len())];
        let _ = read(cut);
        if let Some(id) = oversized(cut, 10).id {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&id).is_ok(), "{}", id);
        }
    }

    #[test]
    fn a_command_with_one_odd_field_never_loses_a_sound_id(field in field_name(), value in jsonish()) {
        prop_assume!(field != "id" && field != "jsonrpc");
        let line = command_with(&field, Some(&value.to_string()));
        let mut correlated: serde_json::Value = serde_json::from_str(&line).unwrap();
        correlated["correlation_id"] = "cor_1".into();
        for (line, expected) in [(line, None), (correlated.to_string(), Some("cor_1"))] {
            let Err(rejection) = read(line.as_bytes()) else { continue };
            let null_type = field == "type" && value.is_null();
            prop_assert!(rejection.id.as_deref() == Some("\"req_1\"") || null_type, "{:?}", rejection);
            let correlation = rejection.correlation.as_ref().map(|id| id.as_str());
            prop_assert!(expected.is_none() || correlation == expected || null_type, "{:?}", rejection);
        }
    }
}
