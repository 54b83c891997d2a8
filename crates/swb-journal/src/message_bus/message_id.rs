//! Message ids: `MSG-YYYYMMDD-HHMMSS-nnnnnnnnn-PIDppppp-cccc`, 43 characters, in UTC.
//!
//! An id is the time it was issued, the process and a process-wide counter. The time part is fixed width and comes
//! first, so ids compare as text in the order of their times. [`next_after`] never issues a time at or below the
//! newest one already in the file; called under the file's lock it makes id order equal file order.

use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::timestamp::{Civil, Timestamp, push_digits};

/// The first value is 0001; all buses of the process share the counter.
static COUNTER: AtomicU32 = AtomicU32::new(1);

/// Asked for once: it is a system call, and every message needs it.
static PROCESS: LazyLock<u32> = LazyLock::new(|| std::process::id() % 100_000);

/// The id of a message on a bus.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(String);

impl MessageId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text itself.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Ids come from files that others wrote too, so any text is one.
impl From<String> for MessageId {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for MessageId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// The time part of an id of this shape, as nanoseconds since 1970.
pub(super) fn issued_at(id: &str) -> Option<i128> {
    let bytes = id.as_bytes();
    if bytes.len() != 43 || &bytes[..4] != b"MSG-" || &bytes[29..33] != b"-PID" {
        return None;
    }
    if [bytes[12], bytes[19], bytes[38]] != [b'-'; 3] {
        return None;
    }
    let number = |range: std::ops::Range<usize>| {
        bytes[range]
            .iter()
            .try_fold(0_u32, |value, byte| byte.is_ascii_digit().then(|| value * 10 + u32::from(byte - b'0')))
    };
    let civil = Civil {
        year: number(4..8)?,
        month: number(8..10)?,
        day: number(10..12)?,
        hour: number(13..15)?,
        minute: number(15..17)?,
        second: number(17..19)?,
        nanos: number(20..29)?,
    };
    Timestamp::from_civil_utc(civil).map(Timestamp::unix_nanos)
}

/// A fresh id whose time part is `now`, or one nanosecond past `newest` if the clock has not moved beyond it.
///
/// Returns the id and its time part. At the end of the year 9999 there is no later time: the clock is used then.
pub(super) fn next_after(newest: Option<i128>, now: Timestamp) -> (MessageId, i128) {
    let now = now.unix_nanos();
    let wanted = newest.map_or(now, |newest| now.max(newest + 1));
    let mut time = Timestamp::from_unix_nanos(wanted);
    if time.unix_nanos() != wanted {
        time = Timestamp::from_unix_nanos(now);
    }
    let count = COUNTER.fetch_add(1, Ordering::Relaxed) % 10_000;
    (MessageId(spell(time, *PROCESS, count)), time.unix_nanos())
}

fn spell(time: Timestamp, pid: u32, count: u32) -> String {
    let Civil { year, month, day, hour, minute, second, nanos } = time.civil();
    let mut id = Vec::with_capacity(43);
    id.extend_from_slice(b"MSG-");
    push_digits(&mut id, year, 4);
    push_digits(&mut id, month, 2);
    push_digits(&mut id, day, 2);
    id.push(b'-');
    push_digits(&mut id, hour, 2);
    push_digits(&mut id, minute, 2);
    push_digits(&mut id, second, 2);
    id.push(b'-');
    push_digits(&mut id, nanos, 9);
    id.extend_from_slice(b"-PID");
    push_digits(&mut id, pid, 5);
    id.push(b'-');
    push_digits(&mut id, count, 4);
    // Digits and letters only.
    String::from_utf8(id).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_the_43_character_shape() {
        let time = Timestamp::parse_rfc3339("2026-11-15T07:50:00.153429587Z").unwrap();
        assert_eq!(spell(time, 13_843, 1), "MSG-20261115-075000-153429587-PID13843-0001");
        assert_eq!(issued_at("MSG-20261115-075000-153429587-PID13843-0001"), Some(time.unix_nanos()));
    }

    #[test]
    fn a_clock_that_steps_back_does_not_issue_a_lower_id() {
        let early = Timestamp::parse_rfc3339("2020-01-01T00:00:00Z").unwrap();
        let newest = issued_at("MSG-20261115-075000-153429587-PID13843-0001");
        let (id, time) = next_after(newest, early);
        assert!(id.as_str() > "MSG-20261115-075000-153429587-PID13843-0001");
        assert_eq!(Some(time - 1), newest);
    }

    #[test]
    fn foreign_shapes_carry_no_time() {
        for id in [
            "",
            "LEGACY-LINE-000000001",
            "MSG-20261115-075000-15342958x-PID13843-0001",
            "ü".repeat(22).as_str(),
        ] {
            assert_eq!(issued_at(id), None, "{id}");
        }
    }
}
