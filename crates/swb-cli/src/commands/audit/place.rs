//! Which record is meant, and how reading it fails.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use swb_daemon::Paths;
use swb_journal::audit::{AuditReadError, AuditReader};
use swb_journal::ledger::{Ledger, LedgerError};

use crate::failure::Failure;

/// Where the record is.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The folder of the record, e.g. of a copy; the daemon's own if not given.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

impl PlaceArgs {
    /// The folder, which must be there if it was named.
    pub(super) fn folder(&self) -> Result<PathBuf, Failure> {
        match &self.dir {
            None => Ok(Paths::from_env()?.audit()),
            Some(dir) if dir.is_dir() => Ok(dir.clone()),
            Some(dir) => Err(Failure::new(format!("{} is no folder", dir.display()))),
        }
    }

    pub(super) fn reader(&self) -> Result<AuditReader, Failure> {
        Ok(AuditReader::new(self.folder()?))
    }

    /// The index beside the record; made if it is not there.
    pub(super) fn ledger(&self) -> Result<Ledger, Failure> {
        let reader = self.reader()?;
        let file = match &self.dir {
            None => Paths::from_env()?.ledger(),
            Some(dir) => dir.join("../ledger.db"),
        };
        if let Some(folder) = file.parent().filter(|_| self.dir.is_none()) {
            std::fs::create_dir_all(folder)
                .map_err(|error| Failure::new(format!("cannot make {}", folder.display())).because(error))?;
        }
        Ledger::open(&file, reader).map_err(ledger_failed)
    }
}

pub(super) fn read_failed(error: AuditReadError) -> Failure {
    let damaged = matches!(error, AuditReadError::Damaged { .. });
    let failure = Failure::new("cannot read the record").because(error);
    if damaged { failure.hint("`swb audit verify` shows everything that is wrong") } else { failure }
}

pub(super) fn ledger_failed(error: LedgerError) -> Failure {
    match error {
        LedgerError::Log(error) => read_failed(error),
        error @ LedgerError::InUse { .. } => Failure::new("the index of the record cannot be used")
            .because(error)
            .hint("stop whoever uses it, or the daemon, and try again"),
        error => Failure::new("the index of the record cannot be used")
            .because(error)
            .hint("`swb audit rebuild` makes it anew"),
    }
}
