//! One question to a model, without a conversation around it: no tools, no history, no session.
//!
//! The process reads one line, asks the model, writes one line ([`Question`], [`Completion`]) and ends. Whoever asked keeps
//! its end of standard input open: when that closes, be it because the asker was killed, the call of the model ends and
//! nothing is said. A tool that the model wants to call was never offered, and is passed over.
//! Proof: tests beside the code; `crates/swb-cli/tests/llm.rs` through the daemon.

use std::io::{self, Write};
use std::sync::Arc;

use futures_util::StreamExt;
use swb_proto::agent::{Completion, Message, Question, TurnUsage};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;

use crate::model::catalogue::{self, Catalogue};
use crate::model::settings::Settings;
use crate::model::{Delta, Files, Model, ModelError, Prompt, Task, Thinking};
use crate::stdio::private;

/// The longest question: a line of the control socket in which every byte was escaped.
const MOST_ASKED: u64 = 8 * 1024 * 1024;

/// What is asked, and how.
#[derive(Debug)]
pub struct CompletionOptions {
    /// The model; absent for the one that needs neither key nor network.
    pub model: Option<String>,
    /// How much it shall think. Its thoughts are not part of the answer.
    pub thinking: Thinking,
    /// Providers, prices and patience.
    pub models: Settings,
}

/// Takes a question from standard input and writes what became of it to standard output.
pub fn complete(options: CompletionOptions) -> io::Result<()> {
    let pipes = private::take()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let completion = runtime.block_on(async {
        let mut asker = BufReader::new(Receiver::from_file(pipes.input)?);
        let mut line = Vec::new();
        (&mut asker).take(MOST_ASKED).read_until(b'\n', &mut line).await?;
        let question: Question = serde_json::from_slice(&line)?;
        io::Result::Ok(tokio::select! {
            biased;
            () = gone(&mut asker) => None,
            completion = ask(options, question) => Some(completion),
        })
    });
    runtime.shutdown_background();
    let Some(completion) = completion? else { return Ok(()) };
    let mut line = serde_json::to_vec(&completion)?;
    line.push(b'\n');
    let mut output = pipes.output;
    output.write_all(&line)
}

/// Returns when nobody is at the other end any more.
async fn gone(asker: &mut BufReader<Receiver>) {
    while asker.fill_buf().await.is_ok_and(|more| !more.is_empty()) {
        let more = asker.buffer().len();
        asker.consume(more);
    }
}

async fn ask(options: CompletionOptions, question: Question) -> Completion {
    let name = options.model.unwrap_or_else(|| catalogue::DEFAULT.to_owned());
    let models = Catalogue::new(options.models, &|name| std::env::var(name).ok());
    let answered = match models.find(&name) {
        Ok(model) => answer(model.as_ref(), question, options.thinking).await,
        Err(error) => Err(error),
    };
    match answered {
        Ok((content, usage)) => Completion::Answered { content, model: name, usage },
        Err(error) => Completion::Failed {
            model: name,
            reason: reason(&error).to_owned(),
            status: status(&error),
            message: error.to_string(),
        },
    }
}

async fn answer(
    model: &dyn Model,
    question: Question,
    thinking: Thinking,
) -> Result<(String, TurnUsage), ModelError> {
    let prompt = Prompt {
        messages: vec![Arc::new(Message::user(question.content))],
        files: Files::default(),
        system: "".into(),
        task: Task::Answer,
        thinking,
        tools: Vec::new(),
    };
    let mut deltas = model.answer(prompt);
    let (mut content, mut usage) = (String::new(), TurnUsage::default());
    loop {
        match deltas.next().await.ok_or(ModelError::CutOff)?? {
            Delta::Text(text) => content.push_str(&text),
            Delta::Usage(used) => usage = used,
            Delta::Stop if content.trim().is_empty() => return Err(ModelError::Empty),
            Delta::Stop => return Ok((content, usage)),
            _ => {}
        }
        if content.len() > question.max_bytes {
            let reason = format!("more than {} bytes", question.max_bytes);
            return Err(ModelError::OutputLimit { reason });
        }
    }
}

/// Why, for programs.
fn reason(error: &ModelError) -> &'static str {
    match error {
        ModelError::Unusable { .. } => "MODEL_UNUSABLE",
        ModelError::CutOff | ModelError::Broken { .. } => "MODEL_BROKE_OFF",
        ModelError::Empty => "MODEL_SAID_NOTHING",
        ModelError::TooLong { .. } => "MODEL_PROMPT_TOO_LONG",
        ModelError::OutputLimit { .. } => "MODEL_ANSWER_TOO_LONG",
        ModelError::Declined { .. } => "MODEL_DECLINED",
        ModelError::Refused { .. } => "MODEL_REFUSED",
        ModelError::Unreachable { .. } => "MODEL_UNREACHABLE",
        ModelError::Silent { .. } => "MODEL_SILENT",
        ModelError::Malformed { .. } => "MODEL_NOT_UNDERSTOOD",
        ModelError::LongWait { .. } => "MODEL_BUSY",
        ModelError::GaveUp { last, .. } => reason(last),
        ModelError::Failed { .. } => "MODEL_FAILED",
    }
}

/// What a provider refused with.
fn status(error: &ModelError) -> Option<u16> {
    match error {
        ModelError::Refused { status, .. } => Some(*status),
        ModelError::LongWait { last, .. } | ModelError::GaveUp { last, .. } => status(last),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn asked(content: &str, max_bytes: usize) -> Completion {
        let options = CompletionOptions { model: None, thinking: Thinking::Off, models: Settings::default() };
        ask(options, Question { content: content.to_owned(), max_bytes }).await
    }

    fn reason_of(completion: Completion) -> String {
        match completion {
            Completion::Failed { reason, .. } => reason,
            answered @ Completion::Answered { .. } => panic!("{answered:?}"),
        }
    }

    #[tokio::test]
    async fn the_answer_is_what_was_said_without_thoughts_and_without_tools() {
        let script = "!think hm\n!say one\n!say two\n!tool bash {\"command\":\"echo no\"}";
        let Completion::Answered { content, model, usage } = asked(script, 100).await else {
            panic!("no answer");
        };
        assert_eq!((content.as_str(), model.as_str()), ("onetwo", "demo"));
        assert!(usage.output_tokens > 0);
    }

    #[tokio::test]
    async fn what_is_no_answer_is_an_error_with_a_reason() {
        for (script, reason) in [
            ("!fail it broke", "MODEL_FAILED"),
            ("!say half\n!cut", "MODEL_BROKE_OFF"),
            ("!empty", "MODEL_SAID_NOTHING"),
            ("!tool bash {}", "MODEL_SAID_NOTHING"),
            ("!repeat 100000 words", "MODEL_ANSWER_TOO_LONG"),
        ] {
            assert_eq!(reason_of(asked(script, 1000).await), reason, "{script}");
        }
    }

    #[test]
    fn an_error_behind_retries_keeps_its_reason_and_its_status() {
        let refused =
            ModelError::Refused { provider: "p".into(), status: 503, message: "busy".into() }.after(3);
        assert_eq!((reason(&refused), status(&refused)), ("MODEL_REFUSED", Some(503)));
        let waits = ModelError::LongWait { seconds: 3600, last: Box::new(refused) };
        assert_eq!((reason(&waits), status(&waits)), ("MODEL_BUSY", Some(503)));
    }
}
