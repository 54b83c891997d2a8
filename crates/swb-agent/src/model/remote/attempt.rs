//! One attempt at an answer, on either way to the provider.

use std::collections::VecDeque;

use futures_util::StreamExt;
use futures_util::future::poll_immediate;
use genai::chat::{ChatStream, ChatStreamEvent, StreamEnd};

use super::events::Events;
use super::failure::{self, Failure};
use super::openai::OpenAi;
use super::tap::Tap;
use super::{Inner, options, request};
use crate::model::provider::Provider;
use crate::model::{Delta, ModelError, Prompt};

/// So many events are taken in before the first of them is given out.
pub(super) const EVENTS_AT_A_TIME: usize = 64;

/// One attempt.
pub(super) struct Attempt {
    way: Way,
    events: Events,
}

enum Way {
    Library(Box<Library>),
    OurOwn(Box<OpenAi>),
}

struct Library {
    stream: ChatStream,
    tap: Tap,
}

type Event = Option<genai::Result<ChatStreamEvent>>;

impl Attempt {
    /// By way of `genai`.
    pub(super) async fn with_library(model: &Inner, prompt: &Prompt) -> Result<Self, Failure> {
        let dialect = model.provider.dialect;
        let tap = Tap::new(dialect);
        let request = request::build(dialect, model.inputs(), prompt);
        let options = options::build(dialect, &model.model, &model.settings, prompt.thinking)
            .with_raw_frame_sink(tap.clone());
        let started = model.line.genai.exec_chat_stream(model.target(), request, Some(&options)).await;
        let stream = started.map_err(|error| Failure::of(&model.provider, &error))?.stream;
        Ok(Attempt { way: Way::Library(Box::new(Library { stream, tap })), events: Events::new(dialect) })
    }

    /// Without it: OpenAI's dialect.
    pub(super) fn of_our_own(model: &Inner, prompt: &Prompt) -> Result<Self, Failure> {
        let dialect = model.provider.dialect;
        let request = request::build(dialect, model.inputs(), prompt);
        let options = options::build(dialect, &model.model, &model.settings, prompt.thinking);
        let way = Way::OurOwn(Box::new(OpenAi::new(model, request, &options)?));
        Ok(Attempt { way, events: Events::new(dialect) })
    }

    /// Whether anything was said that cannot be taken back.
    pub(super) fn has_spoken(&self) -> bool {
        self.events.spoken
    }

    /// Waits for the next event and takes it in, and those that are there already: a few at a time.
    pub(super) async fn advance(
        &mut self,
        model: &Inner,
        waiting: &mut VecDeque<Delta>,
    ) -> Result<(), Failure> {
        match &mut self.way {
            Way::Library(library) => library.advance(model, &mut self.events, waiting).await,
            Way::OurOwn(ours) => ours.advance(model, &mut self.events, waiting).await,
        }
    }
}

impl Library {
    async fn advance(
        &mut self,
        model: &Inner,
        events: &mut Events,
        waiting: &mut VecDeque<Delta>,
    ) -> Result<(), Failure> {
        let mut event = match poll_immediate(self.stream.next()).await {
            Some(event) => event,
            None => self.wait(model).await?,
        };
        loop {
            let last = event.is_none();
            self.take(model, event, events, waiting)?;
            if last || waiting.len() >= EVENTS_AT_A_TIME || matches!(waiting.back(), Some(Delta::Stop)) {
                return Ok(());
            }
            match poll_immediate(self.stream.next()).await {
                Some(next) => event = next,
                None => return Ok(()),
            }
        }
    }

    /// The next event, which the provider is given some time for.
    async fn wait(&mut self, model: &Inner) -> Result<Event, Failure> {
        loop {
            let frames = self.tap.frames();
            let limit = if frames == 0 { model.limits.first_byte } else { model.limits.silence };
            match tokio::time::timeout(limit, self.stream.next()).await {
                Ok(event) => return Ok(event),
                // A provider that sends comments is alive.
                Err(_) if self.tap.frames() > frames => {}
                Err(_) => return Err(Failure::lasting(model.silent(limit))),
            }
        }
    }

    fn take(
        &mut self,
        model: &Inner,
        event: Event,
        events: &mut Events,
        waiting: &mut VecDeque<Delta>,
    ) -> Result<(), Failure> {
        let before = waiting.len();
        self.tap.take(waiting);
        for delta in waiting.iter_mut().skip(before) {
            if let Delta::Usage(usage) = delta {
                usage.model = Some(model.name.clone());
            }
        }
        let event = match event {
            Some(Ok(event)) => event,
            Some(Err(error)) => return Err(Failure::of(&model.provider, &error)),
            None => ChatStreamEvent::End(StreamEnd::default()),
        };
        let taken = events.take(&model.provider, event, waiting);
        taken.map_err(|error| not_whole(&model.provider, error, self.tap.told()))
    }
}

/// What it means that an answer is not whole; `told` says whether there was anything in it.
pub(super) fn not_whole(provider: &Provider, error: ModelError, told: bool) -> Failure {
    match error {
        ModelError::CutOff if !told => failure::malformed(provider, "the answer is not a stream of events"),
        ModelError::CutOff => Failure::passing(error),
        error => Failure::lasting(error),
    }
}
