//! Joining segments that were checked: the links between them, the gaps that purges left, and the anchors.

use super::super::hash::ChainHash;
use super::super::log::Head;
use super::super::purge::PurgedSpan;
use super::report::{AnchorSeen, AnchorState, Finding, FindingKind, LISTED, Report, TornTail, Verdict};
use super::segment::Checked;

pub(super) fn join(mut checked: Vec<Checked>, anchors: &[Head], torn_tail: Option<TornTail>) -> Report {
    // A last segment that holds nothing but a torn header is not there yet.
    let unborn = checked.last().is_some_and(|last| last.header.is_none() && last.is_sound());
    if unborn {
        checked.pop();
    }
    let chain = checked.iter().find_map(|one| one.header.as_ref().map(|(header, _)| header.chain.clone()));
    let purged =
        checked.iter().rev().find_map(|one| one.purge.as_ref()).map_or(Vec::new(), |it| it.spans.clone());
    let mut before = Before { segment: 0, end: (0, ChainHash::NONE), header: ChainHash::NONE, sound: true };
    for one in &mut checked {
        link(&before, one, chain.as_deref(), &purged);
        before = Before {
            segment: one.file.segment,
            end: one.end,
            header: one.header.as_ref().map_or(ChainHash::NONE, |(_, hash)| *hash),
            sound: one.is_sound(),
        };
    }
    let head = chain.map(|chain| Head { chain, number: before.end.0, hash: before.end.1 });
    let (seen, anchor_findings) = compare(anchors, &checked, head.as_ref(), &purged, before.segment);
    let finding_count = checked.iter().map(|one| one.finding_count).sum::<usize>() + anchor_findings.len();
    let records = checked.iter().map(|one| one.records).sum();
    let segments = checked.len();
    let mut findings = anchor_findings;
    findings.extend(checked.into_iter().flat_map(|one| one.findings));
    findings.truncate(LISTED);
    let verdict = if finding_count > 0 {
        Verdict::Damaged
    } else if seen.iter().any(|anchor| anchor.state == AnchorState::Matched) {
        Verdict::Anchored
    } else {
        Verdict::Consistent
    };
    Report { verdict, head, records, segments, purged, torn_tail, anchors: seen, findings, finding_count }
}

/// The end of the segment before.
struct Before {
    segment: u64,
    end: (u64, ChainHash),
    header: ChainHash,
    sound: bool,
}

fn link(before: &Before, one: &mut Checked, chain: Option<&str>, purged: &[PurgedSpan]) {
    let Some((header, _)) = one.header.clone() else { return };
    if chain != Some(&header.chain) {
        return one.find(Some(0), FindingKind::ForeignSegment { chain: header.chain });
    }
    let from = before.segment + 1;
    if header.after_damage.is_some() {
        return one.find(Some(0), FindingKind::WentOnAfterDamage);
    }
    if one.file.segment == from {
        let end = (header.first.saturating_sub(1), header.prev);
        if (end, header.header) != (before.end, before.header) && before.sound {
            one.find(Some(0), FindingKind::Unlinked);
        }
        return;
    }
    let to = one.file.segment.saturating_sub(1);
    let span = purged.iter().find(|span| span.from_segment <= from && to <= span.to_segment);
    match span {
        // Two files with the same number.
        _ if to < from => one.find(Some(0), FindingKind::Unlinked),
        None => one.find(None, FindingKind::MissingSegments { from, to }),
        Some(span) => {
            // A purge that was interrupted has removed a part of its span; the ends of that part are not known.
            let begins = span.from_segment < from
                || (span.first, span.prev) == (before.end.0 + 1, before.end.1)
                || !before.sound;
            let ends = to < span.to_segment
                || (span.last + 1, span.last_hash, span.header) == (header.first, header.prev, header.header);
            if !begins || !ends {
                one.find(Some(0), FindingKind::PurgeMismatch);
            }
        }
    }
}

fn compare(
    anchors: &[Head],
    checked: &[Checked],
    head: Option<&Head>,
    purged: &[PurgedSpan],
    last_segment: u64,
) -> (Vec<AnchorSeen>, Vec<Finding>) {
    let mut findings = Vec::new();
    let seen = anchors.iter().map(|anchor| {
        let outcome = judge(anchor, checked, head, purged);
        let state = outcome.unwrap_or_else(|kind| {
            findings.push(Finding { segment: last_segment, offset: None, kind });
            AnchorState::Failed
        });
        AnchorSeen { number: anchor.number, state }
    });
    let seen = seen.collect();
    (seen, findings)
}

fn judge(
    anchor: &Head,
    checked: &[Checked],
    head: Option<&Head>,
    purged: &[PurgedSpan],
) -> Result<AnchorState, FindingKind> {
    let number = anchor.number;
    let last = head.map_or(0, |head| head.number);
    if head.is_some_and(|head| head.chain != anchor.chain) {
        return Err(FindingKind::ForeignAnchor { anchor: number, chain: anchor.chain.clone() });
    }
    // A log without a record in its last segment ends with the header.
    let headers = checked.iter().filter_map(|one| one.header.as_ref());
    let mut empty = headers.filter(|(header, _)| header.first == number + 1).map(|(_, hash)| *hash);
    let records = checked.iter().flat_map(|one| &one.anchored).filter(|(seen, _)| *seen == number);
    let spans = purged.iter().filter(|span| span.last == number).map(|span| span.last_hash);
    let mut known = records.map(|(_, hash)| *hash).chain(spans);
    if known.any(|hash| hash == anchor.hash) || empty.any(|hash| hash == anchor.hash) {
        Ok(AnchorState::Matched)
    } else if number > last || head.is_none() {
        Err(FindingKind::CutOff { anchor: number, last })
    } else if purged.iter().any(|span| (span.first - 1..span.last).contains(&number)) {
        Ok(AnchorState::Purged)
    } else {
        Err(FindingKind::Rewritten { anchor: number, expected: anchor.hash })
    }
}
