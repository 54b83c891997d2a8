//! `swb events`: what has happened, and what happens.

use swb_bus::BusHandle;
use swb_proto::events::{MAX_PAGE, Read, ReadParams};
use swb_proto::{EventEnvelope, Meta, TopicGlob, topic};

use crate::args::EventsArgs;
use crate::connect::connect;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, Io, NAME, WARN, wait_for_reader_to_go};

pub(crate) async fn run(args: EventsArgs, io: &Io) -> Result<u8, Failure> {
    let globs = args.topic.into_iter().map(TopicGlob::try_from).collect::<Result<Vec<_>, _>>();
    let globs =
        globs.map_err(|error| Failure::new("--topic is not a glob").because(error).code(exit_code::USAGE))?;
    let handle = connect(Meta::default()).await?;
    if args.follow {
        follow(&handle, globs, args.after, io).await?;
    } else {
        pages(&handle, globs, args.after, io).await?;
    }
    Ok(exit_code::SUCCESS)
}

async fn pages(
    handle: &BusHandle,
    topics: Vec<TopicGlob>,
    mut after: Option<u64>,
    io: &Io,
) -> Result<(), Failure> {
    loop {
        let params = ReadParams { topics: topics.clone(), after, limit: Some(MAX_PAGE) };
        let page = handle.call::<Read>(params).await?;
        for event in &page.events {
            print(event, io)?;
        }
        if page.events.is_empty() || page.next >= page.head {
            return Ok(());
        }
        after = Some(page.next);
    }
}

async fn follow(
    handle: &BusHandle,
    topics: Vec<TopicGlob>,
    after: Option<u64>,
    io: &Io,
) -> Result<(), Failure> {
    let mut stream = handle.subscribe(topics, after).await?;
    let (gone, mut reader_gone) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        wait_for_reader_to_go();
        let _ = gone.send(());
    });
    loop {
        let delivery = tokio::select! {
            delivery = stream.next() => delivery,
            _ = &mut reader_gone => return Ok(()),
        };
        match delivery {
            Some(delivery) => print(&delivery.to_envelope(std::time::SystemTime::now()), io)?,
            None => break,
        }
    }
    Err(Failure::new("the daemon that came back does not know these events")
        .hint(format!("they ended at {}; `swb events --follow` starts with new ones", stream.cursor())))
}

fn print(event: &EventEnvelope, io: &Io) -> Result<(), Failure> {
    if io.json {
        return io.json_line(event);
    }
    // Date and zone are left out: who needs them asks for JSON.
    let time = event.ts.as_str().get(11..23).unwrap_or_default();
    let style = if event.topic.as_str() == topic::GAP { WARN } else { NAME };
    let topic = &event.topic;
    io.line(format!("{DIM}{:>6}  {time}{DIM:#}  {style}{topic}{style:#}  {}", event.seq, event.payload))
}
