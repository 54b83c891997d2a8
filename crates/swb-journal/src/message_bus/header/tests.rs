//! The two readers against each other, and the writer against both.

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::message_bus::record::{Draft, Link, Parent};
use crate::message_bus::timestamp::Timestamp;

fn decode(text: &str) -> Option<Header<'static>> {
    let closed = format!("{text}---\n");
    let fast = canonical::decode_prefix(closed.as_bytes()).map(|(header, used)| {
        assert_eq!(used, closed.len());
        Header { record: header.record.into_message(), note: header.note }
    });
    let slow = yaml::decode(text.as_bytes());
    if let Some(fast) = fast {
        assert_eq!(Some(&fast), slow.as_ref(), "the readers differ on {text:?}");
    }
    slow
}

fn write_header(out: &mut Vec<u8>, id: &str, time: Timestamp, draft: &Draft, note: BodyNote) {
    write::head(out, id, time);
    write::scope(out, draft);
    if write::is_own_issue(draft) {
        write::issue(out, id);
    }
    write::rest(out, draft, note);
}

const MINIMAL: &str = "msg_id: MSG-20261115-075000-153429587-PID13843-0001\nts: 2026-11-15T07:50:00.153435987Z\n\
                       type: INFO\nproject_id: p\ntask_id: t\nrun_id: \"\"\n";

#[test]
fn the_canonical_header_takes_the_fast_path() {
    let closed = format!("{MINIMAL}---\nhello\n");
    let (header, used) = canonical::decode_prefix(closed.as_bytes()).unwrap();
    assert_eq!(&closed[used..], "hello\n");
    assert_eq!(header.record.kind, "INFO");
    assert_eq!(header.record.run_id, "");
    assert_eq!(decode(MINIMAL).unwrap().record.id, "MSG-20261115-075000-153429587-PID13843-0001");
}

#[test]
fn scalars_of_other_types_count_as_their_source_text() {
    let header =
        decode("msg_id: 12\ntype: 1.50\nproject_id: true\ntask_id: null\nrun_id: ~\n").unwrap().record;
    assert_eq!((&*header.id, &*header.kind, &*header.project_id), ("12", "1.50", "true"));
    assert_eq!((&*header.task_id, &*header.run_id), ("", ""));
}

#[test]
fn what_cannot_be_a_header_drops_the_record() {
    for text in [
        "type: a\ntype: b\n",
        "- a\n",
        "prose\n",
        "type: [a]\n",
        "links:\n    - http://x\n",
        "meta:\n    a:\n        b: c\n",
        "ts: 2026-01-01T00:00:00\n",
        "ts: \"2026-01-01\"\n",
        "ts: 1771874230\n",
        "type: 'open\n",
    ] {
        assert_eq!(decode(text), None, "{text:?}");
    }
    assert_eq!(yaml::decode(b"type: \xff\n"), None);
}

#[test]
fn an_empty_header_and_one_of_unknown_keys_are_records() {
    for text in ["", "# only a comment\n", "status: ok\n"] {
        assert_eq!(decode(text).unwrap(), Header::default(), "{text:?}");
    }
}

#[test]
fn anchors_flow_style_and_tabs_are_read() {
    assert_eq!(decode("type: &a X\ntask_id: *a\n").unwrap().record.task_id, "X");
    assert_eq!(decode("{type: X, project_id: p}\n").unwrap().record.kind, "X");
    assert_eq!(decode("type:\tX\n").unwrap().record.kind, "X");
}

#[test]
fn times_are_as_strict_as_their_quoting() {
    for (text, stands) in [
        ("ts: 2026-01-01\n", true),
        ("ts: 2026-01-01 10:00:00\n", true),
        ("ts: 2026-1-1t1:2:3+02:00\n", true),
        ("ts: \"2026-01-01T10:00:00Z\"\n", true),
        ("ts: '2026-01-01 10:00:00'\n", false),
        ("ts: null\n", true),
    ] {
        assert_eq!(decode(text).is_some(), stands, "{text:?}");
    }
}

