use std::sync::Arc;

use super::*;
use crate::model::{Task, Thinking, ToolSpec};

fn prompt(messages: Vec<Message>, tools: bool) -> Prompt {
    let spec = ToolSpec { name: "ls".into(), description: "lists".into(), input_schema: json!({}) };
    Prompt {
        messages: messages.into_iter().map(Arc::new).collect(),
        files: Files::default(),
        system: "be brief".into(),
        task: Task::Answer,
        thinking: Thinking::Off,
        tools: if tools { vec![spec] } else { vec![] },
    }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn thought(thinking: &str, signature: &str) -> Block {
    Block::Thinking { thinking: thinking.into(), signature: signature.into() }
}

fn call(id: &str) -> Block {
    Block::ToolUse { id: id.into(), name: "ls".into(), input: json!({ "path": "." }) }
}

fn result(id: &str, is_error: bool) -> Block {
    Block::ToolResult { tool_use_id: id.into(), content: "a b".into(), is_error }
}

/// The messages behind the system prompt, each as its role and its parts in short.
fn written(dialect: Dialect, messages: Vec<Message>, tools: bool) -> Vec<String> {
    let request = build(dialect, Inputs::default(), &prompt(messages, tools));
    assert_eq!(request.tools.is_some(), tools);
    let mut written: Vec<String> = request.messages.iter().map(in_short).collect();
    assert_eq!(written.remove(0), "System: be brief");
    written
}

fn in_short(message: &ChatMessage) -> String {
    let parts: Vec<String> = message
        .content
        .parts()
        .iter()
        .map(|part| match part {
            ContentPart::Text(text) => text.clone(),
            ContentPart::ToolCall(call) => {
                format!("call {} {:?}", call.call_id, call.thought_signatures.as_deref().unwrap_or_default())
            }
            ContentPart::ToolResponse(response) => format!("result {}", response.call_id),
            ContentPart::ThoughtSignature(seal) => format!("seal {seal}"),
            ContentPart::ReasoningContent(thought) => format!("thought {thought}"),
            ContentPart::Custom(custom) => custom.data.to_string(),
            ContentPart::Binary(binary) => format!("binary {}", binary.content_type),
        })
        .collect();
    format!("{:?}: {}", message.role, parts.join(" | "))
}

#[test]
fn calls_and_their_answers_keep_their_ids() {
    let long = format!("call#ls#{}", "9".repeat(50));
    let messages = || {
        vec![
            Message::user("go"),
            Message::assistant(vec![text("ok"), call("call#ls#1"), call(&long)]),
            Message::results(vec![result("call#ls#1", false), result(&long, false)]),
        ]
    };
    let expected = format!("Tool: result call_ls_1 | result {}", "9".repeat(40));
    for dialect in [Dialect::Anthropic, Dialect::OpenAi] {
        let written = written(dialect, messages(), true);
        assert_eq!(written[1], format!("Assistant: ok | call call_ls_1 [] | call {} []", "9".repeat(40)));
        assert_eq!(written[2], expected);
    }
    assert!(written(Dialect::Gemini, messages(), true)[1].contains("call call#ls#1"));
}

#[test]
fn a_thought_goes_back_to_who_sealed_it_and_to_nobody_else() {
    let messages = || {
        vec![
            Message::user("go"),
            Message::assistant(vec![thought("hm", "s1"), thought("", "redacted:x"), text("a")]),
            Message::user("on"),
            Message::assistant(vec![thought("", "google:g1"), call("c")]),
            Message::results(vec![result("c", true)]),
            Message::assistant(vec![thought("unsealed", ""), text("b")]),
        ]
    };
    let anthropic = written(Dialect::Anthropic, messages(), true);
    assert_eq!(
        anthropic[1],
        r#"Assistant: seal s1 | thought hm | {"type":"redacted_thinking","data":"x"} | a"#
    );
    assert_eq!(anthropic[3], "Assistant: call c []");
    assert!(anthropic[4].contains(r#""is_error":true"#), "{}", anthropic[4]);
    assert_eq!(anthropic[5], "Assistant: b");
    let gemini = written(Dialect::Gemini, messages(), true);
    assert_eq!((gemini[1].as_str(), gemini[5].as_str()), ("Assistant: a", "Assistant: b"));
    assert_eq!(gemini[3], r#"Assistant: seal g1 | call c ["g1"]"#);
    let openai = written(Dialect::OpenAi, messages(), true);
    assert_eq!((openai[1].as_str(), openai[3].as_str()), ("Assistant: a", "Assistant: call c []"));
    assert_eq!(openai[4], "Tool: result c");
}

#[test]
fn blank_words_do_not_spoil_a_conversation() {
    let messages = vec![
        Message::user(" \n"),
        Message::assistant(vec![text("")]),
        Message::assistant(vec![thought("only", "s")]),
        Message::user("x"),
    ];
    assert_eq!(written(Dialect::Anthropic, messages, true), ["User: (no message)", "User: x"]);
}

#[test]
fn without_tools_calls_become_words() {
    let messages = vec![
        Message::user("go"),
        Message::assistant(vec![call("c")]),
        Message::results(vec![result("c", false)]),
    ];
    let written = written(Dialect::Anthropic, messages, false);
    assert_eq!(written[1], r#"Assistant: [called the tool ls with {"path":"."}]"#);
    assert_eq!(written[2], "User: [the tool returned]\na b");
}

#[test]
fn the_cache_is_used_where_it_has_to_be_asked_for() {
    let messages = || {
        vec![
            Message::user("1"),
            Message::assistant(vec![text("2")]),
            Message::user("3"),
            Message::assistant(vec![call("c")]),
            Message::results(vec![result("c", false)]),
        ]
    };
    let marked = |dialect| -> Vec<bool> {
        let request = build(dialect, Inputs::default(), &prompt(messages(), true));
        request
            .messages
            .iter()
            .map(|message| message.options.as_ref().is_some_and(|options| options.cache_control.is_some()))
            .collect()
    };
    assert_eq!(marked(Dialect::Anthropic), [true, false, false, true, false, true]);
    assert_eq!(marked(Dialect::OpenAi), [false; 6]);
}

#[test]
fn files_are_given_to_those_who_can_read_them() {
    let source = |file_id: &str, media_type: &str| Source::File {
        file_id: file_id.into(),
        media_type: media_type.into(),
        size: 1,
    };
    let blocks = vec![
        Block::Image { title: "p.png".into(), source: source("a", "image/png") },
        Block::Document { title: "n.txt".into(), source: source("b", "text/plain") },
        Block::Document { title: "gone.pdf".into(), source: source("c", "application/pdf") },
    ];
    let mut prompt = prompt(vec![Message::with_files("look", blocks)], false);
    prompt.files = Files::from_iter([
        ("a".to_owned(), FileBody::Base64("AAAA".into())),
        ("b".to_owned(), FileBody::Text("notes".into())),
    ]);
    let seeing = build(Dialect::OpenAi, Inputs { images: true, pdf: true }, &prompt);
    assert_eq!(
        in_short(&seeing.messages[1]),
        "User: binary image/png | <file name=\"n.txt\">\nnotes\n</file> | [the attached file \"gone.pdf\" is not kept any more] | look"
    );
    let blind = build(Dialect::OpenAi, Inputs::default(), &prompt);
    assert!(in_short(&blind.messages[1]).contains("that you cannot read"));
}
