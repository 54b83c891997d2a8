//! The system's git, kept short: no prompts, no helpers of others, a time limit, and the end of everything it started.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use swb_host::Group;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// What git said last is enough to know why it failed.
const LAST_WORDS: usize = 4096;

/// Why git did not do it, for people.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    /// The address could mean a program to run, or an option.
    #[error("this is no address to clone from: use https, http, ssh, git, file, or an absolute path")]
    Address,
    /// It is not installed, or cannot be started.
    #[error("git cannot be started: {0}")]
    NoGit(std::io::Error),
    /// It said why.
    #[error("{0}")]
    Failed(String),
    /// It took too long and was ended.
    #[error("git took longer than {} s and was ended", .0.as_secs())]
    TooLong(Duration),
}

/// How far a clone is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    /// What git is doing, in its own words.
    pub(crate) phase: String,
    /// Of this phase.
    pub(crate) percent: u8,
}

/// Refuses what git would take for an option or a program to run.
pub(crate) fn check_address(url: &str) -> Result<(), GitError> {
    let scheme = ["https://", "http://", "ssh://", "git://", "file://", "/"];
    let known = scheme.iter().any(|scheme| url.starts_with(scheme));
    // user@host:path, as ssh has it.
    let (host, path) = url.split_once(':').unwrap_or((url, ""));
    let like_ssh =
        !known && !host.is_empty() && !path.is_empty() && !host.contains('/') && !path.starts_with(':');
    let clean = !url.starts_with('-') && !url.chars().any(|c| c.is_control() || c.is_whitespace());
    if clean && (known || like_ssh) { Ok(()) } else { Err(GitError::Address) }
}

/// The address without a password in it.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

/// How git is called.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    /// The program.
    pub(crate) program: String,
    /// How long it may take.
    pub(crate) limit: Duration,
}

impl Git {
    /// `git clone`, telling how far it is. Dropped, it ends git and whatever git started.
    pub(crate) async fn clone_to(
        &self,
        url: &str,
        branch: Option<&str>,
        target: &Path,
        mut progress: impl FnMut(Progress),
    ) -> Result<(), GitError> {
        let mut git = self.command();
        git.args(["clone", "--progress"]);
        if let Some(branch) = branch {
            // One word: a branch that begins with a dash is still a branch.
            git.arg(format!("--branch={branch}"));
        }
        git.arg("--").arg(url).arg(target);
        let said = |line: &str| {
            if let Some(step) = read_progress(line) {
                progress(step);
            }
        };
        run(git, self.limit, said).await
    }

    /// `git init`.
    pub(crate) async fn init(&self, folder: &Path) -> Result<(), GitError> {
        let mut git = self.command();
        git.args(["init", "--quiet", "--"]).arg(folder);
        run(git, self.limit, |_| {}).await
    }

    fn command(&self) -> Command {
        let mut git = Command::new(&self.program);
        git.env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh")
            .env("GIT_ASKPASS", "true")
            .env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        git
    }
}

async fn run(mut git: Command, limit: Duration, mut said: impl FnMut(&str)) -> Result<(), GitError> {
    let mut group = Group::spawn(&mut git).map_err(GitError::NoGit)?;
    let mut stderr = group.take_stderr();
    let mut last_words = String::new();
    let work = async {
        let mut buffer = [0; 4096];
        let mut line = Vec::new();
        while let Some(stderr) = &mut stderr {
            let n = stderr.read(&mut buffer).await.unwrap_or(0);
            if n == 0 {
                break;
            }
            for byte in &buffer[..n] {
                match byte {
                    b'\r' | b'\n' => {
                        let words = String::from_utf8_lossy(&line).into_owned();
                        said(&words);
                        if *byte == b'\n' && last_words.len() + words.len() < LAST_WORDS {
                            last_words += &words;
                            last_words.push('\n');
                        }
                        line.clear();
                    }
                    // A line without end is nobody's progress.
                    _ if line.len() < LAST_WORDS => line.push(*byte),
                    _ => {}
                }
            }
        }
        group.wait().await
    };
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(_)) => Err(GitError::Failed(reason(&last_words))),
        Ok(Err(error)) => Err(GitError::NoGit(error)),
        Err(_) => Err(GitError::TooLong(limit)),
    }
}

/// The lines in which git complains, without the folders of this machine.
fn reason(words: &str) -> String {
    let complaints: Vec<String> = words
        .lines()
        .filter(|line| ["fatal: ", "error: ", "warning: "].iter().any(|sign| line.starts_with(sign)))
        .map(without_paths)
        .collect();
    if complaints.is_empty() { "git failed and did not say why".to_owned() } else { complaints.join("; ") }
}

fn without_paths(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let bare = word.trim_matches(|c: char| "'\"(),:;.".contains(c));
        if bare.starts_with('/') && bare.len() > 1 { word.replace(bare, "<path>") } else { word.to_owned() }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `Receiving objects:  42% (10/24)`.
fn read_progress(line: &str) -> Option<Progress> {
    let (phase, rest) = line.strip_prefix("remote: ").unwrap_or(line).split_once(':')?;
    let percent = rest.trim_start().split_once('%')?.0.parse().ok().filter(|percent| *percent <= 100)?;
    Some(Progress { phase: phase.trim().to_lowercase().replace(' ', "_"), percent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_no_option_and_no_program() {
        for good in ["https://h/x.git", "ssh://g@h/x", "git@h:x/y.git", "/srv/x.git", "file:///srv/x", "h:x"]
        {
            assert!(check_address(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-uhelper",
            "--upload-pack=x",
            "ext::sh -c x",
            "ext::sh",
            "x",
            "a b:c",
            "https://h/\nx",
            "ftp//x",
            "/a\0",
        ] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn passwords_do_not_stay() {
        assert_eq!(without_password("https://me:secret@h/x@y"), "https://h/x@y");
        assert_eq!(without_password("git@h:x"), "git@h:x");
    }

    #[test]
    fn progress_is_read_from_git_s_words() {
        let step = |phase: &str, percent| Some(Progress { phase: phase.to_owned(), percent });
        assert_eq!(read_progress("Receiving objects:  42% (10/24), 1 MiB"), step("receiving_objects", 42));
        assert_eq!(
            read_progress("remote: Counting objects: 100% (3/3), done."),
            step("counting_objects", 100)
        );
        assert_eq!(read_progress("Cloning into 'x'..."), None);
        assert_eq!(read_progress("x: 999%"), None);
    }

    #[test]
    fn a_reason_names_no_folder() {
        let words = "Cloning into '/home/me/x'...\nfatal: repository '/home/me/y' does not exist\n";
        assert_eq!(reason(words), "fatal: repository '<path>' does not exist");
    }
}
