//! `swb bus post`.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use swb_journal::message_bus::{BusOptions, Draft, IdempotencyKey, Link, Parent};

use super::{PlaceArgs, place, stdin};
use crate::failure::Failure;
use crate::io::Io;

#[derive(Debug, Args)]
pub(crate) struct PostArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// The run that posts.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    run: String,
    /// What sort of message.
    #[arg(long, value_name = "TYPE", default_value = "INFO")]
    r#type: String,
    /// The text; without it, standard input is read.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    body: String,
    /// A message that this one follows from, with the kind of relation if there is one: ID or ID:KIND.
    #[arg(long, value_name = "ID[:KIND]")]
    parent: Vec<String>,
    /// The message that this one answers.
    #[arg(long, value_name = "ID")]
    reply_to: Option<String>,
    /// A link, with a label in front if it has one: URL or LABEL|URL.
    #[arg(long, value_name = "[LABEL|]URL")]
    link: Vec<String>,
    /// Anything else worth keeping.
    #[arg(long, value_name = "KEY=VALUE")]
    meta: Vec<String>,
    /// The issue this belongs to.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    issue: String,
    /// A key that makes repeating safe: the second post with it returns the first one's id.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Return only when the message is on the disk.
    #[arg(long)]
    sync: bool,
    /// How long standard input may stay silent; 0 for as long as it likes.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    stdin_timeout: u64,
}

pub(super) fn run(args: PostArgs, set: &[String], io: &Io) -> Result<(), Failure> {
    let options = BusOptions { fsync: args.sync, ..BusOptions::default() };
    let bus = place::for_posting(&args.place, set, options)?;
    let scope = place::scope(&args.place, &args.run, bus.file_path());
    if scope.project_id.is_empty() {
        return Err(
            Failure::new("project id is empty and could not be inferred").hint("name it with --project")
        );
    }
    let body = if args.body.is_empty() {
        stdin::body(Duration::from_secs(args.stdin_timeout))?
    } else {
        args.body.into_bytes()
    };
    let mut draft = Draft::new(args.r#type, scope.project_id, body);
    (draft.task_id, draft.run_id, draft.issue_id) = (scope.task_id, scope.run_id, args.issue);
    draft.parents = args.parent.iter().map(|text| parent(text)).collect();
    draft.links = args.link.iter().map(|text| link(text)).collect();
    draft.meta = args.meta.iter().map(|text| meta(text)).collect::<Result<_, _>>()?;
    draft.idempotency_key = args
        .key
        .map(IdempotencyKey::new)
        .transpose()
        .map_err(|error| Failure::new("--key cannot be used").because(error))?;
    if let Some(id) = args.reply_to {
        draft = draft.reply_to(id);
    }
    let posted =
        bus.append(&draft).map_err(|error| Failure::new("the message was not posted").because(error))?;
    if io.json {
        let timestamp = posted.timestamp.map(|timestamp| timestamp.to_string());
        return io.object(&json!({ "msg_id": posted.id.as_str(), "timestamp": timestamp, "already_posted": posted.already_posted }));
    }
    io.line(format!("msg_id: {}", posted.id.as_str()))
}

fn parent(text: &str) -> Parent<'static> {
    let (id, kind) = text.split_once(':').unwrap_or((text, ""));
    Parent { id: id.to_owned().into(), kind: kind.to_owned().into(), meta: Vec::new() }
}

fn link(text: &str) -> Link<'static> {
    let (label, url) = text.split_once('|').unwrap_or(("", text));
    Link { url: url.to_owned().into(), label: label.to_owned().into(), kind: String::new().into() }
}

fn meta(text: &str) -> Result<(String, String), Failure> {
    let (key, value) =
        text.split_once('=').ok_or_else(|| Failure::new(format!("--meta {text:?} is not KEY=VALUE")))?;
    Ok((key.to_owned(), value.to_owned()))
}
