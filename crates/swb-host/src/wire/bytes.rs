//! Frames as bytes.

use super::{Exit, MAX_FRAME, Reply, Request, Stream};

/// Why bytes are not a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The other side is not one of ours, or framing is lost.
    #[error("a frame of {0} bytes")]
    Length(usize),
    /// A kind of a later version.
    #[error("unknown kind {0:#04x}")]
    Kind(u8),
    /// The body does not fit the kind.
    #[error("a body that does not fit kind {0:#04x}")]
    Body(u8),
}

/// A frame's kind, its body, and how many bytes it took.
pub type Split<'a> = (u8, &'a [u8], usize);

/// Cuts the first whole frame off `input`.
pub fn split(input: &[u8]) -> Result<Option<Split<'_>>, FrameError> {
    let Some(length) = input.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else { return Ok(None) };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length == 0 || length > MAX_FRAME {
        return Err(FrameError::Length(length));
    }
    Ok(input.get(4..4 + length).map(|frame| (frame[0], &frame[1..], 4 + length)))
}

impl Request {
    /// The number of this kind.
    pub fn kind(&self) -> u8 {
        match self {
            Request::Hello { .. } => 0x01,
            Request::Follow { .. } => 0x02,
            Request::Acknowledge { .. } => 0x03,
            Request::Write { .. } => 0x04,
            Request::Close { .. } => 0x05,
            Request::Signal { .. } => 0x06,
            Request::Status => 0x07,
            Request::Release => 0x08,
        }
    }

    /// Appends the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        frame(out, self.kind(), |out| match self {
            Request::Hello { version } => out.extend(version.to_le_bytes()),
            Request::Follow { stream, from: offset } | Request::Acknowledge { stream, upto: offset } => {
                place(out, *stream, *offset);
            }
            Request::Write { stream, number, bytes } => {
                place(out, *stream, *number);
                out.extend(bytes);
            }
            Request::Close { stream } => out.push(stream.number()),
            Request::Signal { signal, to_all } => out.extend([*signal, u8::from(*to_all)]),
            Request::Status | Request::Release => {}
        });
    }

    /// Reads a frame that was split off.
    pub fn read(kind: u8, body: &[u8]) -> Result<Self, FrameError> {
        let mut body = Body(body);
        let request = match kind {
            0x01 => body.u16().map(|version| Request::Hello { version }),
            0x02 => body.place().map(|(stream, from)| Request::Follow { stream, from }),
            0x03 => body.place().map(|(stream, upto)| Request::Acknowledge { stream, upto }),
            0x04 => {
                body.place().map(|(stream, number)| Request::Write { stream, number, bytes: body.rest() })
            }
            0x05 => body.stream().map(|stream| Request::Close { stream }),
            0x06 => {
                body.u8().zip(body.u8()).map(|(signal, all)| Request::Signal { signal, to_all: all != 0 })
            }
            0x07 => Some(Request::Status),
            0x08 => Some(Request::Release),
            _ => return Err(FrameError::Kind(kind)),
        };
        request.ok_or(FrameError::Body(kind))
    }
}

impl Reply {
    /// Appends the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Reply::Status(status) => frame(out, 0x81, |out| {
                serde_json::to_writer(out, status).expect("a status is plain data and memory takes it");
            }),
            Reply::Data { stream, offset, bytes } => write_data(out, *stream, *offset, bytes),
            Reply::Gap { stream, from, to } => frame(out, 0x83, |out| {
                place(out, *stream, *from);
                out.extend(to.to_le_bytes());
            }),
            Reply::End { stream, offset } => frame(out, 0x84, |out| place(out, *stream, *offset)),
            Reply::Taken { stream, number } => frame(out, 0x85, |out| place(out, *stream, *number)),
            Reply::Done { kind } => frame(out, 0x86, |out| out.push(*kind)),
            Reply::Refused { kind, reason } => frame(out, 0x87, |out| {
                out.push(*kind);
                out.extend(reason.as_bytes());
            }),
            Reply::Exited(exit) => frame(out, 0x88, |out| {
                let (how, value) = match exit {
                    Exit::Code(code) => (0, code),
                    Exit::Signal(signal) => (1, signal),
                };
                out.push(how);
                out.extend(value.to_le_bytes());
            }),
        }
    }

    /// Reads a frame that was split off.
    pub fn read(kind: u8, body: &[u8]) -> Result<Self, FrameError> {
        let mut body = Body(body);
        let reply = match kind {
            0x81 => serde_json::from_slice(body.0).ok().map(Reply::Status),
            0x82 => body.place().map(|(stream, offset)| Reply::Data { stream, offset, bytes: body.rest() }),
            0x83 => body.place().zip(body.u64()).map(|((stream, from), to)| Reply::Gap { stream, from, to }),
            0x84 => body.place().map(|(stream, offset)| Reply::End { stream, offset }),
            0x85 => body.place().map(|(stream, number)| Reply::Taken { stream, number }),
            0x86 => body.u8().map(|kind| Reply::Done { kind }),
            0x87 => body.u8().map(|kind| Reply::Refused {
                kind,
                reason: String::from_utf8_lossy(&body.rest()).into_owned(),
            }),
            0x88 => match (body.u8(), body.i32()) {
                (Some(0), Some(code)) => Some(Reply::Exited(Exit::Code(code))),
                (Some(1), Some(signal)) => Some(Reply::Exited(Exit::Signal(signal))),
                _ => None,
            },
            _ => return Err(FrameError::Kind(kind)),
        };
        reply.ok_or(FrameError::Body(kind))
    }
}

