//! Messages as lines: for scripts, for people, as JSON.

use anstyle::{AnsiColor, Style};
use swb_journal::message_bus::{BodyState, Message};
use swb_proto::message::MessageItem;

use crate::failure::Failure;
use crate::io::{BAD, DIM, Io};
use crate::plain;

/// Behind a body that was longer once.
const CUT: &str = " (cut short)";

/// Prints one message. The plain form is `[time] (TYPE) body`, with the time as the record has it and the body as it is,
/// byte for byte. On a terminal what others wrote is made harmless.
pub(super) fn message(message: &Message, io: &Io) -> Result<(), Failure> {
    if io.json {
        return io.json_line(&MessageItem::from(message));
    }
    let plain = Style::new();
    let (dim, style) = if io.is_colourful() { (DIM, style_of(&message.kind)) } else { (plain, plain) };
    let kind = said(&message.kind, io);
    let mut line = format!("{dim}[{}]{dim:#} {style}({kind}){style:#} ", time(message)).into_bytes();
    if io.is_terminal() {
        line.extend_from_slice(plain::text(&message.body_text()).as_bytes());
    } else {
        line.extend_from_slice(&message.body);
    }
    line.extend_from_slice(if is_cut(message) { CUT.as_bytes() } else { b"" });
    io.verbatim(line)
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

/// The body as text for people.
pub(super) fn body(message: &Message, io: &Io) -> String {
    let text = said(&message.body_text(), io);
    if is_cut(message) { format!("{text}{BAD}{CUT}{BAD:#}") } else { text }
}

/// What somebody else wrote.
pub(super) fn said(text: &str, io: &Io) -> String {
    if io.is_terminal() { plain::text(text) } else { text.to_owned() }
}

fn is_cut(message: &Message) -> bool {
    message.body_state == BodyState::Cut
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
