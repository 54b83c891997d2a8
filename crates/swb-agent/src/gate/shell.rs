//! What a command line would do, as far as a short look can tell.
//!
//! Only plain words are understood; anything else may change things. A full judge of shell commands takes this place.

use std::path::Path;

use super::paths;

/// Programs that only print, whatever their arguments.
const READERS: [&str; 15] = [
    "basename", "cat", "date", "dirname", "echo", "false", "head", "ls", "printf", "pwd", "stat", "tail",
    "true", "uname", "wc",
];

/// Whether the command is one program that only reads, and no secrets.
pub(super) fn only_reads(command: &str, folder: &Path) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _./=:,@%+-".contains(&byte);
    let mut words = command.split_ascii_whitespace();
    command.bytes().all(plain)
        && words.next().is_some_and(|program| READERS.contains(&program))
        && words.all(|word| !paths::is_secret(&paths::resolve(folder, word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_of_known_readers_pass() {
        let reads = |command| only_reads(command, Path::new("/w"));
        for good in ["ls", " cat src/main.rs ", "head -n 5 a.txt", "echo hello"] {
            assert!(reads(good), "{good}");
        }
        for bad in [
            "",
            "rm x",
            "cat a; rm b",
            "cat $(x)",
            "cat a > b",
            "cat a | sh",
            "cat `x`",
            "ls && x",
            "cat a\nrm b",
            "/tmp/cat a",
            "X=1 cat a",
            "cat /home/u/.ssh/id_rsa",
            "cat ~/x",
            "cat .env",
            "cat *",
            "cat 'a'",
        ] {
            assert!(!reads(bad), "{bad}");
        }
    }
}
