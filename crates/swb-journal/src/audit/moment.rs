//! When something was recorded: milliseconds, written as RFC 3339 in UTC with exactly three decimals.
//!
//! It is what the clock said. The order of records is their numbers; a clock that is set back changes nothing about it.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::message_bus::Timestamp;

/// A moment, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(i64);

impl Moment {
    /// The wall clock.
    #[must_use]
    pub fn now() -> Self {
        Self::from_timestamp(Timestamp::now())
    }

    /// So many milliseconds after 1970; outside the years 0–9999 the nearest that is inside.
    #[must_use]
    pub fn from_unix_millis(millis: i64) -> Self {
        Self::from_timestamp(Timestamp::from_unix_millis(millis))
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn unix_millis(self) -> i64 {
        self.0
    }

    /// RFC 3339 with any zone.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Timestamp::parse_rfc3339(text).map(Self::from_timestamp)
    }

    /// So many whole days earlier.
    #[must_use]
    pub fn days_before(self, days: u32) -> Self {
        Self::from_unix_millis(self.0 - i64::from(days) * 86_400_000)
    }

    fn from_timestamp(timestamp: Timestamp) -> Self {
        Moment(timestamp.unix_millis())
    }

    fn ascii(self) -> [u8; 24] {
        let civil = Timestamp::from_unix_millis(self.0).civil();
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let fields = [
            (0, 4, civil.year),
            (5, 2, civil.month),
            (8, 2, civil.day),
            (11, 2, civil.hour),
            (14, 2, civil.minute),
            (17, 2, civil.second),
            (20, 3, civil.nanos / 1_000_000),
        ];
        for (from, width, mut value) in fields {
            for digit in text[from..from + width].iter_mut().rev() {
                *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
                value /= 10;
            }
        }
        text
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.ascii()).unwrap_or_default())
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.ascii()).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Moment::parse(&text).ok_or_else(|| D::Error::custom("not an RFC 3339 timestamp with a zone"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_is_written_in_utc_with_three_decimals() {
        assert_eq!(Moment::from_unix_millis(1_763_202_276_007).to_string(), "2025-11-15T10:24:36.007Z");
        assert_eq!(
            Moment::parse("2025-11-15T11:24:36.0079+01:00"),
            Some(Moment::from_unix_millis(1_763_202_276_007))
        );
        assert_eq!(Moment::parse("2025-11-15T11:24:36"), None);
    }

    proptest! {
        #[test]
        fn it_reads_back(millis in any::<i64>()) {
            let moment = Moment::from_unix_millis(millis);
            prop_assert_eq!(Moment::parse(&moment.to_string()), Some(moment));
            let json = serde_json::to_string(&moment).unwrap();
            prop_assert_eq!(serde_json::from_str::<Moment>(&json).unwrap(), moment);
        }
    }
}
