//! Rules of the user's own. They hold for a whole process, so there is one test in this one.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use serde_json::json;
use swb_rules::redact::{
    Characters, CustomRule, CustomRuleError, CustomRules, RedactedStream, install, redact, redact_json,
    rule_ids,
};

#[test]
fn rules_of_the_users_own_find_secrets_like_the_built_in_ones() {
    let rule = CustomRule {
        id: "acme-key".to_owned(),
        prefix: "acme_".to_owned(),
        characters: Characters::Name,
        min: 16,
    };
    install(CustomRules { rule: vec![rule], names: vec!["PIN-code".to_owned()] }).unwrap();
    let key = "acme_4f6A-9921_kk27xx";
    let text = format!("deploy with {key} now; acme_corporation_of_the_world stays");
    let redacted = redact(&text);
    assert_eq!(redacted.text, "deploy with [REDACTED:CUSTOM] now; acme_corporation_of_the_world stays");
    assert_eq!(redacted.matches[0].rule, "acme-key");
    for cut in 0..text.len() {
        let mut stream = RedactedStream::new();
        let mut shown = stream.push(&text[..cut]);
        shown += &stream.push(&text[cut..]);
        shown += &stream.finish().0;
        assert_eq!(shown, redacted.text, "cut at {cut}");
    }
    let mut value = json!({ "pin_code": 4711, "note": key, "pin": 1 });
    assert_eq!(redact_json(&mut value), ["acme-key", "secret-name"]);
    assert_eq!(value, json!({ "pin_code": "[REDACTED]", "note": "[REDACTED:CUSTOM]", "pin": 1 }));
    assert!(rule_ids().any(|id| id == "acme-key"));
    assert_eq!(install(CustomRules::default()), Err(CustomRuleError::TooLate));
}
