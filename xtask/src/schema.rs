//! `cargo xtask schema`: files that are generated from the code, committed, and compared by the tests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use swb_cli::reference;

use crate::cargo;

#[derive(clap::Args)]
pub(crate) struct SchemaArgs {
    /// Write nothing; fail if a file differs from what would be written.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &SchemaArgs) -> anyhow::Result<()> {
    let stale = stale()?;
    if args.check {
        return if stale.is_empty() { Ok(()) } else { bail!(complaint(&stale)) };
    }
    for (path, text) in stale {
        let full = cargo::root().join(&path);
        let folder = full.parent().context("generated files lie in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        std::fs::write(&full, text).with_context(|| format!("cannot write {path}"))?;
        println!("wrote {path}");
    }
    Ok(())
}

type Files = BTreeMap<String, Vec<u8>>;

/// Every generated file, by its path in the repository. The one place where a new one is added.
fn generated() -> anyhow::Result<Files> {
    let mut files: Files = [
        ("schema/openrpc.json", reference::openrpc()),
        ("schema/envelope.schema.json", reference::envelope_schema()),
        ("schema/openapi.json", reference::openapi()),
        ("schema/config.schema.json", reference::config_schema()),
        ("docs/errors.md", swb_proto::error::markdown()),
        ("docs/cli.md", reference::cli_markdown()),
    ]
    .map(|(path, text)| (path.to_owned(), text.into_bytes()))
    .into();
    for (name, page) in reference::man_pages().context("cannot make the manual pages")? {
        files.insert(format!("docs/man/{name}"), page);
    }
    Ok(files)
}

/// The generated files that are missing from the repository or differ from it.
fn stale() -> anyhow::Result<Files> {
    let mut files = generated()?;
    files.retain(|path, text| {
        let committed: PathBuf = cargo::root().join(path);
        std::fs::read(committed).ok().as_ref() != Some(text)
    });
    Ok(files)
}

fn complaint(stale: &Files) -> String {
    let names: Vec<_> = stale.keys().map(String::as_str).collect();
    format!("out of step with the code: {}; run `cargo xtask schema` and commit the result", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_in_step_with_the_code() {
        let stale = stale().unwrap();
        assert!(stale.is_empty(), "{}", complaint(&stale));
    }
}
