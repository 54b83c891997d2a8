//! Lines that write a file and run it, and lines that delete.
//!
//! Code that a line brings along is asked about like code in an argument: the person who is asked can read it there.
//! What a file holds is not followed. The order is not looked at either; a loop or a function may turn it round.

use super::invocation::{Command, Invocation, Nature};
use super::judge::Scope;
use super::pattern::meets;
use super::place::Place;
use super::programs::lists;

/// Programs that change a file but put nothing into it.
const EMPTY_HANDED: &str = "chgrp chmod mkdir mkfifo rm rmdir touch truncate unlink";
const DELETERS: &str = "rm rmdir unlink truncate";

/// Files that builders take their orders from.
const ORDERS: &str = "\
    makefile gnumakefile *.mk justfile cmakelists.txt build.rs cargo.toml package.json setup.py setup.cfg \
    pyproject.toml tox.ini noxfile.py conftest.py pytest.ini rakefile gemfile build.gradle build.gradle.kts \
    settings.gradle pom.xml build.xml build.ninja meson.build build build.bazel workspace module.bazel \
    gulpfile.js webpack.config.js vite.config.* jest.config.* vitest.config.* .eslintrc* .mocharc* \
    rollup.config.* rust-toolchain rust-toolchain.toml";

/// Whether an invocation deletes files.
pub(super) fn deletes(invocation: &Invocation) -> bool {
    let program = invocation.program.as_str();
    lists(DELETERS, program)
        || program == "git"
            && invocation.arguments.iter().find(|argument| !argument.text.starts_with('-')).is_some_and(
                // `git -C DIR rm`: the folder comes first.
                |first| {
                    first.text == "rm"
                        || invocation.arguments.first().is_some_and(|argument| argument.text == "-C")
                            && invocation.arguments.get(2).is_some_and(|argument| argument.text == "rm")
                },
            )
}

/// What a line writes and runs, if it does.
pub(super) fn runs_what_it_writes(command: &Command, scope: &Scope) -> Option<String> {
    let parts = |place: &Place| place.absolute(&scope.directory, scope.home.as_deref());
    let written: Vec<Vec<String>> = command
        .invocations
        .iter()
        .filter(|invocation| !lists(EMPTY_HANDED, &invocation.program) && invocation.nature != Nature::Runs)
        .flat_map(|invocation| &invocation.writes)
        .filter_map(parts)
        .collect();
    if written.is_empty() {
        return None;
    }
    command.invocations.iter().find_map(|invocation| {
        if let Some(file) = &invocation.file {
            let run = parts(file)?;
            let is_written = written.iter().any(|written| is_at_or_below(&run, written));
            return is_written.then(|| format!("runs `{file}`, which the same line writes"));
        }
        if invocation.nature != Nature::Runs {
            return None;
        }
        let name = written.iter().filter_map(|parts| parts.last()).find(|name| is_order(name))?;
        Some(format!("`{}` takes orders from `{name}`, which the same line writes", invocation.program))
    })
}

fn is_at_or_below(run: &[String], written: &[String]) -> bool {
    run.len() >= written.len() && written.iter().zip(run).all(|(pattern, name)| matches_name(pattern, name))
}

/// A bare `*` matches any name here: what was copied into a folder may be what is run there.
fn matches_name(pattern: &str, name: &str) -> bool {
    pattern == name || pattern == "*" || meets(pattern, name)
}

fn is_order(name: &str) -> bool {
    ORDERS.split_ascii_whitespace().any(|order| meets(name, order))
}
