//! A client that notices when the daemon dies.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};
use testkit::PATIENCE;

pub(crate) struct Client {
    writer: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Client {
    pub(crate) fn connect(socket: &Path) -> Option<Self> {
        let writer = UnixStream::connect(socket).ok()?;
        writer.set_read_timeout(Some(PATIENCE)).unwrap();
        let reader = BufReader::new(writer.try_clone().unwrap());
        Some(Client { writer, reader })
    }

    /// The answer; none if the daemon died over it.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Option<Value> {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.writer, "{line}").ok()?;
        let mut answer = String::new();
        self.reader.read_line(&mut answer).ok().filter(|bytes| *bytes > 0)?;
        serde_json::from_str(&answer).ok()
    }
}
