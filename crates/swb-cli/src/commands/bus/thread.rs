//! `swb bus thread`: a conversation as a tree.

use std::collections::{HashMap, HashSet};

use clap::Args;
use serde::Serialize;
use swb_journal::message_bus::Message;
use swb_proto::message::MessageItem;

use super::read::failed;
use super::{PlaceArgs, place, show};
use crate::failure::Failure;
use crate::io::{BOLD, DIM, Io};

#[derive(Debug, Args)]
pub(crate) struct ThreadArgs {
    /// Any message of the conversation.
    id: String,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) fn run(args: &ThreadArgs, set: &[String], io: &Io) -> Result<(), Failure> {
    let bus = place::for_reading(&args.place, set)?;
    let messages = bus.read_all().map_err(failed)?;
    let by_id: HashMap<&str, &Message> =
        messages.iter().map(|message| (message.id.as_ref(), message)).collect();
    if !by_id.contains_key(args.id.as_str()) {
        return Err(
            Failure::new(format!("there is no message {}", args.id)).hint("`swb bus read --json` shows ids")
        );
    }
    let mut children: HashMap<&str, Vec<&Message>> = HashMap::new();
    for message in &messages {
        if let Some(above) = answered(message) {
            children.entry(above).or_default().push(message);
        }
    }
    let root = root_of(&args.id, &by_id);
    // A message is shown once, even if records that point at each other make a circle.
    let mut shown = HashSet::new();
    let mut open = vec![(root, 0)];
    while let Some((id, depth)) = open.pop() {
        if !shown.insert(id.to_owned()) {
            continue;
        }
        if let Some(message) = by_id.get(id) {
            print(message, depth, id == args.id, io)?;
        }
        let below = children.get(id).into_iter().flatten().rev();
        open.extend(below.map(|child| (child.id.as_ref(), depth + 1)));
    }
    Ok(())
}

/// What a message answers: the one it says, else the first it follows from.
fn answered(message: &Message) -> Option<&str> {
    message
        .reply_to()
        .or_else(|| message.parents.first().map(|parent| parent.id.as_ref()))
        .filter(|id| !id.is_empty())
}

fn root_of<'a>(id: &'a str, by_id: &HashMap<&str, &'a Message>) -> &'a str {
    let mut seen = HashSet::new();
    let mut at = id;
    while let Some(above) = by_id.get(at).and_then(|message| answered(message)) {
        if !by_id.contains_key(above) || !seen.insert(above) {
            break;
        }
        at = above;
    }
    at
}

/// A message and its place in the tree.
#[derive(Serialize)]
struct Placed<'a> {
    #[serde(flatten)]
    message: MessageItem<'a>,
    depth: usize,
}

fn print(message: &Message, depth: usize, asked: bool, io: &Io) -> Result<(), Failure> {
    if io.json {
        return io.json_line(&Placed { message: message.into(), depth });
    }
    let indent = "  ".repeat(depth);
    let style = show::style_of(&message.kind);
    let mark = if asked { BOLD } else { anstyle::Style::new() };
    io.line(format!(
        "{indent}{style}({}){style:#} {mark}{}{mark:#}",
        show::said(&message.kind, io),
        show::body(message, io).replace('\n', &format!("\n{indent}  "))
    ))?;
    io.line(format!("{indent}{DIM}{} · {}{DIM:#}", show::time(message), show::said(&message.id, io)))
}
