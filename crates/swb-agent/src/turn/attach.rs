//! Files at the beginning of a turn: checked and kept before the message that names them.
//!
//! Everything that waits for a disk happens on a thread of its own, so that the agent goes on answering; an abort does not
//! wait for it either.

use std::collections::HashSet;
use std::sync::Arc;

use swb_proto::agent::{Attachment, Block, Message, Source};

use super::{Said, Turn, TurnError, locked};
use crate::attachments::{self, AttachmentError, Loaded, MAX_CONVERSATION_BYTES, encoded_bytes};
use crate::history::{FileStore, History};
use crate::model::Files;

/// As what the gate knows the reading of a file that the parent has named.
const SUBJECT: &str = "attachment";

impl Turn {
    /// What was said, with its files; `None` if the turn was cancelled meanwhile.
    pub(super) async fn with_files(&self, said: Said) -> Result<Option<Message>, TurnError> {
        let Said { message, attachments } = said;
        if attachments.is_empty() {
            return Ok(Some(Message::user(message)));
        }
        let blocks = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Ok(None),
            blocks = self.keep(attachments) => blocks?,
        };
        Ok(Some(Message::with_files(message, blocks)))
    }

    async fn keep(&self, attachments: Vec<Attachment>) -> Result<Vec<Block>, AttachmentError> {
        attachments::check(&attachments)?;
        let opened = on_a_thread(move || attachments::open(attachments)).await?;
        let session_id = locked(&self.history).id.clone();
        for file in &opened {
            let allowed = self.toolbox.may_read(&session_id, SUBJECT, &file.real_path).await;
            allowed.map_err(|denied| AttachmentError::Denied {
                path: file.path.clone(),
                reason: denied.to_string(),
            })?;
        }
        let inputs = self.model.inputs();
        let loaded = on_a_thread(move || attachments::read(opened, inputs)).await?;
        let store = {
            let history = locked(&self.history);
            check_room(&history, &loaded)?;
            Arc::clone(history.files())
        };
        on_a_thread(move || loaded.iter().map(|file| block(file, &store)).collect()).await
    }

    /// The conversation as the model is given it.
    pub(super) fn conversation(&self) -> (Vec<Arc<Message>>, Files) {
        let (messages, store) = {
            let history = locked(&self.history);
            (history.messages().to_vec(), Arc::clone(history.files()))
        };
        let files = store.load(messages.iter().map(AsRef::as_ref));
        (attachments::shown(&messages, &files, self.model.inputs()), files)
    }
}

fn block(file: &Loaded, store: &FileStore) -> Result<Block, AttachmentError> {
    let source = store.keep(file).map_err(AttachmentError::NotKept)?;
    let title = file.title.clone();
    Ok(if file.kind.is_image() { Block::Image { title, source } } else { Block::Document { title, source } })
}

/// Every call of the model carries all files of the conversation.
fn check_room(history: &History, loaded: &[Loaded]) -> Result<(), AttachmentError> {
    let mut seen = HashSet::new();
    let kept = history.messages().iter().flat_map(|message| message.files());
    let kept: u64 = kept
        .filter(|Source::File { file_id, .. }| seen.insert(file_id))
        .map(|Source::File { media_type, size, .. }| encoded_bytes(media_type, *size))
        .sum();
    let more: u64 =
        loaded.iter().map(|file| encoded_bytes(file.kind.media_type(), file.bytes.len() as u64)).sum();
    if kept + more > MAX_CONVERSATION_BYTES { Err(AttachmentError::ConversationTooLarge) } else { Ok(()) }
}

async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AttachmentError> + Send + 'static,
) -> Result<T, AttachmentError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(AttachmentError::NotKept(std::io::Error::other(error))))
}
