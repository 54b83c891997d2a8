//! Each kind of damage, what verification says about it, and what opening does about it.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::prelude::*;
use swb_journal::audit::{
    AnchorState, AuditLog, AuditOptions, FindingKind, Head, Kind, OpenError, Verdict, verify,
};

use crate::support::{World, at, end, event, segments, small, start};

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

fn write(path: &Path, lines: &[String]) {
    std::fs::write(path, lines.concat()).unwrap();
}

/// Changes the lines of one segment and says what is found then.
fn found(world: &World, segment: usize, change: impl FnOnce(&mut Vec<String>)) -> Vec<FindingKind> {
    let path = &world.segments()[segment];
    let mut changed = lines(path);
    change(&mut changed);
    write(path, &changed);
    let report = world.verify(&[]);
    assert_eq!(report.verdict == Verdict::Damaged, report.finding_count > 0);
    report.findings.into_iter().map(|finding| finding.kind).collect()
}

fn world() -> World {
    let world = World::with_records(100, 4000);
    assert!(world.segments().len() > 8);
    world
}

#[test]
fn a_changed_record_is_found() {
    let findings =
        found(&world(), 0, |lines| lines[3] = lines[3].replace("session.created", "session.deleted"));
    assert_eq!(findings, [FindingKind::Changed { number: Some(3) }]);
}

#[test]
fn a_changed_record_with_a_hash_of_its_own_is_found() {
    // Somebody who knows the format writes another record in place of one, with everything right about it but what follows.
    let other = World::new();
    std::fs::create_dir_all(other.folder()).unwrap();
    let world = world();
    let first = &world.segments()[0];
    let kept = lines(first);
    std::fs::copy(world.folder().join("key"), other.folder().join("key")).unwrap();
    write(&other.folder().join(first.file_name().unwrap()), &kept[..3]);
    other.open().append_now(&event(999)).unwrap();
    let forged = lines(&other.segments()[0])[3].clone();
    let findings = found(&world, 0, |lines| lines[3] = forged);
    assert_eq!(findings, [FindingKind::Relinked { number: 4 }]);
}

#[test]
fn removed_records_are_found() {
    let findings = found(&world(), 1, |lines| drop(lines.drain(2..4)));
    let [FindingKind::Missing { from, to }] = findings[..] else { panic!("{findings:?}") };
    assert_eq!(to, from + 1);
}

#[test]
fn a_record_removed_from_the_end_of_a_closed_segment_is_found() {
    assert_eq!(found(&world(), 1, |lines| drop(lines.pop())), [FindingKind::Unlinked]);
}

#[test]
fn records_that_are_put_in_again_or_moved_are_found() {
    let findings = found(&world(), 0, |lines| lines.insert(5, lines[2].clone()));
    assert_eq!(findings, [FindingKind::OutOfPlace { number: 2 }]);
    let findings = found(&world(), 0, |lines| lines.swap(2, 3));
    assert_eq!(findings, [FindingKind::Missing { from: 2, to: 2 }, FindingKind::OutOfPlace { number: 2 }]);
}

#[test]
fn a_line_that_was_never_written_is_found() {
    for line in ["{}\n", "\n", "\0\n", "{\"n\":3}\n"] {
        let findings = found(&world(), 0, |lines| lines.insert(3, line.to_owned()));
        assert_eq!(findings, [FindingKind::Changed { number: None }], "{line:?}");
    }
}

#[test]
fn a_changed_or_missing_header_is_found() {
    let findings = found(&world(), 2, |lines| lines[0] = lines[0].replace("\"format\":1", "\"format\":2"));
    assert_eq!(findings, [FindingKind::HeaderChanged]);
    let findings = found(&world(), 2, |lines| drop(lines.remove(0)));
    assert!(findings.contains(&FindingKind::HeaderChanged), "{findings:?}");
}

#[test]
fn missing_segments_are_found() {
    for (gone, from, to) in [(0..1, 1, 1), (2..4, 3, 4)] {
        let world = world();
        for path in &world.segments()[gone] {
            std::fs::remove_file(path).unwrap();
        }
        let report = world.verify(&[]);
        let kinds: Vec<_> = report.findings.iter().map(|finding| &finding.kind).collect();
        assert_eq!(kinds, [&FindingKind::MissingSegments { from, to }]);
    }
}

#[test]
fn a_renamed_segment_and_one_of_another_log_are_found() {
    let one = world();
    let path = &one.segments()[1];
    std::fs::rename(path, path.with_file_name("00000002-000000000009.jsonl")).unwrap();
    assert_eq!(one.verify(&[]).findings[0].kind, FindingKind::Renamed);

    let (one, other) = (world(), world());
    std::fs::copy(&other.segments()[1], &one.segments()[1]).unwrap();
    let report = one.verify(&[]);
    assert!(matches!(report.findings[0].kind, FindingKind::ForeignSegment { .. }), "{report:?}");
}

