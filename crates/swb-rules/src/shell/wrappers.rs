//! Programs that run another program: how to find it behind their options.
//!
//! Each row lists every option of the program in the style of `getopt`: letters, those with a value followed by a colon;
//! long names, those with a value ending in `=`. An option that is not listed might take a value and so hide the program
//! behind it: that is reported and not guessed.

use super::grammar::assignment;
use super::script::Assignment;
use super::unclear::Unclear;
use super::word::Word;

/// A program whose operands are another command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    short: &'static str,
    long: &'static [&'static str],
    /// Operands of its own before the command.
    skip: usize,
    assignments: bool,
    pub(super) privilege: bool,
    pub(super) background: bool,
    /// Options with which it runs no command, or one that is not to be seen.
    pub(super) opaque: &'static [&'static str],
}

const PLAIN: Wrapper = Wrapper {
    name: "",
    short: "",
    long: &[],
    skip: 0,
    assignments: false,
    privilege: false,
    background: false,
    opaque: &[],
};

/// All of them.
pub(super) const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        name: "sudo",
        short: "AbBeEHKklNnPSsiu:g:p:C:h:r:t:T:U:R:D:v",
        long: &[
            "user=",
            "group=",
            "prompt=",
            "non-interactive",
            "preserve-env",
            "login",
            "shell",
            "stdin",
            "edit",
            "host=",
            "chdir=",
            "background",
            "set-home",
        ],
        assignments: true,
        privilege: true,
        opaque: &["s", "--shell", "i", "--login", "e", "--edit", "R", "D", "--chdir"],
        ..PLAIN
    },
    Wrapper { name: "doas", short: "Lnsu:C:", privilege: true, opaque: &["s", "C"], ..PLAIN },
    Wrapper {
        name: "pkexec",
        long: &["user=", "disable-internal-agent", "keep-cwd"],
        privilege: true,
        ..PLAIN
    },
    Wrapper {
        name: "run0",
        long: &["user=", "group=", "nice=", "chdir=", "no-ask-password", "unit=", "property="],
        short: "u:g:D:",
        privilege: true,
        ..PLAIN
    },
    Wrapper {
        name: "env",
        short: "i0u:C:S:v",
        long: &[
            "ignore-environment",
            "null",
            "unset=",
            "chdir=",
            "split-string=",
            "debug",
            "block-signal",
            "default-signal",
            "ignore-signal",
        ],
        assignments: true,
        opaque: &["C", "--chdir"],
        ..PLAIN
    },
    Wrapper { name: "nice", short: "n:0123456789", long: &["adjustment="], ..PLAIN },
    Wrapper {
        name: "ionice",
        short: "c:n:tp:P:u:",
        long: &["class=", "classdata=", "ignore", "pid=", "pgid=", "uid="],
        ..PLAIN
    },
    Wrapper { name: "chrt", short: "abfioramTPDp:v", skip: 1, ..PLAIN },
    Wrapper { name: "taskset", short: "acp", long: &["all-tasks", "cpu-list", "pid"], skip: 1, ..PLAIN },
    Wrapper { name: "nohup", background: true, ..PLAIN },
    Wrapper { name: "setsid", short: "cfw", long: &["ctty", "fork", "wait"], background: true, ..PLAIN },
    Wrapper { name: "stdbuf", short: "i:o:e:", long: &["input=", "output=", "error="], ..PLAIN },
    Wrapper {
        name: "timeout",
        short: "k:s:vpf",
        long: &["kill-after=", "signal=", "foreground", "preserve-status", "verbose"],
        skip: 1,
        ..PLAIN
    },
    Wrapper {
        name: "time",
        short: "apqvf:o:V",
        long: &["append", "format=", "output=", "portability", "quiet", "verbose"],
        opaque: &["o", "--output"],
        ..PLAIN
    },
    Wrapper { name: "caffeinate", short: "dimsut:w:", ..PLAIN },
    Wrapper { name: "chronic", short: "ev", ..PLAIN },
    Wrapper { name: "unbuffer", short: "p", ..PLAIN },
    Wrapper { name: "command", short: "pvV", ..PLAIN },
    Wrapper { name: "exec", short: "cla:", ..PLAIN },
    Wrapper { name: "builtin", ..PLAIN },
    Wrapper { name: "busybox", ..PLAIN },
    Wrapper { name: "toybox", ..PLAIN },
    Wrapper {
        name: "xargs",
        short: "0rtxopa:d:E:I:L:n:P:s:e::i::l::",
        long: &[
            "null",
            "no-run-if-empty",
            "verbose",
            "exit",
            "open-tty",
            "interactive",
            "arg-file=",
            "delimiter=",
            "replace",
            "max-lines",
            "max-args=",
            "max-procs=",
            "max-chars=",
            "eof",
            "show-limits",
            "process-slot-var=",
        ],
        ..PLAIN
    },
    Wrapper {
        name: "watch",
        short: "bcdegn:pq:rtwx",
        long: &[
            "beep",
            "color",
            "differences",
            "errexit",
            "chgexit",
            "interval=",
            "precise",
            "no-title",
            "no-wrap",
            "exec",
        ],
        ..PLAIN
    },
    Wrapper {
        name: "ssh",
        short: "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:p:Q:R:S:W:w:",
        skip: 1,
        ..PLAIN
    },
    Wrapper {
        name: "flock",
        short: "senuoFx:w:E:",
        long: &["shared", "exclusive", "unlock", "nonblock", "nb", "timeout=", "wait=", "close", "no-fork"],
        skip: 1,
        ..PLAIN
    },
];

