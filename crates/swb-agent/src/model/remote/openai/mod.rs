//! Calls of OpenAI-style servers, without `genai` between the connection and the words.
//!
//! ```text
//! ChatRequest ─ body ─► HTTP ─► server
//! Deltas ◄ events ◄ reader, words ◄ frames ◄┘
//! ```
//!
//! Most of what is streamed is streamed in this dialect, word by word, and `genai` builds a tree of values for each
//! word, which takes three times as long as all the rest of its way to the parent. What a conversation is turned into,
//! and what the pieces of an answer mean, is decided where it is for the other dialects, in `request` and `events`; this
//! room only carries them. Bounded: an event without an end is none.
//!
//! Proof: `tests` lets both ways read the same streams, cut anywhere, and send the same conversations, and compares.

mod body;
mod frames;
mod reader;
#[cfg(test)]
mod tests;
mod words;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use genai::chat::{ChatOptions, ChatRequest};
use reqwest::{Response, Url};
use tokio::time::{Instant, timeout_at};

use super::Inner;
use super::attempt::EVENTS_AT_A_TIME;
use super::events::Events;
use super::failure::{self, Failure};
use crate::model::provider::Provider;
use crate::model::{Delta, ModelError};
use frames::Frames;
use reader::Reader;

/// An event that is longer than this is none.
const LONGEST_EVENT: usize = 32 * 1024 * 1024;

/// One answer on its way.
pub(super) struct OpenAi {
    body: Body,
    frames: Frames,
    reader: Reader,
    /// Whether there was an event at all.
    heard: bool,
    /// When patience ends. Only whole events are signs of life.
    deadline: Option<Instant>,
}

enum Body {
    Asking(BoxFuture<'static, Result<Response, Failure>>),
    Coming(BoxStream<'static, reqwest::Result<Bytes>>),
}

impl OpenAi {
    /// Prepares a call. Nothing is sent until it is advanced.
    pub(super) fn new(model: &Inner, request: ChatRequest, options: &ChatOptions) -> Result<Self, Failure> {
        let provider = Arc::clone(&model.provider);
        let mut call = model.line.http.post(address(&provider)?);
        if let Some(key) = provider.key() {
            call = call.bearer_auth(key.expose());
        }
        let call = call.json(&body::build(&model.model, request, options));
        let asking = async move {
            let response = call.send().await.map_err(|error| failure::unreachable(&provider, &error))?;
            if response.status().is_success() {
                Ok(response)
            } else {
                Err(refused(&provider, response).await)
            }
        };
        Ok(OpenAi {
            body: Body::Asking(asking.boxed()),
            frames: Frames::default(),
            reader: Reader::default(),
            heard: false,
            deadline: None,
        })
    }

    /// Takes in what is there, a few events at a time; waits if there is nothing.
    pub(super) async fn advance(
        &mut self,
        model: &Inner,
        events: &mut Events,
        waiting: &mut VecDeque<Delta>,
    ) -> Result<(), Failure> {
        loop {
            self.take_whole(model, events, waiting)?;
            if !waiting.is_empty() {
                return Ok(());
            }
            match self.piece(model).await? {
                Some(piece) => self.frames.push(&piece),
                None => return self.take_rest(model, events, waiting),
            }
        }
    }

    fn take_whole(
        &mut self,
        model: &Inner,
        events: &mut Events,
        waiting: &mut VecDeque<Delta>,
    ) -> Result<(), Failure> {
        while waiting.len() < EVENTS_AT_A_TIME && !is_over(waiting) {
            let Some(event) = self.frames.next() else { break };
            self.reader.read(model, event, events, waiting)?;
            (self.heard, self.deadline) = (true, None);
        }
        if self.frames.unfinished() > LONGEST_EVENT && waiting.is_empty() {
            return Err(failure::malformed(&model.provider, "an event without an end"));
        }
        Ok(())
    }

    fn take_rest(
        &mut self,
        model: &Inner,
        events: &mut Events,
        waiting: &mut VecDeque<Delta>,
    ) -> Result<(), Failure> {
        if let Some(event) = self.frames.rest() {
            self.reader.read(model, event, events, waiting)?;
        }
        if is_over(waiting) { Ok(()) } else { self.reader.end(model, events, waiting) }
    }

    /// The next piece of the body, which the server is given some time for.
    async fn piece(&mut self, model: &Inner) -> Result<Option<Bytes>, Failure> {
        let limit = if self.heard { model.limits.silence } else { model.limits.first_byte };
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + limit);
        let silent = |_| Failure::lasting(model.silent(limit));
        loop {
            match &mut self.body {
                Body::Asking(asking) => {
                    let response = timeout_at(deadline, asking).await.map_err(silent)??;
                    self.body = Body::Coming(response.bytes_stream().boxed());
                }
                Body::Coming(pieces) => {
                    let piece = timeout_at(deadline, pieces.next()).await.map_err(silent)?;
                    return piece.transpose().map_err(|error| failure::unreachable(&model.provider, &error));
                }
            }
        }
    }
}

/// Whether the last word was said.
fn is_over(waiting: &VecDeque<Delta>) -> bool {
    matches!(waiting.back(), Some(Delta::Stop))
}

/// What the address of the provider asks for behind a `?` stays there.
fn address(provider: &Provider) -> Result<Url, Failure> {
    let joined = Url::parse(&provider.base_url).and_then(|base| {
        let mut url = base.join("chat/completions")?;
        url.set_query(base.query());
        Ok(url)
    });
    joined.map_err(|error| {
        let message = error.to_string();
        Failure::lasting(ModelError::Unreachable { provider: provider.name.clone(), message })
    })
}

async fn refused(provider: &Provider, response: Response) -> Failure {
    let (status, headers) = (response.status(), response.headers().clone());
    let said = response.text().await.unwrap_or_else(|error| format!("the reason cannot be read: {error}"));
    failure::refused(provider, status, &said, &headers)
}
