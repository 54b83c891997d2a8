//! Bundles: what is in them, that they prove it, and that nothing in them can be changed.

use proptest::prelude::*;
use serde_json::{Value, json};
use swb_journal::audit::{
    AuditLog, AuditOptions, BundleFault, Entry, ExportError, Hold, HoldScope, Manifest, PurgeOrder,
    Redaction, check_bundle, export,
};

use crate::support::{World, actor, at, days, end, event, small, start};

/// Rules that know one secret.
struct Rules(&'static [&'static str]);

impl Redaction for Rules {
    fn rules(&self) -> Vec<String> {
        self.0.iter().map(|rule| (*rule).to_owned()).collect()
    }

    fn redact(&self, value: &mut Value) -> Vec<String> {
        let text = value.to_string();
        let clean = text.replace("hunter2", "[REDACTED:PASSWORD]");
        if text == clean {
            return Vec::new();
        }
        *value = serde_json::from_str(&clean).unwrap();
        vec!["password".to_owned()]
    }
}

const RULES: Rules = Rules(&["password", "api_key"]);

fn bundle(world: &World, session: &str) -> Result<(String, Manifest), ExportError> {
    let mut out = Vec::new();
    let manifest = export(&world.reader(), session, &RULES, at(99), &mut out)?;
    Ok((String::from_utf8(out).unwrap(), manifest))
}

fn world(segment_bytes: u64) -> World {
    let world = World::new();
    let log = world.open_with(small(segment_bytes)).0;
    for n in 0..30 {
        let entry = Entry { redacted: vec!["url_password".to_owned()], ..start(n) };
        let of = log.append_now(&entry).unwrap().number;
        log.append_now(&event(n)).unwrap();
        log.append_now(&end(of, &entry)).unwrap();
    }
    // Segments without the session at the end.
    for n in 0..20 {
        log.append_now(&Entry { session_id: Some("sess_other".to_owned()), ..event(n) }).unwrap();
    }
    world
}

#[test]
fn a_bundle_holds_the_session_and_proves_it() {
    for segment_bytes in [700, 3000, 1 << 20] {
        let world = world(segment_bytes);
        let (text, manifest) = bundle(&world, "sess_1").unwrap();
        assert_eq!(check_bundle(&text).as_ref(), Ok(&manifest));
        assert_eq!((manifest.count, manifest.altered), (30, 0));
        assert_eq!(Some(&manifest.head), world.reader().head().unwrap().as_ref());
        assert_eq!(manifest.redaction_rules, ["password", "api_key"]);
        assert_eq!(manifest.rules_applied, ["url_password"]);
        let value: Value = serde_json::from_str(&text).unwrap();
        let records = value["records"].as_array().unwrap();
        assert_eq!(records.len(), 30);
        assert!(records.iter().all(|record| record["session_id"] == "sess_1"));
        // Nothing of other sessions is in it but digests.
        assert!(!text.contains("sess_2") && !text.contains("sess_other"));
    }
}

#[test]
fn a_bundle_is_refused_without_rules_and_for_an_unknown_session() {
    let world = world(3000);
    let mut out = Vec::new();
    let refused = export(&world.reader(), "sess_1", &Rules(&[]), at(0), &mut out);
    assert!(matches!(refused, Err(ExportError::NoRules)), "{refused:?}");
    assert!(out.is_empty());
    assert!(matches!(bundle(&world, "sess_77"), Err(ExportError::NoRecords(_))));
    // An id that only occurs somewhere is no session.
    assert!(matches!(bundle(&world, "session.create"), Err(ExportError::NoRecords(_))));
}

#[test]
fn a_secret_that_only_the_rules_of_today_know_does_not_leave() {
    let world = World::new();
    let log = world.open_with(small(2000)).0;
    for n in 0..9 {
        let args = json!({ "deep": [{ "command": format!("login -p hunter2 {n}") }] });
        log.append_now(&Entry { args: Some(args.into()), ..start(n) }).unwrap();
    }
    let (text, manifest) = bundle(&world, "sess_1").unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!((manifest.count, manifest.altered), (3, 3));
    assert_eq!(manifest.rules_applied, ["password"]);
    assert_eq!(check_bundle(&text), Ok(manifest));
}

