//! Request ids: random UUIDs without a system call each.
//!
//! Each thread draws its seed from the system once and counts on from there through a mixing function, so ids are
//! unique in practice but not secret. Nothing is ever granted for knowing one.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use uuid::{Builder, Uuid};

/// A table of requests by their id.
pub(crate) type ById<T> = HashMap<u128, T, BuildHasherDefault<RandomKey>>;

/// Ids are random already: their low bits are as good as a hash.
#[derive(Debug, Default)]
pub(crate) struct RandomKey(u64);

impl Hasher for RandomKey {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u128");
    }
    #[expect(clippy::cast_possible_truncation, reason = "the low half is the hash")]
    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

thread_local! {
    static STATE: Cell<[u64; 2]> = Cell::new([seed(), seed()]);
}

fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A fresh random id.
pub(crate) fn next() -> Uuid {
    let [high, low] = random_pair();
    Builder::from_random_bytes(((u128::from(high) << 64) | u128::from(low)).to_be_bytes()).into_uuid()
}

/// 128 random bits, for ids that need fewer.
pub(crate) fn random_bits() -> u128 {
    let [high, low] = random_pair();
    (u128::from(high) << 64) | u128::from(low)
}

fn random_pair() -> [u64; 2] {
    STATE.with(|state| {
        let [a, b] = state.get();
        let next = [a.wrapping_add(0x9E37_79B9_7F4A_7C15), b.wrapping_add(0xD1B5_4A32_D192_ED03)];
        state.set(next);
        [mix(next[0] ^ b.rotate_left(32)), mix(next[1])]
    })
}

/// The finaliser of splitmix64: every input bit reaches every output bit.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_of_many_threads_are_valid_and_different() {
        let threads: Vec<_> =
            (0..8).map(|_| std::thread::spawn(|| (0..20_000).map(|_| next()).collect::<Vec<_>>())).collect();
        let ids: Vec<Uuid> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert!(ids.iter().all(|id| id.get_version_num() == 4));
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    }
}
