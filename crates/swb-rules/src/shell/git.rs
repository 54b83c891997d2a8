//! `git`: what its subcommands do once their own arguments are known.

use super::concern::Concern;
use super::invocation::Risk;
use super::subcommands::{Act, READS, WRITES, asks, destroys, lookup, network};
use super::word::Word;
use super::words::Arguments;

/// A `git` command line taken apart.
pub(super) struct Git<'a> {
    /// The directory of `-C`.
    pub(super) directory: Option<&'a Word>,
    /// Words behind the subcommand.
    pub(super) arguments: &'a [Word],
    pub(super) act: Option<Act>,
    /// Reasons that come from options.
    pub(super) concerns: Vec<(Risk, &'static str)>,
}

const STEERED: (Risk, &str) =
    (Risk::High, "gives git options that can run other programs or use another repository");

/// Takes a `git` command line apart.
pub(super) fn git(words: &[Word]) -> Git<'_> {
    let mut found = Git { directory: None, arguments: &[], act: None, concerns: Vec::new() };
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let Some(text) = word.literal() else { return found };
        at += 1;
        match text.as_str() {
            "-C" => {
                if found.directory.is_some() {
                    return found;
                }
                found.directory = words.get(at);
                at += 1;
            }
            "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" | "--super-prefix"
            | "--attr-source" => {
                found.concerns.push(STEERED);
                at += 1;
            }
            "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" | "--no-replace-objects" => {}
            "--version" | "--help" | "-h" | "-v" => {
                found.act = Some(READS);
                return found;
            }
            option if option.starts_with('-') => found.concerns.push(STEERED),
            subcommand => {
                found.arguments = &words[at..];
                let arguments = Arguments::new(found.arguments);
                found.act = special(subcommand, &arguments).or_else(|| lookup("git", subcommand));
                if arguments.has_any(&[
                    "--ext-diff",
                    "--textconv",
                    "--output",
                    "--open-files-in-pager",
                    "--exec",
                    "--upload-pack",
                    "--receive-pack",
                    "--template",
                    "--git-dir",
                ]) || (subcommand == "grep" && arguments.has("O"))
                    || (subcommand == "rebase" && arguments.has("x"))
                    || (subcommand == "bisect" && arguments.first().as_deref() == Some("run"))
                {
                    found.concerns.push(STEERED);
                }
                return found;
            }
        }
    }
    found
}

/// Subcommands whose arguments decide.
fn special(subcommand: &str, arguments: &Arguments<'_>) -> Option<Act> {
    let first = arguments.first();
    let first = first.as_deref();
    let nothing_named = arguments.operands().is_empty();
    let act = match subcommand {
        "push" => push(arguments),
        "branch" | "tag" => {
            if arguments.has_any(&["D", "d", "f", "M", "m", "--delete", "--force", "--move"]) {
                destroys(Concern::Destroys, Risk::Medium, "removes or moves a branch or a tag")
            } else if nothing_named
                || arguments.has_any(&["l", "--list", "--contains", "--merged", "--show-current"])
            {
                READS
            } else {
                WRITES
            }
        }
        "stash" => match first {
            Some("list" | "show") => READS,
            Some("drop" | "clear") => destroys(Concern::Destroys, Risk::Medium, "throws away stashed work"),
            _ => WRITES,
        },
        "remote" => match first {
            None | Some("get-url") => READS,
            Some("show" | "update" | "prune") => {
                network(Concern::Network, Risk::Medium, "reaches the network")
            }
            _ => asks(Concern::Steers, Risk::Medium, "changes where the repository sends its work"),
        },
        "worktree" => match first {
            Some("list") => READS,
            _ => asks(Concern::Leaves, Risk::Medium, "adds or removes working trees"),
        },
        "config" => {
            if arguments.has_any(&["--get", "--get-all", "--get-regexp", "--list", "l"])
                || matches!(first, Some("get" | "list"))
            {
                READS
            } else {
                asks(Concern::Steers, Risk::High, "changes the configuration of git, which can run programs")
            }
        }
        "reset" if arguments.has_any(&["--hard", "--merge", "--keep"]) => {
            destroys(Concern::Destroys, Risk::Medium, "throws away uncommitted work")
        }
        "reset" => WRITES,
        "clean" if arguments.has_any(&["n", "--dry-run"]) && !arguments.has_any(&["f", "--force"]) => READS,
        "clean" => destroys(Concern::Deletes, Risk::Medium, "removes files that are not in the repository"),
        "restore" if arguments.has_any(&["S", "--staged"]) && !arguments.has_any(&["W", "--worktree"]) => {
            WRITES
        }
        "restore" => destroys(Concern::Destroys, Risk::Medium, "throws away uncommitted work"),
        "checkout" | "switch" if arguments.has_any(&["f", "--force", "--discard-changes"]) => {
            destroys(Concern::Destroys, Risk::Medium, "throws away uncommitted work")
        }
        "checkout" => {
            let names_files = arguments.texts().any(|text| text == "--" || text == "." || text.contains('*'));
            if names_files {
                destroys(Concern::Destroys, Risk::Medium, "throws away uncommitted work")
            } else {
                WRITES
            }
        }
        _ => return None,
    };
    Some(act)
}

fn push(arguments: &Arguments<'_>) -> Act {
    let forced =
        arguments.has_any(&["f", "d", "--force", "--force-with-lease", "--mirror", "--delete", "--prune"])
            || arguments.texts().any(|text| text.starts_with(['+', ':']))
            || arguments.has_unknown();
    if forced {
        Act {
            destructive: true,
            ..network(Concern::Pushes, Risk::High, "may overwrite or remove what others have pushed")
        }
    } else {
        network(Concern::Pushes, Risk::Medium, "sends work to another machine")
    }
}
