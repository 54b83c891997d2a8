//! Models at the other end of a connection, by way of `genai`.
//!
//! ```text
//! Prompt ─ request, options ─► genai ─► HTTP ─► provider
//! Deltas ◄ events, calls ◄─── genai ◄─ SSE ◄──────┘
//!          failure, backoff ◄ tap (raw frames: usage, signs of life, how it ended)
//! ```
//!
//! A call is a stream that is pulled: nothing is read ahead of a parent that does not read, and dropping it ends the
//! connection at once, in the middle of a wait too. An attempt that fails in a way that passes, before it has said
//! anything, is repeated; the parent sees each wait as a piece of the stream. From the first word on a failure is final.
//!
//! Not bounded: `genai` buffers a frame whole, so a provider that never ends a line is trusted not to be one.
//! Proof: unit tests beside each part; `swb-cli/tests/rpc/providers/` drives the binary against a scripted peer.

mod backoff;
mod calls;
mod events;
mod failure;
pub(crate) mod http;
pub(crate) mod listing;
mod options;
mod request;
mod tap;
mod uncounted;
mod usage;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use genai::adapter::AdapterKind;
use genai::chat::{ChatStream, ChatStreamEvent, StreamEnd};
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};

use super::provider::{Dialect, Provider};
use super::settings::{Limits, ModelSettings};
use super::{Delta, Deltas, Inputs, Model, ModelError, Prompt, Retry};
use backoff::Next;
use events::Events;
use failure::Failure;
use tap::Tap;
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
        let call = Call {
            model: Arc::clone(&self.0),
            prompt,
            failed: 0,
            waiting: VecDeque::new(),
            uncounted: Uncounted::default(),
            phase: Phase::Begin,
        };
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
    Stream(Box<Attempt>),
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
                        self.phase = Phase::Stream(Box::new(attempt));
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
        if matches!(&self.phase, Phase::Stream(attempt) if attempt.events.spoken) {
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

/// One attempt.
struct Attempt {
    stream: ChatStream,
    tap: Tap,
    events: Events,
}

impl Attempt {
    /// Waits for the next event and takes it in.
    async fn advance(&mut self, model: &Inner, waiting: &mut VecDeque<Delta>) -> Result<(), Failure> {
        let event = loop {
            let frames = self.tap.frames();
            let limit = if frames == 0 { model.limits.first_byte } else { model.limits.silence };
            match tokio::time::timeout(limit, self.stream.next()).await {
                Ok(event) => break event,
                // A provider that sends comments is alive.
                Err(_) if self.tap.frames() > frames => {}
                Err(_) => return Err(Failure::lasting(model.silent(limit))),
            }
        };
        let before = waiting.len();
        self.tap.take(waiting);
        for delta in waiting.iter_mut().skip(before) {
            if let Delta::Usage(usage) = delta {
                usage.model = Some(model.name.clone());
            }
        }
        let taken = match event {
            Some(Ok(event)) => self.events.take(&model.provider, event, waiting),
            Some(Err(error)) => return Err(Failure::of(&model.provider, &error)),
            // A last word that says nothing may be missing, if the reason is there.
            None => {
                let captured_stop_reason = self.tap.finish_reason().map(Into::into);
                let end = ChatStreamEvent::End(StreamEnd { captured_stop_reason, ..StreamEnd::default() });
                self.events.take(&model.provider, end, waiting)
            }
        };
        taken.map_err(|error| match error {
            ModelError::CutOff if !self.tap.told() => Failure::lasting(ModelError::Malformed {
                provider: model.provider.name.clone(),
                message: "the answer is not a stream of events".to_owned(),
            }),
            ModelError::CutOff => Failure::passing(error),
            error => Failure::lasting(error),
        })
    }
}

impl Inner {
    fn inputs(&self) -> Inputs {
        Inputs { images: self.settings.images == Some(true), pdf: self.settings.pdf == Some(true) }
    }

    /// Begins an attempt. Nothing is sent until its stream is pulled.
    async fn attempt(&self, prompt: &Prompt) -> Result<Attempt, Failure> {
        let dialect = self.provider.dialect;
        let tap = Tap::new(dialect);
        let request = request::build(dialect, self.inputs(), prompt);
        let options = options::build(dialect, &self.model, &self.settings, prompt.thinking, &tap);
        let started = self.line.genai.exec_chat_stream(self.target(), request, Some(&options)).await;
        let stream = started.map_err(|error| Failure::of(&self.provider, &error))?.stream;
        Ok(Attempt { stream, tap, events: Events::new(dialect) })
    }

    fn target(&self) -> ServiceTarget {
        let kind = match self.provider.dialect {
            Dialect::Anthropic => AdapterKind::Anthropic,
            Dialect::OpenAi => AdapterKind::OpenAI,
            Dialect::Gemini => AdapterKind::Gemini,
        };
        let base_url = &self.provider.base_url;
        let auth = match self.provider.key() {
            Some(key) => AuthData::from_single(key.expose()),
            // The library wants a key for every OpenAI-style server; those at home have none.
            None if self.provider.dialect == Dialect::OpenAi => AuthData::RequestOverride {
                url: format!("{base_url}chat/completions"),
                headers: Headers::default(),
            },
            None => AuthData::from_single(""),
        };
        // A name with `::` in it would be taken for one with a namespace.
        let model = ModelIden::new(kind, format!("swb::{}", self.model));
        ServiceTarget { endpoint: Endpoint::from_owned(base_url.as_str()), auth, model }
    }

    fn silent(&self, limit: Duration) -> ModelError {
        ModelError::Silent { provider: self.provider.name.clone(), millis: limit.as_millis() }
    }
}
