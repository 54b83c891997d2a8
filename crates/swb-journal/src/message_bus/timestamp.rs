//! Points in time as the bus files write them: RFC 3339 with nanoseconds and the writer's own offset.
//!
//! Calendar arithmetic is proleptic Gregorian over days since 1970-01-01. The offset is kept as read, because the
//! readers of this format show a record's time in the zone of whoever wrote it. Years outside 0000–9999 do not exist
//! here, so every value can be written in the fixed width that message ids need.
//! Three spellings are read, each as strictly as its place in the format demands: see the three `parse_*` functions.

use std::cmp::Ordering;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

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
        let nanos = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
            Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
        };
        Self::from_unix_nanos(nanos)
    }

    /// The instant this many nanoseconds after 1970, in UTC; values outside the years 0–9999 are clamped to them.
    #[must_use]
    pub fn from_unix_nanos(nanos: i128) -> Self {
        let first = i128::from(FIRST_SECOND) * NANOS_PER_SECOND;
        let last = i128::from(LAST_SECOND) * NANOS_PER_SECOND + (NANOS_PER_SECOND - 1);
        let nanos = nanos.clamp(first, last);
        Self {
            seconds: i64::try_from(nanos.div_euclid(NANOS_PER_SECOND)).unwrap_or(LAST_SECOND),
            nanos: u32::try_from(nanos.rem_euclid(NANOS_PER_SECOND)).unwrap_or(0),
            offset_minutes: 0,
        }
    }

    /// Nanoseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn unix_nanos(self) -> i128 {
        i128::from(self.seconds) * NANOS_PER_SECOND + i128::from(self.nanos)
    }

    /// Appends the text of [`Timestamp`]'s `Display`; for UTC without the formatting machinery, which would take a
    /// good part of the time an append takes.
    pub(super) fn write_to(self, out: &mut Vec<u8>) {
        if self.offset_minutes != 0 {
            out.extend_from_slice(self.to_string().as_bytes());
            return;
        }
        let Civil { year, month, day, hour, minute, second, nanos } = self.civil();
        for (value, width, after) in
            [(year, 4, b'-'), (month, 2, b'-'), (day, 2, b'T'), (hour, 2, b':'), (minute, 2, b':')]
        {
            push_digits(out, value, width);
            out.push(after);
        }
        push_digits(out, second, 2);
        if nanos > 0 {
            out.push(b'.');
            push_digits(out, nanos, 9);
            while out.last() == Some(&b'0') {
                out.pop();
            }
        }
        out.push(b'Z');
    }

    /// The same instant written in UTC.
    #[must_use]
    pub fn to_utc(self) -> Self {
        Self { offset_minutes: 0, ..self }
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

    /// Strict RFC 3339 (`2026-02-23T19:17:10.184887Z`), the form a quoted header value must have.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let mut cursor = Digits(text.as_bytes());
        let (year, month, day) = cursor.date(true)?;
        cursor.literal(b'T')?;
        let (second_of_day, nanos) = cursor.time(true)?;
        let offset = cursor.zone()?;
        cursor.end()?;
        Self::from_fields(year, month, day, second_of_day, nanos, offset)
    }

    /// The forms an unquoted header value may have: RFC 3339 with `T` or `t` and fields of one or two digits;
    /// date, blanks and time without a zone (UTC); or a date alone.
    #[must_use]
    pub fn parse_unquoted(text: &str) -> Option<Self> {
        let mut cursor = Digits(text.as_bytes());
        let (year, month, day) = cursor.date(false)?;
        let (second_of_day, nanos, offset) = match cursor.0.first() {
            None => (0, 0, 0),
            Some(b'T' | b't') => {
                cursor.0 = &cursor.0[1..];
                let (second_of_day, nanos) = cursor.time(false)?;
                (second_of_day, nanos, cursor.zone()?)
            }
            Some(b' ') => {
                cursor.0 = cursor.0.trim_ascii_start();
                let (second_of_day, nanos) = cursor.time(false)?;
                (second_of_day, nanos, 0)
            }
            Some(_) => return None,
        };
        cursor.end()?;
        Self::from_fields(year, month, day, second_of_day, nanos, offset)
    }

    /// The forms inside the brackets of a legacy line: date and time with a blank or `T` between them (UTC), or RFC
    /// 3339 with a zone, which is converted to UTC. A fraction of a second is tolerated.
    #[must_use]
    pub fn parse_legacy(text: &str) -> Option<Self> {
        let mut cursor = Digits(text.as_bytes());
        let (year, month, day) = cursor.date(true)?;
        let separator = *cursor.0.first()?;
        if separator != b' ' && separator != b'T' {
            return None;
        }
        cursor.0 = &cursor.0[1..];
        let (second_of_day, nanos) = cursor.time(true)?;
        let offset = if cursor.0.is_empty() {
            0
        } else if separator == b'T' {
            cursor.zone()?
        } else {
            return None;
        };
        cursor.end()?;
        Self::from_fields(year, month, day, second_of_day, nanos, offset).map(Self::to_utc)
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

/// RFC 3339 with nanoseconds, trailing zeros cut, `Z` for UTC.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day, hour, minute, second, nanos } = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if nanos > 0 {
            let (mut fraction, mut width) = (nanos, 9);
            while fraction % 10 == 0 {
                fraction /= 10;
                width -= 1;
            }
            write!(f, ".{fraction:0width$}")?;
        }
        if self.offset_minutes == 0 {
            return f.write_str("Z");
        }
        let (sign, minutes) =
            if self.offset_minutes < 0 { ('-', -self.offset_minutes) } else { ('+', self.offset_minutes) };
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
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

