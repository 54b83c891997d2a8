//! The tour: what a newcomer sees who says [`PROMPT`] and nothing else.
//!
//! Each step follows from the conversation alone, as with any script; what came of the tool before it is part of what is
//! said. Nothing is assumed of the folder, and nothing stays in it.

use std::cmp::Ordering;

use serde_json::json;
use swb_proto::agent::{Block, Message};

use super::script::{Act, Step};

/// The words that begin it.
pub(super) const PROMPT: &str = "show me around";

/// Needs an approval because it deletes; what it deletes it has made itself.
const HARMLESS: &str = "echo 'hello from an agent' > .swb-tour && cat .swb-tour && rm .swb-tour";

/// What it does, for whoever looks on.
const PLAN: [&str; 4] =
    ["look around and read a file", "ask for a permission", "leave a message", "give a task to a subagent"];

const GOODBYE: &str = "\
That was an agent at work. What to try next:\\n\\n\
- `swb logs` with one end of the session's id tells all of this again; `swb agents --all` lists what ran\\n\
- `swb audit tail` shows what was just done, asked and decided, in a record that `swb audit verify` proves\\n\
- `swb bus read` shows the message I left: `--project` is this folder's name, `--task` the session\\n\
- a real model takes one variable: `export ANTHROPIC_API_KEY=…`, `swb restart`, and then \
`swb run --model claude-sonnet-4-6 'fix the failing test'`\\n\
- `swb run --continue '!say hello again'` goes on with this session";

/// The step behind so many answers, given the last thing that was said.
pub(super) fn step(done: usize, last: Option<&Message>) -> Option<Step> {
    let say = |text: &str| Act::Say(text.replace("\\n", "\n"));
    let tool =
        |name: &str, input: serde_json::Value| Act::Tool { name: name.to_owned(), input: input.to_string() };
    let acts = match done {
        0 => vec![
            Act::Think(
                "Somebody is new here. I shall read something, ask for one permission, run a command, leave a \
                 message, and give a colleague something to do."
                    .to_owned(),
            ),
            say("Welcome to **Switchboard**. I am the demo model, so this needs no key and no network. First I look \
                 around and read a file."),
            plan(0),
            tool("ls", json!({})),
        ],
        1 => match a_file(last) {
            Some(file) => vec![tool("read", json!({ "path": file, "limit": 5 }))],
            None => vec![say("There is no file here yet."), tool("ls", json!({}))],
        },
        2 => vec![
            say("Reading needs no permission. What deletes something does: the daemon decides by rules, and asks you."),
            plan(1),
            tool("bash", json!({ "command": HARMLESS })),
        ],
        3 => {
            let came_of_it = if is_denied(last) {
                "That was denied, so I did not do it; an agent is told why, and goes on without it."
            } else {
                "You agreed, and the command ran, in a cell around the agent where the kernel allows one."
            };
            let note = "The tour was here: agents and people leave each other messages on this bus.";
            vec![
                say(&format!("{came_of_it} Now I leave a message for whoever works here next.")),
                plan(2),
                tool("bus_post", json!({ "body": note })),
            ]
        }
        4 => vec![
            say("And I give a part of the work to another agent, in a process and a session of its own."),
            plan(3),
            tool("subagent", json!({ "task": "!think what was I asked?\n!say I am a subagent. I have done my part." })),
        ],
        5 => vec![plan(PLAN.len())],
        6 => vec![say(GOODBYE)],
        _ => return None,
    };
    Some(Step { acts, cut_off: false })
}

/// The plan when so many steps of it are done.
fn plan(done: usize) -> Act {
    let step = |(at, text): (usize, &&str)| {
        let status = match at.cmp(&done) {
            Ordering::Less => "completed",
            Ordering::Equal => "in_progress",
            Ordering::Greater => "pending",
        };
        json!({ "text": text, "status": status })
    };
    let steps: Vec<_> = PLAN.iter().enumerate().map(step).collect();
    Act::Tool { name: "plan".to_owned(), input: json!({ "steps": steps }).to_string() }
}

fn results(last: Option<&Message>) -> impl Iterator<Item = &str> {
    let blocks = last.map(Message::blocks).unwrap_or_default();
    blocks.iter().filter_map(|block| match block {
        Block::ToolResult { content, .. } => Some(content.as_str()),
        _ => None,
    })
}

fn is_denied(last: Option<&Message>) -> bool {
    results(last).any(|result| result.starts_with("Denied"))
}

/// A file that was listed: one that is made to be read, else the first.
fn a_file(last: Option<&Message>) -> Option<&str> {
    let names = || results(last).flat_map(str::lines).map(str::trim);
    let is_file = |name: &&str| {
        !name.is_empty() && !name.ends_with('/') && !name.contains(' ') && !name.starts_with(['.', '('])
    };
    let is_readme = |name: &&str| name.to_ascii_lowercase().starts_with("readme");
    let is_text = |name: &&str| {
        let end = name.rsplit_once('.').map(|(_, end)| end);
        end.is_some_and(|end| ["md", "txt", "toml", "rs", "py", "js", "go", "json"].contains(&end))
    };
    names().find(is_readme).or_else(|| names().filter(is_file).find(is_text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(result: &str) -> Message {
        Message::results(vec![Block::ToolResult {
            tool_use_id: "c".into(),
            content: result.into(),
            is_error: false,
        }])
    }

    fn text(step: &Step) -> String {
        step.acts
            .iter()
            .filter_map(|act| if let Act::Say(text) = act { Some(text.as_str()) } else { None })
            .collect()
    }

    #[test]
    fn it_reads_what_is_there_and_says_what_came_of_the_question() {
        for (listed, file) in [
            ("src/\nb.rs\nREADME.md\n", Some("README.md")),
            ("src/\nmain.rs", Some("main.rs")),
            ("picture.png\nsub/", None),
            ("(empty)", None),
        ] {
            assert_eq!(a_file(Some(&told(listed))), file, "{listed}");
        }
        let answer = |result: &str| text(&step(3, Some(&told(result))).unwrap());
        assert!(answer("Denied: nobody agreed in time").contains("was denied"));
        assert!(answer("hello from an agent\n").contains("You agreed"));
    }

    #[test]
    fn it_comes_to_an_end_that_says_what_to_try_next() {
        let last = step(6, None).unwrap();
        assert!(text(&last).contains("ANTHROPIC_API_KEY") && text(&last).contains("swb audit"));
        assert!(!text(&last).contains("\\n"));
        assert_eq!(step(7, None), None);
    }
}
