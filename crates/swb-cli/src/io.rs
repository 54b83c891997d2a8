//! What a person or a script sees: text with colour on a terminal, JSON with `--json`.

use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::json;
use swb_daemon::config::Layers;
use swb_daemon::trust::Trust;
use swb_daemon::{Config, Paths};

use crate::failure::Failure;
use crate::project_trust::ProjectTrust;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();

/// The two output streams, and how to use them.
#[derive(Debug)]
pub(crate) struct Io {
    pub(crate) json: bool,
    /// Scripts call us by the incumbent's name and know its errors.
    run_agent: bool,
}

impl Io {
    pub(crate) fn new(json: bool) -> Self {
        Io { json, run_agent: is_run_agent() }
    }

    /// Applies what the configuration says about output. An unusable configuration is reported by who needs it.
    pub(crate) fn settle(&self, set: &[String]) -> Result<(), Failure> {
        let choice =
            match layers(&Paths::from_env()?, set).and_then(|layers| layers.finish().map_err(Into::into)) {
                Ok(Config { cli, .. }) if cli.color == "always" => anstream::ColorChoice::Always,
                Ok(Config { cli, .. }) if cli.color == "never" => anstream::ColorChoice::Never,
                _ => return Ok(()),
            };
        choice.write_global();
        Ok(())
    }

    /// Prints one line of text.
    pub(crate) fn line(&self, text: impl std::fmt::Display) -> Result<(), Failure> {
        Ok(writeln!(anstream::stdout(), "{text}")?)
    }

    /// Prints one object: on one line, unless a person is looking.
    pub(crate) fn object(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = if self.is_terminal() {
            // By way of a value, because text that is JSON already would be printed as it came.
            serde_json::to_value(value).and_then(|value| serde_json::to_string_pretty(&value))
        } else {
            serde_json::to_string(value)
        };
        self.verbatim(text.map_err(std::io::Error::from)?)
    }

    /// Prints one object of many: on one line, whoever is looking.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.verbatim(serde_json::to_string(value).map_err(std::io::Error::from)?)
    }

    /// Prints one line of bytes that are not ours: none is taken for a colour and taken out.
    pub(crate) fn verbatim(&self, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes.as_ref())?;
        Ok(out.write_all(b"\n")?)
    }

    /// Whether a person is looking.
    pub(crate) fn is_terminal(&self) -> bool {
        std::io::stdout().is_terminal()
    }

    /// Whether to use colours.
    pub(crate) fn is_colourful(&self) -> bool {
        anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
    }

    /// Says something beside the result.
    pub(crate) fn note(&self, text: impl std::fmt::Display) {
        let _ = writeln!(anstream::stderr(), "{text}");
    }

    /// Prints a failure and returns its exit code. A reader that went away is no failure.
    pub(crate) fn fail(&self, failure: &Failure) -> u8 {
        if failure.reader_gone {
            return crate::exit_code::SUCCESS;
        }
        let mut err = anstream::stderr();
        if self.json {
            let error = json!({
                "message": failure.message, "cause": failure.cause, "hint": failure.hint,
                "exit_code": failure.code, "error": failure.error,
            });
            let _ = writeln!(err, "{}", json!({ "error": error }));
            return failure.code;
        }
        if self.run_agent {
            let causes = failure.cause.iter().map(|cause| format!(": {cause}"));
            let _ = writeln!(err, "Error: {}{}", failure.message, causes.collect::<String>());
            return failure.code;
        }
        let _ = writeln!(err, "{BAD}error:{BAD:#} {}", failure.message);
        if let Some(cause) = &failure.cause {
            let _ = writeln!(err, "  {cause}");
        }
        if let Some(hint) = &failure.hint {
            let _ = writeln!(err, "{NAME}hint:{NAME:#} {hint}");
        }
        failure.code
    }
}

/// Whether this program was called by the incumbent's name.
pub(crate) fn is_run_agent() -> bool {
    let called = std::env::args_os().next().map(std::path::PathBuf::from);
    called.and_then(|path| path.file_name().map(|name| name == "run-agent")).unwrap_or(false)
}

/// The configuration as commands see it: the incumbent's file, the user's, the project's, the environment, the command
/// line.
pub(crate) fn layers(paths: &Paths, set: &[String]) -> Result<Layers, Failure> {
    layers_of_profile(paths, set, None)
}

/// The same with the file of a profile on top of the user's.
pub(crate) fn layers_of_profile(
    paths: &Paths,
    set: &[String],
    profile: Option<&str>,
) -> Result<Layers, Failure> {
    layers_over(&paths.config_file(), paths, set, profile)
}

/// The same with another file in place of the user's.
pub(crate) fn layers_over(
    user_file: &std::path::Path,
    paths: &Paths,
    set: &[String],
    profile: Option<&str>,
) -> Result<Layers, Failure> {
    let theirs = crate::incumbent::Settings::read(profile);
    let mut layers = Layers::default().foreign(&theirs.path, theirs.values).file(user_file)?;
    if let Some(profile) = profile {
        layers = layers.file(&paths.profile(profile).join("config.toml"))?;
    }
    if let Some(project) = project_file() {
        let trust = ProjectTrust::read(paths);
        layers = layers.project_file(&project, |bytes| trust.of_file(&project, bytes) == Trust::Trusted)?;
    }
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(layers.env(variables)?.flags(set)?)
}

/// The nearest `.switchboard/config.toml`, in this folder or above it.
pub(crate) fn project_file() -> Option<std::path::PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join(".switchboard/config.toml")).find(|file| file.is_file())
}

/// Returns when nobody reads standard output any more (`swb events --follow | head`): without anything to print there
/// is no write that would notice.
pub(crate) fn wait_for_reader_to_go() {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    loop {
        let woken = poll(&mut fds, None);
        if woken.is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
            return;
        }
    }
}
