//! `cargo xtask bench`: every speed claim, as a ratio within one run.

use crate::cargo::{self, Workspace, cargo};
use crate::{agent, host, start};

#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    /// Only benches whose package or name contains this.
    filter: Option<String>,
    /// Short rounds: shows that the benches work, not how fast anything is.
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let wanted = |name: &str| args.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()));
    let workspace = Workspace::load()?;
    // One after another: two benches at once would measure each other.
    for (package, bench) in workspace.benches() {
        if wanted(&package) || wanted(&bench) {
            let mut command = cargo(&["bench", "--quiet", "--package", &package, "--bench", &bench, "--"]);
            if args.quick {
                command.arg("--quick");
            }
            cargo::run(&mut command)?;
        }
    }
    if wanted("start") {
        start::start(&workspace, args.quick)?;
    }
    if wanted("host") {
        host::host(&workspace, args.quick)?;
    }
    if wanted("agent") {
        agent::agent(&workspace, args.quick)?;
    }
    Ok(())
}
