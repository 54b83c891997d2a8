//! `swb trust`: let what a project's files name be run, until they change.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::{Args, ValueHint};
use serde_json::{Value, json};
use swb_agent::mcp::json_file::Named;
use swb_agent::mcp::{Reach, parse_json_file};
use swb_daemon::Paths;
use swb_daemon::trust::{FILES, ProjectFile, Trust, TrustBook, TrustError, project_files};
use swb_host::lineage::{Above, above};
use swb_proto::Timestamp;

use crate::exit_code;
use crate::failure::Failure;
use crate::io::{BOLD, DIM, GOOD, Io, NAME, WARN};
use crate::plain;

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The project; the one around this folder unless given.
    #[arg(value_hint = ValueHint::DirPath)]
    path: Option<PathBuf>,
    /// List what is trusted, and whether it still is as it was.
    #[arg(long, conflicts_with_all = ["path", "revoke"])]
    list: bool,
    /// Take the trust in a project back.
    #[arg(long)]
    revoke: bool,
}

pub(crate) fn run(args: &TrustArgs, io: &Io) -> Result<u8, Failure> {
    let paths = Paths::from_env()?;
    let mut book = TrustBook::open(&paths.trust_file())?;
    if args.list {
        list(&book, io)?;
        return Ok(exit_code::SUCCESS);
    }
    // Whoever is below a host is an agent's process, and what it may run is not for it to say.
    if above(rustix::process::getpid()) != Above::NoHost {
        let failure = Failure::new("trust is for people: an agent's process cannot give it");
        return Err(failure.hint("run `swb trust` in a terminal of your own"));
    }
    if args.revoke {
        return revoke(&mut book, args.path.as_deref(), io);
    }
    let root = root(args.path.as_deref())?;
    let files = project_files(&root)?;
    if files.is_empty() {
        return Err(Failure::new(format!("nothing in {} names a program", root.display()))
            .hint(format!("it would stand in {}", FILES.join(", "))));
    }
    let before: Vec<Trust> = files.iter().map(|file| book.trust(&root, file.name, &file.bytes)).collect();
    book.add(&root, &files, Timestamp::from_system_time(SystemTime::now()))?;
    print(&root, &files, &before, io)?;
    Ok(exit_code::SUCCESS)
}

fn revoke(book: &mut TrustBook, path: Option<&Path>, io: &Io) -> Result<u8, Failure> {
    // The folder may be gone: what is revoked is what stands in the book.
    let root = match path {
        Some(path) => path.canonicalize().unwrap_or(std::path::absolute(path)?),
        None => root(None)?,
    };
    let was_trusted = book.revoke(&root)?;
    if io.json {
        io.object(&json!({ "root": root, "was_trusted": was_trusted }))?;
    } else if was_trusted {
        io.line(format!(
            "{NAME}{}{NAME:#} is not trusted any more",
            plain::line(&root.to_string_lossy(), 300)
        ))?;
    } else {
        io.note(format!("{DIM}{} was not trusted{DIM:#}", plain::line(&root.to_string_lossy(), 300)));
    }
    Ok(exit_code::SUCCESS)
}

/// The project that is meant.
fn root(path: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = path {
        let failed = |error| Failure::new(format!("cannot use {}", path.display())).because(error);
        return path.canonicalize().map_err(failed);
    }
    let here = std::env::current_dir()?.canonicalize()?;
    let holds_any = |folder: &&Path| FILES.iter().any(|name| folder.join(name).exists());
    Ok(here.ancestors().find(holds_any).unwrap_or(&here).to_owned())
}

fn list(book: &TrustBook, io: &Io) -> Result<(), Failure> {
    let mut any = false;
    for (root, trusted) in book.projects() {
        any = true;
        let now = project_files(root).unwrap_or_default();
        let changed = trusted.files.keys().any(|name| {
            let file = now.iter().find(|file| file.name == name);
            file.is_none_or(|file| book.trust(root, name, &file.bytes) != Trust::Trusted)
        });
        if io.json {
            let files: Vec<_> = trusted.files.keys().collect();
            let at = &trusted.trusted_at;
            io.json_line(&json!({ "root": root, "trusted_at": at, "files": files, "changed": changed }))?;
            continue;
        }
        let state =
            if changed { format!("{WARN}changed since{WARN:#}") } else { format!("{GOOD}as it was{GOOD:#}") };
        let root = plain::line(&root.to_string_lossy(), 300);
        io.line(format!("{NAME}{root}{NAME:#}  {state}  {DIM}{}{DIM:#}", trusted.trusted_at.as_str()))?;
    }
    if !any && !io.json {
        io.note(format!("{DIM}no project is trusted; `swb trust PATH` trusts one{DIM:#}"));
    }
    Ok(())
}

fn print(root: &Path, files: &[ProjectFile], before: &[Trust], io: &Io) -> Result<(), Failure> {
    if io.json {
        let files: Vec<Value> = files
            .iter()
            .zip(before)
            .map(|(file, before)| json!({ "name": file.name, "before": before, "runs": runs(root, file) }))
            .collect();
        return io.object(&json!({ "root": root, "files": files }));
    }
    io.line(format!("{BOLD}trusted{BOLD:#} {NAME}{}{NAME:#}", plain::line(&root.to_string_lossy(), 300)))?;
    for (file, before) in files.iter().zip(before) {
        let note = match before {
            Trust::Trusted => " (as before)",
            Trust::Changed => " (changed since it was trusted)",
            Trust::Unknown => "",
        };
        io.line(format!("  {}{DIM}{note}{DIM:#}", file.name))?;
        for line in runs(root, file) {
            io.line(format!("    {WARN}{}{WARN:#}", plain::line(&line, 300)))?;
        }
    }
    io.line(format!("{DIM}until one of these files changes; `swb trust --revoke` takes it back{DIM:#}"))
}

/// What a file would have run, one line each.
fn runs(root: &Path, file: &ProjectFile) -> Vec<String> {
    if file.name.ends_with(".json") {
        let servers = parse_json_file(&root.join(file.name), &file.bytes).unwrap_or_default();
        let shown = |(name, server): Named| match server.ok()?.reach {
            Reach::Program { command, args, .. } => Some(format!("{name}: {command} {}", args.join(" "))),
            Reach::Address { url, .. } => Some(format!("{name}: {url}")),
        };
        return servers.into_iter().filter_map(shown).collect();
    }
    let Ok(text) = std::str::from_utf8(&file.bytes) else { return Vec::new() };
    let table: toml::Table = text.parse().unwrap_or_default();
    let servers = table.get("mcp").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let field = |server: &toml::Value, name: &str| {
        server.get(name).and_then(toml::Value::as_str).unwrap_or_default().to_owned()
    };
    let shown = |(name, server): (String, toml::Value)| {
        let args = server.get("args").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        let args: Vec<_> = args.iter().filter_map(toml::Value::as_str).collect();
        let program = [field(&server, "command"), args.join(" "), field(&server, "url")].join(" ");
        format!("{name}: {}", program.trim())
    };
    servers.into_iter().map(shown).collect()
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Self {
        let hint = match &error {
            TrustError::Book { path, .. } => format!("mend or remove {}", path.display()),
            TrustError::File { .. } => "it must be a plain file of at most 1 MiB, and not a link".to_owned(),
            TrustError::NotText => "move the project".to_owned(),
        };
        Failure::new("trust could not be given").because(error).hint(hint)
    }
}