#[test]
fn the_first_parent_decides_how_parents_are_read() {
    let parents = |text: &str| decode(text).unwrap().record.parents;
    let ids = |text: &str| parents(text).iter().map(|parent| parent.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids("parents: [a, \"\", b]\n"), ["a", "b"]);
    let objects =
        parents("parents:\n    - msg_id: x\n      kind: depends_on\n      meta:\n        a: \"yes\"\n");
    assert_eq!((&*objects[0].id, &*objects[0].kind, &*objects[0].meta[0].1), ("x", "depends_on", "yes"));
    for text in [
        "parents: x\n",
        "parents: null\n",
        "parents: []\n",
        "parents:\n    - a\n    - msg_id: b\n",
        "parents:\n    - msg_id: b\n    - a\n",
    ] {
        assert!(ids(text).is_empty(), "{text:?}");
    }
}

#[test]
fn reserved_keys_are_not_shown() {
    let header = decode(&format!(
        "{MINIMAL}meta:\n    a: b\n    swb_bytes: \"7\"\n    swb_escaped: \"1\"\n    swb_key: k\n"
    ))
    .unwrap();
    assert_eq!(header.record.meta, [(Cow::Borrowed("a"), Cow::Borrowed("b"))]);
    assert_eq!(header.note, BodyNote { bytes: Some(7), escaped: true });
    assert_eq!(header.record.idempotency_key.as_deref(), Some("k"));
}

#[test]
fn prose_is_told_from_a_header_without_a_parser() {
    assert!(is_plain_prose(b"hello world\nand: more\n"));
    for text in [&b"status: ok\n"[..], b"\n", b"# rule\n", b"{a: b}\n", b"- x\n", b""] {
        assert!(!is_plain_prose(text));
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z0-9_./-]{0,12}",
        "\\PC{0,12}",
        any::<String>(),
        prop::sample::select(vec![
            "---",
            "...",
            "null",
            "~",
            "yes",
            "0x1f",
            "1_000",
            "190:20:30",
            ".inf",
            "2026-01-01",
            "- a",
            "? b",
            ": c",
            "a: b",
            "a #c",
            "a:",
            " a",
            "a ",
            "\n",
            "\r\n---\n",
            "\u{feff}x",
            "\u{85}",
            "\u{2028}",
            "🎉",
            "\\",
            "\"",
            "'",
            "<<",
            "!!binary aGk=",
            "&a",
            "*a",
            "|",
            ">",
            "%",
            "@",
            "`",
            "#",
        ])
        .prop_map(str::to_owned),
    ]
}

fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::btree_map(
        any_text().prop_filter("reserved", |key| !key.starts_with("swb_")),
        any_text(),
        0..4,
    )
    .prop_map(|pairs| pairs.into_iter().collect())
}

fn parent() -> impl Strategy<Value = Parent<'static>> {
    (any_text(), any_text(), pairs()).prop_map(|(id, kind, meta)| Parent {
        id: Cow::Owned(id),
        kind: Cow::Owned(kind),
        meta: meta.into_iter().map(|(key, value)| (Cow::Owned(key), Cow::Owned(value))).collect(),
    })
}

fn link() -> impl Strategy<Value = Link<'static>> {
    (any_text(), any_text(), any_text()).prop_map(|(url, label, kind)| Link {
        url: Cow::Owned(url),
        label: Cow::Owned(label),
        kind: Cow::Owned(kind),
    })
}

fn draft() -> impl Strategy<Value = Draft> {
    (
        (any_text(), any_text(), any_text(), any_text(), any_text()),
        prop::collection::vec(parent(), 0..3),
        prop::collection::vec(link(), 0..3),
        pairs(),
    )
        .prop_map(|((kind, project_id, task_id, run_id, issue_id), parents, links, meta)| Draft {
            kind,
            project_id,
            task_id,
            run_id,
            issue_id,
            parents,
            links,
            meta,
            ..Draft::default()
        })
}