/// Appends a [`Reply::Data`] without owning its bytes.
pub fn write_data(out: &mut Vec<u8>, stream: Stream, offset: u64, bytes: &[u8]) {
    frame(out, 0x82, |out| {
        place(out, stream, offset);
        out.extend(bytes);
    });
}

fn frame(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0, 0, 0, 0, kind]);
    body(out);
    let length = u32::try_from(out.len() - start - 4).expect("pieces are cut far below 4 GiB");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn place(out: &mut Vec<u8>, stream: Stream, offset: u64) {
    out.push(stream.number());
    out.extend(offset.to_le_bytes());
}

/// What is left of a body. Bytes after the known ones belong to later versions.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn stream(&mut self) -> Option<Stream> {
        Stream::from_number(self.u8()?)
    }

    fn place(&mut self) -> Option<(Stream, u64)> {
        Some((self.stream()?, self.u64()?))
    }

    fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Containment, InStatus, OutStatus, Status};
    use proptest::prelude::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn requests() -> Vec<(Request, &'static str)> {
        let stream = Stream::Stdout;
        vec![
            (Request::Hello { version: 1 }, "03000000010100"),
            (Request::Follow { stream, from: 5 }, "0a00000002010500000000000000"),
            (Request::Acknowledge { stream, upto: 258 }, "0a00000003010201000000000000"),
            (
                Request::Write { stream: Stream::Control, number: 1, bytes: b"hi".to_vec() },
                "0c000000040301000000000000006869",
            ),
            (Request::Close { stream: Stream::Stdin }, "020000000500"),
            (Request::Signal { signal: 15, to_all: true }, "03000000060f01"),
            (Request::Status, "0100000007"),
            (Request::Release, "0100000008"),
        ]
    }

    fn replies() -> Vec<(Reply, String)> {
        let stream = Stream::Stderr;
        let status = Status {
            version: 1,
            host_pid: 10,
            child_pid: 11,
            containment: Containment::Advisory { reason: "no".to_owned() },
            exit: Some(Exit::Code(3)),
            out: vec![OutStatus { stream, kept_from: 1, end: 2, full: false }],
            input: vec![InStatus { stream: Stream::Stdin, taken: 4, waiting: 0 }],
        };
        let json = concat!(
            r#"{"version":1,"host_pid":10,"child_pid":11,"containment":{"kind":"advisory","reason":"no"},"#,
            r#""exit":{"code":3},"out":[{"stream":"stderr","kept_from":1,"end":2,"full":false}],"#,
            r#""input":[{"stream":"stdin","taken":4,"waiting":0}]}"#
        );
        let length = u32::try_from(json.len() + 1).unwrap().to_le_bytes();
        let status_hex = format!("{}81{}", hex(&length), hex(json.as_bytes()));
        let fixed = [
            (Reply::Data { stream, offset: 7, bytes: vec![0, 255] }, "0c0000008202070000000000000000ff"),
            (Reply::Gap { stream, from: 1, to: 2 }, "12000000830201000000000000000200000000000000"),
            (Reply::End { stream, offset: 9 }, "0a00000084020900000000000000"),
            (Reply::Taken { stream: Stream::Stdin, number: 2 }, "0a00000085000200000000000000"),
            (Reply::Done { kind: 3 }, "020000008603"),
            (Reply::Refused { kind: 4, reason: "no".to_owned() }, "0400000087046e6f"),
            (Reply::Exited(Exit::Code(3)), "06000000880003000000"),
            (Reply::Exited(Exit::Signal(9)), "06000000880109000000"),
        ];
        let fixed = fixed.into_iter().map(|(reply, hex)| (reply, hex.to_owned()));
        std::iter::once((Reply::Status(status), status_hex)).chain(fixed).collect()
    }

    #[test]
    fn every_word_has_its_bytes_for_good() {
        for (request, golden) in requests() {
            let mut bytes = Vec::new();
            request.write(&mut bytes);
            assert_eq!(hex(&bytes), golden, "{request:?}");
            let (kind, body, length) = split(&bytes).unwrap().unwrap();
            assert_eq!((Request::read(kind, body), length), (Ok(request), bytes.len()));
        }
        for (reply, golden) in replies() {
            let mut bytes = Vec::new();
            reply.write(&mut bytes);
            assert_eq!(hex(&bytes), golden, "{reply:?}");
            let (kind, body, length) = split(&bytes).unwrap().unwrap();
            assert_eq!((Reply::read(kind, body), length), (Ok(reply), bytes.len()));
        }
    }

    #[test]
    fn what_a_later_version_adds_is_refused_or_ignored() {
        assert_eq!(Request::read(0x7f, b"whatever"), Err(FrameError::Kind(0x7f)));
        let longer = Request::read(0x02, &[1, 5, 0, 0, 0, 0, 0, 0, 0, 42, 42]);
        assert_eq!(longer, Ok(Request::Follow { stream: Stream::Stdout, from: 5 }));
    }

    #[test]
    fn a_length_that_no_frame_has_means_that_framing_is_lost() {
        assert_eq!(split(&[0, 0, 0, 0]), Err(FrameError::Length(0)));
        assert_eq!(split(b"GET / HTTP/1.1"), Err(FrameError::Length(0x2054_4547)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(input in proptest::collection::vec(any::<u8>(), 0..64), kind: u8) {
            let _ = split(&input);
            let _ = Request::read(kind, &input);
            let _ = Reply::read(kind, &input);
        }
    }
}
