//! `swb policy test`: other rules on the recorded past.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::json;
use swb_daemon::Paths;
use swb_daemon::policy::{RuleFile, load_of};
use swb_journal::audit::{AuditReadError, AuditReader, Kind, Moment, RecordedDecision};
use swb_rules::policy::{Answer, Difference, DryRun, Input, Recorded, Rules, Spoke, Why, dry_run};

use super::super::audit::search::moment;
use super::explain::style;
use super::files::{own_files, sources, unusable};
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, Io, NAME, layers};
use crate::plain;

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The rule file to try.
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// How far back to go: a time, or how long ago, like 12h or 7d.
    #[arg(long, default_value = "7d", value_name = "TIME", value_parser = moment)]
    since: Moment,
}

pub(crate) fn run(args: &TestArgs, set: &[String], io: &Io) -> Result<u8, Failure> {
    let paths = Paths::from_env()?;
    let defaults = layers(&paths, set)?.finish()?.policy.defaults;
    let load =
        |files: &[RuleFile]| load_of(defaults)(&sources(files)).map_err(|problems| unusable(&problems));
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| Failure::new(format!("cannot read {}", args.file.display())).because(error))?;
    let name = args.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let own = own_files(&paths).map_err(|problems| unusable(&problems))?;
    let mut tried: Vec<RuleFile> =
        own.iter().filter(|file| file.name != format!("policy/{name}")).cloned().collect();
    tried.push(RuleFile { name, text });
    let (new, now) = (load(&tried)?.rules, load(&own)?.rules);
    let log = AuditReader::new(paths.audit());
    let (found, skipped) = decide(&log, args.since, &new)?;
    // What the rules in force would decide differently too is not the new file's doing.
    let (drift, _) = decide(&log, args.since, &now)?;
    let drift: HashMap<&str, Answer> =
        drift.differences.iter().map(|it| (it.decision_id.as_str(), it.after.answer)).collect();
    print(&found, skipped, &drift, io)?;
    Ok(exit_code::SUCCESS)
}

/// The recorded past under these rules, and how many decisions were recorded without what they were made on.
fn decide(log: &AuditReader, since: Moment, rules: &Rules) -> Result<(DryRun, u64), Failure> {
    let (mut skipped, mut failed) = (0, None);
    let records = log.records_after(0).map_err(unreadable)?;
    let past = records
        .map_while(|record| record.map_err(|error| failed = Some(error)).ok())
        .filter(|record| {
            record.entry.kind == Kind::Start && record.entry.at.unix_millis() >= since.unix_millis()
        })
        .filter_map(|record| {
            let decision = record.entry.decision?;
            let input: Option<Input> =
                record.entry.attributes.and_then(|it| serde_json::from_str(it.get()).ok());
            let recorded = input.and_then(|input| recorded(decision, input));
            skipped += u64::from(recorded.is_none());
            recorded
        });
    let found = dry_run(past, rules, |_| Vec::new());
    match failed {
        Some(error) => Err(unreadable(error)),
        None => Ok((found, skipped)),
    }
}

/// A decision as the gate has recorded it. An approval answers a question, so what was decided is that it be asked.
fn recorded(decision: RecordedDecision, input: Input) -> Option<Recorded> {
    let (answer, why) = match decision.outcome.as_str() {
        "allow" | "permit" => (Answer::Allow, Why::Permitted),
        "needs_approval" | "approved" => (Answer::NeedsApproval, Why::PermittedIfApproved),
        "deny" => (Answer::Deny, Why::Forbidden),
        _ => return None,
    };
    let spoke = Spoke { answer, why, rules: decision.rules, on_behalf_of: None };
    Some(Recorded { decision_id: decision.id, input, approved: false, spoke })
}

fn unreadable(error: AuditReadError) -> Failure {
    Failure::new("the record cannot be read")
        .because(error)
        .hint("`swb audit verify` looks for what is wrong")
}

fn print(found: &DryRun, skipped: u64, drift: &HashMap<&str, Answer>, io: &Io) -> Result<(), Failure> {
    let also_now = |it: &Difference| drift.get(it.decision_id.as_str()) == Some(&it.after.answer);
    if io.json {
        let differences: Vec<_> = found
            .differences
            .iter()
            .map(|it| {
                let mut object = json!(it);
                object["also_now"] = json!(also_now(it));
                object
            })
            .collect();
        return io.object(&json!({
            "decided": found.decided, "milder": found.milder, "stricter": found.stricter,
            "skipped": skipped, "differences": differences,
        }));
    }
    for it in &found.differences {
        let Difference { decision_id, action, actor, before, after } = it;
        let (old, new) = (style(before.answer), style(after.answer));
        let rules = if after.rules.is_empty() { "no rule".to_owned() } else { after.rules.join(", ") };
        let drift = if also_now(it) { ", also under the rules in force now" } else { "" };
        io.line(format!(
            "{old}{}{old:#} → {new}{}{new:#}  {NAME}{}{NAME:#} by {}  {DIM}{} ({}{drift}){DIM:#}",
            before.answer,
            after.answer,
            plain::line(action, 80),
            plain::line(actor, 80),
            plain::line(decision_id, 80),
            plain::line(&rules, 200),
        ))?;
    }
    let told = found.differences.len() as u64;
    let different = found.milder + found.stricter;
    if told < different {
        io.line(format!("{DIM}and {} more{DIM:#}", different - told))?;
    }
    let DryRun { decided, milder, stricter, .. } = found;
    io.line(format!("{decided} decisions looked at: {milder} would be milder, {stricter} stricter"))?;
    if skipped > 0 {
        io.note(format!("{DIM}{skipped} were recorded without what they were made on{DIM:#}"));
    }
    Ok(())
}
