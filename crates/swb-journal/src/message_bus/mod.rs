//! Message buses: durable Markdown messages in plain files that anyone can `cat`, `grep` and commit.
//!
//! A bus is one file. Every message is YAML front matter between two `---` lines and a body that runs to the next such
//! line; a blank line separates records. Any process may append under an exclusive `flock` on the file, and programs of
//! another make do so beside us: the format is theirs too, and nothing here may put their readers out of step.
//!
//! ```text
//!  Draft ─► append ─► commit (fsync, grouped) ─► writer: repair (torn tail) ─► rotate (full file) ─► one write
//!                                                                                │
//!   MESSAGE-BUS.md   MESSAGE-BUS.md.<stamp>.archived …      .MESSAGE-BUS.md.swb/{*.idx, readers/, torn}
//!         │                    │                                       │
//!         └── segment (scan) ──┴─► read (all, since, last) ◄── index ──┘
//!                     └──────────► tail ─► follow ◄── crate::watch (file-change notification)
//! ```
//!
//! - `record`, `timestamp`, `message_id`, `idempotency`: the words; `wire`: how they look outside.
//! - `header`, `body`, `legacy`, `parse`: bytes to records and back. They do no I/O.
//! - `layout`, `place`, `folder`, `identity`, `lock`, `segment`: files: where they are, opening without following links,
//!   telling them apart, locking, streaming, archives in order.
//! - `append`, `posting`, `commit`, `writer`, `repair`, `rotate`: the writer's side.
//! - `read`, `view`, `lookup`, `index`, `tail`, `follow`, `cursor`, `discover`: the reader's side.
//!
//! Invariants. An acknowledged message is found exactly once, in file order, by every reader and follower, across
//! rotations and kills. Whatever bytes a body holds, it reads back exactly and is one message. The same message reads
//! the same whatever follows it. The file is the truth: everything in the side folder but the readers' cursors can be
//! deleted at any time and is built again.
//!
//! What the format cannot carry is noted in reserved `meta` keys, which no door shows: `swb_bytes` (length of the
//! stored body, for bodies of several lines or with a final newline), `swb_escaped` (lines that looked like delimiters
//! carry one backslash more), `swb_key` (idempotency key).
//!
//! Proof: unit and property tests beside the code; `tests/message_bus/` (processes, kills, rotation, damage, following);
//! frozen files in `fixtures/message-bus/`; speed in `benches/message_bus/`.

mod append;
mod body;
mod commit;
mod cursor;
mod discover;
mod folder;
mod follow;
mod header;
mod idempotency;
mod identity;
mod index;
mod layout;
mod legacy;
mod lock;
mod lookup;
mod message_id;
mod options;
mod parse;
mod place;
mod posting;
mod read;
mod record;
mod repair;
mod rotate;
mod segment;
mod tail;
mod timestamp;
mod view;
mod wire;
mod writer;

use std::path::Path;
use std::sync::Mutex;

pub use append::{AppendError, AppendErrorKind, Appended};
pub use cursor::{CursorError, CursorErrorKind, Mark, ReaderCursor};
pub use discover::{BUS_NAMES, DiscoverError, Scope, discover};
pub use folder::{OpenError, OpenErrorKind};
pub use follow::{FollowStop, Follower};
pub use idempotency::{IdempotencyKey, IdempotencyKeyError};
pub use message_id::MessageId;
pub use options::BusOptions;
pub use place::{BusPath, BusPathError, PLAIN_BUS, PROJECT_BUS, TASK_BUS};
pub use read::{ReadError, ReadErrorKind};
pub use record::{BodyState, Draft, Link, Message, Parent, REPLY_TO, RESERVED_META_PREFIX, Record};
pub use tail::{FollowEvent, FollowFrom, Polled};
pub use timestamp::{Civil, Timestamp};
pub use wire::moment;

/// One bus, opened: append to it, read it, follow it. Cheap to make; share it between threads by reference.
#[derive(Debug)]
pub struct MessageBus {
    path: BusPath,
    options: BusOptions,
    writer: Mutex<Option<writer::Writer>>,
    commit: commit::GroupCommit<posting::Posting, append::Answer>,
    kept: view::Kept,
}

impl MessageBus {
    /// The bus at this place. Nothing is touched until it is used.
    #[must_use]
    pub fn new(path: BusPath, options: BusOptions) -> Self {
        Self {
            path,
            options,
            writer: Mutex::default(),
            commit: commit::GroupCommit::default(),
            kept: view::Kept::default(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &BusPath {
        &self.path
    }

    /// The bus file's path.
    #[must_use]
    pub fn file_path(&self) -> &Path {
        self.path.file()
    }

    /// How it is written and followed.
    #[must_use]
    pub fn options(&self) -> &BusOptions {
        &self.options
    }
}
