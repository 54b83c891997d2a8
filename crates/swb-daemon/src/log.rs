//! Diagnostics: JSON lines in a file that is rotated by size, without secrets. Nothing goes to the terminal.
//!
//! The log never feeds anything else (no bus, no event): a line about trouble cannot cause the next one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use swb_rules::redact::redact;
use tracing_subscriber::filter::LevelFilter;

use crate::config::LogConfig;

/// Directs `tracing` of this process into the file. Does nothing if a subscriber is set already (tests).
pub(crate) fn start(path: &Path, config: &LogConfig) -> io::Result<()> {
    let file = RotatingFile::open(path, config.max_bytes, config.keep)?;
    let level = config.level.parse().unwrap_or(LevelFilter::INFO);
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_max_level(level);
    let _ = subscriber.with_writer(Mutex::new(file)).try_init();
    std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "panic")));
    Ok(())
}

/// A file that becomes `<name>.1` when it is large, while `<name>.1` becomes `<name>.2` and so on.
#[derive(Debug)]
struct RotatingFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
    keep: u32,
}

impl RotatingFile {
    fn open(path: &Path, max_bytes: u64, keep: u32) -> io::Result<Self> {
        let file = append_to(path)?;
        let bytes = file.metadata()?.len();
        Ok(RotatingFile { path: path.to_owned(), file, bytes, max_bytes, keep })
    }

    fn rotate(&mut self) -> io::Result<()> {
        let numbered = |n: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{n}"));
            PathBuf::from(name)
        };
        for n in (1..self.keep).rev() {
            match std::fs::rename(numbered(n), numbered(n + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.keep == 0 {
            std::fs::remove_file(&self.path)?;
        } else {
            std::fs::rename(&self.path, numbered(1))?;
        }
        self.file = append_to(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

impl Write for RotatingFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // A subscriber writes whole lines, so no secret is cut in two here.
        let shown = redact(&String::from_utf8_lossy(line)).text;
        if self.bytes > 0 && self.bytes + shown.len() as u64 > self.max_bytes {
            // A log that cannot be rotated is still a log.
            let _ = self.rotate();
        }
        self.file.write_all(shown.as_bytes())?;
        self.bytes += shown.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_bounded_and_keeps_its_newest_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        let mut log = RotatingFile::open(&path, 100, 2).unwrap();
        for n in 0..100 {
            log.write_all(format!("line {n:04}\n").as_bytes()).unwrap();
        }
        let names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        let newest = std::fs::read_to_string(&path).unwrap();
        assert!(newest.ends_with("line 0099\n") && newest.len() <= 100, "{newest}");
        assert!(std::fs::read_to_string(dir.path().join("x.log.1")).unwrap().contains("line 0089\n"));
    }

    #[test]
    fn no_secret_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        let key = format!("ghp_{}", "a1B2".repeat(9));
        let log = RotatingFile::open(&path, 1000, 1).unwrap();
        let subscriber =
            tracing_subscriber::fmt().json().flatten_event(true).with_writer(Mutex::new(log)).finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::error!(url = "postgres://app:hunter2x@db/main", "cannot push with {key}");
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("[REDACTED:FORGE_TOKEN]") && text.contains("[REDACTED:URL_PASSWORD]"),
            "{text}"
        );
        assert!(!text.contains(&key) && !text.contains("hunter2x"), "{text}");
        assert_eq!(text.lines().count(), 1);
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
    }

    #[test]
    fn an_old_log_is_continued() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        RotatingFile::open(&path, 100, 1).unwrap().write_all(b"before\n").unwrap();
        RotatingFile::open(&path, 100, 1).unwrap().write_all(b"after\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before\nafter\n");
    }
}
