//! Going on: after a pause, a rotation, a restart; many readers, slow readers, readers that leave.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use swb_journal::message_bus::{BusOptions, Draft};
use testkit::wait;

use crate::house::House;

fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

/// Names the first difference: the whole of both would fill pages.
#[track_caller]
fn same(read: &[String], posted: &[String]) {
    let differs = read.iter().zip(posted).position(|(read, posted)| read != posted);
    assert!(
        differs.is_none() && read.len() == posted.len(),
        "from {differs:?} on: {:?}",
        &read[differs.unwrap_or(0)..][..2]
    );
}

#[test]
fn a_reader_goes_on_behind_the_last_message_it_saw() {
    let house = House::new();
    let ids: Vec<_> = (0..4).map(|n| house.say(&n.to_string())).collect();
    assert_eq!(house.stream("", &[("Last-Event-ID", &ids[1])]).bodies(2), ["2", "3"]);
    assert_eq!(house.stream(&format!("?after={}", ids[2]), &[]).bodies(1), ["3"]);
    let both = house.stream(&format!("?after={}", ids[0]), &[("Last-Event-ID", &ids[2])]).bodies(1);
    assert_eq!(both, ["3"], "a browser that reconnects means its header");
    // With a reader there the latest frames are in memory; the answer is the same.
    let mut other = house.stream("?tail=0", &[]);
    let last = house.say("4");
    other.message();
    house.say("5");
    other.message();
    assert_eq!(house.stream("", &[("Last-Event-ID", &last)]).bodies(1), ["5"]);
    assert_eq!(house.stream("", &[("Last-Event-ID", &ids[3])]).bodies(2), ["4", "5"]);
}

#[test]
fn a_cursor_that_is_not_on_the_bus_means_the_whole_bus() {
    let house = House::new();
    house.append(numbers(0..3));
    assert_eq!(house.stream("", &[("Last-Event-ID", "MSG-NO")]).bodies(3), numbers(0..3));
}

#[test]
fn a_cursor_reaches_into_archives_and_a_stream_goes_on_across_rotation() {
    let house = House::new();
    let first = house.say("0");
    let mut events = house.stream("", &[]);
    assert_eq!(events.message().body(), "0");
    let bus = house.bus(BusOptions { auto_rotate: Some(2000), ..BusOptions::default() });
    for body in numbers(1..60) {
        bus.append(&Draft::new("USER", "p", body)).unwrap();
    }
    assert_eq!(events.bodies(59), numbers(1..60), "no gap and no duplicate");
    let archives = std::fs::read_dir(house.options.root.join("p")).unwrap().flatten();
    assert!(archives.filter(|entry| entry.file_name().to_string_lossy().ends_with(".archived")).count() > 2);
    assert_eq!(house.stream("", &[("Last-Event-ID", &first)]).bodies(59), numbers(1..60));
    assert_eq!(house.stream("", &[]).bodies(60), numbers(0..60));
}

#[test]
fn a_reader_goes_on_after_the_server_was_restarted() {
    let mut house = House::new();
    house.say("0");
    let mut events = house.stream("", &[]);
    let last = events.message().id.unwrap();
    let begun = Instant::now();
    house.stop(Duration::from_secs(20));
    assert!(begun.elapsed() < Duration::from_secs(10), "an open stream does not hold the stop up");
    assert_eq!(events.next(), None, "the stream ends");
    assert!(events.ended);
    house.append(numbers(1..3));
    house.start();
    assert_eq!(house.stream("", &[("Last-Event-ID", &last)]).bodies(2), numbers(1..3));
}

#[test]
fn nothing_is_missed_or_doubled_while_a_reader_catches_up() {
    let house = House::new();
    house.append(numbers(0..500));
    let mut keeper = house.stream("?tail=0", &[]);
    std::thread::scope(|scope| {
        scope.spawn(|| house.append(numbers(500..3000)));
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(|| house.stream("", &[]).bodies(3000))).collect();
        for reader in readers {
            same(&reader.join().expect("a reader"), &numbers(0..3000));
        }
    });
    same(&keeper.bodies(2500), &numbers(500..3000));
}

#[test]
fn all_readers_of_a_file_share_one_tail_and_it_ends_with_the_last() {
    let house = House::new();
    let readers: Vec<_> = (0..8).map(|_| house.stream("", &[])).collect();
    assert_eq!((house.metric("swb_sse_tails "), house.metric("swb_sse_streams ")), (1.0, 8.0));
    let before = house.metric("swb_sse_tailed_total ");
    house.append(numbers(0..10));
    for mut reader in readers {
        assert_eq!(reader.bodies(10), numbers(0..10));
    }
    assert_eq!(
        house.metric("swb_sse_tailed_total ") - before,
        10.0,
        "each message is read once, not once per reader"
    );
    // A server notices that a client is gone when it has something to say to it.
    wait("the tail to end", || {
        house.say("anybody there?");
        house.metric("swb_sse_streams ") == 0.0 && house.metric("swb_sse_tails ") == 0.0
    });
}

#[test]
fn a_client_that_does_not_read_is_told_and_loses_nothing() {
    let house = House::with(|options| options.heartbeat = Duration::from_millis(20));
    house.say("begin");
    let mut slow = house.stream("", &[]);
    slow.narrow();
    assert_eq!(slow.message().body(), "begin");
    // A stream that beats has read the file to its end.
    assert_eq!(slow.next().expect("a beat").event, "heartbeat");
    // More than the sockets and the ring hold together.
    let large = "x".repeat(64 * 1024);
    house.append((0..200).map(|n| format!("{n} {large}")));
    let mut quick = house.stream("?tail=1", &[]);
    assert!(quick.message().body().starts_with("199 "), "others are not held up");
    wait("the ring to overtake the slow client", || house.metric("swb_sse_tailed_total ") >= 200.0);
    let (mut told, mut next) = (0, 0);
    while next < 200 {
        let event = slow.next().expect("the stream goes on");
        match event.event.as_str() {
            "lagged" => {
                told += 1;
                assert!(event.json()["behind"].as_u64().unwrap() > 0, "{event:?}");
            }
            "heartbeat" => {}
            _ => {
                assert!(event.body().starts_with(&format!("{next} ")), "message {next} is missing");
                next += 1;
            }
        }
    }
    assert!(told > 0, "it was told");
    assert!(house.metric("swb_sse_lagged_total ") >= 1.0);
}

#[test]
fn streams_are_bounded_and_room_for_requests_is_kept() {
    let house = House::with(|options| options.max_connections = 8);
    let streams: Vec<_> = (0..7).map(|_| house.stream("", &[])).collect();
    let refused = house.get("/api/projects/p/messages/stream");
    assert_eq!((refused.status, refused.error().0.as_str()), (429, "TOO_MANY_REQUESTS"));
    assert_eq!(house.get("/api/v1/health").status, 200);
    drop(streams);
}

#[test]
fn a_stop_does_not_wait_for_a_client_that_takes_nothing() {
    let mut house = House::new();
    house.append((0..400).map(|_| "x".repeat(64 * 1024)));
    let bearer = house.bearer();
    let mut stalled = TcpStream::connect(house.address()).unwrap();
    let request = format!(
        "GET /api/projects/p/messages/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: {bearer}\r\n\r\n"
    );
    stalled.write_all(request.as_bytes()).unwrap();
    wait("the stream to open", || house.metric("swb_sse_streams ") == 1.0);
    let begun = Instant::now();
    house.stop(Duration::from_millis(200));
    assert!(begun.elapsed() < Duration::from_secs(10));
}
