//! `swb audit verify`: offline, against anchors if there are any.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::json;
use swb_journal::audit::{AnchorState, Head, Report, Verdict, check_bundle, verify};

use super::place::PlaceArgs;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{BAD, DIM, GOOD, Io, WARN};

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Heads that were kept in another place: a file of them, or one as `swb audit head` printed it.
    #[arg(long, value_name = "FILE|JSON", value_hint = ValueHint::FilePath)]
    anchor: Vec<String>,
    /// Check a bundle instead of the record.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "dir")]
    bundle: Option<PathBuf>,
}

pub(crate) fn run(args: &VerifyArgs, io: &Io) -> Result<u8, Failure> {
    let mut anchors = Vec::new();
    for anchor in &args.anchor {
        anchors.extend(heads(anchor)?);
    }
    if let Some(bundle) = &args.bundle {
        return check(bundle, &anchors, io);
    }
    let folder = args.place.folder()?;
    let report = verify(&folder, &anchors)
        .map_err(|error| Failure::new(format!("cannot read {}", folder.display())).because(error))?;
    if io.json {
        io.object(&report)?;
    } else {
        show(&report, io)?;
    }
    let good =
        report.verdict == Verdict::Anchored || (report.verdict == Verdict::Consistent && anchors.is_empty());
    Ok(if good { exit_code::SUCCESS } else { exit_code::FAILURE })
}

/// One head, or the lines of a file.
fn heads(anchor: &str) -> Result<Vec<Head>, Failure> {
    let unusable = |error: serde_json::Error| {
        Failure::new("the anchor is not what `swb audit head` prints").because(error).code(exit_code::USAGE)
    };
    if anchor.trim_start().starts_with('{') {
        return Ok(vec![serde_json::from_str(anchor).map_err(unusable)?]);
    }
    let text = std::fs::read_to_string(anchor)
        .map_err(|error| Failure::new(format!("cannot read the anchors in {anchor}")).because(error))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let heads: Vec<Head> = lines.map(serde_json::from_str).collect::<Result<_, _>>().map_err(unusable)?;
    if heads.is_empty() {
        return Err(Failure::new(format!("{anchor} holds no anchor")).code(exit_code::USAGE));
    }
    Ok(heads)
}

fn show(report: &Report, io: &Io) -> Result<(), Failure> {
    let Report { verdict, records, segments, purged, .. } = report;
    let style = match verdict {
        Verdict::Damaged => BAD,
        Verdict::Anchored => GOOD,
        Verdict::Consistent => WARN,
    };
    io.line(format!("{style}{verdict}{style:#}: {records} records in {segments} segments"))?;
    if let Some(head) = &report.head {
        io.line(format!(
            "{DIM}log {}, ends at record {} with {}{DIM:#}",
            head.chain, head.number, head.hash
        ))?;
    }
    for span in purged {
        let (first, last) = (span.first, span.last);
        io.line(format!(
            "{DIM}records {first} to {last} were purged; the chain is proven over the gap{DIM:#}"
        ))?;
    }
    if let Some(torn) = &report.torn_tail {
        io.line(format!(
            "{WARN}{} bytes at the end are no whole record: being written just now, or left by a crash{WARN:#}",
            torn.bytes
        ))?;
    }
    for anchor in &report.anchors {
        let (said, style) = match anchor.state {
            AnchorState::Matched => ("is where it was", GOOD),
            AnchorState::Purged => ("was purged, and proves nothing any more", WARN),
            AnchorState::Failed => ("is not where it was", BAD),
        };
        io.line(format!("anchor {} {style}{said}{style:#}", anchor.number))?;
    }
    for finding in &report.findings {
        io.line(format!("{BAD}✗{BAD:#} {finding}"))?;
    }
    if report.finding_count > report.findings.len() {
        io.line(format!("… and {} more", report.finding_count - report.findings.len()))?;
    }
    if *verdict == Verdict::Consistent && report.anchors.is_empty() {
        io.note(format!(
            "{DIM}keep what `swb audit head` prints in another place, to be sure of the end too{DIM:#}"
        ));
    }
    Ok(())
}

fn check(bundle: &PathBuf, anchors: &[Head], io: &Io) -> Result<u8, Failure> {
    let text = std::fs::read_to_string(bundle)
        .map_err(|error| Failure::new(format!("cannot read {}", bundle.display())).because(error))?;
    let manifest = check_bundle(&text)
        .map_err(|fault| Failure::new("the bundle is not to be believed").because(fault))?;
    let anchored = anchors.contains(&manifest.head);
    let verdict = if anchored { Verdict::Anchored } else { Verdict::Consistent };
    if io.json {
        io.object(&json!({ "verdict": verdict, "manifest": manifest }))?;
    } else {
        let style = if anchored { GOOD } else { WARN };
        io.line(format!(
            "{style}{verdict}{style:#}: {} records of {}, of which {} were redacted again",
            manifest.count, manifest.session_id, manifest.altered
        ))?;
        let head = &manifest.head;
        io.line(format!(
            "{DIM}log {}, proven up to record {} with {}{DIM:#}",
            head.chain, head.number, head.hash
        ))?;
    }
    Ok(if anchored || anchors.is_empty() { exit_code::SUCCESS } else { exit_code::FAILURE })
}