/// The row of a program.
pub(super) fn wrapper(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.name == name)
}

/// What stands behind the options of a wrapper.
#[derive(Default)]
pub(super) struct Unwrapped {
    pub(super) assignments: Vec<Assignment>,
    /// Operands of the wrapper itself.
    pub(super) own: Vec<Word>,
    pub(super) command: Vec<Word>,
}

impl Wrapper {
    /// Finds the command among the arguments.
    pub(super) fn unwrap_arguments(&self, arguments: &[Word]) -> Result<Unwrapped, Unclear> {
        let mut found = Unwrapped::default();
        let mut rest = arguments.iter();
        let mut options_ended = false;
        while let Some(word) = rest.next() {
            let text = word.text();
            if let Some(text) =
                text.as_deref().filter(|text| !options_ended && text.len() > 1 && text.starts_with('-'))
            {
                if text == "--" {
                    options_ended = true;
                } else if self.option_wants_value(text)? {
                    rest.next();
                }
                continue;
            }
            options_ended = options_ended || self.name != "ssh";
            if self.assignments
                && let Some(assignment) = assignment(word)
            {
                found.assignments.push(assignment);
            } else if found.own.len() < self.skip {
                found.own.push(word.clone());
            } else {
                found.command.push(word.clone());
                found.command.extend(rest.cloned());
                break;
            }
        }
        Ok(found)
    }

    fn option_wants_value(&self, text: &str) -> Result<bool, Unclear> {
        let unknown = || Unclear::Option { program: self.name.to_owned(), option: text.to_owned() };
        if let Some(long) = text.strip_prefix("--") {
            let (name, attached) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
            // Cut-short names are looked up by their beginning; a value is assumed if any candidate takes one.
            let mut candidates = self.long.iter().filter(|option| option.starts_with(name)).peekable();
            if candidates.peek().is_none() {
                return Err(unknown());
            }
            return Ok(!attached && candidates.any(|option| option.ends_with('=')));
        }
        let letters = &text[1..];
        for (at, letter) in letters.char_indices() {
            let Some(row) = self.short.find(letter).filter(|_| letter != ':') else { return Err(unknown()) };
            let behind = &self.short[row + 1..];
            if behind.starts_with("::") {
                return Ok(false);
            }
            if behind.starts_with(':') {
                return Ok(at + letter.len_utf8() == letters.len());
            }
        }
        Ok(false)
    }
}
