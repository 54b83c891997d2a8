//! The state machine, case by case, and its three properties: no panic, no dependence on how bytes are cut into
//! scans, and synchronisation that never lies.

use proptest::prelude::*;

use super::*;

fn scan(bytes: &[u8]) -> Vec<(String, String)> {
    scan_from(bytes, State::START).into_iter().map(|(_, id, body)| (id, body)).collect()
}

fn scan_from(bytes: &[u8], state: State) -> Vec<(usize, String, String)> {
    let mut scanner = Scanner::new(bytes, state);
    let mut records = Vec::new();
    let mut push = |found: Found<'_>| {
        records.push((found.start, found.record.id.to_string(), found.record.body_text().into_owned()));
    };
    loop {
        match scanner.step() {
            Step::Record(found) => push(found),
            Step::Open { found, ending, .. } => {
                if ending != Ending::Cut {
                    push(found);
                }
                return records;
            }
            Step::End(_) => return records,
        }
    }
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, body)| ((*id).to_owned(), (*body).to_owned())).collect()
}

fn check(text: &str, expected: &[(&str, &str)]) {
    assert_eq!(scan(text.as_bytes()), pairs(expected), "{text:?}");
}

#[test]
fn records_are_separated_by_one_blank_line() {
    check("---\nmsg_id: a\n---\nhello\n\n---\nmsg_id: b\n---\nbye\n", &[("a", "hello"), ("b", "bye")]);
}

#[test]
fn a_header_that_does_not_decode_is_passed_over() {
    check("---\nprose\n---\nmsg_id: b\n---\nbye\n", &[("b", "bye")]);
    check(
        "---\nmsg_id: a\n---\nx\n---\nprose in the body\n\n---\nmsg_id: b\n---\nbye\n",
        &[("a", "x"), ("b", "bye")],
    );
}

#[test]
fn a_foreign_body_with_a_mapping_makes_a_phantom() {
    // The incumbent's own files do this to themselves; its readers and ours must see the same.
    let text =
        "---\nmsg_id: a\n---\nx\n---\nstatus: ok\n\n---\nmsg_id: b\n---\nbye\n\n---\nmsg_id: c\n---\nend\n";
    check(text, &[("a", "x"), ("", "msg_id: b"), ("c", "end")]);
}

#[test]
fn only_a_whole_line_is_a_delimiter() {
    check("---\nmsg_id: a\n---\n--- \n ---\n----\n", &[("a", "--- \n ---\n----")]);
    check("---\r\r\nmsg_id: a\r\n---\r\nhi\r\n", &[("a", "hi")]);
}

#[test]
fn the_last_record_needs_a_final_newline() {
    check("---\nmsg_id: a\n---\nhel", &[]);
    check("---\nmsg_id: a\n---\n", &[]);
    check("---\nmsg_id: a\n---\n\n", &[("a", "")]);
    check("---\nmsg_id: a\n---\nx\n\n---\nmsg_id: b\n--", &[("a", "x")]);
    check("---\nmsg_id: a\n---\nx\n\n--", &[("a", "x")]);
}

#[test]
fn legacy_lines_count_only_before_the_first_delimiter() {
    check(
        "# Log\n[2026-02-23 10:00:00] FACT: one\nnoise\n[2026-02-23 10:00:01] two\n---\nmsg_id: a\n---\n\
         [2026-02-23 10:00:02] three\n",
        &[
            ("LEGACY-LINE-000000002", "one"),
            ("LEGACY-LINE-000000004", "two"),
            ("a", "[2026-02-23 10:00:02] three"),
        ],
    );
    check("[2026-02-23 10:00:00] no newline", &[("LEGACY-LINE-000000001", "no newline")]);
}

#[test]
fn a_byte_order_mark_hides_only_the_first_record() {
    check(
        "\u{feff}---\nmsg_id: a\n---\nx\n\n---\nmsg_id: b\n---\ny\n\n---\nmsg_id: c\n---\nz\n",
        &[("b", "y"), ("c", "z")],
    );
}

#[test]
fn synchronising_waits_for_text_that_is_no_header() {
    let record = |id: &str, body: &str| format!("---\nmsg_id: {id}\n---\n{body}\n\n");
    let text = record("a", "status: ok")
        + &record("b", "status: ok")
        + &record("c", "done now")
        + &record("d", "x: y");
    let start = synchronise(&text.as_bytes()[2..]).unwrap() + 2;
    assert_eq!(start, text.find("---\nmsg_id: d").unwrap());
    assert_eq!(synchronise(record("a", "status: ok").repeat(50).as_bytes()), None);
}

/// Text in which everything the machine reacts to is frequent.
fn bus_like() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => Just("---\n".to_owned()),
        1 => Just("---\r\n".to_owned()),
        3 => "msg_id: [a-c]{1,2}\n",
        2 => Just("prose\n".to_owned()),
        2 => Just("k: v\n".to_owned()),
        2 => Just("\n".to_owned()),
        1 => Just("[2026-02-23 10:00:00] T: x\n".to_owned()),
        1 => Just("meta:\n    swb_bytes: \"9\"\n".to_owned()),
        1 => Just("@\n".to_owned()),
        1 => "-{1,4}",
    ];
    prop::collection::vec(line, 0..40).prop_map(|lines| lines.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        scan(&bytes);
        synchronise(&bytes);
    }

    #[test]
    fn a_scan_may_stop_and_go_on_anywhere(bytes in bus_like(), cut in any::<prop::sample::Index>()) {
        let whole = scan_from(&bytes, State::START);
        let cut = cut.index(bytes.len() + 1);
        let mut scanner = Scanner::new(&bytes[..cut], State::START);
        let mut records = Vec::new();
        while let Step::Record(found) = scanner.step() {
            records.push((found.start, found.record.id.to_string(), found.record.body_text().into_owned()));
        }
        let (at, state) = scanner.resume_at();
        for (start, id, body) in scan_from(&bytes[at..], state) {
            records.push((start + at, id, body));
        }
        prop_assert_eq!(records, whole);
    }

    #[test]
    fn synchronising_never_lies(bytes in bus_like(), from in any::<prop::sample::Index>()) {
        let from = from.index(bytes.len() + 1);
        if let Some(start) = synchronise(&bytes[from..]) {
            let start = from + start;
            let whole: Vec<_> =
                scan_from(&bytes, State::START).into_iter().filter(|(at, ..)| *at >= start).collect();
            let tail: Vec<_> =
                scan_from(&bytes[start..], State::Between).into_iter().map(|(at, i, b)| (at + start, i, b)).collect();
            prop_assert_eq!(tail, whole);
        }
    }
}
