//! `swb token`, and the HTTP server that it opens.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use testkit::World;

fn world() -> World {
    World::new().with_binary(env!("CARGO_BIN_EXE_swb"))
}

/// The first line of the answer to a request, on a connection that stays open.
fn ask(world: &World, path: &str, token: &str) -> (String, BufReader<TcpStream>) {
    send(world, "GET", path, token, "")
}

fn send(world: &World, method: &str, path: &str, token: &str, body: &str) -> (String, BufReader<TcpStream>) {
    let url = world.status("http");
    let address =
        url.as_str().and_then(|url| url.strip_prefix("http://")).expect("the status names the address");
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(testkit::PATIENCE)).expect("a timeout");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("an answer");
    (line, reader)
}

#[test]
fn a_token_is_printed_with_or_without_a_daemon_and_opens_the_server() {
    let world = world();
    let token = world.swb(["token"]).ok().stdout.trim().to_owned();
    assert!(token.starts_with("swb_") && token.len() == 68, "{token}");
    let mode = |name: &str| {
        std::fs::metadata(world.paths().tokens().join(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode(""), mode("user.token")), (0o700, 0o600));
    world.swb(["up"]).ok();
    assert_eq!(world.swb(["token"]).ok().stdout.trim(), token, "it stays the same");
    let agent = world.swb(["token", "--agent", "ada", "--json"]).ok().json();
    let agent = agent["token"].as_str().expect("a token").to_owned();
    assert_ne!(agent, token);
    for (token, status) in [(token.as_str(), "200"), (&agent, "200"), ("swb_no", "401")] {
        let (line, _) = ask(&world, "/api/projects/p/messages", token);
        assert!(line.contains(status), "{line}");
    }
    assert_eq!(world.swb(["token", "--agent", "a/b"]).code, Some(2));
}

#[test]
fn a_link_needs_a_server_to_lead_to() {
    let world = world();
    assert_eq!(world.swb(["token", "--link"]).code, Some(3), "there is no daemon");
    world.swb(["up"]).ok();
    let link = world.swb(["token", "--link"]).ok().stdout;
    let port = world.status("http").as_str().and_then(|url| url.rsplit(':').next()).map(str::to_owned);
    let port = port.expect("a port");
    assert!(link.starts_with("http://") && link.contains(&format!(".localhost:{port}/auth/")), "{link}");
    world.swb(["down"]).ok();
    world.swb(["up", "--set", "http.enabled=false"]).ok();
    let refused = world.swb(["token", "--link"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("http.enabled"), "{refused:?}");
}

#[test]
fn an_open_stream_does_not_hold_the_daemon_up() {
    let world = world();
    world.swb(["up"]).ok();
    let token = world.swb(["token"]).ok().stdout.trim().to_owned();
    let (line, mut stream) = ask(&world, "/api/projects/p/messages/stream", &token);
    assert!(line.contains("200"), "{line}");
    world.swb(["down"]).ok();
    let mut rest = String::new();
    while stream.read_line(&mut rest).expect("an end, not a broken connection") > 0 {}
    assert!(rest.ends_with("0\r\n\r\n"), "the last chunk was sent: {rest:?}");
}

/// The body of the next message of a stream.
fn next_message(stream: &mut impl BufRead) -> String {
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).expect("the stream goes on") > 0, "the stream ended");
        if let Some(data) = line.strip_prefix("data: ") {
            let message: serde_json::Value = serde_json::from_str(data).expect("JSON");
            return message["body"].as_str().expect("a body").to_owned();
        }
    }
}

#[test]
fn the_command_line_and_http_share_their_buses_and_a_signal_ends_streams_and_daemon_well() {
    let world = world();
    let mut foreground = world.spawn(["up", "--foreground", "--json"]);
    let mut said = BufReader::new(foreground.stdout.take().unwrap()).lines();
    said.next().expect("it says that it is ready").unwrap();
    let token = world.swb(["token"]).ok().stdout.trim().to_owned();
    let stream_path = "/api/v1/messages/stream?project_id=p&task_id=t";
    let (line, mut stream) = ask(&world, stream_path, &token);
    assert!(line.contains("200"), "{line}");
    let place = ["--project", "p", "--task", "t"];
    let posted = world.swb([&["bus", "post", "--body", "from the command line"], &place[..]].concat()).ok();
    assert_eq!(next_message(&mut stream), "from the command line");
    let body = r#"{"project_id":"p","task_id":"t","body":"over HTTP"}"#;
    let (line, _) = send(&world, "POST", "/api/v1/messages", &token, body);
    assert!(line.contains("201"), "{line}");
    assert_eq!(next_message(&mut stream), "over HTTP");
    let read = world.swb([&["bus", "read", "--json"], &place[..]].concat()).ok().json_lines();
    let (types, first): (Vec<_>, _) =
        (read.iter().map(|message| &message["type"]).collect(), &read[0]["msg_id"]);
    assert_eq!(types, ["INFO", "USER"], "each door has its own default");
    assert_eq!(posted.stdout, format!("msg_id: {}\n", first.as_str().unwrap()));
    let pid = rustix::process::Pid::from_raw(i32::try_from(foreground.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut rest = String::new();
    while stream.read_line(&mut rest).expect("an end, not a broken connection") > 0 {}
    assert!(rest.ends_with("0\r\n\r\n"), "the last chunk was sent: {rest:?}");
    assert_eq!(foreground.wait().unwrap().code(), Some(0));
}

#[test]
fn a_server_that_cannot_listen_is_reported_and_the_daemon_runs() {
    let world = world();
    world.swb(["up", "--set", "http.host=0.0.0.0"]).ok();
    assert!(world.status("http").is_null());
    assert!(world.status("http_error").as_str().is_some_and(|why| why.contains("key_file")));
    let doctor = world.swb(["doctor"]);
    assert!(doctor.code == Some(1) && doctor.stdout.contains("key_file"), "{doctor:?}");
}
