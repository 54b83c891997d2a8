//! Wall-clock stamps on the wire: RFC 3339 with a zone, milliseconds, always `Z` when we write them.
//!
//! Reading is strict (a stamp without a zone, or of a day that does not exist, is refused) and keeps the text as it came:
//! a relay must not change somebody else's stamp. Writing is by hand because it is on the path of every response.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A moment as text, e.g. `2026-02-26T00:00:00.000Z`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct Timestamp(
    #[schemars(regex(pattern = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$"))]
    String,
);

/// The text is not a stamp with a zone, or names no real moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 timestamp with a zone")]
pub struct InvalidTimestamp;

impl Timestamp {
    /// The stamp of a system time, in UTC with milliseconds. Times before 1970 are clamped to it.
    pub fn from_system_time(time: SystemTime) -> Self {
        Timestamp(std::str::from_utf8(&millis_ascii(time)).unwrap_or_default().to_owned())
    }

    /// The text as it stands on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The bytes of [`Timestamp::from_system_time`], without an allocation.
pub fn millis_ascii(time: SystemTime) -> [u8; 24] {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (seconds, millis) = (since.as_secs(), u64::from(since.subsec_millis()));
    let (year, month, day) = civil_from_days(seconds / 86_400);
    let second_of_day = seconds % 86_400;
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let mut put2 = |at: usize, value: u64| {
        text[at] = digit(value / 10);
        text[at + 1] = digit(value);
    };
    put2(0, year / 100);
    put2(2, year % 100);
    put2(5, month);
    put2(8, day);
    put2(11, second_of_day / 3600);
    put2(14, second_of_day / 60 % 60);
    put2(17, second_of_day % 60);
    put2(20, millis / 10);
    text[22] = digit(millis);
    text
}

fn digit(value: u64) -> u8 {
    b'0' + u8::try_from(value % 10).unwrap_or(0)
}

/// Days since 1970-01-01 to year, month, day (proleptic Gregorian, eras of 400 years counted from March).
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidTimestamp;
    fn try_from(text: String) -> Result<Self, InvalidTimestamp> {
        if is_valid(&text) { Ok(Timestamp(text)) } else { Err(InvalidTimestamp) }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether `text` is `YYYY-MM-DDThh:mm:ss[.f{1,9}](Z|±hh:mm)` and names a real moment.
pub fn is_valid(text: &str) -> bool {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| -> Option<u32> {
        bytes
            .get(range)?
            .iter()
            .try_fold(0u32, |sum, b| b.is_ascii_digit().then(|| sum * 10 + u32::from(b - b'0')))
    };
    let fixed = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if fixed.iter().any(|(at, byte)| bytes.get(*at) != Some(byte)) {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let (Some(hour), Some(minute), Some(second)) = (number(11..13), number(14..16), number(17..19)) else {
        return false;
    };
    let mut rest = &bytes[19..];
    if let [b'.', fraction @ ..] = rest {
        let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
        if !(1..=9).contains(&digits) {
            return false;
        }
        rest = &fraction[digits..];
    }
    let zone_is_real = match rest {
        b"Z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit())
                && (h1 - b'0') * 10 + (h2 - b'0') <= 23
                && (m1 - b'0') * 10 + (m2 - b'0') <= 59
        }
        _ => false,
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    zone_is_real && (1..=days_in_month).contains(&day) && hour <= 23 && minute <= 59 && second <= 59
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64, millis: u64) -> String {
        Timestamp::from_system_time(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + millis)).0
    }

    #[test]
    fn known_moments_are_written_as_everyone_writes_them() {
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400, 7), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_772_064_000, 80), "2026-02-26T00:00:00.080Z");
        assert_eq!(at(4_102_444_799, 999), "2099-12-31T23:59:59.999Z");
    }

    #[test]
    fn a_stamp_needs_a_zone_and_a_real_day() {
        for good in
            ["2026-02-26T00:00:00Z", "2026-02-26T00:00:00.123456789+00:00", "2024-02-29T23:59:59-07:30"]
        {
            assert!(is_valid(good), "{good}");
        }
        for bad in [
            "",
            "2026-02-26",
            "2026-02-26T00:00:00",
            "2026-02-26T00:00:00.Z",
            "2026-02-26T00:00:00.1234567890Z",
            "2026-02-30T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01t00:00:00Z",
            " 2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00Z ",
            "2026-01-01T00:00:00+0000",
            "２026-01-01T00:00:00Z",
        ] {
            assert!(!is_valid(bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_we_write_we_read(ms in 0u64..253_402_300_800_000) {
            prop_assert!(is_valid(&at(ms / 1000, ms % 1000)));
        }
        #[test]
        fn stamps_sort_as_time_does(a in 0u64..253_402_300_800_000, b in 0u64..253_402_300_800_000) {
            prop_assert_eq!(at(a / 1000, a % 1000).cmp(&at(b / 1000, b % 1000)), a.cmp(&b));
        }
        #[test]
        fn any_text_is_judged_without_a_panic(text in "\\PC*") { is_valid(&text); }
    }
}
