//! The tables: which programs are known, and for what.
//!
//! A program that is in no table is not harmless, it is unknown, and unknown is asked about. A program is listed under
//! `Reads` only if nothing but its careful options can make it write or run something. Arguments taken for a path by
//! mistake do no harm here: a plain word names a file inside the directory it runs in.

use super::invocation::Nature;

/// How a program uses the words that are not options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// They are not paths.
    Ignored,
    /// All are read.
    Read,
    /// The first is an expression, the rest are read.
    Expression,
    /// All are written.
    Written,
    /// The last is written, the others are read.
    Copied,
    /// The first is a mode or an owner, the rest are written.
    Changed,
    /// Anything that looks like a path may be written.
    Suspected,
}

/// A program that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) nature: Nature,
    pub(super) operands: Operands,
    /// Options that make it do more than its nature says, by their long name or their letter.
    pub(super) careful: &'static str,
}

const fn known(name: &'static str, nature: Nature, operands: Operands, careful: &'static str) -> Program {
    Program { name, nature, operands, careful }
}

const IDLE: &str = "\
    : [ arch basename bg cal dirname echo exit expr false fg getconf getopts groups id jobs locale logname \
    nproc popd printf pushd pwd read return seq shift sleep test times tput true tty type ulimit umask \
    uname unalias unset uptime users wait whereis which who whoami yes break continue let mapfile \
    readarray shopt cd";

const READERS: &str = "\
    b2sum base32 base64 cat cksum cloc cmp column comm cut df diff du exa eza fmt fold free head hexdump \
    join ls lsblk md5sum nl nm numfmt objdump od paste pgrep pr ps readelf readlink realpath rev sha1sum \
    sha224sum sha256sum sha384sum sha512sum size stat strings sum tac tail tokei tr tsort unexpand expand \
    wc zcat bzcat xzcat zstdcat vmstat lscpu pathchk";

const BUILDERS: &str = "\
    ant ar as black bazel c++ cc clang clang++ clang-format clang-tidy cmake ctest eslint flake8 \
    g++ gcc gradle gradlew isort java javac jest ld make gmake meson mocha mvn mypy ninja nox phpunit \
    prettier protoc pylint pyright pytest rspec rubocop ruff rustc rustdoc rustfmt sbt shellcheck shfmt \
    strip swc tox tsc vitest zig just biome golangci-lint gofmt javadoc sphinx-build mkdocs";

