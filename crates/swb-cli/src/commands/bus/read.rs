//! `swb bus read`.

use clap::Args;
use swb_journal::message_bus::{FollowEvent, FollowFrom, Message, MessageBus, ReadError};

use super::{PlaceArgs, place, show};
use crate::failure::Failure;
use crate::io::{Io, WARN};

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// How many of the last messages; 0 or less for all.
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true)]
    tail: i64,
    /// Go on with new messages until interrupted.
    #[arg(long, short)]
    follow: bool,
    /// Only messages after this one.
    #[arg(long, value_name = "ID")]
    since: Option<String>,
    /// At most so many, the latest ones.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    filter: Filter,
    /// Only what this named reader has not read yet; it is marked as read when it was printed.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["follow", "since"])]
    reader: Option<String>,
}

/// Which messages are wanted.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Only this type. May be given several times.
    #[arg(long, value_name = "TYPE")]
    r#type: Vec<String>,
    /// Only messages of this run.
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

impl Filter {
    pub(super) fn wants(&self, message: &Message) -> bool {
        (self.r#type.is_empty() || self.r#type.iter().any(|kind| *kind == message.kind))
            && self.run.as_ref().is_none_or(|run| *run == message.run_id)
    }

    fn is_empty(&self) -> bool {
        self.r#type.is_empty() && self.run.is_none()
    }
}

pub(super) fn run(args: ReadArgs, set: &[String], io: &Io) -> Result<(), Failure> {
    let bus = place::for_reading(&args.place, set)?;
    if let Some(reader) = &args.reader {
        return unread(&bus, reader, &args, io);
    }
    let messages = wanted(&bus, &args).map_err(failed)?;
    // What follows is counted from the last message there was, not from the last that matched.
    let last = match (args.follow, args.filter.is_empty()) {
        (true, false) => bus.read_last(1).map_err(failed)?.pop().map(|message| message.id.into_owned()),
        (true, true) => messages.last().map(|message| message.id.to_string()),
        (false, _) => None,
    };
    for message in &messages {
        show::message(message, io)?;
    }
    if args.follow { follow(&bus, last.or(args.since), &args.filter, io) } else { Ok(()) }
}

fn wanted(bus: &MessageBus, args: &ReadArgs) -> Result<Vec<Message>, ReadError> {
    let tail = usize::try_from(args.tail).ok().filter(|tail| *tail > 0);
    let count = args.limit.or(if args.since.is_some() { None } else { tail });
    let mut messages = match (&args.since, count, args.filter.is_empty()) {
        (None, Some(count), true) => bus.read_last(count)?,
        (None, ..) => bus.read_all()?,
        (Some(id), Some(count), true) => bus.read_since_limited(id, count)?,
        (Some(id), ..) => bus.read_since(id)?,
    };
    messages.retain(|message| args.filter.wants(message));
    if let Some(count) = count {
        messages.drain(..messages.len().saturating_sub(count));
    }
    Ok(messages)
}

fn unread(bus: &MessageBus, reader: &str, args: &ReadArgs, io: &Io) -> Result<(), Failure> {
    let cannot = |error| Failure::new(format!("cannot keep the cursor of {reader:?}")).because(error);
    let messages = bus.unread(reader).map_err(cannot)?;
    for message in messages.iter().filter(|message| args.filter.wants(message)) {
        show::message(message, io)?;
    }
    if let Some(last) = messages.last() {
        bus.mark_read(reader, &last.id).map_err(cannot)?;
    }
    Ok(())
}

fn follow(bus: &MessageBus, last: Option<String>, filter: &Filter, io: &Io) -> Result<(), Failure> {
    let from = last.map_or(FollowFrom::Beginning, FollowFrom::After);
    let mut follower = bus.follow(&from).map_err(failed)?;
    // A reader that goes away must end us even if no message ever comes.
    let stop = follower.stopper();
    std::thread::spawn(move || {
        crate::io::wait_for_reader_to_go();
        stop.stop();
    });
    loop {
        match follower.next_event(None).map_err(failed)? {
            Some(FollowEvent::Message(message)) if filter.wants(&message) => show::message(&message, io)?,
            Some(FollowEvent::Rewritten) => io
                .note(format!("{WARN}warning:{WARN:#} the bus was changed by hand; messages may come again")),
            Some(_) => {}
            None => return Ok(()),
        }
    }
}

pub(super) fn failed(error: ReadError) -> Failure {
    let unknown = error.is_unknown_cursor();
    let failure = Failure::new("cannot read the bus").because(error);
    if unknown { failure.hint("--tail 0 shows the whole bus") } else { failure }
}
