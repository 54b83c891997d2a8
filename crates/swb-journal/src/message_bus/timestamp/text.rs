//! The text of a time: RFC 3339 with nanoseconds, trailing zeros cut, `Z` for UTC.
//!
//! Written digit by digit. The formatting machinery would take a good part of the time that an append takes.

use std::fmt;

use super::{Civil, Timestamp};

/// The longest is `9999-12-31T23:59:59.999999999+23:59`.
const LONGEST: usize = 35;

impl Timestamp {
    /// Appends the text.
    pub(in crate::message_bus) fn write_to(self, out: &mut Vec<u8>) {
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
        if self.offset_minutes == 0 {
            return out.push(b'Z');
        }
        out.push(if self.offset_minutes < 0 { b'-' } else { b'+' });
        let minutes = u32::from(self.offset_minutes.unsigned_abs());
        push_digits(out, minutes / 60, 2);
        out.push(b':');
        push_digits(out, minutes % 60, 2);
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(LONGEST);
        self.write_to(&mut text);
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// Fixed-width decimal.
pub(in crate::message_bus) fn push_digits(out: &mut Vec<u8>, mut value: u32, width: usize) {
    let mut digits = [b'0'; 10];
    for digit in digits[..width].iter_mut().rev() {
        *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
    }
    out.extend_from_slice(&digits[..width]);
}
