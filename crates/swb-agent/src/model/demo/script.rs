//! The script in a prompt.
//!
//! A line `!word rest` is an act; other lines are for people to read. Acts form steps, one per call of the model: tools
//! that stand together are called at once, and whatever follows them belongs to the next step.

use std::path::PathBuf;
use std::time::Duration;

use swb_proto::agent::TurnUsage;

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    Say(String),
    Think(String),
    Repeat {
        times: usize,
        text: String,
    },
    Tool {
        name: String,
        input: String,
    },
    Fail(String),
    /// There is no room for so many messages.
    TooLong {
        more_than: usize,
    },
    Pause(Duration),
    /// Waits until there is such a file.
    Until(PathBuf),
    Stall,
    Usage(TurnUsage),
}

impl Act {
    /// How much is said.
    pub(super) fn length(&self) -> usize {
        match self {
            Act::Say(text) | Act::Think(text) => text.len(),
            Act::Repeat { times, text } => times * text.len(),
            Act::Tool { name, input } => name.len() + input.len(),
            Act::Fail(_)
            | Act::TooLong { .. }
            | Act::Pause(_)
            | Act::Until(_)
            | Act::Stall
            | Act::Usage(_) => 0,
        }
    }
}

/// What one call of the model does.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Step {
    pub(super) acts: Vec<Act>,
    /// The stream ends without an end.
    pub(super) cut_off: bool,
}

impl Step {
    pub(super) fn saying(text: impl Into<String>) -> Self {
        Step { acts: vec![Act::Say(text.into())], cut_off: false }
    }

    fn has_tools(&self) -> bool {
        self.acts.iter().any(|act| matches!(act, Act::Tool { .. }))
    }
}

/// The steps of a prompt; for one without acts, an answer in plain words. `files` says what came with it.
pub(super) fn parse(prompt: &str, files: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut step = Step::default();
    let mut scripted = false;
    for line in prompt.lines().filter_map(|line| line.trim().strip_prefix('!')) {
        let (word, rest) = line.split_once(' ').map_or((line, ""), |(word, rest)| (word, rest.trim()));
        scripted = true;
        match (word, act(word, rest)) {
            ("files", _) if files.is_empty() => step.acts.push(Act::Say("You attached nothing. ".to_owned())),
            ("files", _) => step.acts.push(Act::Say(format!("You attached {files}. "))),
            ("then", _) => steps.push(std::mem::take(&mut step)),
            ("cut", _) => step.cut_off = true,
            ("empty" | "summary", _) => {}
            (_, Some(act)) => {
                if step.has_tools()
                    && matches!(act, Act::Say(_) | Act::Think(_) | Act::Repeat { .. } | Act::Fail(_))
                {
                    steps.push(std::mem::take(&mut step));
                }
                step.acts.push(act);
            }
            (word, None) => step.acts.push(Act::Say(puzzled(word))),
        }
    }
    if !scripted {
        return vec![Step::saying(plain(prompt, files))];
    }
    steps.push(step);
    steps
}

fn act(word: &str, rest: &str) -> Option<Act> {
    Some(match word {
        "say" => Act::Say(lines(rest)),
        "think" => Act::Think(lines(rest)),
        "repeat" => {
            let (times, text) = rest.split_once(' ').unwrap_or((rest, "word "));
            Act::Repeat { times: times.parse().ok()?, text: text.to_owned() }
        }
        "tool" => {
            let (name, input) = rest.split_once(' ').unwrap_or((rest, "{}"));
            Act::Tool { name: name.to_owned(), input: input.to_owned() }
        }
        "ask" => {
            Act::Tool { name: "bash".to_owned(), input: serde_json::json!({ "command": rest }).to_string() }
        }
        "ask_user" => {
            let mut parts = rest.split('|').map(str::trim);
            let question = parts.next().unwrap_or_default();
            let options: Vec<_> = parts.collect();
            let input = serde_json::json!({ "question": question, "options": options });
            Act::Tool { name: "ask_user".to_owned(), input: input.to_string() }
        }
        "plan" => {
            let steps: Vec<_> =
                rest.split('|').map(str::trim).filter(|step| !step.is_empty()).map(step).collect();
            Act::Tool { name: "plan".to_owned(), input: serde_json::json!({ "steps": steps }).to_string() }
        }
        "subagent" | "background" => {
            let name = if word == "background" { "subagent_start" } else { "subagent" };
            let input = serde_json::json!({ "task": rest.replace(" // ", "\n") });
            Act::Tool { name: name.to_owned(), input: input.to_string() }
        }
        "fail" => {
            Act::Fail(if rest.is_empty() { "the demo model was told to fail" } else { rest }.to_owned())
        }
        "toolong" => Act::TooLong { more_than: rest.parse().ok()? },
        "pause" => Act::Pause(Duration::from_millis(rest.parse().ok()?)),
        "until" if !rest.is_empty() => Act::Until(PathBuf::from(rest)),
        "stall" => Act::Stall,
        "usage" => Act::Usage(usage(rest)?),
        _ => return None,
    })
}

