//! An answer that is being made: pieces in, blocks out.

use serde_json::{Map, Value};
use swb_proto::agent::{AssistantEvent, Block, TurnUsage};

use crate::model::Delta;
use crate::tools::limits;

/// What has come so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    parts: Vec<Part>,
    pub(super) usage: Option<TurnUsage>,
    /// How much there is of it, in bytes.
    pub(super) size: usize,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Thinking { text: String, signature: String },
    Call { id: String, name: String, input: String },
}

impl Part {
    fn is_blank(&self) -> bool {
        matches!(self, Part::Thinking { text, signature } if text.is_empty() && signature.is_empty())
    }
}

/// A tool that the model wants to be run.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Result<Value, serde_json::Error>,
}

impl Wanted {
    /// The input as it is shown and kept: always an object.
    pub(super) fn shown_input(&self) -> Value {
        match &self.input {
            Ok(input) if input.is_object() => input.clone(),
            _ => Value::Object(Map::new()),
        }
    }
}

impl Answer {
    /// Takes a piece; returns what the parent is to see of it.
    pub(super) fn take(&mut self, delta: Delta) -> Option<AssistantEvent> {
        if let Delta::Text(delta)
        | Delta::Thinking(delta)
        | Delta::Signature(delta)
        | Delta::CallInput { delta, .. } = &delta
        {
            self.size += delta.len();
        }
        match delta {
            Delta::Text(delta) => {
                match self.parts.last_mut() {
                    Some(Part::Text(text)) => text.push_str(&delta),
                    _ => self.parts.push(Part::Text(delta.clone())),
                }
                Some(AssistantEvent::TextDelta { delta })
            }
            Delta::ThoughtStart => {
                self.parts.push(Part::Thinking { text: String::new(), signature: String::new() });
                None
            }
            Delta::Thinking(delta) => {
                match self.parts.last_mut() {
                    Some(Part::Thinking { text, .. }) => text.push_str(&delta),
                    _ => self.parts.push(Part::Thinking { text: delta.clone(), signature: String::new() }),
                }
                Some(AssistantEvent::ThinkingDelta { delta })
            }
            Delta::Signature(seal) => {
                if let Some(Part::Thinking { signature, .. }) = self.parts.last_mut() {
                    signature.push_str(&seal);
                }
                None
            }
            Delta::CallStart { id, name } => {
                self.parts.push(Part::Call { id: id.clone(), name: name.clone(), input: String::new() });
                Some(AssistantEvent::ToolcallStart { tool_id: id, tool_name: name })
            }
            Delta::CallInput { id, delta } => {
                let wanted = self.parts.iter_mut().rev().find_map(|part| match part {
                    Part::Call { id: known, input, .. } if *known == id => Some(input),
                    _ => None,
                });
                wanted?.push_str(&delta);
                Some(AssistantEvent::ToolcallInputDelta { tool_id: id, delta })
            }
            Delta::Usage(usage) => {
                self.usage = Some(usage);
                None
            }
            Delta::Retry(_) | Delta::Stop => None,
        }
    }

    /// The whole answer: what the history keeps, and the tools to run.
    pub(super) fn finish(self) -> (Vec<Block>, Vec<Wanted>) {
        let mut wanted = Vec::new();
        let said = self.parts.into_iter().filter(|part| !part.is_blank());
        let blocks = said.map(|part| match part {
            Part::Text(text) => Block::Text { text },
            Part::Thinking { text, signature } => Block::Thinking { thinking: text, signature },
            Part::Call { id, name, input } => {
                // A call without arguments may come without text.
                let text = if input.trim().is_empty() { "{}" } else { &input };
                let call = Wanted { id: id.clone(), name: name.clone(), input: serde_json::from_str(text) };
                let input = call.shown_input();
                wanted.push(call);
                Block::ToolUse { id, name, input }
            }
        });
        (blocks.collect(), wanted)
    }

    /// The words of an answer that did not come to its end, up to so many characters of each block, and the calls it
    /// had begun.
    pub(super) fn without_calls(self, kept_chars: usize) -> (Vec<Block>, Vec<String>) {
        let (blocks, wanted) = self.finish();
        // Thinking without an answer behind it is refused by some providers.
        let blocks = blocks.into_iter().filter_map(|block| match block {
            Block::Text { text } if !text.is_empty() => {
                Some(Block::Text { text: limits::for_history(&text, kept_chars) })
            }
            _ => None,
        });
        (blocks.collect(), wanted.into_iter().map(|call| call.id).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(answer: &mut Answer, id: &str, pieces: &[&str]) {
        answer.take(Delta::CallStart { id: id.into(), name: "ls".into() });
        for piece in pieces {
            answer.take(Delta::CallInput { id: id.into(), delta: (*piece).into() });
        }
    }

    #[test]
    fn pieces_in_odd_splits_become_whole_blocks() {
        let mut answer = Answer::default();
        for piece in ["a", "", "b"] {
            answer.take(Delta::Text(piece.into()));
        }
        call(&mut answer, "1", &["{\"pa", "th\":", "\"x\"}"]);
        call(&mut answer, "2", &[]);
        let (blocks, wanted) = answer.finish();
        assert_eq!(blocks[0], Block::Text { text: "ab".into() });
        assert_eq!(wanted[0].input.as_ref().unwrap(), &json!({"path": "x"}));
        assert_eq!(wanted[1].input.as_ref().unwrap(), &json!({}));
    }

    #[test]
    fn thoughts_keep_their_own_seals() {
        let mut answer = Answer::default();
        let seal = |text: &str| Delta::Signature(text.into());
        for delta in [
            Delta::ThoughtStart,
            Delta::Thinking("a".into()),
            seal("1"),
            seal("2"),
            Delta::ThoughtStart,
            seal("3"),
            Delta::ThoughtStart,
        ] {
            answer.take(delta);
        }
        let thought = |thinking: &str, signature: &str| Block::Thinking {
            thinking: thinking.into(),
            signature: signature.into(),
        };
        assert_eq!(answer.finish().0, [thought("a", "12"), thought("", "3")]);
    }

    #[test]
    fn broken_arguments_are_kept_apart_from_the_history() {
        let mut answer = Answer::default();
        call(&mut answer, "1", &["{\"path\":"]);
        let (blocks, wanted) = answer.finish();
        assert!(wanted[0].input.is_err());
        assert!(matches!(&blocks[0], Block::ToolUse { input, .. } if *input == json!({})));
    }

    #[test]
    fn of_a_broken_answer_only_the_text_stays() {
        let mut answer = Answer::default();
        answer.take(Delta::Thinking("hm".into()));
        answer.take(Delta::Text("half".into()));
        call(&mut answer, "1", &["{"]);
        let (blocks, started) = answer.without_calls(100);
        assert_eq!(blocks, [Block::Text { text: "half".into() }]);
        assert_eq!(started, ["1"]);
    }
}
