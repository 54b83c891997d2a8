//! Points in time as the bus files write them: RFC 3339 with nanoseconds and the writer's own offset.
//!
//! Calendar arithmetic is proleptic Gregorian over days since 1970-01-01. The offset is kept as read, because the
//! readers of this format show a record's time in the zone of whoever wrote it. Years outside 0000–9999 do not exist
//! here, so every value can be written in the fixed width that message ids need. `text` writes them, `spellings` reads
//! them.

mod spellings;
mod text;

use std::cmp::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) use text::push_digits;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// 9999-12-31T23:59:59Z, the last second that fits the format.
const LAST_SECOND: i64 = 253_402_300_799;
/// 0000-01-01T00:00:00Z.
const FIRST_SECOND: i64 = -62_167_219_200;

/// An instant with nanoseconds and the UTC offset it was written with.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    offset_minutes: i16,
}

impl Timestamp {
    /// The wall clock, in UTC.
    #[must_use]
    pub fn now() -> Self {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => Self::of(i64::try_from(after.as_secs()).unwrap_or(i64::MAX), after.subsec_nanos()),
            Err(before) => {
                Self::from_unix_nanos(-i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX))
            }
        }
    }

    /// The instant this many nanoseconds after 1970, in UTC; values outside the years 0–9999 are clamped to them.
    #[must_use]
    pub fn from_unix_nanos(nanos: i128) -> Self {
        let seconds = nanos.div_euclid(NANOS_PER_SECOND);
        let seconds = i64::try_from(seconds).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX });
        Self::of(seconds, u32::try_from(nanos.rem_euclid(NANOS_PER_SECOND)).unwrap_or(0))
    }

    /// The instant this many milliseconds after 1970, likewise.
    #[must_use]
    pub fn from_unix_millis(millis: i64) -> Self {
        let nanos = u32::try_from(millis.rem_euclid(1000)).unwrap_or(0) * 1_000_000;
        Self::of(millis.div_euclid(1000), nanos)
    }

    fn of(seconds: i64, nanos: u32) -> Self {
        let (seconds, nanos) = match seconds {
            ..FIRST_SECOND => (FIRST_SECOND, 0),
            FIRST_SECOND..=LAST_SECOND => (seconds, nanos),
            _ => (LAST_SECOND, 999_999_999),
        };
        Self { seconds, nanos, offset_minutes: 0 }
    }

    /// Whole milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn unix_millis(self) -> i64 {
        self.seconds * 1000 + i64::from(self.nanos / 1_000_000)
    }

    /// Nanoseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn unix_nanos(self) -> i128 {
        i128::from(self.seconds) * NANOS_PER_SECOND + i128::from(self.nanos)
    }

    /// The same instant written in UTC.
    #[must_use]
    pub fn to_utc(self) -> Self {
        // An offset may have led from the last year to the one after it.
        Self::of(self.seconds, self.nanos)
    }

    /// The UTC offset in minutes it was written with.
    #[must_use]
    pub fn offset_minutes(self) -> i16 {
        self.offset_minutes
    }

    /// Wall-clock fields in the timestamp's own offset.
    #[must_use]
    pub fn civil(self) -> Civil {
        let local = self.seconds + i64::from(self.offset_minutes) * 60;
        let (days, second) = (local.div_euclid(SECONDS_PER_DAY), local.rem_euclid(SECONDS_PER_DAY));
        let (year, month, day) = civil_from_days(days);
        let narrow = |value: i64| u32::try_from(value).unwrap_or(0);
        Civil {
            year,
            month,
            day,
            hour: narrow(second / 3600),
            minute: narrow(second / 60 % 60),
            second: narrow(second % 60),
            nanos: self.nanos,
        }
    }

    /// The instant with these fields in UTC, if the calendar has it.
    #[must_use]
    pub fn from_civil_utc(civil: Civil) -> Option<Self> {
        let Civil { year, month, day, hour, minute, second, nanos } = civil;
        if year > 9999 || hour > 23 || minute > 59 || second > 59 || nanos > 999_999_999 {
            return None;
        }
        Self::from_fields(year, month, day, i64::from(hour * 3600 + minute * 60 + second), nanos, 0)
    }

    fn from_fields(
        year: u32,
        month: u32,
        day: u32,
        second_of_day: i64,
        nanos: u32,
        offset: i16,
    ) -> Option<Self> {
        if !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
            return None;
        }
        let local = days_from_civil(year, month, day) * SECONDS_PER_DAY + second_of_day;
        Some(Self { seconds: local - i64::from(offset) * 60, nanos, offset_minutes: offset })
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Ordered by the instant, whatever the offset.
impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

