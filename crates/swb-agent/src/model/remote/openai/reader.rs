//! What the events of one answer come to.

use std::collections::VecDeque;

use genai::chat::{ChatStreamEvent, StreamChunk, StreamEnd};
use serde_json::Value;
use swb_proto::agent::TurnUsage;

use super::frames::data;
use super::words;
use crate::model::Delta;
use crate::model::provider::Dialect;
use crate::model::remote::attempt::not_whole;
use crate::model::remote::events::Events;
use crate::model::remote::failure::{self, Failure};
use crate::model::remote::{Inner, usage};

/// What stands where the last event would.
const DONE: &str = "[DONE]";

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Whether any event had something in it; a page of HTML has none.
    told: bool,
    finish_reason: Option<String>,
    usage: TurnUsage,
}

impl Reader {
    /// Takes in an event.
    pub(super) fn read(
        &mut self,
        model: &Inner,
        event: &[u8],
        events: &mut Events,
        waiting: &mut VecDeque<Delta>,
    ) -> Result<(), Failure> {
        let malformed = |message: &str| failure::malformed(&model.provider, message);
        let event = std::str::from_utf8(event).map_err(|_| malformed("not UTF-8"))?;
        let data = data(event);
        if data.is_empty() {
            return Ok(());
        }
        self.told = true;
        if let Some(text) = words::text(&data) {
            let said = ChatStreamEvent::Chunk(StreamChunk { content: text.into_owned() });
            return events.take(&model.provider, said, waiting).map_err(Failure::lasting);
        }
        if data == DONE {
            return self.end(model, events, waiting);
        }
        let frame: Value = serde_json::from_str(&data).map_err(|error| malformed(&error.to_string()))?;
        if let Some(error) = frame.get("error").filter(|error| !error.is_null()) {
            return Err(failure::told_in_stream(&model.provider, error));
        }
        if usage::take(Dialect::OpenAi, &data, &mut self.usage) {
            let model = Some(model.name.clone());
            waiting.push_back(Delta::Usage(TurnUsage { model, ..self.usage.clone() }));
        }
        if let Some(reason) = words::finish_reason(&frame) {
            self.finish_reason = Some(reason.to_owned());
        }
        for said in words::events(&frame) {
            events.take(&model.provider, said, waiting).map_err(Failure::lasting)?;
        }
        Ok(())
    }

    /// There are no more events. The last one says nothing, so it may be missing, if there was a reason to end.
    pub(super) fn end(
        &mut self,
        model: &Inner,
        events: &mut Events,
        waiting: &mut VecDeque<Delta>,
    ) -> Result<(), Failure> {
        let captured_stop_reason =
            self.finish_reason.take().filter(|reason| !reason.is_empty()).map(Into::into);
        let end = ChatStreamEvent::End(StreamEnd { captured_stop_reason, ..StreamEnd::default() });
        events
            .take(&model.provider, end, waiting)
            .map_err(|error| not_whole(&model.provider, error, self.told))
    }
}
