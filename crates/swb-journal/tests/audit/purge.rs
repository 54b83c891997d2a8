//! Purging: what goes, what stays, and the proof of it.

use std::fs;
use std::path::PathBuf;

use swb_journal::audit::{
    AnchorState, AuditLog, AuditOptions, Entry, FindingKind, Head, Hold, HoldScope, Kind, PurgeError,
    PurgeOrder, Verdict, verify,
};

use crate::support::{World, actor, days, end, event, start};

fn order(retention_days: u32, today: i64) -> PurgeOrder {
    PurgeOrder { by: actor(), reason: "monthly".to_owned(), retention_days, now: days(today) }
}

/// One segment a day, three records each, from day 0 on.
fn daily(last_day: i64) -> (World, AuditLog) {
    let world = World::new();
    let log = AuditLog::open(&world.folder(), AuditOptions::default(), days(0)).unwrap().0;
    for day in 0..=last_day {
        for n in 0..3 {
            let n = u64::try_from(day).unwrap() * 3 + n + 1;
            log.append_now(&Entry { at: days(day), ..event(n) }).unwrap();
        }
    }
    assert_eq!(world.segments().len() as i64, last_day + 1);
    (world, log)
}

fn head_at(world: &World, number: u64) -> Head {
    let hash = world.reader().get(number).unwrap().unwrap().hash;
    Head { chain: world.reader().head().unwrap().unwrap().chain, number, hash }
}

#[test]
fn old_segments_go_and_the_chain_is_proven_over_the_gap() {
    let (world, log) = daily(40);
    let [gone, edge, kept] = [5, 30, 100].map(|number| head_at(&world, number));
    let purged = log.purge(&order(30, 40)).unwrap();
    assert_eq!((purged.segments, purged.records, purged.kept), (10, 30, 0));
    assert_eq!(world.segments().len(), 31);
    assert_eq!(world.reader().oldest().unwrap(), Some(31));

    let proof = world.reader().get(purged.proof.unwrap()).unwrap().unwrap().entry;
    assert_eq!((proof.kind, &proof.actor), (Kind::Purge, &Some(actor())));
    let proof = proof.purge.unwrap();
    assert_eq!((proof.records, &*proof.reason, proof.spans.len()), (30, "monthly", 1));
    let span = &proof.spans[0];
    assert_eq!((span.first, span.last, span.last_hash), (1, 30, edge.hash));

    let report = world.verify(&[gone.clone(), edge, kept]);
    assert_eq!(report.verdict, Verdict::Anchored, "{:?}", report.findings);
    let states: Vec<_> = report.anchors.iter().map(|anchor| anchor.state).collect();
    assert_eq!(states, [AnchorState::Purged, AnchorState::Matched, AnchorState::Matched]);
    // An anchor that was purged proves nothing.
    assert_eq!(world.verify(&[gone]).verdict, Verdict::Consistent);
    // Nothing is left to do.
    assert_eq!(log.purge(&order(30, 40)).unwrap().proof, None);
}

#[test]
fn the_next_purge_takes_the_proof_of_the_last_one_over() {
    let (world, log) = daily(40);
    log.purge(&order(30, 40)).unwrap();
    for day in 41..=80 {
        log.append_now(&Entry { at: days(day), ..event(1) }).unwrap();
    }
    // Also the segment with the first proof goes.
    let purged = log.purge(&order(30, 80)).unwrap();
    assert_eq!(purged.segments, 40);
    let proofs: Vec<_> = world.records().into_iter().filter_map(|record| record.entry.purge).collect();
    assert_eq!(proofs.len(), 1);
    assert_eq!((proofs[0].spans.len(), proofs[0].spans[0].first), (1, 1));
    assert_eq!(world.verify(&[]).verdict, Verdict::Consistent);
    drop(log);
    assert_eq!(
        world.open().append_now(&event(1)).unwrap().number,
        world.records().len() as u64 + proofs[0].spans[0].last
    );
}

