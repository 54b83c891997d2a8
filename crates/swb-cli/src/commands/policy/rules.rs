//! `swb policy rules`: which rules hold here, whose they are, and what they do.

use swb_rules::policy::{Effect, Layer, Restrictions, RuleInfo};

use super::files::{HereArgs, RulesHere};
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{BAD, DIM, GOOD, Io, NAME, WARN};
use crate::plain;

pub(crate) fn run(args: &HereArgs, set: &[String], io: &Io) -> Result<u8, Failure> {
    let here = RulesHere::read(set, args.project_root().as_deref())?;
    let restrictions = here.restrictions();
    let all: Vec<&RuleInfo> = here
        .own
        .rules
        .rules()
        .chain(restrictions.iter().flat_map(|more| Restrictions::rules(more)))
        .collect();
    if io.json {
        for rule in all {
            io.json_line(rule)?;
        }
        return Ok(exit_code::SUCCESS);
    }
    let width = all.iter().map(|rule| rule.name.len()).max().unwrap_or(0).min(48);
    for rule in all {
        let (style, effect) = shown(rule.effect);
        let place = format!("{} {}:{}", layer(rule.layer), rule.file, rule.line);
        io.line(format!(
            "{style}{effect:<6}{style:#} {NAME}{:<width$}{NAME:#}  {DIM}{}{DIM:#}",
            plain::line(&rule.name, 120),
            plain::line(&place, 200),
        ))?;
        if let Some(reason) = &rule.reason {
            io.line(format!("       {}", plain::line(reason, 300)))?;
        }
    }
    Ok(exit_code::SUCCESS)
}

pub(super) fn shown(effect: Effect) -> (anstyle::Style, &'static str) {
    match effect {
        Effect::Permit => (GOOD, "permit"),
        Effect::Ask => (WARN, "ask"),
        Effect::Forbid => (BAD, "forbid"),
    }
}

pub(super) fn layer(layer: Layer) -> &'static str {
    match layer {
        Layer::Default => "default",
        Layer::User => "user",
        Layer::Project => "project",
        Layer::Session => "session",
    }
}
