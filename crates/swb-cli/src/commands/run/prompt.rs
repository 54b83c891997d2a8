//! Where the prompt and the session come from.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use swb_agent::sessions::newest_first;
use swb_proto::agent::{Attachment, Command, MAX_FRAME_BYTES, encode};

use crate::exit_code;
use crate::failure::Failure;

/// The id of the one prompt that is sent.
pub(super) const ID: &str = "run";

/// What is to be said, and in which session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) prompt: Option<String>,
    pub(super) session: Option<Wanted>,
}

/// The session that goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Latest,
    Id(String),
}

/// Tells the two apart where `--continue WORD` may mean either.
pub(super) fn sort(resume: Option<Option<String>>, prompt: Option<String>) -> Said {
    match (resume, prompt) {
        (None, prompt) => Said { prompt, session: None },
        (Some(None), prompt) => Said { prompt, session: Some(Wanted::Latest) },
        // With nothing else said, a word that is no id is what is said.
        (Some(Some(word)), None) if !word.starts_with("sess_") => {
            Said { prompt: Some(word), session: Some(Wanted::Latest) }
        }
        (Some(Some(id)), prompt) => Said { prompt, session: Some(Wanted::Id(id)) },
    }
}

/// The session of this folder that was written last.
pub(super) fn latest(folder: &Path) -> Result<String, Failure> {
    let here = std::env::current_dir()?;
    let mut listed = newest_first(folder)?.into_iter();
    let fits = |listed: &swb_agent::sessions::Listed| {
        listed.look().known.is_ok_and(|known| known.cwd == here && known.parent.is_none())
    };
    listed.find(fits).map(|listed| listed.id).ok_or_else(|| {
        Failure::new("there is no session of this folder to go on with")
            .hint("`swb sessions` lists all; name one with --continue=ID")
    })
}

/// The words: as given, or from standard input.
pub(super) fn read(prompt: Option<String>) -> Result<String, Failure> {
    let text = match prompt {
        Some(prompt) if prompt != "-" => prompt,
        None if std::io::stdin().is_terminal() => {
            return Err(Failure::new("there is no prompt")
                .code(exit_code::USAGE)
                .hint("say what to do: swb run 'what is in this folder?'"));
        }
        _ => {
            let mut text = String::new();
            let limit = MAX_FRAME_BYTES as u64 + 1;
            std::io::stdin().lock().take(limit).read_to_string(&mut text).map_err(|error| {
                Failure::new("the prompt on standard input cannot be read")
                    .because(error)
                    .code(exit_code::USAGE)
            })?;
            text.truncate(text.trim_end_matches('\n').len());
            text
        }
    };
    if text.trim().is_empty() {
        return Err(Failure::new("the prompt is empty").code(exit_code::USAGE));
    }
    Ok(text)
}

/// The command that says them, if it fits into a frame.
pub(super) fn command(message: String, files: &[PathBuf]) -> Result<Command, Failure> {
    let attachments = files.iter().map(|file| attachment(file)).collect::<Result<_, _>>()?;
    let command = Command::Prompt { id: ID.to_owned(), message, attachments };
    let mut line = Vec::new();
    encode(&command, &mut line).map_err(std::io::Error::from)?;
    if line.len() > MAX_FRAME_BYTES {
        return Err(Failure::new("the prompt is too long: more than 1 MiB")
            .code(exit_code::USAGE)
            .hint("put the text into a file, and name the file in the prompt"));
    }
    Ok(command)
}

/// A file by its whole path, as the agent wants it. A link in the last place is left for the agent to refuse.
fn attachment(file: &Path) -> Result<Attachment, Failure> {
    let failed = |error| {
        Failure::new(format!("{} cannot be attached", file.display())).because(error).code(exit_code::USAGE)
    };
    let whole = std::path::absolute(file).map_err(failed)?;
    let (Some(folder), Some(name)) = (whole.parent(), whole.file_name()) else {
        return Err(Failure::new(format!("{} is no file", file.display())).code(exit_code::USAGE));
    };
    let path = folder.canonicalize().map_err(failed)?.join(name);
    let path = path.into_os_string().into_string().map_err(|path| {
        Failure::new(format!("{} cannot be attached: its name is no text", path.display()))
            .code(exit_code::USAGE)
    })?;
    Ok(Attachment { path, name: None, mime: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_behind_continue_is_an_id_or_the_prompt() {
        let said = |resume: Option<Option<&str>>, prompt: Option<&str>| {
            sort(resume.map(|id| id.map(str::to_owned)), prompt.map(str::to_owned))
        };
        let wanted = |prompt: Option<&str>, session| Said { prompt: prompt.map(str::to_owned), session };
        let id = |id: &str| Some(Wanted::Id(id.to_owned()));
        assert_eq!(said(None, Some("hi")), wanted(Some("hi"), None));
        assert_eq!(said(Some(None), Some("hi")), wanted(Some("hi"), Some(Wanted::Latest)));
        assert_eq!(said(Some(Some("ab")), Some("hi")), wanted(Some("hi"), id("ab")));
        assert_eq!(said(Some(Some("go on")), None), wanted(Some("go on"), Some(Wanted::Latest)));
        assert_eq!(said(Some(Some("-")), None), wanted(Some("-"), Some(Wanted::Latest)));
        assert_eq!(said(Some(Some("sess_1")), None), wanted(None, id("sess_1")));
    }
}
