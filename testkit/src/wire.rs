//! A client that knows nothing but lines: what a program in any language sees.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use crate::wait::PATIENCE;

/// A connection to a control socket.
#[derive(Debug)]
pub struct Wire {
    reader: BufReader<UnixStream>,
}

impl Wire {
    /// Connects.
    pub fn connect(socket: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Wire { reader: BufReader::new(stream) })
    }

    /// Sends bytes as they are.
    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).expect("the daemon takes what is sent");
    }

    /// Sends one line.
    #[track_caller]
    pub fn send(&mut self, line: &Value) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    /// The next line; `None` once the daemon has closed the connection.
    #[track_caller]
    pub fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).expect("the daemon sends JSON")),
            // It was killed while something of ours was on the way to it.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no line came from the daemon: {error}"),
        }
    }

    /// Sends one line and returns the next that comes.
    #[track_caller]
    pub fn ask(&mut self, line: &Value) -> Value {
        self.send(line);
        self.receive().expect("the daemon keeps the connection open")
    }
}