/// A step of a plan: `*` before it says that it is done, `>` that it is being done.
fn step(text: &str) -> serde_json::Value {
    let (text, status) = match (text.strip_prefix('*'), text.strip_prefix('>')) {
        (Some(text), _) => (text, "completed"),
        (_, Some(text)) => (text, "in_progress"),
        _ => (text, "pending"),
    };
    serde_json::json!({ "text": text.trim(), "status": status })
}

fn puzzled(word: &str) -> String {
    format!(
        "I do not know what to do with `!{word}`. I know `!say`, `!think`, `!tool`, `!ask`, `!subagent` and more, which \
         docs/demo-model.md describes. "
    )
}

/// An act is one line; `\n` in it stands for the end of one.
fn lines(rest: &str) -> String {
    rest.replace("\\n", "\n")
}

fn usage(rest: &str) -> Option<TurnUsage> {
    let figures = rest.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    let figure = |at: usize| figures.get(at).copied().unwrap_or(0);
    Some(TurnUsage {
        input_tokens: figure(0),
        output_tokens: figure(1),
        cache_read_input_tokens: figure(2),
        cache_creation_input_tokens: figure(3),
        ..TurnUsage::default()
    })
}

fn plain(prompt: &str, files: &str) -> String {
    let heard: String = prompt.chars().take(200).collect();
    let files = if files.is_empty() { String::new() } else { format!("\nYou attached: {files}") };
    format!(
        "You said: {heard}{files}\n\nI am the demo model. I need no key and no network, and I do what lines that begin with `!` \
         say. Try: !tool ls {{\"path\": \".\"}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tools_that_stand_together_are_one_step_and_words_after_them_another() {
        let steps = parse(
            "please\n!think hm\n!tool ls {}\n!tool read {\"path\":\"a b\"}\n!say done\n!usage 5 6 7",
            "",
        );
        assert_eq!(steps.len(), 2);
        assert_eq!(steps[0].acts.len(), 3);
        assert_eq!(steps[0].acts[2], Act::Tool { name: "read".into(), input: "{\"path\":\"a b\"}".into() });
        assert!(
            matches!(&steps[1].acts[..], [Act::Say(_), Act::Usage(usage)] if usage.cache_read_input_tokens == 7)
        );
    }

    #[test]
    fn a_question_may_have_options() {
        let input = |text| match &parse(text, "")[0].acts[..] {
            [Act::Tool { name, input }] if name == "ask_user" => {
                serde_json::from_str::<serde_json::Value>(input).unwrap()
            }
            acts => panic!("{acts:?}"),
        };
        assert_eq!(input("!ask_user Why?"), json!({ "options": [], "question": "Why?" }));
        assert_eq!(
            input("!ask_user Which? | red | blue"),
            json!({ "options": ["red", "blue"], "question": "Which?" })
        );
    }

    #[test]
    fn a_plan_says_how_far_each_step_has_come() {
        let input = |text| match &parse(text, "")[0].acts[..] {
            [Act::Tool { name, input }] if name == "plan" => {
                serde_json::from_str::<serde_json::Value>(input).unwrap()
            }
            acts => panic!("{acts:?}"),
        };
        let step = |text: &str, status: &str| json!({ "text": text, "status": status });
        assert_eq!(
            input("!plan *look | > fix it | test"),
            json!({ "steps": [step("look", "completed"), step("fix it", "in_progress"), step("test", "pending")] })
        );
        assert_eq!(input("!plan"), json!({ "steps": [] }));
    }

    #[test]
    fn the_task_of_a_subagent_may_have_lines() {
        let steps = parse("!subagent !tool ls {} // !say x", "");
        let input = r#"{"task":"!tool ls {}\n!say x"}"#.to_owned();
        assert_eq!(steps[0].acts, [Act::Tool { name: "subagent".into(), input }]);
    }

    #[test]
    fn then_parts_two_groups_of_tools() {
        assert_eq!(parse("!tool a\n!then\n!tool b", "").len(), 2);
    }

    #[test]
    fn a_prompt_without_acts_gets_plain_words() {
        assert!(
            matches!(&parse("hello", "")[..], [Step { acts, .. }] if matches!(&acts[..], [Act::Say(text)] if text.contains("hello")))
        );
    }

    #[test]
    fn an_unknown_act_is_said_to_be_one() {
        assert!(matches!(&parse("!dance", "")[0].acts[..], [Act::Say(text)] if text.contains("!dance")));
    }
}
