//! Checking a bundle by itself: that its records are those of the chain that ends in its head.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::export::{After, Altered, BUNDLE_FORMAT, Manifest};
use super::hash::ChainHash;
use super::header::Header;
use super::line::RawRecord;
use super::purge::PurgedSpan;
use super::record::Record;

/// What is wrong with a bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleFault {
    /// It is no bundle, or one of another version.
    #[error("this is no bundle of this version: {0}")]
    Unreadable(String),
    /// A record is not as it was written.
    #[error("record {number} is not as it was written")]
    Changed {
        /// Its number, or 0 if it cannot be read.
        number: u64,
    },
    /// A record does not stand in the chain where it says, or stands there without being in the bundle.
    #[error("record {number} does not hang on the one before it")]
    Unlinked {
        /// Its number.
        number: u64,
    },
    /// A segment does not hang on the one before it.
    #[error("segment {segment} does not hang on the one before it")]
    Broken {
        /// The segment.
        segment: u64,
    },
    /// The chain does not lead to the head that the manifest names.
    #[error("the chain does not lead to the head of the manifest")]
    NotTheHead,
    /// The manifest counts other records than there are, or they are not of its session.
    #[error("the manifest does not fit the records")]
    Miscounted,
}

#[derive(Deserialize)]
struct Document {
    manifest: Manifest,
    records: Vec<Box<RawValue>>,
    proof: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    header: Box<RawValue>,
    #[serde(default)]
    after: Option<After>,
    #[serde(default)]
    links: Vec<Link>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Link {
    Held(u64),
    Passed(ChainHash),
}

/// A record of the bundle.
enum Held<'a> {
    AsWritten { raw: RawRecord<'a>, record: Box<Record> },
    Altered(Altered),
}

/// Checks a bundle and returns what it says of itself. Its head proves nothing by itself: compare it with one that was
/// kept in another place.
pub fn check_bundle(text: &str) -> Result<Manifest, BundleFault> {
    let document: Document =
        serde_json::from_str(text).map_err(|error| BundleFault::Unreadable(error.to_string()))?;
    let manifest = &document.manifest;
    if manifest.format != BUNDLE_FORMAT {
        return Err(BundleFault::Unreadable(manifest.format.clone()));
    }
    let held = document.records.iter().map(|text| read(text.get())).collect::<Result<BTreeMap<_, _>, _>>()?;
    if held.len() != document.records.len() {
        return Err(BundleFault::Miscounted);
    }
    count(manifest, &held)?;
    let mut spans = held.values().filter_map(|held| match held {
        Held::AsWritten { record, .. } => record.entry.purge.as_ref().map(|proof| proof.spans.as_slice()),
        Held::Altered(_) => None,
    });
    let spans = spans.next_back().unwrap_or_default();
    let mut walk = Walk { held: &held, spans, seen: 0, before: None };
    for part in &document.proof {
        walk.part(part, &manifest.chain)?;
    }
    let end = walk.before.as_ref().and_then(|before| before.end);
    let head = After { number: manifest.head.number, hash: manifest.head.hash };
    if end != Some(head) || manifest.head.chain != manifest.chain {
        return Err(BundleFault::NotTheHead);
    }
    if walk.seen != held.len() {
        return Err(BundleFault::Miscounted);
    }
    Ok(document.manifest)
}

fn read(text: &str) -> Result<(u64, Held<'_>), BundleFault> {
    if let Some(raw) = RawRecord::parse(text.as_bytes()) {
        let number = raw.place.number;
        let record = Record::parse(text.as_bytes()).ok_or(BundleFault::Changed { number })?;
        return Ok((number, Held::AsWritten { raw, record: Box::new(record) }));
    }
    let altered: Altered = serde_json::from_str(text).map_err(|_| BundleFault::Changed { number: 0 })?;
    Ok((altered.n, Held::Altered(altered)))
}

fn count(manifest: &Manifest, held: &BTreeMap<u64, Held<'_>>) -> Result<(), BundleFault> {
    let (mut session, mut altered) = (0, 0);
    for held in held.values() {
        match held {
            Held::AsWritten { record, .. } => {
                let ours = record.entry.session_id.as_ref() == Some(&manifest.session_id);
                if !ours && record.entry.purge.is_none() {
                    return Err(BundleFault::Miscounted);
                }
                session += u64::from(ours);
            }
            Held::Altered(_) => {
                session += 1;
                altered += 1;
            }
        }
    }
    let fits = (session, altered) == (manifest.count, manifest.altered);
    if fits { Ok(()) } else { Err(BundleFault::Miscounted) }
}

struct Walk<'a> {
    held: &'a BTreeMap<u64, Held<'a>>,
    spans: &'a [PurgedSpan],
    /// How many records of the bundle have been links.
    seen: usize,
    before: Option<Before>,
}

/// The segment before.
struct Before {
    segment: u64,
    header: ChainHash,
    /// Where its links end, if it has any.
    end: Option<After>,
}

impl Walk<'_> {
    fn part(&mut self, part: &Part, chain: &str) -> Result<(), BundleFault> {
        let unreadable = || BundleFault::Unreadable("a header is not as it was written".to_owned());
        let (header, hash) = Header::parse(part.header.get().as_bytes()).ok_or_else(unreadable)?;
        let segment = header.segment;
        if header.chain != chain || !self.hangs(&header) {
            return Err(BundleFault::Broken { segment });
        }
        let mut end = None;
        if let Some(after) = part.after {
            if after.number < header.first - 1 || (after.number == header.first - 1 && after.hash != hash) {
                return Err(BundleFault::Unlinked { number: after.number + 1 });
            }
            end = Some(part.links.iter().try_fold(after, |before, link| self.link(before, link))?);
        }
        self.before = Some(Before { segment, header: hash, end });
        Ok(())
    }

    /// Whether a header hangs on what was before it.
    fn hangs(&self, header: &Header) -> bool {
        let Some(before) = &self.before else { return true };
        let begins = After { number: header.first - 1, hash: header.prev };
        if header.segment == before.segment + 1 {
            return header.header == before.header && before.end.is_none_or(|end| end == begins);
        }
        // A purge has removed what was in between.
        self.spans.iter().any(|span| {
            span.from_segment == before.segment + 1
                && span.to_segment + 1 == header.segment
                && (span.last, span.last_hash, span.header) == (begins.number, begins.hash, header.header)
                && before.end.is_none_or(|end| (end.number + 1, end.hash) == (span.first, span.prev))
        })
    }

    fn link(&mut self, before: After, link: &Link) -> Result<After, BundleFault> {
        let number = before.number + 1;
        let digest = match link {
            Link::Passed(digest) => *digest,
            Link::Held(said) => {
                let held = self.held.get(&number).filter(|_| *said == number);
                self.seen += 1;
                match held.ok_or(BundleFault::Unlinked { number: *said })? {
                    Held::AsWritten { raw, .. } if raw.place.prev == before.hash => raw.digest(),
                    Held::AsWritten { .. } => return Err(BundleFault::Unlinked { number }),
                    Held::Altered(altered) => altered.digest,
                }
            }
        };
        Ok(After { number, hash: ChainHash::of_record(before.hash, number, digest) })
    }
}