#[test]
fn a_cut_end_is_found_only_against_an_anchor() {
    let world = world();
    let head = world.reader().head().unwrap().unwrap();
    let last = world.segments().pop().unwrap();
    let mut kept = lines(&last);
    kept.pop();
    write(&last, &kept);
    assert_eq!(world.verify(&[]).verdict, Verdict::Consistent);
    let report = world.verify(std::slice::from_ref(&head));
    assert_eq!(report.findings[0].kind, FindingKind::CutOff { anchor: 100, last: 99 });
    std::fs::remove_file(&last).unwrap();
    assert_eq!(world.verify(&[]).verdict, Verdict::Consistent);
    assert_eq!(world.verify(&[head]).verdict, Verdict::Damaged);
}

#[test]
fn a_chain_written_anew_is_found_only_against_an_anchor() {
    let (world, other) = (World::with_records(50, 4000), World::new());
    let anchor = world.reader().get(20).unwrap().unwrap();
    let chain = world.reader().head().unwrap().unwrap().chain;
    let anchor = Head { chain, number: 20, hash: anchor.hash };
    // The forger keeps the name of the log and its first records, and writes the rest again.
    std::fs::create_dir_all(other.folder()).unwrap();
    std::fs::copy(world.folder().join("key"), other.folder().join("key")).unwrap();
    let first = &world.segments()[0];
    write(&other.folder().join(first.file_name().unwrap()), &lines(first)[..5]);
    let log = other.open_with(small(4000)).0;
    for n in 0..46 {
        log.append_now(&event(n)).unwrap();
    }
    assert_eq!(world.verify(std::slice::from_ref(&anchor)).verdict, Verdict::Anchored);
    assert_eq!(other.verify(&[]).verdict, Verdict::Consistent);
    let report = other.verify(std::slice::from_ref(&anchor));
    assert!(matches!(report.findings[0].kind, FindingKind::Rewritten { anchor: 20, .. }), "{report:?}");
    assert_eq!(report.anchors[0].state, AnchorState::Failed);
    // And one who does not keep the name is found too.
    let stranger = World::with_records(50, 4000).verify(&[anchor]);
    assert!(matches!(stranger.findings[0].kind, FindingKind::ForeignAnchor { .. }), "{stranger:?}");
}

#[test]
fn an_empty_log_has_a_head_to_anchor_too() {
    let world = World::new();
    let head = world.open().head();
    assert_eq!(head.number, 0);
    assert_eq!(world.verify(std::slice::from_ref(&head)).verdict, Verdict::Anchored);
    world.open().append_now(&event(1)).unwrap();
    assert_eq!(world.verify(std::slice::from_ref(&head)).verdict, Verdict::Anchored);
    std::fs::remove_file(&world.segments()[0]).unwrap();
    assert_eq!(world.verify(&[head]).verdict, Verdict::Damaged);
}

#[test]
fn a_torn_tail_is_cut_at_the_next_opening_and_the_cut_is_recorded() {
    let whole = World::with_records(3, 1 << 20);
    let bytes = std::fs::read(&whole.segments()[0]).unwrap();
    let second = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(2).unwrap().0 + 1;
    // Every length from right behind the second record to right before the end of the third.
    for length in (second + 1..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        std::fs::write(&whole.segments()[0], &bytes[..length]).unwrap();
        let report = whole.verify(&[]);
        assert_eq!(report.verdict, Verdict::Consistent);
        assert_eq!(report.torn_tail.unwrap().bytes, (length - second) as u64);
        let (log, opened) = whole.open_with(AuditOptions::default());
        let cut = opened.cut.unwrap();
        assert_eq!((cut.segment, cut.offset, cut.bytes), (1, second as u64, (length - second) as u64));
        assert_eq!(log.append_now(&event(7)).unwrap().number, 4);
        drop(log);
        let records = whole.records();
        assert_eq!((records[2].entry.kind, records[2].entry.recovered), (Kind::Recovered, Some(cut)));
        assert_eq!(whole.verify(&[]).verdict, Verdict::Consistent);
    }
}

