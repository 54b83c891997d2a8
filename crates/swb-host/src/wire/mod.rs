//! The words between a host and whoever looks after it.
//!
//! Hosts outlive upgrades: a new daemon meets hosts of an old binary. So the words are few, their bytes are fixed, and
//! nothing here may change its meaning; what is new gets a new kind, and an unknown kind is refused, not fatal. The one
//! body that grows is the JSON of [`Status`], whose unknown keys are ignored.
//!
//! A frame is `length: u32, kind: u8, body`; numbers are little-endian, the length counts kind and body. Offsets count
//! the bytes of a stream since the child began. Proof: golden bytes and arbitrary input in
//! `bytes`.

mod bytes;
mod status;

use serde::{Deserialize, Serialize};

pub use bytes::{FrameError, Split, split, write_data};
pub use status::{Containment, Exit, InStatus, OutStatus, Status};

/// The version that this binary speaks.
pub const VERSION: u16 = 1;
/// The most bytes of a stream in one frame.
pub const MAX_PIECE: usize = 64 * 1024;
/// The longest frame; more means that framing is lost.
pub const MAX_FRAME: usize = MAX_PIECE + 64;

/// A stream of the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// What the child reads.
    Stdin,
    /// What it says.
    Stdout,
    /// What it complains of.
    Stderr,
    /// Its private channel to whoever looks after it, both ways.
    Control,
}

impl Stream {
    /// The streams that come out of a child.
    pub const OUT: [Stream; 3] = [Stream::Stdout, Stream::Stderr, Stream::Control];
    /// The streams that go into a child.
    pub const IN: [Stream; 2] = [Stream::Stdin, Stream::Control];

    fn number(self) -> u8 {
        match self {
            Stream::Stdin => 0,
            Stream::Stdout => 1,
            Stream::Stderr => 2,
            Stream::Control => 3,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        [Stream::Stdin, Stream::Stdout, Stream::Stderr, Stream::Control].get(usize::from(number)).copied()
    }
}

/// What a client asks of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The first frame of a connection.
    Hello {
        /// The newest version the client speaks.
        version: u16,
    },
    /// Send this stream from here on, and go on as it grows.
    Follow {
        /// Which one.
        stream: Stream,
        /// The first byte wanted.
        from: u64,
    },
    /// Bytes before this offset are not needed any more, by anybody.
    Acknowledge {
        /// Which one.
        stream: Stream,
        /// The first byte still needed.
        upto: u64,
    },
    /// Hand these bytes to the child. The number is one more than that of the write before; a repeat is harmless.
    Write {
        /// Where to.
        stream: Stream,
        /// Counted from 1, over all connections.
        number: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// The child has been given everything: close this stream once it is written.
    Close {
        /// Which one.
        stream: Stream,
    },
    /// Send the child a signal.
    Signal {
        /// By its number.
        signal: u8,
        /// To everything the child has started, too.
        to_all: bool,
    },
    /// How are things?
    Status,
    /// The exit status and all output that matters were read: the host may go.
    Release,
}

/// What a host says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To `Hello` and to `Status`.
    Status(Status),
    /// A piece of a stream that is followed.
    Data {
        /// Which one.
        stream: Stream,
        /// Where the piece begins.
        offset: u64,
        /// The piece.
        bytes: Vec<u8>,
    },
    /// These bytes were acknowledged by somebody and are gone.
    Gap {
        /// Which stream.
        stream: Stream,
        /// The first byte that is gone.
        from: u64,
        /// The first byte that is still there.
        to: u64,
    },
    /// The stream has ended here.
    End {
        /// Which one.
        stream: Stream,
        /// How many bytes it had.
        offset: u64,
    },
    /// A write, or its repeat, is in the host's hands.
    Taken {
        /// Where to.
        stream: Stream,
        /// Its number.
        number: u64,
    },
    /// Any other request was carried out.
    Done {
        /// The kind of the request.
        kind: u8,
    },
    /// A request was not carried out, and nothing changed.
    Refused {
        /// The kind of the request.
        kind: u8,
        /// Why, for people.
        reason: String,
    },
    /// The child has ended, with everything it started, and all it said is here. Sent once to each connection.
    Exited(Exit),
}
