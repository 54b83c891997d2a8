//! A writer that is killed at any moment, again and again, on the same log.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;

use proptest::prelude::*;
use swb_journal::audit::{
    AuditLog, AuditOptions, ChainHash, Durability, Entry, Head, Kind, Moment, Status, Verdict,
};

use crate::support::{World, child, end, said, small, start};

#[test]
#[ignore = "runs as a child of the tests in this file"]
fn child_writer() {
    let var = |name: &str| std::env::var(name).unwrap();
    let durability = if var("SWB_SYNCED") == "1" { Durability::Synced } else { Durability::Written };
    let options = AuditOptions { durability, ..small(8000) };
    let (log, opened) = AuditLog::open(var("SWB_LOG").as_ref(), options, Moment::now()).unwrap();
    // Whoever opens the log ends what the one before left open.
    for of in opened.unfinished {
        let begun = start(0);
        log.append_now(&Entry::end(Moment::now(), of, Status::Interrupted, &begun)).unwrap();
    }
    let out = Mutex::new(std::io::stdout());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (log, out) = (&log, &out);
            scope.spawn(move || {
                let say = |receipt: swb_journal::audit::Receipt| {
                    let mut out = out.lock().unwrap();
                    writeln!(out, "ACK {} {}", receipt.number, receipt.hash).unwrap();
                    out.flush().unwrap();
                };
                for n in 0..1_000_000 {
                    let entry = start(thread * 1_000_000 + n);
                    let receipt = log.append_now(&entry).unwrap();
                    say(receipt);
                    say(log.append_now(&end(receipt.number, &entry)).unwrap());
                }
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn killed_writers_lose_nothing_acknowledged_and_double_nothing(
        kills in prop::collection::vec(0usize..400, 2..5),
        synced in any::<bool>(),
    ) {
        let world = World::new();
        let vars = [("SWB_LOG", world.folder().display().to_string()), ("SWB_SYNCED", u8::from(synced).to_string())];
        let mut acked = BTreeMap::new();
        for after in &kills {
            let mut child = child("", "processes::child_writer", &vars);
            let mut lines = said(&mut child, "ACK ");
            let mut told: Vec<String> = lines.by_ref().take(*after + 1).collect();
            child.kill().unwrap();
            told.extend(lines);
            child.wait().unwrap();
            for line in told {
                // The last line may have been cut by the kill.
                if let Some((number, hash)) = line.split_once(' ').filter(|(_, hash)| hash.len() == 64) {
                    let number: u64 = number.parse().unwrap();
                    prop_assert_eq!(acked.insert(number, hash.to_owned()), None, "{} was given out twice", number);
                }
            }
        }
        let (log, opened) = world.open_with(small(8000));
        for of in opened.unfinished {
            log.append_now(&Entry::end(Moment::now(), of, Status::Interrupted, &start(0))).unwrap();
        }
        drop(log);
        let records = world.records();
        for (place, record) in records.iter().enumerate() {
            prop_assert_eq!(record.number, place as u64 + 1, "no number is missing or doubled");
        }
        for (number, hash) in &acked {
            let record = &records[usize::try_from(*number).unwrap() - 1];
            prop_assert_eq!(&record.hash.to_string(), hash, "record {} was told to be another one", number);
        }
        // Every command that has begun has ended, once.
        let mut open: BTreeMap<u64, u32> = BTreeMap::new();
        for record in &records {
            match record.entry.kind {
                Kind::Start => drop(open.insert(record.number, 0)),
                Kind::End => *open.get_mut(&record.entry.of.unwrap()).unwrap() += 1,
                _ => {}
            }
        }
        prop_assert!(open.values().all(|ends| *ends == 1));
        let chain = world.reader().head().unwrap().unwrap().chain;
        let anchors: Vec<Head> = acked.iter().step_by(50).map(|(number, hash)| {
            Head { chain: chain.clone(), number: *number, hash: hash.parse::<ChainHash>().unwrap() }
        }).collect();
        let report = world.verify(&anchors);
        prop_assert_eq!(report.verdict, Verdict::Anchored, "{:?}", report.findings);
    }
}
