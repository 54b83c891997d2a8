//! Models at the other end of a connection.
//!
//! ```text
//! Prompt ─ request, options ─► genai, or openai ─► HTTP ─► provider
//! Deltas ◄ events, calls ◄─── genai, or openai ◄─ SSE ◄──────┘
//!          failure, backoff ◄ tap (raw frames of genai: usage, signs of life)
//! ```
//!
//! `genai` writes what is sent and reads what is streamed for Anthropic and Gemini. OpenAI's dialect, which most servers
//! speak and which is the only one of those at home, is read by ourselves, because there the words come fast; its
//! conversations take the same form before they are written.
//!
//! A call is a stream that is pulled: nothing is read ahead of a parent that does not read, and dropping it ends the
//! connection at once, in the middle of a wait too. An attempt that fails in a way that passes, before it has said
//! anything, is repeated; the parent sees each wait as a piece of the stream. From the first word on a failure is final.
//!
//! Not bounded: `genai` buffers a frame whole, so the two it reads are trusted to end their lines.
//! Proof: unit tests beside each part; `swb-cli/tests/rpc/providers/` drives the binary against a scripted peer.

mod attempt;
mod backoff;
mod calls;
mod events;
mod failure;
pub(crate) mod http;
pub(crate) mod listing;
mod openai;
mod options;
mod request;
mod tap;
mod uncounted;
mod usage;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint};
use genai::{ModelIden, ServiceTarget};

use super::provider::{Dialect, Provider};
use super::settings::{Limits, ModelSettings};
use super::{Delta, Deltas, Inputs, Model, ModelError, Prompt, Retry};
use attempt::Attempt;
use backoff::Next;
use failure::Failure;
use uncounted::Uncounted;

/// A model of a provider.
#[derive(Debug, Clone)]
pub(crate) struct Remote(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// As the conversation names it.
    name: String,
    /// As its provider names it.
    model: String,
    provider: Arc<Provider>,
    line: http::Line,
    settings: ModelSettings,
    limits: Limits,
}

impl Remote {
    pub(crate) fn new(
        name: &str,
        model: &str,
        provider: Arc<Provider>,
        line: http::Line,
        settings: ModelSettings,
        limits: Limits,
    ) -> Self {
        let (name, model) = (name.to_owned(), model.to_owned());
        Remote(Arc::new(Inner { name, model, provider, line, settings, limits }))
    }
}

impl Model for Remote {
    fn answer(&self, prompt: Prompt) -> Deltas {
        // In a box, because it changes hands with each piece.
        let call = Box::new(Call {
            model: Arc::clone(&self.0),
            prompt,
            failed: 0,
            waiting: VecDeque::new(),
            uncounted: Uncounted::default(),
            phase: Phase::Begin,
        });
        stream::unfold(call, |mut call| async move {
            let delta = call.next().await?;
            Some((delta, call))
        })
        .boxed()
    }

    fn inputs(&self) -> Inputs {
        self.0.inputs()
    }
}

/// One call, with all its attempts.
struct Call {
    model: Arc<Inner>,
    prompt: Prompt,
    /// Attempts that have failed.
    failed: u32,
    /// Pieces that were understood and not yet taken.
    waiting: VecDeque<Delta>,
    uncounted: Uncounted,
    phase: Phase,
}

enum Phase {
    Begin,
    Wait(Duration),
    Stream(Attempt),
    Fail(ModelError),
    Over,
}

impl Call {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(delta) = self.waiting.pop_front() {
                if matches!(delta, Delta::Stop) {
                    self.phase = Phase::Over;
                    if let Some(usage) = self.guess() {
                        self.waiting.push_front(delta);
                        return Some(Ok(usage));
                    }
                }
                self.uncounted.see(&delta);
                return Some(Ok(delta));
            }
            let failure = match &mut self.phase {
                Phase::Over => return None,
                Phase::Fail(_) => {
                    if let Some(usage) = self.guess() {
                        return Some(Ok(usage));
                    }
                    let Phase::Fail(error) = std::mem::replace(&mut self.phase, Phase::Over) else {
                        return None;
                    };
                    return Some(Err(error));
                }
                Phase::Wait(time) => {
                    tokio::time::sleep(*time).await;
                    self.phase = Phase::Begin;
                    continue;
                }
                Phase::Begin => match self.model.attempt(&self.prompt).await {
                    Ok(attempt) => {
                        self.phase = Phase::Stream(attempt);
                        continue;
                    }
                    Err(failure) => failure,
                },
                Phase::Stream(attempt) => match attempt.advance(&self.model, &mut self.waiting).await {
                    Ok(()) => continue,
                    Err(failure) => failure,
                },
            };
            // What was understood before it went wrong is still given out first.
            self.phase = self.after(failure);
        }
    }

    /// What the answer has used, if there is one and nobody else says it.
    fn guess(&mut self) -> Option<Delta> {
        let mut usage = self.uncounted.take(&self.prompt)?;
        usage.model = Some(self.model.name.clone());
        Some(Delta::Usage(usage))
    }

    /// What follows a failed attempt: the next one, or the end.
    fn after(&mut self, failure: Failure) -> Phase {
        self.failed += 1;
        if matches!(&self.phase, Phase::Stream(attempt) if attempt.has_spoken()) {
            return Phase::Fail(failure.error);
        }
        let reason = failure.error.to_string();
        match backoff::next(&self.model.limits, self.failed, failure, luck()) {
            Next::GiveUp(error) => Phase::Fail(error),
            Next::Wait(wait) => {
                let retries = self.model.limits.retries;
                self.waiting.push_back(Delta::Retry(Retry { attempt: self.failed, retries, wait, reason }));
                Phase::Wait(wait)
            }
        }
    }
}

fn luck() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}

impl Inner {
    fn inputs(&self) -> Inputs {
        Inputs { images: self.settings.images == Some(true), pdf: self.settings.pdf == Some(true) }
    }

    /// Begins an attempt. Nothing is sent until it is advanced.
    async fn attempt(&self, prompt: &Prompt) -> Result<Attempt, Failure> {
        match self.provider.dialect {
            Dialect::OpenAi => Attempt::of_our_own(self, prompt),
            Dialect::Anthropic | Dialect::Gemini => Attempt::with_library(self, prompt).await,
        }
    }

    fn target(&self) -> ServiceTarget {
        let kind = match self.provider.dialect {
            Dialect::Anthropic => AdapterKind::Anthropic,
            Dialect::OpenAi => AdapterKind::OpenAI,
            Dialect::Gemini => AdapterKind::Gemini,
        };
        let base_url = &self.provider.base_url;
        let auth = AuthData::from_single(self.provider.key().map_or("", |key| key.expose()));
        // A name with `::` in it would be taken for one with a namespace.
        let model = ModelIden::new(kind, format!("swb::{}", self.model));
        ServiceTarget { endpoint: Endpoint::from_owned(base_url.as_str()), auth, model }
    }

    fn silent(&self, limit: Duration) -> ModelError {
        ModelError::Silent { provider: self.provider.name.clone(), millis: limit.as_millis() }
    }
}
