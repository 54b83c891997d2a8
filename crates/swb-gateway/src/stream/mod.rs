//! Server-Sent Events: a bus as a stream, from any place on, for any number of readers.
//!
//! ```text
//!  bus file ─► tail (one thread per file) ─► frame (formatted once) ─► ring (bounded) ─► reader ─► client
//!       └────────────── history, only while a reader catches up ──────────────────────────┘
//! ```
//!
//! A reader begins with the file: everything after its cursor. Once it has reached the end it goes over to the ring, which
//! holds the latest frames, each formatted once. It notes the ring's head *before* its last look at the file, so whatever
//! the ring had by then it has seen; it waits until the tail has looked *after* it, so its own last frame is in the ring if
//! it is not older than that head; and there it goes on: no gap and no duplicate, whatever the ids are. A reader that the
//! ring has overtaken is told and goes back to the file; what it holds is one chunk and a number.
//!
//! - `frame`: the bytes. `ring`: the latest of them. `feed`: a tail and its ring. `feeds`: which files are followed.
//! - `history`: reading the file in small pieces; `pace`: how small. `reader`: one client's way. `handler`: the request.

mod feed;
mod feeds;
mod frame;
mod handler;
mod history;
mod pace;
mod reader;
mod ring;

pub(crate) use feeds::Feeds;
pub(crate) use handler::{stream_path, stream_v1};
