//! Messages as lines: for scripts, for people, as JSON.

use anstyle::{AnsiColor, Style};
use swb_journal::message_bus::{BodyState, Message};
use swb_proto::message::MessageItem;

use crate::failure::Failure;
use crate::io::{BAD, DIM, Io};

/// Prints one message. The plain form is `[time] (TYPE) body`, with the time as the record has it.
pub(super) fn message(message: &Message, io: &Io) -> Result<(), Failure> {
    if io.json {
        return io.json_line(&MessageItem::from(message));
    }
    let style = style_of(&message.kind);
    io.line(format!("{DIM}[{}]{DIM:#} {style}({}){style:#} {}", time(message), message.kind, body(message)))
}

/// The time of day as the record's author saw it.
pub(super) fn time(message: &Message) -> String {
    match message.timestamp.map(|timestamp| timestamp.civil()) {
        Some(t) => {
            format!("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", t.year, t.month, t.day, t.hour, t.minute, t.second)
        }
        None => "0001-01-01 00:00:00".to_owned(),
    }
}

pub(super) fn body(message: &Message) -> String {
    let text = message.body_text();
    if message.body_state == BodyState::Cut {
        format!("{text} {BAD}(cut short){BAD:#}")
    } else {
        text.into_owned()
    }
}

/// A colour by the meaning of the common types.
pub(super) fn style_of(kind: &str) -> Style {
    match kind {
        "ERROR" | "RUN_CRASH" => AnsiColor::Red.on_default(),
        "WARN" | "WARNING" | "QUESTION" => AnsiColor::Yellow.on_default(),
        "FACT" | "DECISION" | "ANSWER" | "RUN_STOP" => AnsiColor::Green.on_default(),
        "USER" => AnsiColor::Magenta.on_default(),
        _ => AnsiColor::Cyan.on_default(),
    }
}
