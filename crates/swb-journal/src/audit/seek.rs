//! Finding a record in a segment by halving it.
//!
//! Every line begins with its number and the highest event so far, and both only rise; so whether a wanted record stands
//! before or behind any byte is answered by the next line that begins there. Sixteen small reads find a record in a
//! segment of 16 MiB, and there is no index that could be missing, stale or wrong.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::line::{MAX_LINE_BYTES, PLACE_BYTES, Place, place_of};

/// What is read on rather than halved.
const NEAR_BYTES: u64 = 32 << 10;
const WINDOW_BYTES: usize = 4 << 10;

/// An offset from which a line begins, at or before the first record for which `reached` holds and not far from it.
/// `from` is where the first record begins.
pub(super) fn near(file: &File, from: u64, reached: impl Fn(&Place) -> bool) -> io::Result<u64> {
    let (mut low, mut high) = (from, file.metadata()?.len());
    while high.saturating_sub(low) > NEAR_BYTES {
        let middle = low + (high - low) / 2;
        match line_behind(file, middle, high)? {
            Some((offset, place)) if !reached(&place) => low = offset,
            // It is reached there, or nothing is known: what we look for may stand before.
            _ => high = middle,
        }
    }
    Ok(low)
}

/// The first line that begins behind an offset, and its place.
fn line_behind(file: &File, offset: u64, end: u64) -> io::Result<Option<(u64, Place)>> {
    let mut window = vec![0; WINDOW_BYTES + PLACE_BYTES];
    let mut at = offset;
    while at < end && at - offset <= MAX_LINE_BYTES as u64 {
        let count = read_up_to(file, &mut window, at)?;
        let Some(newline) = memchr::memchr(b'\n', &window[..count.min(WINDOW_BYTES)]) else {
            if count < window.len() {
                return Ok(None);
            }
            at += WINDOW_BYTES as u64;
            continue;
        };
        let begins = at + newline as u64 + 1;
        return Ok(place_of(&window[newline + 1..count]).map(|place| (begins, place)));
    }
    Ok(None)
}

fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::super::hash::ChainHash;
    use super::super::line::push_record;
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
        #[test]
        fn the_wanted_record_is_never_passed_and_is_near(
            sizes in prop::collection::vec(prop_oneof![8 => 1usize..900, 1 => 1usize..60_000], 1..400),
            wanted in 0u64..420,
        ) {
            let (mut bytes, mut starts) = (b"a header\n".to_vec(), Vec::new());
            for (n, size) in sizes.iter().enumerate() {
                starts.push(bytes.len() as u64);
                let place = Place { number: n as u64 + 1, prev: ChainHash::NONE, seq: n as u64 / 3 };
                let body = format!(r#""kind":"event","x":"{}""#, "x".repeat(*size));
                push_record(place, |out| out.extend_from_slice(&[b'0'; 16]), body.as_bytes(), &mut bytes);
            }
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            for by_seq in [false, true] {
                let reached = |place: &Place| if by_seq { place.seq >= wanted / 3 } else { place.number >= wanted };
                let found = near(&file, 9, reached).unwrap();
                prop_assert!(found == 9 || starts.contains(&found), "a line begins there");
                let first = usize::try_from(if by_seq { (wanted / 3) * 3 } else { wanted.saturating_sub(1) }).unwrap();
                let at = starts.get(first).copied().unwrap_or(bytes.len() as u64);
                prop_assert!(found <= at, "{found} is behind {at}");
                let longest = sizes.iter().max().unwrap() + 400;
                prop_assert!(at - found <= NEAR_BYTES + 2 * longest as u64, "{found} is far before {at}");
            }
        }
    }
}
