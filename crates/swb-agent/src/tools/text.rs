//! Files of text, as the tools read them: regular files only, never waited for, never more than they have to.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::ToolError;
use crate::regular_file::{NotUsable, RegularFile};

/// What is read into memory whole.
pub(super) const MAX_WHOLE_BYTES: u64 = 64 * 1024 * 1024;
/// A zero byte this early means that it is no text.
const LOOKED_AT: usize = 8 * 1024;
const BUFFER_BYTES: usize = 64 * 1024;

/// Opens a file for reading. The path is resolved: what is a link now was put there since.
pub(super) fn open(path: &Path) -> Result<RegularFile, ToolError> {
    RegularFile::open(path).map_err(|error| match error {
        NotUsable::Io(source) => ToolError::io(path)(source),
        other => ToolError::refused(format!("{}: {other}", path.display())),
    })
}

fn no_text(path: &Path) -> ToolError {
    ToolError::refused(format!("{} is not a text file", path.display()))
}

/// All bytes of a text, in whatever encoding.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, ToolError> {
    let file = open(path)?;
    let too_large = |size: u64| {
        ToolError::refused(format!(
            "{} has {size} bytes; at most {MAX_WHOLE_BYTES} can be edited",
            path.display()
        ))
    };
    if file.size > MAX_WHOLE_BYTES {
        return Err(too_large(file.size));
    }
    let mut bytes = Vec::new();
    file.file.take(MAX_WHOLE_BYTES + 1).read_to_end(&mut bytes).map_err(ToolError::io(path))?;
    if bytes.len() as u64 > MAX_WHOLE_BYTES {
        return Err(too_large(bytes.len() as u64));
    }
    if memchr::memchr(0, &bytes).is_some() {
        return Err(no_text(path));
    }
    Ok(bytes)
}

/// The lines of a text, one after the other, however long they and it may be.
#[derive(Debug)]
pub(super) struct Lines {
    reader: BufReader<RegularFile>,
    /// How long the file says it is.
    pub(super) size: u64,
}

/// A line, as much of it as was wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) bytes: Vec<u8>,
    /// How many bytes it has besides.
    pub(super) more: u64,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, ToolError> {
        let file = open(path)?;
        let size = file.size;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
        let begin = reader.fill_buf().map_err(ToolError::io(path))?;
        if memchr::memchr(0, &begin[..begin.len().min(LOOKED_AT)]).is_some() {
            return Err(no_text(path));
        }
        Ok(Lines { reader, size })
    }

    /// The next line without its end, at most so many bytes of it. `None` if there is none.
    pub(super) fn next(&mut self, most: usize) -> io::Result<Option<Line>> {
        let mut line = Line { bytes: Vec::new(), more: 0 };
        let mut begun = false;
        loop {
            let available = self.reader.fill_buf()?;
            if available.is_empty() {
                return Ok(begun.then_some(line));
            }
            begun = true;
            let end = memchr::memchr(b'\n', available);
            let part = &available[..end.unwrap_or(available.len())];
            let taken = part.len().min(most.saturating_sub(line.bytes.len()));
            line.bytes.extend_from_slice(&part[..taken]);
            line.more += (part.len() - taken) as u64;
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                if line.more == 0 && line.bytes.ends_with(b"\r") {
                    line.bytes.pop();
                }
                return Ok(Some(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(content: &[u8], most: usize) -> Vec<(String, u64)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let mut lines = Lines::open(file.path()).unwrap();
        std::iter::from_fn(|| lines.next(most).unwrap())
            .map(|line| (String::from_utf8_lossy(&line.bytes).into_owned(), line.more))
            .collect()
    }

    #[test]
    fn lines_end_where_they_end_and_long_ones_are_cut() {
        let line = |text: &str, more| (text.to_owned(), more);
        assert_eq!(lines(b"a\r\n\nb", 9), [line("a", 0), line("", 0), line("b", 0)]);
        assert_eq!(lines(b"a\n", 9), [line("a", 0)]);
        assert_eq!(lines(b"", 9), []);
        assert_eq!(lines(b"abcdef\nx", 3), [line("abc", 3), line("x", 0)]);
        let long = [vec![b'x'; BUFFER_BYTES * 3], b"\ny".to_vec()].concat();
        assert_eq!(lines(&long, 2), [line("xx", BUFFER_BYTES as u64 * 3 - 2), line("y", 0)]);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, b"ab\0").unwrap();
        assert!(Lines::open(&path).is_err() && bytes(&path).is_err());
        std::fs::File::create(&path).unwrap().set_len(10 << 30).unwrap();
        assert!(Lines::open(&path).is_err());
        assert!(bytes(&path).unwrap_err().to_string().contains("at most"));
        assert!(
            bytes(Path::new("/dev/zero")).unwrap_err().to_string().contains("a device, not a regular file")
        );
    }
}
