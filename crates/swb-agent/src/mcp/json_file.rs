//! Servers from an `mcp.json`: `{"mcpServers": {NAME: {"command", "args", "env"} or {"url", "headers"}}}`.
//!
//! The shape that the field agreed on. An entry that makes no sense costs only itself; keys that mean nothing here are
//! ignored, because such files are shared with other programs.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::options::{Reach, ServerSpec};

/// A file larger than this is not one that a person wrote.
const MAX_BYTES: u64 = 1024 * 1024;

/// Why a file, or a server in it, is of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonFileError {
    /// The file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The file is not what it should be.
    #[error("{} is not valid: {source}", path.display())]
    Syntax {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// An entry makes no sense.
    #[error("its entry in {} is not valid: {problem}", path.display())]
    Entry {
        /// Where it stands.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

#[derive(Deserialize)]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default, alias = "environment")]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default, rename = "type", alias = "transport")]
    kind: Option<String>,
    #[serde(default)]
    disabled: bool,
    #[serde(default = "yes")]
    enabled: bool,
}

fn yes() -> bool {
    true
}

/// A server by its name, usable or not.
pub type Named = (String, Result<ServerSpec, JsonFileError>);

/// The servers of a file; none if there is no such file. Disabled ones are left out.
pub fn read_json_file(path: &Path) -> Result<Vec<Named>, JsonFileError> {
    let unreadable = |source| JsonFileError::Read { path: path.to_owned(), source };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text).map_err(unreadable)?;
    parse_json_file(path, &text)
}

/// The servers of a file that was read already, of which messages speak as `path`.
pub fn parse_json_file(path: &Path, text: &[u8]) -> Result<Vec<Named>, JsonFileError> {
    let invalid = |source| JsonFileError::Syntax { path: path.to_owned(), source };
    // By way of maps: a list would pass for a structure without names.
    let mut file: Map<String, Value> = serde_json::from_slice(text).map_err(invalid)?;
    let named = file.remove("mcpServers").unwrap_or_else(|| Value::Object(Map::new()));
    let mut servers = Vec::new();
    for (name, value) in Map::deserialize(named).map_err(invalid)? {
        match Map::deserialize(value).and_then(|fields| Entry::deserialize(Value::Object(fields))) {
            Ok(entry) if entry.disabled || !entry.enabled => {}
            Ok(entry) => {
                let problem = |problem: &str| entry_error(path, problem.to_owned());
                let spec = reach(entry).map(|reach| ServerSpec::new(&name, reach)).map_err(problem);
                servers.push((name, spec));
            }
            Err(error) => servers.push((name, Err(entry_error(path, error.to_string())))),
        }
    }
    Ok(servers)
}

fn entry_error(path: &Path, problem: String) -> JsonFileError {
    JsonFileError::Entry { path: path.to_owned(), problem }
}

fn reach(entry: Entry) -> Result<Reach, &'static str> {
    let Entry { command, args, env, cwd, url, headers, kind, .. } = entry;
    if kind.as_deref() == Some("sse") {
        return Err("the transport `sse` was replaced by streamable HTTP and is not supported");
    }
    match (command.filter(|text| !text.is_empty()), url.filter(|text| !text.is_empty())) {
        (Some(command), None) => Ok(Reach::Program { command, args, env, folder: cwd }),
        (None, Some(url)) => Ok(Reach::Address { url, headers }),
        (None, None) => Err("it needs a `command` or a `url`"),
        (Some(_), Some(_)) => Err("it has a `command` and a `url`; only one can be meant"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Named>, JsonFileError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mcp.json");
        std::fs::write(&path, text).unwrap();
        read_json_file(&path)
    }

    #[test]
    fn programs_and_addresses_are_read_in_either_spelling() {
        let servers = read(
            r#"{"novelty": 1, "mcpServers": {
                "a": {"command": "npx", "args": ["-y", "x"], "env": {"K": "V"}, "novelty": {}},
                "b": {"type": "http", "url": "https://h/mcp", "headers": {"A": "B"}},
                "c": {"command": "x", "environment": {"K": "W"}, "cwd": "/w"},
                "d": {"command": "x", "disabled": true}, "e": {"command": "x", "enabled": false}}}"#,
        )
        .unwrap();
        let reaches: Vec<_> = servers.into_iter().map(|(_, spec)| spec.unwrap().reach).collect();
        let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        assert_eq!(
            reaches,
            [
                Reach::Program {
                    command: "npx".into(),
                    args: vec!["-y".into(), "x".into()],
                    env: map("K", "V"),
                    folder: None
                },
                Reach::Address { url: "https://h/mcp".into(), headers: map("A", "B") },
                Reach::Program {
                    command: "x".into(),
                    args: vec![],
                    env: map("K", "W"),
                    folder: Some("/w".into())
                },
            ]
        );
    }

    #[test]
    fn a_bad_entry_costs_only_itself_and_says_why() {
        let servers = read(
            r#"{"mcpServers": {"a": {}, "b": ["x"], "c": {"command": "x", "url": "y"}, "d": {"command": 1},
                "e": {"type": "sse", "url": "y"}, "f": {"command": "good"}}}"#,
        )
        .unwrap();
        let bad = servers.iter().filter(|(_, spec)| spec.is_err()).count();
        assert_eq!((bad, servers.len()), (5, 6));
        let why = servers[0].1.as_ref().unwrap_err().to_string();
        assert!(why.contains("mcp.json") && why.contains("`command` or a `url`"), "{why}");
    }

    #[test]
    fn a_file_that_is_no_such_file_is_an_error_and_a_missing_one_is_not() {
        for text in ["", "{", "[]", r#"{"mcpServers": []}"#, "\u{fffd}"] {
            assert!(matches!(read(text), Err(JsonFileError::Syntax { .. })), "{text}");
        }
        assert!(read("{}").unwrap().is_empty());
        assert!(read_json_file(Path::new("/nowhere/mcp.json")).unwrap().is_empty());
        assert!(matches!(read_json_file(Path::new("/")), Err(JsonFileError::Read { .. })));
    }
}
