//! Where an AG-UI event comes from: its time and `metadata["helios.agui.v1"]`, rendered once for all that one event of
//! the bus becomes.

use std::io::Write;

use swb_proto::EventEnvelope;

use super::wire::NAMESPACE;

/// The rest of every frame that is made from one event, from behind the last field on.
#[derive(Debug, Default)]
pub(super) struct Provenance {
    tail: Vec<u8>,
    /// The last stamp that was read; events of a burst share one.
    stamp: (String, Option<i64>),
}

impl Provenance {
    /// What follows comes from this event.
    pub(super) fn of(&mut self, event: &EventEnvelope) {
        if self.stamp.0 != event.ts.as_str() {
            self.stamp = (event.ts.as_str().to_owned(), unix_millis(event.ts.as_str()));
        }
        self.tail.clear();
        let tail = &mut self.tail;
        if let Some(millis) = self.stamp.1 {
            let _ = write!(tail, ",\"timestamp\":{millis}");
        }
        let _ = write!(
            tail,
            ",\"metadata\":{{\"{NAMESPACE}\":{{\"namespace\":\"{NAMESPACE}\",\"event_id\":\"{}\",\"topic\":\"{}\",\"seq\":{}",
            event.id, event.topic, event.seq
        );
        if let Some(sequence) = event.sequence {
            let _ = write!(tail, ",\"sequence\":{sequence}");
        }
        if let Some(correlation) = &event.correlation_id {
            let _ = write!(tail, ",\"correlation_id\":\"{correlation}\"");
        }
        tail.extend_from_slice(b"}}");
    }

    /// What follows is said by the endpoint itself, about this run. Ids have a grammar that needs no escapes.
    pub(super) fn of_run(&mut self, session_id: &str, run_id: &str) {
        self.tail.clear();
        let _ = write!(
            self.tail,
            ",\"metadata\":{{\"{NAMESPACE}\":{{\"namespace\":\"{NAMESPACE}\",\"session_id\":\"{session_id}\",\"run_id\":\"{run_id}\"}}}}",
        );
    }

    pub(super) fn tail(&self) -> &[u8] {
        &self.tail
    }
}

/// The milliseconds since 1970 of a stamp. Strict about nothing: what is on the bus has been checked.
pub(super) fn unix_millis(stamp: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| stamp.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let seconds = number(11..13)? * 3600 + number(14..16)? * 60 + number(17..19)?;
    let rest = stamp.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?),
        None => ("", rest),
    };
    let millis =
        fraction.bytes().chain(*b"000").take(3).fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    let offset = match zone.as_bytes() {
        [sign @ (b'+' | b'-'), ..] => {
            let minutes = zone.get(1..3)?.parse::<i64>().ok()? * 60 + zone.get(4..6)?.parse::<i64>().ok()?;
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => 0,
    };
    // Days since 1970, in years that begin with March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + day_of_era - 719_468;
    Some((days * 86_400 + seconds - offset * 60) * 1000 + millis)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;
    use swb_proto::Timestamp;

    use super::*;

    #[test]
    fn stamps_of_others_are_read_too() {
        assert_eq!(unix_millis("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_millis("1969-12-31T23:59:59.5Z"), Some(-500));
        assert_eq!(unix_millis("2026-02-26T02:00:00.080123+02:00"), Some(1_772_064_000_080));
        assert_eq!(unix_millis("2026-02-25T17:30:00-06:30"), Some(1_772_064_000_000));
        for bad in ["", "2026", "2026-02-26T00:00:00.", "2026-02-26T00:00:0é"] {
            assert_eq!(unix_millis(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_stamp_of_ours_reads_back(millis in 0u64..253_402_300_800_000) {
            let stamp = Timestamp::from_system_time(UNIX_EPOCH + Duration::from_millis(millis));
            prop_assert_eq!(unix_millis(stamp.as_str()), i64::try_from(millis).ok());
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC{0,40}") { unix_millis(&text); }
    }
}
