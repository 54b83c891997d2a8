//! `swb policy check`: can these rule files be used?

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use serde_json::{Value, json};
use swb_rules::policy::{LoadError, Restrictions, Rules, Source};

use super::files::{HereArgs, RulesHere};
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{BAD, DIM, GOOD, Io, WARN};
use crate::plain;

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The files; your own and those of this project unless given.
    #[arg(value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Whose rules the files are; told from where they lie unless given.
    #[arg(long, value_enum, requires = "files")]
    layer: Option<LayerName>,
    #[command(flatten)]
    here: HereArgs,
}

/// Whose rules a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LayerName {
    /// Yours: they may permit.
    User,
    /// A project's: they may only forbid or ask.
    Project,
    /// A session's: they may only forbid or ask.
    Session,
}

#[derive(Debug, Default)]
struct Checked {
    rules: usize,
    problems: Vec<LoadError>,
    warnings: Vec<LoadError>,
}

pub(crate) fn run(args: &CheckArgs, set: &[String], io: &Io) -> Result<u8, Failure> {
    let checked = if args.files.is_empty() {
        match RulesHere::try_read(set, args.here.project_root().as_deref())? {
            Ok(here) => Checked {
                rules: here.own.rules.rules().count()
                    + here.restrictions().iter().map(|more| more.rules().count()).sum::<usize>(),
                problems: Vec::new(),
                warnings: here.warnings().cloned().collect(),
            },
            Err(problems) => Checked { problems, ..Checked::default() },
        }
    } else {
        let mut all = Checked::default();
        for file in &args.files {
            let layer = args.layer.unwrap_or_else(|| layer_of(file));
            let one = check(file, layer)?;
            all.rules += one.rules;
            all.problems.extend(one.problems);
            all.warnings.extend(one.warnings);
        }
        all
    };
    print(&checked, io)?;
    Ok(if checked.problems.is_empty() { exit_code::SUCCESS } else { exit_code::FAILURE })
}

fn check(file: &Path, layer: LayerName) -> Result<Checked, Failure> {
    let shown = file.display().to_string();
    let text =
        std::fs::read(file).map_err(|error| Failure::new(format!("cannot read {shown}")).because(error))?;
    let Ok(text) = String::from_utf8(text) else {
        let reason = "is not UTF-8".to_owned();
        let problem = LoadError { file: shown, line: 1, column: 1, reason, help: None };
        return Ok(Checked { problems: vec![problem], ..Checked::default() });
    };
    let source = [Source { file: &shown, text: &text }];
    let restrictions = |loaded: swb_rules::policy::Loaded<Restrictions>| Checked {
        rules: loaded.rules.rules().count(),
        problems: Vec::new(),
        warnings: loaded.warnings,
    };
    let checked = match layer {
        LayerName::User => Rules::load_without_defaults(&source).map(|loaded| Checked {
            rules: loaded.rules.rules().count(),
            problems: Vec::new(),
            warnings: loaded.warnings,
        }),
        LayerName::Project => Restrictions::load_project(&source).map(restrictions),
        LayerName::Session => Restrictions::load_session(&source).map(restrictions),
    };
    Ok(checked.unwrap_or_else(|problems| Checked { problems, ..Checked::default() }))
}

/// A file in a project's folder of rules is the project's.
fn layer_of(file: &Path) -> LayerName {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    match file.parent() {
        Some(folder) if folder.ends_with(".switchboard/policy") => LayerName::Project,
        _ => LayerName::User,
    }
}

fn print(checked: &Checked, io: &Io) -> Result<(), Failure> {
    let Checked { rules, problems, warnings } = checked;
    if io.json {
        return io.object(&json!({
            "ok": problems.is_empty(), "rules": rules,
            "problems": problems.iter().map(as_json).collect::<Vec<_>>(),
            "warnings": warnings.iter().map(as_json).collect::<Vec<_>>(),
        }));
    }
    let marked =
        problems.iter().map(|it| (BAD, "error", it)).chain(warnings.iter().map(|it| (WARN, "warning", it)));
    for (style, word, LoadError { file, line, column, reason, help }) in marked {
        let place = plain::line(&format!("{file}:{line}:{column}"), 400);
        io.line(format!("{place}: {style}{word}:{style:#} {}", plain::line(reason, 1000)))?;
        if let Some(help) = help {
            io.line(format!("  {DIM}help: {}{DIM:#}", plain::line(help, 1000)))?;
        }
    }
    match problems.len() {
        0 if *rules == 1 => io.line(format!("{GOOD}✓{GOOD:#} 1 rule can be used")),
        0 => io.line(format!("{GOOD}✓{GOOD:#} {rules} rules can be used")),
        1 => io.line(format!("{BAD}✗{BAD:#} 1 error")),
        many => io.line(format!("{BAD}✗{BAD:#} {many} errors")),
    }
}

fn as_json(LoadError { file, line, column, reason, help }: &LoadError) -> Value {
    json!({ "file": file, "line": line, "column": column, "reason": reason, "help": help })
}
