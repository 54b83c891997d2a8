//! Programs whose first operand decides what they do: `git`, build tools, package managers, interpreters.

use super::concern::Concern;
use super::invocation::{Nature, Risk};
use super::programs::lists;

/// What a subcommand does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Act {
    pub(super) nature: Nature,
    /// Why it is asked about, if it is.
    pub(super) concern: Option<(Concern, Risk, &'static str)>,
    pub(super) network: bool,
    pub(super) destructive: bool,
}

const fn act(nature: Nature) -> Act {
    Act { nature, concern: None, network: false, destructive: false }
}

/// Only reads.
pub(super) const READS: Act = act(Nature::Reads);
/// Changes files where it runs.
pub(super) const WRITES: Act = act(Nature::Writes);
/// Runs code of the project.
pub(super) const RUNS: Act = act(Nature::Runs);

/// Talks to another machine.
pub(super) const fn network(concern: Concern, risk: Risk, reason: &'static str) -> Act {
    Act { nature: Nature::Reaches, concern: Some((concern, risk, reason)), network: true, destructive: false }
}

/// Loses something for good.
pub(super) const fn destroys(concern: Concern, risk: Risk, reason: &'static str) -> Act {
    Act { nature: Nature::Writes, concern: Some((concern, risk, reason)), network: false, destructive: true }
}

/// Does something else that is asked about.
pub(super) const fn asks(concern: Concern, risk: Risk, reason: &'static str) -> Act {
    Act { nature: Nature::Writes, concern: Some((concern, risk, reason)), network: false, destructive: false }
}

type Rows = &'static [(&'static str, Act)];

const GIT: Rows = &[
    (
        "\
            annotate blame cat-file check-attr check-ignore cherry count-objects describe diff diff-files \
            diff-index diff-tree for-each-ref fsck grep help log ls-files ls-tree merge-base name-rev \
            range-diff rev-list rev-parse shortlog show show-branch show-ref status var verify-commit \
            verify-tag version whatchanged",
        READS,
    ),
    (
        "\
            add am apply cherry-pick commit init merge mv rebase revert rm switch bisect notes \
            sparse-checkout format-patch",
        WRITES,
    ),
    (
        "clone fetch ls-remote pull submodule lfs svn send-email",
        network(Concern::Network, Risk::Medium, "reaches the network"),
    ),
    (
        "filter-branch filter-repo gc prune reflog update-ref replace",
        destroys(Concern::Destroys, Risk::High, "rewrites or removes history"),
    ),
];

const CARGO: Rows = &[
    ("metadata tree version help locate-project pkgid verify-project", READS),
    (
        "\
            b bench build c check clean clippy d doc expand fix fmt insta llvm-cov nextest r run rustc \
            rustdoc t test xtask deny machete init new hack miri",
        RUNS,
    ),
    (
        "add fetch install remove search uninstall update vendor generate-lockfile",
        network(Concern::Installs, Risk::Medium, "fetches or changes dependencies"),
    ),
    (
        "login logout owner publish yank",
        network(Concern::Pushes, Risk::High, "publishes or changes accounts"),
    ),
];

const NODE_PACKAGES: Rows = &[
    ("ls list outdated view why bin root prefix version help", READS),
    ("build lint run run-script start t test typecheck format", RUNS),
    (
        "\
            add audit ci create dedupe dlx exec global i init install link rebuild remove un uninstall up \
            update upgrade x",
        network(Concern::Installs, Risk::High, "installs packages, whose scripts run at once"),
    ),
    (
        "\
            access adduser config deprecate dist-tag login logout owner publish token unpublish",
        network(Concern::Pushes, Risk::High, "publishes or changes accounts"),
    ),
];

const GO: Rows = &[
    ("env list version help doc", READS),
    ("build clean fmt generate run test tool vet work", RUNS),
    ("get install mod", network(Concern::Installs, Risk::Medium, "fetches or changes dependencies")),
];