#[test]
fn zeros_that_a_power_cut_left_are_cut_too() {
    let world = World::with_records(3, 1 << 20);
    let path = &world.segments()[0];
    let whole = std::fs::read(path).unwrap();
    for tail in [&[0; 5000][..], b"{\"n\":4,\"prev\":\0\0\0\0\0\n\0\0\n\0"] {
        std::fs::write(path, [&whole[..], tail].concat()).unwrap();
        assert_eq!(world.verify(&[]).torn_tail.unwrap().bytes, tail.len() as u64);
        let opened = world.open_with(AuditOptions::default()).1;
        assert_eq!(opened.cut.unwrap().bytes, tail.len() as u64);
        assert_eq!(world.records().len(), 4);
        std::fs::write(path, &whole).unwrap();
    }
}

#[test]
fn a_segment_whose_header_is_torn_was_never_begun() {
    let world = World::with_records(20, 4000);
    let count = world.segments().len() as u64;
    let next = world.folder().join(format!("{:08}-{:012}.jsonl", count + 1, 21));
    for header in ["", "{\"segment\":"] {
        std::fs::write(&next, header).unwrap();
        assert_eq!(world.verify(&[]).verdict, Verdict::Consistent);
        let (log, opened) = world.open_with(small(4000));
        assert_eq!(opened.cut.map(|cut| cut.bytes), (!header.is_empty()).then_some(header.len() as u64));
        log.append_now(&event(1)).unwrap();
        drop(log);
        assert_eq!(world.verify(&[]).verdict, Verdict::Consistent);
        for path in world.segments().iter().skip(usize::try_from(count).unwrap()) {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn damage_that_is_no_torn_tail_is_never_cut() {
    let changes: [fn(&mut Vec<String>); 5] = [
        |lines| lines[2] = lines[2].replace("sess_", "sess-"),
        |lines| drop(lines.remove(2)),
        |lines| *lines.last_mut().unwrap() = lines.last().unwrap().replace("session", "sessiom"),
        |lines| lines[0] = lines[0].replace("chain", "chaim"),
        // Zeros in the middle, with intact records behind them.
        |lines| lines[2] = "\0".repeat(lines[2].len() - 1) + "\n",
    ];
    for change in changes {
        let world = World::with_records(5, 1 << 20);
        let path = &world.segments()[0];
        let mut changed = lines(path);
        change(&mut changed);
        write(path, &changed);
        let before = std::fs::read(path).unwrap();
        let error = AuditLog::open(&world.folder(), AuditOptions::default(), at(0)).unwrap_err();
        assert!(matches!(error, OpenError::Damaged(_)), "{error}");
        assert_eq!(std::fs::read(path).unwrap(), before, "nothing was changed");
    }
}

#[test]
fn damage_that_was_accepted_stays_and_the_log_goes_on_behind_it() {
    for damaged_line in [0, 3] {
        let world = World::with_records(30, 4000);
        let path = world.segments().pop().unwrap();
        let mut changed = lines(&path);
        changed[damaged_line] = changed[damaged_line].replace("prev", "perv");
        write(&path, &changed);
        let options = AuditOptions { accept_damage: true, ..small(4000) };
        let (log, opened) = AuditLog::open(&world.folder(), options, at(0)).unwrap();
        assert_eq!(opened.damage.unwrap().segment, world.segments().len() as u64 - 1);
        assert_eq!(log.append_now(&event(1)).unwrap().number, 31, "no number is given out twice");
        drop(log);
        assert_eq!(lines(&path), changed);
        let report = world.verify(&[]);
        assert!(report.findings.iter().any(|it| it.kind == FindingKind::WentOnAfterDamage), "{report:?}");
        assert_eq!(world.reader().get(31).unwrap().unwrap().entry, event(1));
        world.open().append_now(&event(2)).unwrap();
    }
}

#[test]
fn a_later_format_is_refused_and_left_alone() {
    let world = World::with_records(1, 4000);
    let path = &world.segments()[0];
    let text = lines(path)[0].replace("\"format\":1", "\"format\":9");
    let body = text.split(",\"hash\":").next().unwrap();
    let header = format!("{body},\"hash\":\"{}\"}}\n", blake3::hash(body.as_bytes()));
    write(path, &[header]);
    let error = AuditLog::open(&world.folder(), AuditOptions::default(), at(0)).unwrap_err();
    assert!(matches!(error, OpenError::Format { format: 9 }), "{error}");
}

/// A way to damage a log.
#[derive(Debug, Clone)]
enum Harm {
    Flip { at: usize, to: u8 },
    Insert { at: usize, bytes: Vec<u8> },
    Delete { at: usize, length: usize },
    Truncate { at: usize },
    SwapLines { one: usize, other: usize },
    CopyLine { from: usize, to: usize },
    MoveToOtherSegment { line: usize, to: usize },
    RemoveSegment,
    SwapSegments { other: usize },
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = any::<usize>;
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, to)| Harm::Flip { at, to }),
        2 => (at(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(at, bytes)| Harm::Insert { at, bytes }),
        2 => (at(), 1usize..2000).prop_map(|(at, length)| Harm::Delete { at, length }),
        1 => at().prop_map(|at| Harm::Truncate { at }),
        2 => (at(), at()).prop_map(|(one, other)| Harm::SwapLines { one, other }),
        2 => (at(), at()).prop_map(|(from, to)| Harm::CopyLine { from, to }),
        1 => (at(), at()).prop_map(|(line, to)| Harm::MoveToOtherSegment { line, to }),
        1 => Just(Harm::RemoveSegment),
        1 => at().prop_map(|other| Harm::SwapSegments { other }),
    ]
}

fn do_harm(segments: &[PathBuf], which: usize, harm: &Harm) {
    let path = &segments[which % segments.len()];
    let mut bytes = std::fs::read(path).unwrap();
    let length = bytes.len();
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let count = lines.len();
    match harm {
        Harm::Flip { at, to } => bytes[at % length] = *to,
        Harm::Insert { at, bytes: more } => {
            let at = at % (length + 1);
            drop(bytes.splice(at..at, more.iter().copied()));
        }
        Harm::Delete { at, length: gone } => {
            let at = at % length;
            drop(bytes.drain(at..length.min(at + gone)));
        }
        Harm::Truncate { at } => bytes.truncate(at % length),
        Harm::SwapLines { one, other } => {
            lines.swap(one % count, other % count);
            bytes = lines.concat();
        }
        Harm::CopyLine { from, to } => {
            let line = lines[from % count].clone();
            lines.insert(to % (count + 1), line);
            bytes = lines.concat();
        }
        Harm::MoveToOtherSegment { line, to } => {
            let line = lines.remove(line % count);
            let other = &segments[to % segments.len()];
            if other != path {
                let mut text = std::fs::read(other).unwrap();
                text.extend_from_slice(&line);
                std::fs::write(other, text).unwrap();
                bytes = lines.concat();
            }
        }
        Harm::RemoveSegment => return std::fs::remove_file(path).unwrap(),
        Harm::SwapSegments { other } => {
            let other = &segments[other % segments.len()];
            std::fs::write(path, std::fs::read(other).unwrap()).unwrap();
            return std::fs::write(other, bytes).unwrap();
        }
    }
    std::fs::write(path, bytes).unwrap();
}

type Files = Vec<(PathBuf, Vec<u8>)>;

fn contents(folder: &Path) -> Files {
    segments(folder).into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// The segments of a log, and its head.
static UNHARMED: LazyLock<(Files, Head)> = LazyLock::new(|| {
    let world = World::new();
    let log = world.open_with(small(2500)).0;
    for n in 1..=12 {
        let entry = start(n);
        let of = log.append_now(&entry).unwrap().number;
        log.append_now(&end(of, &entry)).unwrap();
    }
    (contents(&world.folder()), log.head())
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn all_harm_is_found_or_is_a_torn_tail(which in any::<usize>(), harms in prop::collection::vec(harm(), 1..3)) {
        let (files, head) = &*UNHARMED;
        let world = World::new();
        std::fs::create_dir_all(world.folder()).unwrap();
        for (path, bytes) in files {
            std::fs::write(world.folder().join(path.file_name().unwrap()), bytes).unwrap();
        }
        let before = contents(&world.folder());
        for (n, harm) in harms.iter().enumerate() {
            let segments = world.segments();
            if segments.is_empty() { break }
            do_harm(&segments, which.wrapping_add(n * 7), harm);
        }
        let changed = contents(&world.folder()) != before;
        let report = verify(&world.folder(), std::slice::from_ref(head)).unwrap();
        if changed {
            prop_assert!(report.verdict == Verdict::Damaged || report.torn_tail.is_some(), "{harms:?}: {report:?}");
        } else {
            prop_assert_eq!(report.verdict, Verdict::Anchored);
        }
        // Opening never changes anything but a torn tail, and afterwards nothing of what is intact has gone.
        let intact = report.records;
        let damaged = contents(&world.folder());
        match AuditLog::open(&world.folder(), small(2500), at(5)) {
            Err(_) => prop_assert_eq!(contents(&world.folder()), damaged),
            Ok((log, opened)) => {
                let last = log.append_now(&event(1)).unwrap().number;
                prop_assert!(last > 0);
                let now = verify(&world.folder(), &[]).unwrap();
                let added = 1 + u64::from(opened.cut.is_some());
                prop_assert!(now.records >= intact + added, "{intact} + {added}, {now:?}");
            }
        }
    }
}