#[test]
fn what_was_removed_can_be_proven_and_a_gap_without_a_proof_is_found() {
    let (world, log) = daily(40);
    let copies: Vec<(PathBuf, Vec<u8>)> =
        world.segments().into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    log.purge(&order(30, 40)).unwrap();
    // Somebody removes a segment more.
    let (eleventh, bytes) = &copies[10];
    fs::remove_file(eleventh).unwrap();
    let report = world.verify(&[]);
    assert!(
        matches!(report.findings[0].kind, FindingKind::MissingSegments { from: 1, to: 11 }),
        "{report:?}"
    );
    fs::write(eleventh, bytes).unwrap();
    // A copy of what was removed fits, and a copy that was changed does not.
    for (path, bytes) in &copies[..10] {
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(world.verify(&[]).verdict, Verdict::Consistent);
    let changed =
        String::from_utf8(copies[4].1.clone()).unwrap().replace("session.created", "session.creates");
    fs::write(&copies[4].0, changed).unwrap();
    assert_eq!(world.verify(&[]).verdict, Verdict::Damaged);
    // A purge that was interrupted is finished by the next one.
    fs::write(&copies[4].0, &copies[4].1).unwrap();
    fs::remove_file(&copies[2].0).unwrap();
    assert_eq!(world.verify(&[]).verdict, Verdict::Consistent);
    assert_eq!(log.purge(&order(30, 40)).unwrap().records, 0);
    assert_eq!(world.segments().len(), 31);
}

#[test]
fn a_proof_that_does_not_fit_is_found() {
    let (world, log) = daily(40);
    log.purge(&order(30, 40)).unwrap();
    // Another log with the same gap is put in the place of the segments that stayed, all but the one with the proof.
    let (other, other_log) = daily(40);
    other_log.purge(&order(30, 40)).unwrap();
    for (path, theirs) in world.segments().iter().zip(other.segments()).take(30) {
        fs::copy(theirs, path).unwrap();
    }
    assert_eq!(world.verify(&[]).verdict, Verdict::Damaged);
}

#[test]
fn a_hold_keeps_its_segments_until_it_is_released() {
    let hold = |id: &str, scope| Hold { id: id.to_owned(), scope, reason: "a case".to_owned() };
    let world = World::new();
    let log = AuditLog::open(&world.folder(), AuditOptions::default(), days(0)).unwrap().0;
    for day in 0..=40 {
        let workspace_id = (day == 5).then(|| "ws_x".to_owned());
        log.append_now(&Entry { at: days(day), workspace_id, ..event(1) }).unwrap();
    }
    let scope = HoldScope::Workspace { workspace_id: "ws_x".to_owned() };
    log.append_now(&Entry::hold(days(40), actor(), hold("hold_1", scope))).unwrap();
    let purged = log.purge(&order(30, 40)).unwrap();
    assert_eq!((purged.segments, purged.kept), (9, 1));
    let left: Vec<u64> = world.records().iter().map(|record| record.number).take(2).collect();
    assert_eq!(left, [6, 11]);
    assert_eq!(world.verify(&[]).purged.len(), 2, "two spans around the one that stayed");
    assert_eq!(world.verify(&[]).verdict, Verdict::Consistent);

    // The hold outlives the segment that it was placed in.
    for day in 41..=80 {
        log.append_now(&Entry { at: days(day), ..event(1) }).unwrap();
    }
    log.purge(&order(30, 80)).unwrap();
    assert_eq!(world.reader().get(6).unwrap().unwrap().entry.workspace_id.as_deref(), Some("ws_x"));
    assert_eq!(world.reader().holds().unwrap()[0].id, "hold_1");
    log.append_now(&Entry::release(days(80), actor(), "hold_1")).unwrap();
    assert_eq!(log.purge(&order(30, 80)).unwrap().segments, 1);
    assert_eq!(world.verify(&[]).purged.len(), 1);
    assert_eq!(world.verify(&[]).verdict, Verdict::Consistent);
    assert!(world.reader().holds().unwrap().is_empty());

    let all = Entry::hold(days(80), actor(), hold("hold_2", HoldScope::Everything));
    log.append_now(&all).unwrap();
    assert_eq!(log.purge(&order(30, 500)).unwrap().segments, 0);
}

#[test]
fn a_command_that_is_still_open_keeps_its_segment() {
    let world = World::new();
    let log = AuditLog::open(&world.folder(), AuditOptions::default(), days(0)).unwrap().0;
    let of = log.append_now(&Entry { at: days(0), ..start(1) }).unwrap().number;
    for day in 1..=40 {
        log.append_now(&Entry { at: days(day), ..event(1) }).unwrap();
    }
    let purged = log.purge(&order(30, 60)).unwrap();
    assert_eq!((purged.kept, world.reader().oldest().unwrap()), (1, Some(1)));
    log.append_now(&Entry { at: days(60), ..end(of, &start(1)) }).unwrap();
    assert_eq!(log.purge(&order(30, 60)).unwrap().segments, 1);
    assert_eq!(world.verify(&[]).verdict, Verdict::Consistent);
}

#[test]
fn less_than_thirty_days_and_a_damaged_log_are_refused() {
    let (world, log) = daily(40);
    assert!(matches!(log.purge(&order(29, 400)), Err(PurgeError::TooShort { days: 29 })));
    let path = &world.segments()[20];
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text.replace("sess_", "sess-")).unwrap();
    assert!(matches!(log.purge(&order(30, 400)), Err(PurgeError::Damaged)));
    assert_eq!(world.segments().len(), 41);
}

#[test]
fn a_clock_that_was_set_back_makes_nothing_old() {
    let world = World::new();
    let log = AuditLog::open(&world.folder(), AuditOptions::default(), days(0)).unwrap().0;
    log.append_now(&Entry { at: days(100), ..event(1) }).unwrap();
    log.roll(days(100)).unwrap();
    log.append_now(&Entry { at: days(-10_000), ..event(2) }).unwrap();
    log.roll(days(100)).unwrap();
    log.append_now(&Entry { at: days(100), ..event(3) }).unwrap();
    assert_eq!(log.purge(&order(30, 120)).unwrap().segments, 0);
    assert_eq!(log.purge(&order(30, 140)).unwrap().segments, 2);
    assert_eq!(verify(log.folder(), &[log.head()]).unwrap().verdict, Verdict::Anchored);
}