/// What is left of a text that is mostly digits.
struct Digits<'a>(&'a [u8]);

impl Digits<'_> {
    fn literal(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        (*first == byte).then_some(())
    }

    /// A number of `max` digits, or of fewer when the spelling is not `fixed`.
    fn number(&mut self, max: usize, fixed: bool) -> Option<u32> {
        let len = self.0.iter().take(max).take_while(|byte| byte.is_ascii_digit()).count();
        if len == 0 || (fixed && len < max) {
            return None;
        }
        let (digits, rest) = self.0.split_at(len);
        self.0 = rest;
        Some(digits.iter().fold(0, |value, byte| value * 10 + u32::from(byte - b'0')))
    }

    fn date(&mut self, fixed: bool) -> Option<(u32, u32, u32)> {
        let year = self.number(4, true)?;
        self.literal(b'-')?;
        let month = self.number(2, fixed)?;
        self.literal(b'-')?;
        Some((year, month, self.number(2, fixed)?))
    }

    fn time(&mut self, fixed: bool) -> Option<(i64, u32)> {
        let hour = self.number(2, fixed)?;
        self.literal(b':')?;
        let minute = self.number(2, fixed)?;
        self.literal(b':')?;
        let second = self.number(2, fixed)?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let mut nanos = 0;
        if self.0.first() == Some(&b'.') {
            self.0 = &self.0[1..];
            let len = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if len == 0 {
                return None;
            }
            // Digits past the ninth are below a nanosecond and are dropped.
            for place in 0..9 {
                nanos = nanos * 10 + self.0[..len].get(place).map_or(0, |byte| u32::from(byte - b'0'));
            }
            self.0 = &self.0[len..];
        }
        Some((i64::from(hour * 3600 + minute * 60 + second), nanos))
    }

    fn zone(&mut self) -> Option<i16> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        let sign = match first {
            b'Z' => return Some(0),
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let hours = self.number(2, true)?;
        self.literal(b':')?;
        let minutes = self.number(2, true)?;
        if hours > 23 || minutes > 59 {
            return None;
        }
        i16::try_from(hours * 60 + minutes).ok().map(|minutes| sign * minutes)
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Fixed-width decimal.
pub(super) fn push_digits(out: &mut Vec<u8>, mut value: u32, width: usize) {
    let mut digits = [b'0'; 10];
    for digit in digits[..width].iter_mut().rev() {
        *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
    }
    out.extend_from_slice(&digits[..width]);
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
    fn the_offset_is_kept_and_the_instant_converted() {
        let time = Timestamp::parse_rfc3339("2026-02-23T21:17:10+02:00").unwrap();
        assert_eq!(time.to_string(), "2026-02-23T21:17:10+02:00");
        assert_eq!(time.to_utc().to_string(), "2026-02-23T19:17:10Z");
        assert_eq!(time.civil().hour, 21);
    }

    #[test]
    fn each_spelling_is_read_only_where_the_format_allows_it() {
        for text in [
            "2026-2-3T4:5:6Z",
            "2026-02-03t04:05:06z",
            "2026-02-03 04:05:06",
            "2026-02-03",
            "2026-02-03T04:05:06",
        ] {
            assert!(Timestamp::parse_rfc3339(text).is_none(), "{text}");
        }
        for text in ["2026-2-3T4:5:6Z", "2026-02-03 04:05:06.5", "2026-02-03", "2026-02-03t04:05:06+01:00"] {
            assert!(Timestamp::parse_unquoted(text).is_some(), "{text}");
        }
        for text in
            ["2026-02-03T04:05:06", "2026-02-03 04:05:06Z", "1771874230", "2026-02-30", "2026-13-01", ""]
        {
            assert!(Timestamp::parse_unquoted(text).is_none(), "{text}");
        }
        for text in ["2026-02-03 04:05:06", "2026-02-03T04:05:06.25", "2026-02-03T04:05:06+01:00"] {
            assert!(Timestamp::parse_legacy(text).is_some(), "{text}");
        }
        for text in ["2026-02-03", "2026-02-03 04:05:06Z", "yesterday"] {
            assert!(Timestamp::parse_legacy(text).is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_instant_survives_its_text(seconds in FIRST_SECOND..=LAST_SECOND, nanos in 0u32..1_000_000_000) {
            let time = Timestamp { seconds, nanos, offset_minutes: 0 };
            let back = Timestamp::parse_rfc3339(&time.to_string()).unwrap();
            prop_assert_eq!(back.unix_nanos(), time.unix_nanos());
            let mut written = Vec::new();
            time.write_to(&mut written);
            prop_assert_eq!(String::from_utf8(written).unwrap(), time.to_string());
            prop_assert_eq!(Timestamp::from_unix_nanos(time.unix_nanos()), time);
        }
    }
}