#[test]
fn a_bundle_goes_over_what_was_purged() {
    let world = World::new();
    let log = AuditLog::open(&world.folder(), AuditOptions::default(), days(0)).unwrap().0;
    for day in 0..=60 {
        let session = if [3, 4, 9, 50].contains(&day) { "sess_kept" } else { "sess_other" };
        log.append_now(&Entry { at: days(day), session_id: Some(session.to_owned()), ..event(1) }).unwrap();
    }
    let scope = HoldScope::Session { session_id: "sess_kept".to_owned() };
    let hold = Hold { id: "hold_1".to_owned(), scope, reason: "a case".to_owned() };
    log.append_now(&Entry::hold(days(60), actor(), hold)).unwrap();
    let order = PurgeOrder { by: actor(), reason: "monthly".to_owned(), retention_days: 30, now: days(60) };
    assert_eq!(log.purge(&order).unwrap().kept, 3);
    let (text, manifest) = bundle(&world, "sess_kept").unwrap();
    assert_eq!(manifest.count, 4);
    assert_eq!(check_bundle(&text), Ok(manifest));
    // Without the record of the purge the gap is a hole.
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["records"].as_array_mut().unwrap().pop();
    assert!(check_bundle(&value.to_string()).is_err());
}

#[test]
fn a_damaged_log_makes_no_bundle() {
    let world = world(3000);
    let path = &world.segments()[2];
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, text.replacen("cor_", "cor-", 1)).unwrap();
    assert!(matches!(bundle(&world, "sess_1"), Err(ExportError::Read(_))));
}

#[test]
fn a_bundle_of_another_version_is_not_read() {
    let (text, _) = bundle(&world(3000), "sess_1").unwrap();
    let fault = check_bundle(&text.replace("bundle/1", "bundle/2")).unwrap_err();
    assert!(matches!(fault, BundleFault::Unreadable(_)), "{fault}");
    assert!(matches!(check_bundle("{}"), Err(BundleFault::Unreadable(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn a_bundle_that_was_changed_is_not_believed(at in any::<usize>(), byte in 0x20u8..0x7f, how in 0..3) {
        use std::sync::LazyLock;
        static BUNDLE: LazyLock<(String, Manifest)> = LazyLock::new(|| bundle(&world(3000), "sess_1").unwrap());
        let (text, manifest) = &*BUNDLE;
        let from = text.find("\"records\"").unwrap();
        let mut bytes = text.clone().into_bytes();
        let at = from + at % (bytes.len() - from);
        match how {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ => drop(bytes.remove(at)),
        }
        let Ok(changed) = String::from_utf8(bytes) else { return Ok(()) };
        // White space between the parts of the document says nothing.
        let says_the_same = |one: &str, other: &str| {
            let value = |text: &str| serde_json::from_str::<Value>(text).ok();
            value(one).is_some() && value(one) == value(other)
        };
        match check_bundle(&changed) {
            Ok(believed) => prop_assert!(says_the_same(text, &changed) && believed == *manifest),
            Err(_) => prop_assert!(changed != *text),
        }
    }

    #[test]
    fn records_that_are_left_out_moved_or_put_in_twice_are_not_believed(one in any::<usize>(), other in any::<usize>(), how in 0..4) {
        use std::sync::LazyLock;
        static BUNDLE: LazyLock<String> = LazyLock::new(|| bundle(&world(3000), "sess_1").unwrap().0);
        let text = &*BUNDLE;
        let mut lines: Vec<&str> = text.lines().collect();
        let proof = lines.iter().position(|line| line.starts_with("],")).unwrap();
        // The lines of records end in a comma, but for the last.
        let at = 2 + one % (proof - 3);
        let to = 2 + other % (proof - 3);
        match how {
            0 => drop(lines.remove(at)),
            1 => lines.insert(to, lines[at]),
            2 => {
                let parts = proof + 2..lines.len() - 1;
                let at = parts.start + one % (parts.len() - 1);
                lines.remove(at);
            }
            _ => {
                // Another record of the same log in place of one.
                lines[at] = lines[to];
            }
        }
        let changed = lines.join("\n");
        prop_assume!(changed.trim() != text.trim());
        prop_assert!(check_bundle(&changed).is_err());
    }
}
