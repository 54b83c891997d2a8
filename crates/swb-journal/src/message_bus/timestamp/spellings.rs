//! The three spellings of a time that are read, each as strictly as its place in the format demands.

use super::Timestamp;

impl Timestamp {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
