//! The demo model: offline, deterministic, and scripted by the prompt.
//!
//! Lines of the last user message that begin with `!` say what to do ([`script`]); without any it answers in plain
//! words. It keeps no state: which step of the script comes next follows from the conversation alone, so a resumed
//! session goes on where it was. Documented for people in `docs/demo-model.md`.

mod script;
mod summary;
mod tour;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use swb_proto::agent::{Block, Content, Message, Role, Source, TurnUsage};

use super::{Delta, Deltas, FileBody, Inputs, Model, ModelError, Prompt, Task};
use crate::subagent::is_report;
use script::{Act, Step};

/// How often `!until` looks for its file.
const LOOK: Duration = Duration::from_millis(20);

/// The model itself.
#[derive(Debug)]
pub(crate) struct Demo;

/// What the stream does next.
enum Beat {
    Delta(Delta),
    Fail(ModelError),
    Pause(Duration),
    Until(PathBuf),
    Stall,
}

impl Model for Demo {
    fn answer(&self, prompt: Prompt) -> Deltas {
        let step = match prompt.task {
            Task::Answer => next_step(&prompt),
            Task::Summarise => summary::step(&prompt.messages),
        };
        let mut usage = usage(&prompt, &step);
        usage.model = Some(super::catalogue::DEFAULT.to_owned());
        let count = prompt.messages.len();
        let beats = step
            .acts
            .into_iter()
            .enumerate()
            .flat_map(move |(at, act)| beats(act, format!("call_{count}_{at}"), count));
        let end = [Beat::Delta(Delta::Usage(usage)), Beat::Delta(Delta::Stop)];
        let end = if step.cut_off { None } else { Some(end) };
        stream::iter(beats.chain(end.into_iter().flatten()))
            .filter_map(|beat| async {
                match beat {
                    Beat::Delta(delta) => Some(Ok(delta)),
                    Beat::Fail(error) => Some(Err(error)),
                    Beat::Pause(time) => {
                        tokio::time::sleep(time).await;
                        None
                    }
                    Beat::Until(file) => {
                        while !file.exists() {
                            tokio::time::sleep(LOOK).await;
                        }
                        None
                    }
                    Beat::Stall => std::future::pending().await,
                }
            })
            .boxed()
    }

    fn inputs(&self) -> Inputs {
        Inputs { images: true, pdf: true }
    }
}

/// The step of the script that the conversation has come to.
fn next_step(prompt: &Prompt) -> Step {
    let messages = &prompt.messages;
    // What became of subagents is no word of the user: the script goes on.
    let is_asked = |message: &Arc<Message>| message.user_text().is_some_and(|text| !is_report(text));
    let Some(asked) = messages.iter().rposition(is_asked) else {
        return Step::saying("There is nothing to answer yet.");
    };
    let text = messages[asked].user_text().unwrap_or_default();
    let done = messages[asked..].iter().filter(|message| message.role == Role::Assistant).count();
    if text.trim() == tour::PROMPT {
        let step = tour::step(done, messages.last().map(AsRef::as_ref));
        return step.unwrap_or_else(|| Step::saying("That was the tour."));
    }
    let files = given_files(prompt);
    match script::parse(text, &files).into_iter().nth(done) {
        Some(step) => step,
        None => Step::saying(report(messages.last().map(AsRef::as_ref))),
    }
}

/// The files that the model has been given, in words; empty if there are none.
fn given_files(prompt: &Prompt) -> String {
    let mut given = Vec::new();
    for block in prompt.messages.iter().flat_map(|message| message.blocks()) {
        let (Block::Image { title, source } | Block::Document { title, source }) = block else { continue };
        let Source::File { media_type, .. } = source;
        let content = match prompt.files.get(source) {
            Some(FileBody::Text(text)) => {
                format!("{} bytes, begins with {:?}", text.len(), text.chars().take(60).collect::<String>())
            }
            Some(FileBody::Base64(text)) => {
                let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
                format!("{} bytes", text.len() / 4 * 3 - padding)
            }
            None => "no content".to_owned(),
        };
        given.push(format!("{title} ({media_type}, {content})"));
    }
    given.join("; ")
}

/// What is said when the script is over: what the tools returned.
fn report(last: Option<&Message>) -> String {
    let mut text = String::from("Done.");
    let told = last.and_then(Message::user_text).filter(|text| is_report(text));
    for line in told.into_iter().flat_map(str::lines).filter(|line| line.starts_with("Subagent ")) {
        text.push_str("\n- ");
        text.push_str(line);
    }
    for block in last.map(Message::blocks).unwrap_or_default() {
        if let Block::ToolResult { content, .. } = block {
            let line = content.lines().next().unwrap_or_default();
            text.push_str("\n- ");
            text.extend(line.chars().take(120));
        }
    }
    text
}

