//! What is looked up, and the slots it may be in: 24 bits of its hash, and 40 bits of offset + 1.

use crate::message_bus::record::Record;

pub(super) const OFFSET_BITS: u32 = 40;

/// What is looked up.
#[derive(Clone, Copy, Debug)]
pub(in crate::message_bus) enum Key<'a> {
    Id(&'a str),
    Idempotency(&'a str),
}

impl Key<'_> {
    pub(in crate::message_bus) fn matches(self, record: &Record<'_>) -> bool {
        match self {
            Self::Id(id) => record.id == id,
            Self::Idempotency(key) => record.idempotency_key.as_deref() == Some(key),
        }
    }

    /// FNV-1a, with the kind of key mixed in and the bits stirred at the end.
    pub(super) fn hash(self) -> u64 {
        let (kind, text) = match self {
            Self::Id(id) => (b'i', id),
            Self::Idempotency(key) => (b'k', key),
        };
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in std::iter::once(kind).chain(text.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash ^= hash >> 29;
        hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^ (hash >> 32)
    }
}

/// Where the search for it begins.
pub(super) fn home(hash: u64, slots: u64) -> u64 {
    hash % slots
}

/// What of a hash a slot holds.
pub(super) fn fingerprint(hash: u64) -> u64 {
    hash >> OFFSET_BITS
}

/// The slot of something that stands at an offset.
pub(super) fn slot_of(hash: u64, offset: u64) -> u64 {
    (fingerprint(hash) << OFFSET_BITS) | (offset + 1)
}
