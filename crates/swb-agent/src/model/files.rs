//! The contents of attached files, on their way to a model.
//!
//! A message names a file ([`Source`]); the bytes travel beside the messages, in the form that providers want them in, so
//! that a file named twice is there once. A file that is not there (its copy was removed) is told the model in words.

use std::collections::HashMap;
use std::sync::Arc;

use swb_proto::agent::Source;

/// The content of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileBody {
    /// A text, as it is.
    Text(Arc<str>),
    /// The bytes of a picture or a PDF, in standard Base64.
    Base64(Arc<str>),
}

/// The contents of the files of a conversation.
#[derive(Debug, Clone, Default)]
pub struct Files(Arc<HashMap<String, FileBody>>);

impl Files {
    /// The content of the file, if it is still kept.
    pub fn get(&self, source: &Source) -> Option<&FileBody> {
        let Source::File { file_id, .. } = source;
        self.0.get(file_id)
    }
}

impl FromIterator<(String, FileBody)> for Files {
    fn from_iter<T: IntoIterator<Item = (String, FileBody)>>(files: T) -> Self {
        Files(Arc::new(files.into_iter().collect()))
    }
}

/// What a model can look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inputs {
    /// Pictures.
    pub images: bool,
    /// PDF documents.
    pub pdf: bool,
}
