//! Just enough HTTP to take a request.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

use serde_json::Value;

/// What was asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// `POST`, for one.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers, by names in small letters.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Value,
}

/// Reads a request; `None` if it is none.
pub(super) fn read(connection: &mut TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(Some(0), |length| length.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(Request { method, path, headers, body })
}