const DOTNET: Rows = &[
    ("build clean format list msbuild run sln test", RUNS),
    (
        "add restore tool nuget workload new remove",
        network(Concern::Installs, Risk::Medium, "fetches or changes dependencies"),
    ),
];

/// Databases of the system; some of them are asked of other machines.
const GETENT: Rows = &[
    ("group passwd protocols services", READS),
    (
        "ahosts ahostsv4 ahostsv6 ethers hosts netgroup networks rpc",
        network(Concern::Network, Risk::Medium, "asks name servers"),
    ),
];

const fn house(concern: Option<(Concern, Risk, &'static str)>) -> Act {
    Act { nature: Nature::Reaches, concern, network: false, destructive: false }
}

/// Switchboard itself. What the daemon is asked it judges as the agent's; here it only matters what needs no daemon.
const SWB: Rows = &[
    (
        "agents completion doctor events help locks man projects schema sessions status tools_list workspaces",
        READS,
    ),
    ("bus", house(None)),
    (
        "approvals audit config down policy restart token trust up",
        house(Some((Concern::Governs, Risk::High, "governs Switchboard itself"))),
    ),
    (
        "attach call host lock rpc run terminal",
        house(Some((Concern::Unknown, Risk::High, "makes Switchboard run something"))),
    ),
];

const TABLES: &[(&[&str], Rows)] = &[
    (&["git"], GIT),
    (&["cargo"], CARGO),
    (&["npm", "pnpm", "yarn", "bun"], NODE_PACKAGES),
    (&["go"], GO),
    (&["dotnet"], DOTNET),
    (&["getent"], GETENT),
    (&["swb"], SWB),
];

/// Whether a program is described here.
pub(super) fn has_subcommands(program: &str) -> bool {
    TABLES.iter().any(|(programs, _)| programs.contains(&program))
}

/// What a subcommand does, if it is listed.
pub(super) fn lookup(program: &str, subcommand: &str) -> Option<Act> {
    let (_, rows) = TABLES.iter().find(|(programs, _)| programs.contains(&program))?;
    rows.iter().find(|(names, _)| lists(names, subcommand)).map(|(_, act)| *act)
}

/// A program that runs code in another language.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interpreter {
    pub(super) names: &'static [&'static str],
    /// Options behind which code stands.
    pub(super) inline: &'static [&'static str],
    /// Options behind which a module stands.
    pub(super) module: &'static [&'static str],
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter { names: &["python", "python2", "python3", "pypy", "pypy3"], inline: &["c"], module: &["m"] },
    Interpreter {
        names: &["node", "nodejs", "ts-node", "tsx"],
        inline: &["e", "p", "r", "--eval", "--print", "--require", "--import", "--loader"],
        module: &[],
    },
    Interpreter { names: &["ruby"], inline: &["e", "r", "x"], module: &[] },
    Interpreter { names: &["perl"], inline: &["e", "E", "M", "m", "x", "i", "d"], module: &[] },
    Interpreter {
        names: &["php", "lua", "luajit", "Rscript", "julia", "elixir"],
        inline: &["r", "e", "E", "B", "R", "l", "L"],
        module: &[],
    },
];

/// Modules that may be run with `python -m`.
pub(super) const PYTHON_MODULES: &[&str] = &[
    "black",
    "compileall",
    "coverage",
    "doctest",
    "flake8",
    "isort",
    "json.tool",
    "mypy",
    "py_compile",
    "pytest",
    "ruff",
    "timeit",
    "unittest",
    "venv",
];

/// The row of an interpreter; a version behind the name does not matter.
pub(super) fn interpreter(program: &str) -> Option<&'static Interpreter> {
    let bare = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|row| row.names.contains(&program) || row.names.contains(&bare))
}

/// Shells: their scripts are read like the line itself.
pub(super) fn is_shell(program: &str) -> bool {
    matches!(program, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "mksh" | "rbash")
}
