//! Small languages inside arguments, read just far enough to know that they run and write nothing.

use super::word::Word;

/// The arguments of `sed`, taken apart as `sed` does it.
pub(super) struct SedArguments<'a> {
    pub(super) in_place: bool,
    pub(super) files: Vec<&'a Word>,
    scripts: Vec<String>,
}

impl<'a> SedArguments<'a> {
    /// `None` if an option or a script is not known.
    pub(super) fn read(arguments: &'a [Word]) -> Option<Self> {
        const PLAIN: &[&str] = &[
            "--quiet",
            "--silent",
            "--regexp-extended",
            "--null-data",
            "--separate",
            "--unbuffered",
            "--posix",
            "--debug",
        ];
        let mut found = Self { in_place: false, files: Vec::new(), scripts: Vec::new() };
        let mut operands = Vec::new();
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let text = word.text();
            match text.as_deref() {
                Some("--") => operands.extend(rest.by_ref()),
                Some(long) if long.starts_with("--") => match long.split_once('=').unwrap_or((long, "")) {
                    ("--in-place", _) => found.in_place = true,
                    ("--expression", script) if long.contains('=') => found.scripts.push(script.to_owned()),
                    ("--expression", _) => found.scripts.push(rest.next()?.text()?),
                    (option, _) if PLAIN.contains(&option) => {}
                    _ => return None,
                },
                Some(short) if short.len() > 1 && short.starts_with('-') => {
                    let script_is_next = found.short(&short[1..])?;
                    if script_is_next {
                        found.scripts.push(rest.next()?.text()?);
                    }
                }
                _ => operands.push(word),
            }
        }
        if found.scripts.is_empty() && !operands.is_empty() {
            found.scripts.push(operands.remove(0).text()?);
        }
        found.files = operands;
        Some(found)
    }

    /// A cluster of letters; says whether a script must follow.
    fn short(&mut self, letters: &str) -> Option<bool> {
        for (at, letter) in letters.char_indices() {
            match letter {
                'n' | 'E' | 'r' | 's' | 'u' | 'z' => {}
                // What follows is the ending of the copy.
                'i' => {
                    self.in_place = true;
                    return Some(false);
                }
                'e' if at + 1 == letters.len() => return Some(true),
                'e' => {
                    self.scripts.push(letters[at + 1..].to_owned());
                    return Some(false);
                }
                _ => return None,
            }
        }
        Some(false)
    }

    /// Whether all its scripts are plain.
    pub(super) fn is_plain(&self) -> bool {
        self.scripts.iter().all(|script| sed_is_plain(script))
    }
}

/// Whether a `sed` script only prints, deletes and substitutes. Commands that write files (`w`), run programs (`e`) or
/// read scripts are not plain, nor is anything that is not recognised.
fn sed_is_plain(script: &str) -> bool {
    let mut rest = script.trim_start_matches([' ', ';', '\n']);
    while !rest.is_empty() {
        let Some(after) = sed_command(rest) else { return false };
        let after = after.trim_start_matches([' ', '\t', '}']);
        if !after.is_empty() && !after.starts_with([';', '\n']) {
            return false;
        }
        rest = after.trim_start_matches([' ', '\t', ';', '\n', '}']);
    }
    true
}

/// Reads one command; gives what is left.
fn sed_command(script: &str) -> Option<&str> {
    let mut rest = script;
    let (command, after) = loop {
        rest = sed_address(rest)?;
        if let Some(after) = rest.strip_prefix(',') {
            rest = sed_address(after.trim_start_matches(['+', '~']))?;
        }
        rest = rest.trim_start_matches([' ', '!']);
        let (command, after) = rest.split_at_checked(1)?;
        if command != "{" {
            break (command, after);
        }
        rest = after.trim_start_matches([' ', '\n']);
    };
    match command {
        "p" | "d" | "D" | "P" | "=" | "n" | "N" | "h" | "H" | "g" | "G" | "x" | "l" | "z" => Some(after),
        "q" | "Q" => Some(after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ')),
        "s" | "y" => {
            let delimiter =
                after.chars().next().filter(|c| !c.is_alphanumeric() && *c != '\\' && *c != '\n')?;
            let mut body = &after[delimiter.len_utf8()..];
            for _ in 0..2 {
                body = behind_delimiter(body, delimiter)?;
            }
            Some(body.trim_start_matches(|c: char| {
                matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || c.is_ascii_digit()
            }))
        }
        _ => None,
    }
}

fn sed_address(script: &str) -> Option<&str> {
    if let Some(body) = script.strip_prefix('/') {
        return behind_delimiter(body, '/').map(|rest| rest.trim_start_matches(['I', 'M']));
    }
    Some(script.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '$' | '~')))
}

fn behind_delimiter(body: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (at, character) in body.char_indices() {
        if character == '\n' {
            return None;
        }
        if !escaped && character == '[' && delimiter != '[' {
            // Inside brackets a delimiter may or may not count; versions differ.
            let close = body[at..].find(']').map(|close| at + close)?;
            if body[at..close].contains(delimiter) {
                return None;
            }
        }
        if !escaped && character == delimiter {
            return Some(&body[at + character.len_utf8()..]);
        }
        escaped = !escaped && character == '\\';
    }
    None
}

/// Whether an `awk` program neither runs, writes nor reads anything but its input.
pub(super) fn awk_is_plain(program: &str) -> bool {
    !["system", "getline", "close", "fflush", "ENVIRON", "PROCINFO", "ARGV", "@"]
        .iter()
        .any(|word| program.contains(word))
        && !program.contains(['>', '|'])
}

/// Whether a `jq` program reads nothing but its input.
pub(super) fn jq_is_plain(program: &str) -> bool {
    !["env", "$ENV", "input_filename", "import", "include", "load", "$__prog"]
        .iter()
        .any(|word| program.contains(word))
}
