//! The user's own rules of redaction: `redaction.toml` beside `config.toml`.
//!
//! ```toml
//! names = ["pin_code"]          # values behind such names are hidden in JSON
//!
//! [[rule]]
//! id = "acme-key"
//! prefix = "acme_"
//! characters = "name"           # alnum, upper, name, dotted or token68
//! min = 16
//! ```
//!
//! A file that cannot be used is an error, never ignored: whoever wrote a rule relies on it.

use std::io::Read;
use std::path::{Path, PathBuf};

use swb_rules::redact::{CustomRuleError, CustomRules, install};

/// A file of rules is not longer.
const MOST_BYTES: u64 = 1 << 20;

/// Why the rules of a file are not in force.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the rules of redaction in {}: {kind}", path.display())]
pub struct RedactionError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    #[source]
    pub kind: RedactionErrorKind,
}

/// What is wrong with a file of rules.
#[derive(Debug, thiserror::Error)]
pub enum RedactionErrorKind {
    /// It cannot be read.
    #[error("{0}")]
    Read(std::io::Error),
    /// It is too long.
    #[error("it is longer than {MOST_BYTES} bytes")]
    TooLong,
    /// It is not TOML, or says what nobody understands.
    #[error("{}", .0.message())]
    Syntax(Box<toml::de::Error>),
    /// A rule is refused.
    #[error("{0}")]
    Rule(CustomRuleError),
}

/// Reads the rules of a file; none if there is no file.
pub fn read(path: &Path) -> Result<Option<CustomRules>, RedactionError> {
    let failed = |kind| RedactionError { path: path.to_owned(), kind };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(RedactionErrorKind::Read(error))),
    };
    let mut text = String::new();
    file.take(MOST_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| failed(RedactionErrorKind::Read(error)))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(failed(RedactionErrorKind::TooLong));
    }
    toml::from_str(&text).map(Some).map_err(|error| failed(RedactionErrorKind::Syntax(Box::new(error))))
}

/// Puts the rules of a file in force for this process, before anything is redacted.
pub fn start(path: &Path) -> Result<(), RedactionError> {
    let Some(rules) = read(path)? else { return Ok(()) };
    install(rules)
        .map_err(|error| RedactionError { path: path.to_owned(), kind: RedactionErrorKind::Rule(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_refused_with_its_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("redaction.toml");
        assert_eq!(read(&path).unwrap(), None);
        std::fs::write(&path, "names = [\"pin\"]\n[[rule]]\nid = \"a\"\nprefix = \"acme_\"\nmin = 16\n")
            .unwrap();
        assert_eq!(read(&path).unwrap().unwrap().rule[0].prefix, "acme_");
        for (text, said) in [
            ("[[rule]]\nid = \"a\"", "missing field"),
            ("[[rules]]\nid = \"a\"", "unknown field"),
            ("names = 3", "invalid type"),
            ("{", "expected"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("redaction.toml"), "{text}: {error}");
        }
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(read(&path).unwrap_err().kind, RedactionErrorKind::Read(_)));
        std::fs::write(&path, " ".repeat((1 << 20) + 1)).unwrap();
        assert!(matches!(read(&path).unwrap_err().kind, RedactionErrorKind::TooLong));
        // Refused before anything is set, so other tests of this process are not touched.
        std::fs::write(&path, "[[rule]]\nid = \"a\"\nprefix = \"\"\nmin = 16\n").unwrap();
        assert!(start(&path).unwrap_err().to_string().contains("it would hide everything"));
    }
}
