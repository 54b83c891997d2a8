//! `swb audit export`: a session as a bundle.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use serde_json::Value;
use swb_daemon::{Paths, redaction};
use swb_journal::audit::{ExportError, Manifest, Moment, Redaction, export};
use swb_rules::redact::{redact_json, rule_ids};

use super::place::{PlaceArgs, read_failed};
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, Io};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// The session.
    #[arg(long, value_name = "ID")]
    session: String,
    /// Write the bundle into this file instead of to standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &ExportArgs, io: &Io) -> Result<u8, Failure> {
    let rules = Paths::from_env()?.redaction_file();
    redaction::start(&rules).map_err(|error| Failure::new(error.to_string()))?;
    let reader = args.place.reader()?;
    let make =
        |out: &mut dyn Write| export(&reader, &args.session, &OurRules, Moment::now(), out).map_err(failed);
    let Some(path) = &args.out else {
        make(&mut std::io::BufWriter::new(std::io::stdout().lock()))?;
        return Ok(exit_code::SUCCESS);
    };
    let manifest = into_file(path, make)?;
    if io.json {
        io.object(&manifest)?;
    } else {
        let Manifest { count, head, .. } = &manifest;
        io.line(format!("{count} records of {}, proven up to record {}", manifest.session_id, head.number))?;
        io.note(format!("{DIM}`swb audit verify --bundle {}` checks it{DIM:#}", path.display()));
    }
    Ok(exit_code::SUCCESS)
}

/// Under another name first: half a bundle must not be taken for one.
fn into_file(
    path: &Path,
    make: impl FnOnce(&mut dyn Write) -> Result<Manifest, Failure>,
) -> Result<Manifest, Failure> {
    use std::os::unix::fs::OpenOptionsExt;
    let cannot = |error| Failure::new(format!("cannot write {}", path.display())).because(error);
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let partial = PathBuf::from(name);
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&partial).map_err(cannot)?;
    let made = make(&mut std::io::BufWriter::new(&file)).and_then(|manifest| {
        file.sync_all().and_then(|()| std::fs::rename(&partial, path)).map_err(cannot)?;
        Ok(manifest)
    });
    if made.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    made
}

fn failed(error: ExportError) -> Failure {
    match error {
        ExportError::Read(error) => read_failed(error),
        ExportError::Write(error) => error.into(),
        error @ ExportError::NoRecords(_) => {
            Failure::new(error.to_string()).hint("`swb audit search --kind start` shows what there is")
        }
        error => Failure::new(error.to_string()),
    }
}

/// The rules that everything is redacted by.
struct OurRules;

impl Redaction for OurRules {
    fn rules(&self) -> Vec<String> {
        rule_ids().map(str::to_owned).collect()
    }

    fn redact(&self, value: &mut Value) -> Vec<String> {
        redact_json(value).into_iter().map(str::to_owned).collect()
    }
}
