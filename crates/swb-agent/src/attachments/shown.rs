//! What a model gets to see of a conversation with files.
//!
//! A file that is no longer kept, or that this model cannot look at, becomes a line of text: a conversation goes on after
//! its copies were removed, and after `set_model` to a model that only reads.

use std::sync::Arc;

use swb_proto::agent::{Block, Content, Message, Source};

use super::Kind;
use crate::model::{Files, Inputs};

/// The messages with everything in them that the model can be given.
pub(crate) fn shown(messages: &[Arc<Message>], files: &Files, inputs: Inputs) -> Vec<Arc<Message>> {
    let shown = |message: &Arc<Message>| {
        if message.files().next().is_none() {
            return Arc::clone(message);
        }
        let blocks = message.blocks().iter().map(|block| block_shown(block, files, inputs)).collect();
        Arc::new(Message { role: message.role, content: Content::Blocks(blocks) })
    };
    messages.iter().map(shown).collect()
}

fn block_shown(block: &Block, files: &Files, inputs: Inputs) -> Block {
    let (Block::Image { title, source } | Block::Document { title, source }) = block else {
        return block.clone();
    };
    let Source::File { media_type, .. } = source;
    let taken = match block {
        Block::Image { .. } => inputs.images,
        _ => inputs.pdf || media_type == Kind::Text.media_type(),
    };
    if !taken {
        return Block::Text {
            text: format!("[attached {media_type} `{title}`: this model cannot look at it]"),
        };
    }
    if files.get(source).is_none() {
        return Block::Text { text: format!("[attached {media_type} `{title}`: it is no longer kept]") };
    }
    block.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FileBody;

    fn source(file_id: &str, media_type: &str) -> Source {
        Source::File { file_id: file_id.into(), media_type: media_type.into(), size: 1 }
    }

    #[test]
    fn what_cannot_be_given_is_told_in_words() {
        let message = Message::with_files(
            "look",
            vec![
                Block::Image { title: "a.png".into(), source: source("1", "image/png") },
                Block::Document { title: "b.pdf".into(), source: source("2", "application/pdf") },
                Block::Document { title: "c.txt".into(), source: source("3", "text/plain") },
                Block::Document { title: "d.txt".into(), source: source("gone", "text/plain") },
            ],
        );
        let messages = vec![Arc::new(Message::user("plain")), Arc::new(message)];
        let files: Files =
            ["1", "2", "3"].map(|id| (id.to_owned(), FileBody::Text("x".into()))).into_iter().collect();
        let all = shown(&messages, &files, Inputs { images: true, pdf: true });
        assert!(Arc::ptr_eq(&all[0], &messages[0]));
        assert_eq!(all[1].blocks()[..3], messages[1].blocks()[..3]);
        let gone = "[attached text/plain `d.txt`: it is no longer kept]";
        assert_eq!(all[1].blocks()[3], Block::Text { text: gone.into() });
        let some = shown(&messages, &files, Inputs::default());
        let blind = "[attached image/png `a.png`: this model cannot look at it]";
        assert_eq!(some[1].blocks()[0], Block::Text { text: blind.into() });
        assert!(matches!(&some[1].blocks()[1], Block::Text { text } if text.contains("b.pdf")));
        assert_eq!(some[1].blocks()[2], messages[1].blocks()[2]);
        assert_eq!(messages[1].user_text(), Some("look"));
    }
}
