//! Running cargo at the root of the workspace, and what it knows about the workspace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Cargo with these arguments, to be changed further or run.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Says what is run, runs it, and fails if it does.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words: Vec<_> =
        std::iter::once(program).chain(command.get_args()).map(|word| word.to_string_lossy()).collect();
    let line = words.join(" ");
    println!("$ {line}");
    let status = command.status().with_context(|| format!("cannot run {line}"))?;
    if !status.success() {
        bail!("{line}: {status}");
    }
    Ok(())
}

/// Whether `cargo <subcommand>` is installed.
pub(crate) fn has(subcommand: &str) -> bool {
    let mut version = cargo(&[subcommand, "--version"]);
    version.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The packages of the workspace and where they are built.
pub(crate) struct Workspace(Value);

impl Workspace {
    pub(crate) fn load() -> anyhow::Result<Self> {
        let output = cargo(&["metadata", "--no-deps", "--format-version", "1"])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata: {}", output.status);
        }
        Ok(Workspace(serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?))
    }

    /// Every bench, as package and target, in the order of the manifests.
    pub(crate) fn benches(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut benches = Vec::new();
        for package in list(&self.0["packages"]) {
            for target in list(&package["targets"]) {
                if list(&target["kind"]).contains(&Value::from("bench")) {
                    benches.push((text(&package["name"]), text(&target["name"])));
                }
            }
        }
        benches
    }

    pub(crate) fn target_directory(&self) -> anyhow::Result<PathBuf> {
        self.0["target_directory"]
            .as_str()
            .map(PathBuf::from)
            .context("cargo metadata names no target directory")
    }
}