/// Programs with a row of their own.
const ROWS: &[Program] = &[
    known("grep", Nature::Reads, Operands::Expression, ""),
    known("egrep", Nature::Reads, Operands::Expression, ""),
    known("fgrep", Nature::Reads, Operands::Expression, ""),
    known("zgrep", Nature::Reads, Operands::Expression, ""),
    known("rg", Nature::Reads, Operands::Expression, "--pre --pre-glob --hostname-bin --search-zip"),
    known("ag", Nature::Reads, Operands::Expression, "--pager"),
    known("jq", Nature::Reads, Operands::Expression, ""),
    known("yq", Nature::Reads, Operands::Expression, "i --inplace --in-place s --split-exp"),
    known(
        "awk",
        Nature::Reads,
        Operands::Expression,
        "\
        f i --file --include l --load --inplace d p o E --exec --profile --pretty-print --dump-variables D \
        --debug",
    ),
    known(
        "gawk",
        Nature::Reads,
        Operands::Expression,
        "\
        f i --file --include l --load --inplace d p o E --exec --profile --pretty-print --dump-variables D \
        --debug",
    ),
    known("mawk", Nature::Reads, Operands::Expression, "f W"),
    known("sed", Nature::Reads, Operands::Expression, ""),
    known("sort", Nature::Reads, Operands::Read, "o --output --compress-program T --temporary-directory"),
    known("date", Nature::Idle, Operands::Ignored, "s --set f --file"),
    known("file", Nature::Reads, Operands::Read, "C --compile m --magic-file"),
    known("tree", Nature::Reads, Operands::Read, "o R"),
    known("fd", Nature::Reads, Operands::Expression, "x --exec X --exec-batch"),
    known("fdfind", Nature::Reads, Operands::Expression, "x --exec X --exec-batch"),
    known("bat", Nature::Reads, Operands::Read, "--pager --config-file"),
    known("hostname", Nature::Idle, Operands::Ignored, "F b --file --boot"),
    known("hash", Nature::Idle, Operands::Ignored, "p"),
    known("set", Nature::Idle, Operands::Ignored, ""),
    // `uniq IN OUT` writes.
    known("uniq", Nature::Writes, Operands::Copied, ""),
    known("xxd", Nature::Writes, Operands::Copied, ""),
    known("cp", Nature::Writes, Operands::Copied, ""),
    known("install", Nature::Writes, Operands::Copied, "o g --owner --group --strip-program"),
    known("mv", Nature::Writes, Operands::Written, ""),
    // A link to a place outside is a door: both ends count.
    known("ln", Nature::Writes, Operands::Written, ""),
    known("link", Nature::Writes, Operands::Written, ""),
    known("unlink", Nature::Writes, Operands::Written, ""),
    known("mkdir", Nature::Writes, Operands::Written, ""),
    known("rmdir", Nature::Writes, Operands::Written, ""),
    known("mktemp", Nature::Writes, Operands::Written, "u"),
    known("mkfifo", Nature::Writes, Operands::Written, ""),
    known("touch", Nature::Writes, Operands::Written, ""),
    known("tee", Nature::Writes, Operands::Written, ""),
    known("truncate", Nature::Writes, Operands::Written, ""),
    known("split", Nature::Writes, Operands::Written, "--filter"),
    known("csplit", Nature::Writes, Operands::Written, ""),
    known("rm", Nature::Writes, Operands::Written, "--no-preserve-root"),
    known("patch", Nature::Writes, Operands::Written, "--get g"),
    known("chmod", Nature::Writes, Operands::Changed, ""),
    known("chgrp", Nature::Writes, Operands::Changed, ""),
    known(
        "tar",
        Nature::Writes,
        Operands::Written,
        "\
        --to-command --checkpoint-action I --use-compress-program P --absolute-names --rsh-command \
        --rmt-command --info-script --new-volume-script F",
    ),
    known("zip", Nature::Writes, Operands::Written, "T TT --unzip-command --test"),
    known("unzip", Nature::Writes, Operands::Written, ":"),
    known("gzip", Nature::Writes, Operands::Written, ""),
    known("gunzip", Nature::Writes, Operands::Written, ""),
    known("bzip2", Nature::Writes, Operands::Written, ""),
    known("xz", Nature::Writes, Operands::Written, ""),
    known("zstd", Nature::Writes, Operands::Written, ""),
    known("dos2unix", Nature::Writes, Operands::Written, ""),
    known("export", Nature::Idle, Operands::Ignored, "p"),
    known("readonly", Nature::Idle, Operands::Ignored, "p"),
    // `-n` makes a name stand for another variable, `PATH` perhaps.
    known("declare", Nature::Idle, Operands::Ignored, "p x n"),
    known("typeset", Nature::Idle, Operands::Ignored, "p x n"),
    known("local", Nature::Idle, Operands::Ignored, "p x n"),
];

/// What is known about a program.
pub(super) fn lookup(name: &str) -> Option<Program> {
    if let Some(row) = ROWS.iter().find(|row| row.name == name) {
        return Some(*row);
    }
    let listed = |names: &'static str| names.split_ascii_whitespace().find(|known| *known == name);
    if let Some(name) = listed(IDLE) {
        return Some(known(name, Nature::Idle, Operands::Ignored, ""));
    }
    if let Some(name) = listed(READERS) {
        return Some(known(name, Nature::Reads, Operands::Read, ""));
    }
    listed(BUILDERS).map(|name| known(name, Nature::Runs, Operands::Suspected, ""))
}

/// Whether a list of names holds this one.
pub(super) fn lists(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}