/// Wall-clock fields of a [`Timestamp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the calendar word it names")]
pub struct Civil {
    pub year: u32,
    pub month: u32,
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    pub nanos: u32,
}

fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01; years begin in March so that the leap day comes last and needs no special case.
fn days_from_civil(year: u32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (u32, u32, u32) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let narrow = |value: i64| u32::try_from(value).unwrap_or(0);
    let month = narrow((shifted_month + 2) % 12 + 1);
    let day = narrow(day_of_year - (153 * shifted_month + 2) / 5 + 1);
    (narrow(era * 400 + year_of_era + i64::from(month <= 2)), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_instants_print_and_parse() {
        for (nanos, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00Z"),
            (1_771_874_230_184_887_000, "2026-02-23T19:17:10.184887Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
        ] {
            assert_eq!(Timestamp::from_unix_nanos(nanos).to_string(), text);
            assert_eq!(Timestamp::parse_rfc3339(text).unwrap().unix_nanos(), nanos);
        }
    }

    #[test]
    fn what_no_year_has_is_the_nearest_that_one_has() {
        for (nanos, text) in
            [(i128::MIN, "0000-01-01T00:00:00Z"), (i128::MAX, "9999-12-31T23:59:59.999999999Z")]
        {
            assert_eq!(Timestamp::from_unix_nanos(nanos).to_string(), text);
        }
        for (millis, text) in [
            (i64::MIN, "0000-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (i64::MAX, "9999-12-31T23:59:59.999999999Z"),
        ] {
            assert_eq!(Timestamp::from_unix_millis(millis).to_string(), text);
        }
    }

    #[test]
    fn the_offset_is_kept_and_the_instant_converted() {
        let time = Timestamp::parse_rfc3339("2026-02-23T21:17:10+02:00").unwrap();
        assert_eq!(time.to_string(), "2026-02-23T21:17:10+02:00");
        assert_eq!(time.to_utc().to_string(), "2026-02-23T19:17:10Z");
        assert_eq!(time.civil().hour, 21);
        for (own, utc) in [
            ("9999-12-31T23:59:59.5-01:00", "9999-12-31T23:59:59.999999999Z"),
            ("0000-01-01T00:00:00+01:00", "0000-01-01T00:00:00Z"),
        ] {
            let time = Timestamp::parse_rfc3339(own).unwrap();
            assert_eq!((time.to_string(), time.to_utc().to_string()), (own.to_owned(), utc.to_owned()));
        }
    }

    /// The same text in the usual way.
    fn spelled(time: Timestamp) -> String {
        let Civil { year, month, day, hour, minute, second, nanos } = time.civil();
        let fraction = if nanos == 0 { String::new() } else { format!(".{nanos:09}") };
        let fraction = fraction.trim_end_matches('0');
        let (sign, minutes) = (if time.offset_minutes < 0 { '-' } else { '+' }, time.offset_minutes.abs());
        let zone = match minutes {
            0 => "Z".to_owned(),
            _ => format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
        };
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}")
    }

    proptest! {
        #[test]
        fn every_instant_survives_its_text(
            seconds in FIRST_SECOND..=LAST_SECOND,
            nanos in prop_oneof![0u32..1_000_000_000, (0u32..1000).prop_map(|millis| millis * 1_000_000)],
            offset_minutes in prop_oneof![Just(0i16), -1439i16..1440],
        ) {
            // An offset does not lead out of the years there are.
            prop_assume!((FIRST_SECOND..=LAST_SECOND).contains(&(seconds + i64::from(offset_minutes) * 60)));
            let time = Timestamp { seconds, nanos, offset_minutes };
            let text = time.to_string();
            let back = Timestamp::parse_rfc3339(&text).unwrap();
            prop_assert_eq!((back.unix_nanos(), back.offset_minutes()), (time.unix_nanos(), offset_minutes));
            prop_assert_eq!(text, spelled(time));
            prop_assert_eq!(Timestamp::from_unix_nanos(time.unix_nanos()), time);
        }
    }
}
