//! What a subagent does, in a few words.

use serde::Deserialize;
use serde_json::Value;
use swb_proto::agent::Plan;

/// How much of a command or a path is shown, in characters.
const SHOWN_CHARS: usize = 60;

/// Words for the beginning of a call.
pub(super) fn calling(name: &str, number: u64) -> String {
    format!("\u{2699} {name} (tool #{number})")
}

/// Words for a call whose arguments are known; `None` if its beginning has said all there is to say.
pub(super) fn doing(name: &str, input: &Value) -> Option<String> {
    let text = |key: &str| input[key].as_str().map(one_line);
    match name {
        "bash" => Some(format!("$ {}", text("command")?)),
        "read" => Some(format!("reading {}", text("path")?)),
        "write" => Some(format!("writing {}", text("path")?)),
        "edit" => Some(format!("editing {}", text("path")?)),
        "grep" => Some(format!("grep /{}/", text("pattern")?)),
        "find" => Some(format!("find {}", text("pattern")?)),
        "ls" => Some(format!("ls {}", text("path").unwrap_or_else(|| ".".to_owned()))),
        "ask_user" => Some(format!("asking: {}", text("question")?)),
        "plan" => {
            let plan = Plan::deserialize(input).ok()?;
            Some(format!("planned: {}", one_line(&plan.current()?.text)))
        }
        _ => None,
    }
}

/// How a text begins, on one line.
pub(super) fn one_line(text: &str) -> String {
    preview(text, SHOWN_CHARS)
}

/// How a text begins: at most so many characters, on one line, secrets taken out.
pub(super) fn preview(text: &str, characters: usize) -> String {
    // A secret that is cut is no less a secret: look before cutting, but not at everything.
    let head: String = text.chars().take(characters + 400).collect();
    let head = swb_rules::redact::redact(&head).text;
    let mut line: String = head.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.char_indices().nth(characters).is_some() {
        let end = line.char_indices().nth(characters - 1).map_or(0, |(end, _)| end);
        line.truncate(end);
        line.push('\u{2026}');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_are_put_into_words() {
        assert_eq!(calling("bash", 2), "\u{2699} bash (tool #2)");
        let doing = |name: &str, input| doing(name, &input).unwrap_or_default();
        assert_eq!(doing("bash", json!({ "command": "a\n  b" })), "$ a b");
        assert_eq!(doing("ls", json!({})), "ls .");
        assert_eq!(doing("grep", json!({ "pattern": "x" })), "grep /x/");
        let steps = json!([{ "text": "look" }, { "text": "fix\nit", "status": "in_progress" }]);
        assert_eq!(doing("plan", json!({ "steps": steps })), "planned: fix it");
        assert_eq!(doing("read", json!({ "path": 7 })), "");
        assert_eq!(doing("mcp__x", json!({ "path": "a" })), "");
    }

    #[test]
    fn a_preview_is_short_and_without_secrets() {
        assert_eq!(preview("é\n".repeat(100).as_str(), 3), "é …");
        let key = format!("ghp_{}", "a1B2".repeat(9));
        assert!(!preview(&format!("{} {key}", "x".repeat(70)), 80).contains("ghp_a1"));
    }
}
