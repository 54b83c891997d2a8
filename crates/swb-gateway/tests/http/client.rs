//! An HTTP/1.1 client that does nothing it is not told to: every byte of a request is the test's own.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;
use testkit::PATIENCE;

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl From<(u16, Vec<(String, String)>)> for Answer {
    fn from((status, headers): (u16, Vec<(String, String)>)) -> Self {
        Answer { status, headers, body: Vec::new() }
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The ids of a list.
    #[track_caller]
    pub(crate) fn ids(&self) -> Vec<String> {
        assert_eq!(self.status, 200, "{self:?}");
        let messages = self.json()["messages"].as_array().expect("a list").clone();
        messages.iter().map(|message| message["msg_id"].as_str().expect("an id").to_owned()).collect()
    }

    /// `error.code` and `error.message`.
    #[track_caller]
    pub(crate) fn error(&self) -> (String, String) {
        let error = &self.json()["error"];
        let text = |key: &str| error[key].as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned();
        (text("code"), text("message"))
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Connection { reader: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).expect("the server reads");
    }

    /// Sends a request; a `Host` is added if the headers have none.
    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            let address = self.reader.get_ref().peer_addr().expect("connected");
            head.push_str(&format!("Host: {address}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        self.send(head.as_bytes());
        self.send(body.unwrap_or_default());
    }

    /// The status and the headers.
    #[track_caller]
    pub(crate) fn head(&mut self) -> (u16, Vec<(String, String)>) {
        let line = self.line().expect("a status line");
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status in {line:?}"));
        let mut headers = Vec::new();
        while let Some(line) = self.line().filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').expect("a header");
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        (status, headers)
    }

    /// A whole answer.
    #[track_caller]
    pub(crate) fn answer(&mut self) -> Answer {
        let mut answer = Answer::from(self.head());
        if let Some(length) = answer.header("content-length") {
            answer.body = vec![0; length.parse().expect("a length")];
            self.reader.read_exact(&mut answer.body).expect("the body");
        } else if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk() {
                answer.body.extend(chunk);
            }
        }
        answer
    }

    /// The next chunk; `None` at the end of the body, whether it was said or the connection was cut.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(self.line()?.split(';').next()?, 16).ok()?;
        let mut chunk = vec![0; size];
        self.reader.read_exact(&mut chunk).ok()?;
        self.line()?;
        (size > 0).then_some(chunk)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("nothing came: {error}"),
        }
    }
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).expect("data is JSON")
    }

    pub(crate) fn body(&self) -> String {
        self.json()["body"].as_str().expect("a body").to_owned()
    }
}

/// A stream of events.
#[derive(Debug)]
pub(crate) struct Events {
    connection: Connection,
    pub(crate) headers: Vec<(String, String)>,
    text: Vec<u8>,
    ready: VecDeque<String>,
    /// The stream ended with its last chunk.
    pub(crate) ended: bool,
}

impl Events {
    /// Opens a stream that must be granted.
    #[track_caller]
    pub(crate) fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut connection = Connection::open(address);
        connection.request("GET", path, headers, None);
        let (status, headers) = connection.head();
        assert_eq!(status, 200, "{headers:?}");
        Events { connection, headers, text: Vec::new(), ready: VecDeque::new(), ended: false }
    }

    /// Lets the system hold less of what was not read yet.
    pub(crate) fn narrow(&self) {
        let socket = self.connection.reader.get_ref();
        rustix::net::sockopt::set_socket_recv_buffer_size(socket, 128 * 1024).expect("a buffer");
    }

    /// The next frame as it came, without the blank line.
    pub(crate) fn frame(&mut self) -> Option<String> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            let Some(chunk) = self.connection.chunk() else {
                self.ended = true;
                return None;
            };
            self.text.extend(chunk);
            while let Some(end) = self.text.windows(2).position(|pair| pair == b"\n\n") {
                let frame: Vec<u8> = self.text.drain(..end + 2).collect();
                self.ready.push_back(String::from_utf8(frame[..end].to_vec()).expect("frames are text"));
            }
        }
    }

    /// The next event of any kind.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let frame = self.frame()?;
        let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        Some(Event {
            id: field("id: "),
            event: field("event: ").unwrap_or_default(),
            data: field("data: ").unwrap_or_default(),
        })
    }

    /// The next message.
    #[track_caller]
    pub(crate) fn message(&mut self) -> Event {
        loop {
            let event = self.next().expect("the stream goes on");
            if event.event == "message" {
                return event;
            }
        }
    }

    /// The bodies of the next messages.
    #[track_caller]
    pub(crate) fn bodies(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.message().body()).collect()
    }
}
