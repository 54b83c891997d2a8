//! An agent of a few lines, so that nothing but the way its words take is measured: it says as many as its prompt asks
//! for, at once or so many each second.

use std::io::{BufRead, BufWriter, StdoutLock, Write};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The argument that makes this program one.
pub(crate) const TALKER: &str = "--talker";

/// The prompt for `words` words, `each_second` or all at once.
pub(crate) fn prompt(words: u32, each_second: Option<u32>) -> String {
    format!("{words} {}", each_second.unwrap_or(0))
}

/// All that it says to that.
pub(crate) fn words(words: u32) -> String {
    (0..words).map(word).collect()
}

fn word(number: u32) -> String {
    format!("word{number} of a sentence ")
}

pub(crate) fn run() {
    let mut out = BufWriter::with_capacity(64 * 1024, std::io::stdout().lock());
    let ready = r#"{"type":"ready","session_id":"talker","model":"none","protocol_version":1}"#;
    say(&mut out, ready);
    let _ = out.flush();
    for line in std::io::stdin().lock().lines() {
        let Ok(command) = line.map(|line| serde_json::from_str::<Value>(&line).unwrap_or_default()) else {
            return;
        };
        let id = command["id"].as_str().unwrap_or_default();
        match command["type"].as_str() {
            Some("prompt") => {
                talk(&mut out, command["message"].as_str().unwrap_or_default());
                say(&mut out, r#"{"type":"agent_end","usage":{"input_tokens":1,"output_tokens":1}}"#);
                say(&mut out, &format!(r#"{{"type":"response","id":"{id}","command":"prompt","ok":true}}"#));
            }
            Some("shutdown") => return,
            _ => say(&mut out, &format!(r#"{{"type":"error","id":"{id}","message":"unknown command"}}"#)),
        }
        let _ = out.flush();
    }
}

fn talk(out: &mut BufWriter<StdoutLock<'_>>, prompt: &str) {
    let mut numbers = prompt.split(' ').map_while(|number| number.parse::<u32>().ok());
    let (words, each_second) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let begun = Instant::now();
    for number in 0..words {
        if each_second > 0 {
            let due = begun + Duration::from_secs(1) * number / each_second;
            #[expect(clippy::disallowed_methods, reason = "what is measured is speech at a pace")]
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let word = word(number);
        say(
            out,
            &format!(
                r#"{{"type":"message_update","event":{{"type":"text_delta","delta":"{word}"}},"session_id":"talker"}}"#
            ),
        );
        if each_second > 0 {
            let _ = out.flush();
        }
    }
}

fn say(out: &mut impl Write, line: &str) {
    // Whoever does not listen any more needs no words.
    let _ = writeln!(out, "{line}");
}