fn beats(act: Act, call_id: String, messages: usize) -> Box<dyn Iterator<Item = Beat> + Send> {
    let words = |text: &str| text.split_inclusive(' ').map(str::to_owned).collect::<Vec<_>>().into_iter();
    match act {
        Act::Say(text) => Box::new(words(&text).map(|word| Beat::Delta(Delta::Text(word)))),
        Act::Think(text) => Box::new(words(&text).map(|word| Beat::Delta(Delta::Thinking(word)))),
        Act::Repeat { times, text } => {
            Box::new(std::iter::repeat_n(text, times).map(|text| Beat::Delta(Delta::Text(text))))
        }
        Act::Tool { name, input } => {
            let start = Delta::CallStart { id: call_id.clone(), name };
            // In two pieces, as real models send it.
            let middle = (0..=input.len() / 2).rev().find(|at| input.is_char_boundary(*at)).unwrap_or(0);
            let (head, tail) = input.split_at(middle);
            let inputs =
                [head, tail].map(|delta| Delta::CallInput { id: call_id.clone(), delta: delta.to_owned() });
            Box::new(std::iter::once(start).chain(inputs).map(Beat::Delta))
        }
        Act::Fail(message) => Box::new(std::iter::once(Beat::Fail(ModelError::Failed { message }))),
        Act::TooLong { more_than } if messages > more_than => {
            let message = format!("{messages} messages are more than {more_than}");
            Box::new(std::iter::once(Beat::Fail(ModelError::TooLong { message })))
        }
        Act::Pause(time) => Box::new(std::iter::once(Beat::Pause(time))),
        Act::Until(file) => Box::new(std::iter::once(Beat::Until(file))),
        Act::Stall => Box::new(std::iter::once(Beat::Stall)),
        Act::TooLong { .. } | Act::Usage(_) => Box::new(std::iter::empty()),
    }
}

/// As the script says; else four characters are a token.
fn usage(prompt: &Prompt, step: &Step) -> TurnUsage {
    if let Some(usage) =
        step.acts.iter().find_map(|act| if let Act::Usage(usage) = act { Some(usage) } else { None })
    {
        return usage.clone();
    }
    let said: usize = step.acts.iter().map(Act::length).sum();
    let heard: usize = prompt.messages.iter().map(|message| length(message)).sum();
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
    TurnUsage {
        input_tokens: tokens(heard + prompt.system.len()),
        output_tokens: tokens(said),
        ..TurnUsage::default()
    }
}

fn length(message: &Message) -> usize {
    match &message.content {
        Content::Text(text) => text.len(),
        Content::Blocks(blocks) => blocks
            .iter()
            .map(|block| match block {
                Block::Text { text } => text.len(),
                Block::Thinking { thinking, .. } => thinking.len(),
                Block::Image { title, .. } | Block::Document { title, .. } => title.len(),
                Block::ToolUse { name, .. } => name.len() + 16,
                Block::ToolResult { content, .. } => content.len(),
            })
            .sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    async fn answer(messages: Vec<Message>) -> Vec<Result<Delta, ModelError>> {
        let messages = messages.into_iter().map(Arc::new).collect();
        let prompt = Prompt {
            messages,
            files: super::super::Files::default(),
            system: "".into(),
            task: Task::Answer,
            thinking: super::super::Thinking::Off,
            tools: Vec::new(),
        };
        Demo.answer(prompt).collect().await
    }

    #[tokio::test]
    async fn the_same_prompt_gives_the_same_answer() {
        let ask = || answer(vec![Message::user("!think hm\n!say hello there")]);
        let first = ask().await;
        assert_eq!(first, ask().await);
        assert_eq!(first[1], Ok(Delta::Text("hello ".to_owned())));
        assert_eq!(first.last(), Some(&Ok(Delta::Stop)));
    }

    #[tokio::test]
    async fn tools_come_first_and_their_results_are_reported() {
        let asked = Message::user("!tool ls {\"path\":\"é\"}");
        let deltas = answer(vec![asked.clone()]).await;
        let input: String = deltas
            .iter()
            .filter_map(|delta| match delta {
                Ok(Delta::CallInput { delta, .. }) => Some(delta.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(input, "{\"path\":\"é\"}");
        let call = Block::ToolUse { id: "c".into(), name: "ls".into(), input: serde_json::json!({}) };
        let result = Block::ToolResult { tool_use_id: "c".into(), content: "a\nb".into(), is_error: false };
        let deltas =
            answer(vec![asked, Message::assistant(vec![call]), Message::results(vec![result])]).await;
        let text: String = deltas
            .iter()
            .filter_map(|delta| if let Ok(Delta::Text(text)) = delta { Some(text.as_str()) } else { None })
            .collect();
        assert_eq!(text, "Done.\n- a");
    }

    #[tokio::test]
    async fn a_cut_off_answer_has_no_stop() {
        let deltas = answer(vec![Message::user("!say half\n!cut")]).await;
        assert_eq!(deltas, [Ok(Delta::Text("half".to_owned()))]);
    }
}
