//! A disk that is full: the log stops, says so, loses nothing that it had acknowledged, and goes on after a new start.

use std::io::Write;

use swb_journal::audit::{AppendError, AuditLog, AuditOptions, Durability, Moment, Verdict};

use crate::support::{World, child, event, said};

#[test]
#[ignore = "runs as a child of the tests in this file"]
fn child_on_a_full_disk() {
    let var = |name: &str| std::env::var(name).unwrap();
    let durability = if var("SWB_SYNCED") == "1" { Durability::Synced } else { Durability::Written };
    let options = AuditOptions { durability, ..AuditOptions::default() };
    let log = AuditLog::open(var("SWB_LOG").as_ref(), options, Moment::now()).unwrap().0;
    let mut out = std::io::stdout().lock();
    let error = (1..1_000_000)
        .find_map(|n| match log.append_now(&event(n)) {
            Ok(receipt) => {
                writeln!(out, "SAID acked {}", receipt.number).unwrap();
                None
            }
            Err(error) => Some(error),
        })
        .unwrap();
    assert!(matches!(&error, AppendError::Poisoned(_)), "{error}");
    writeln!(out, "SAID {error}: {}", std::error::Error::source(&error).unwrap()).unwrap();
    // However much room there may be again: what the file holds is not known, so nothing is added to it.
    for n in 0..10 {
        assert!(matches!(log.append_now(&event(n)), Err(AppendError::Poisoned(_))));
    }
    assert!(log.check().is_err() && log.sync().is_err());
    assert!(log.append(&event(1)).is_err());
    writeln!(out, "SAID refused").unwrap();
}

#[test]
fn a_full_disk_poisons_the_log_and_nothing_acknowledged_is_lost() {
    for synced in ["0", "1"] {
        let world = World::new();
        let vars = [("SWB_LOG", world.folder().display().to_string()), ("SWB_SYNCED", synced.to_owned())];
        // Files end at some tens of kilobytes; the signal about it is ignored, so that the write fails as on a full disk.
        let mut child = child("trap '' XFSZ; ulimit -f 40;", "disk::child_on_a_full_disk", &vars);
        let mut said: Vec<String> = said(&mut child, "SAID ").collect();
        assert!(child.wait().unwrap().success());
        assert_eq!(said.pop().unwrap(), "refused");
        let error = said.pop().unwrap();
        assert!(error.starts_with("the audit log takes no more records: cannot write "), "{error}");
        let acked = said.len() as u64;
        assert!(acked > 10, "{acked}");

        assert!(world.verify(&[]).torn_tail.is_some(), "the write that failed had begun");
        let (log, opened) = world.open_with(AuditOptions::default());
        assert!(opened.cut.is_some());
        let records = world.records();
        assert!(records.len() as u64 > acked);
        assert!(records.iter().take(said.len()).zip(1..).all(|(record, n)| record.entry == event(n)));
        log.append_now(&event(7)).unwrap();
        assert_eq!(world.verify(&[log.head()]).verdict, Verdict::Anchored);
    }
}

#[test]
fn a_folder_that_cannot_be_written_stops_the_log_at_the_next_segment() {
    use crate::support::small;
    let world = World::new();
    let log = world.open_with(small(2000)).0;
    for n in 1..=2 {
        log.append_now(&event(n)).unwrap();
    }
    // The next segment's name is taken by something else.
    let next = world.folder().join("00000002-000000000005.jsonl");
    for n in 3..10 {
        let name = world.folder().join(format!("00000002-{n:012}.jsonl"));
        std::fs::create_dir(name).unwrap();
    }
    let error = (3..10).find_map(|n| log.append_now(&event(n)).err()).unwrap();
    assert!(matches!(error, AppendError::Poisoned(_)), "{error}");
    assert!(next.exists());
    assert!(log.append(&event(9)).is_err());
}
