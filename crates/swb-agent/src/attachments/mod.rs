//! Files that come with a prompt: checked, read once, and kept beside the history.
//!
//! ```text
//!  path ─► open (pinned, regular, no link) ─► the gate judges where it really lies ─► read (bounded) ─► what is it?
//!                                                                                        └─► kept, named by its bytes
//! ```
//!
//! The file that was judged is the file that is read: both go through one descriptor. An error changes nothing and is
//! told the parent as `error`. Names and MIME hints of the parent are not used. [`mod@shown`] is what a model gets to see of
//! a conversation with files. Proof: tests beside the code; `crates/swb-cli/tests/rpc/attachments.rs`.

mod kind;
mod open;
mod shown;

pub(crate) use kind::Kind;
pub(crate) use open::{AttachmentError, check, open, read};
pub(crate) use shown::shown;

/// How many files a prompt may have.
const MAX_FILES: usize = 8;
const MAX_TOTAL_BYTES: u64 = 15 * MIB;
const MAX_FILE_BYTES: u64 = 10 * MIB;
const MAX_IMAGE_BYTES: u64 = 7 * MIB / 2;
const MAX_TEXT_BYTES: u64 = 256 * 1024;
/// How much all files of a conversation may weigh in the form in which providers get them, which is with every call.
pub(crate) const MAX_CONVERSATION_BYTES: u64 = 20 * MIB;
const MIB: u64 = 1024 * 1024;

/// A file that passed every check.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) title: String,
    pub(crate) kind: Kind,
    pub(crate) bytes: Vec<u8>,
}

/// What a file of this type and size weighs in the form in which providers get it.
pub(crate) fn encoded_bytes(media_type: &str, size: u64) -> u64 {
    if media_type == Kind::Text.media_type() { size } else { size.div_ceil(3) * 4 }
}
