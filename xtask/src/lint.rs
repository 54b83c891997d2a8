//! `cargo xtask lint`: what can be said about the code without running it.

use crate::cargo::{self, cargo};

pub(crate) fn run() -> anyhow::Result<()> {
    cargo::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    cargo::run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    // Private items too: the documentation is read by those who change the code, and its links must lead somewhere.
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--document-private-items"]);
    cargo::run(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    if !cargo::has("deny") {
        println!("cargo-deny is not installed: licences and advisories are not checked");
        return Ok(());
    }
    cargo::run(&mut cargo(&["deny", "check"]))
}