/// Lines of the kinds headers are made of, good and bad, so that both readers meet near-canonical text.
fn header_line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "msg_id",
        "ts",
        "type",
        "project_id",
        "task_id",
        "run_id",
        "issue_id",
        "parents",
        "links",
        "meta",
        "other",
        "    a",
        "    - msg_id",
        "      kind",
        "    - url",
        "      label",
        "    swb_bytes",
        "    null",
        "        x",
    ]);
    let value = prop_oneof![
        Just(String::new()),
        "[A-Za-z0-9_./:+=@,;? ()-]{1,10}",
        "\"[ -~]{0,8}\"",
        any_text().prop_filter("one line", |text| !text.contains('\n')),
        Just("2026-11-15T07:50:00.153435987Z".to_owned()),
    ];
    (key, prop::sample::select(vec![": ", ":", ":  ", " : "]), value)
        .prop_map(|(key, colon, value)| format!("{key}{colon}{value}\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn both_readers_agree(start in 0usize..7, lines in prop::collection::vec(header_line(), 0..8)) {
        let head: String = MINIMAL.split_inclusive('\n').take(start).collect();
        decode(&(head + &lines.concat()));
    }

    #[test]
    fn both_readers_agree_on_any_value(values in prop::collection::vec("[A-Za-z0-9_./:+=@,;? ()\"~-]{0,12}", 6)) {
        let keys = ["msg_id", "type", "project_id", "task_id", "run_id"];
        let mut text = String::new();
        for (index, key) in keys.iter().enumerate() {
            text += &format!("{key}: {}\n", values[index]);
            if index == 0 {
                text += "ts: 2026-11-15T07:50:00Z\n";
            }
        }
        text += &format!("meta:\n    k: {}\n", values[5]);
        decode(&text);
    }

    #[test]
    fn any_header_written_reads_back(draft in draft(), bytes in proptest::option::of(0usize..9999), escaped: bool) {
        let time = Timestamp::parse_rfc3339("2026-11-15T07:50:00.1Z").unwrap();
        let mut out = Vec::new();
        write_header(&mut out, "MSG-1", time, &draft, BodyNote { bytes, escaped });
        let text = std::str::from_utf8(&out).unwrap();
        let inner = text.strip_prefix("---\n").unwrap().strip_suffix("---\n").unwrap();
        prop_assert!(inner.lines().all(|line| line != "---"));
        let header = decode(inner).unwrap();
        prop_assert_eq!(&*header.record.kind, &*draft.kind);
        prop_assert_eq!(&*header.record.project_id, &*draft.project_id);
        prop_assert_eq!(&*header.record.task_id, &*draft.task_id);
        prop_assert_eq!(&*header.record.run_id, &*draft.run_id);
        let issue = if draft.issue_id.is_empty() && draft.kind == "ISSUE" { "MSG-1" } else { &draft.issue_id };
        prop_assert_eq!(&*header.record.issue_id, issue);
        prop_assert_eq!(header.record.links, draft.links);
        prop_assert_eq!(header.note, BodyNote { bytes, escaped });
        let sorted = |pairs: &[(Cow<str>, Cow<str>)]| {
            let mut pairs: Vec<_> = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            pairs.sort();
            pairs
        };
        let mut meta = draft.meta.clone();
        meta.sort();
        prop_assert_eq!(sorted(&header.record.meta), meta);
        prop_assert_eq!(header.record.parents.len(), draft.parents.len());
        for (read, posted) in header.record.parents.iter().zip(&draft.parents) {
            prop_assert_eq!((&read.id, &read.kind), (&posted.id, &posted.kind));
            prop_assert_eq!(sorted(&read.meta), sorted(&posted.meta));
        }
    }
}

#[test]
fn meta_keys_are_in_natural_order() {
    let draft = Draft {
        meta: ["k10", "k2", "b", "A"].map(|key| (key.to_owned(), "v".to_owned())).to_vec(),
        ..Draft::new("T", "p", "")
    };
    let mut out = Vec::new();
    write_header(&mut out, "M", Timestamp::from_unix_nanos(0), &draft, BodyNote::default());
    let text = String::from_utf8(out).unwrap();
    let order: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    assert_eq!(order, ["A: v", "b: v", "k2: v", "k10: v"]);
}
