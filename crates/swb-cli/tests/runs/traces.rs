//! Traces of a daemon in which agents work, as a collector gets them: OTLP over HTTP, in protobuf.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use testkit::{PATIENCE, wait, wait_for};

use crate::house::House;

/// A collector that takes everything.
struct Collector {
    endpoint: String,
    got: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Collector {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&got);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (connection, taken) = (connection.unwrap(), Arc::clone(&taken));
                std::thread::spawn(move || serve(&connection, &taken));
            }
        });
        Collector { endpoint, got }
    }

    fn settings(&self) -> String {
        format!("[telemetry]\notlp_endpoint = {:?}\nservice_name = \"test house\"\n", self.endpoint)
    }

    fn spans(&self) -> Vec<Span> {
        let got = self.got.lock().unwrap();
        let resources = got.iter().flat_map(|request| &request.resource_spans);
        resources.flat_map(|spans| &spans.scope_spans).flat_map(|spans| spans.spans.clone()).collect()
    }

    /// Spans of this name, once there are any.
    fn of_name(&self, name: &str) -> Vec<Span> {
        wait_for(&format!("a span {name}"), || {
            let spans: Vec<Span> = self.spans().into_iter().filter(|span| span.name == name).collect();
            (!spans.is_empty()).then_some(spans)
        })
    }

    fn one(&self, name: &str) -> Span {
        let spans = self.of_name(name);
        assert_eq!(spans.len(), 1, "{spans:#?}");
        spans[0].clone()
    }
}

fn serve(connection: &TcpStream, taken: &Mutex<Vec<ExportTraceServiceRequest>>) {
    let mut reader = BufReader::new(connection);
    loop {
        let (mut first, mut length) = (String::new(), 0);
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            let header = header.trim().to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if header.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        assert!(first.starts_with("POST /v1/traces "), "{first}");
        taken.lock().unwrap().push(ExportTraceServiceRequest::decode(body.as_slice()).unwrap());
        let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
        (&*connection).write_all(answer.as_bytes()).unwrap();
    }
}

fn attribute(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Any::StringValue(text) => Some(text.clone()),
        Any::IntValue(number) => Some(number.to_string()),
        Any::DoubleValue(number) => Some(number.to_string()),
        other => panic!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `agent.run` as somebody calls it who is part of a trace.
fn run_in_trace(house: &House, prompt: &str, trace: &str) -> (String, u64) {
    let mut wire = house.wire();
    let params = json!({
        "project_id": house.project, "prompt": prompt,
        "_meta": { "workspace_id": house.workspace, "traceparent": trace },
    });
    wire.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "agent.run", "params": params }));
    let taken = wire.receive().unwrap()["result"].clone();
    (taken["run_id"].as_str().unwrap().to_owned(), taken["after"].as_u64().unwrap())
}

#[test]
fn a_run_is_one_trace_below_that_of_its_caller() {
    let collector = Collector::new();
    let house = House::with_settings(&collector.settings());
    let theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let prompt = "!tool read {\"path\":\"notes.txt\"}\n!then\n!say There are two lines.";
    let (run, after) = run_in_trace(&house, prompt, theirs);
    let story = house.follow(&run, after);
    let agent = collector.one("invoke_agent builtin");
    let command = collector.one("agent.run");
    let (tool, decided) = (collector.one("execute_tool read"), collector.one("decide read"));
    let chats = collector.of_name("chat demo");
    for span in [&agent, &command, &tool, &decided].into_iter().chain(&chats) {
        assert_eq!(hex(&span.trace_id), "0af7651916cd43dd8448eb211c80319c", "{}", span.name);
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
    }
    assert_eq!(hex(&command.parent_span_id), "b7ad6b7169203331");
    assert_eq!(agent.parent_span_id, command.span_id);
    for below in [&tool, &decided].into_iter().chain(&chats) {
        assert_eq!(below.parent_span_id, agent.span_id, "{}", below.name);
    }
    assert_eq!(chats.len(), 2);
    let of = |span: &Span, name: &str| attribute(&span.attributes, name);
    assert_eq!(of(&agent, "swb.run.id").as_deref(), Some(run.as_str()));
    assert_eq!(of(&agent, "gen_ai.operation.name").as_deref(), Some("invoke_agent"));
    let usage = &story.end()["payload"]["usage"];
    assert_eq!(of(&agent, "gen_ai.usage.output_tokens"), Some(usage["output_tokens"].to_string()));
    assert_eq!(of(&tool, "gen_ai.tool.name").as_deref(), Some("read"));
    assert_eq!((of(&tool, "gen_ai.tool.call.result"), of(&tool, "gen_ai.tool.call.arguments")), (None, None));
    assert_eq!(of(&command, "swb.decision").as_deref(), Some("allow"));
    let requests = collector.got.lock().unwrap();
    let resource = requests[0].resource_spans[0].resource.clone().unwrap();
    assert_eq!(attribute(&resource.attributes, "service.name").as_deref(), Some("test house"));
}

#[test]
fn a_request_over_http_is_part_of_the_trace_in_its_header() {
    let collector = Collector::new();
    let house = House::with_settings(&collector.settings());
    let url = house.world.status("http").as_str().unwrap().to_owned();
    let address = url.strip_prefix("http://").unwrap();
    let token = house.world.swb(["token"]).ok().stdout.trim().to_owned();
    let body = json!({ "type": "USER", "body": "hello" }).to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "POST /api/projects/p/messages HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         traceparent: 00-1bf7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let span = collector.one("message.post");
    assert_eq!(hex(&span.trace_id), "1bf7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&span.parent_span_id), "c7ad6b7169203331");
}

#[test]
fn a_run_that_outlives_its_daemon_is_told_once_with_its_true_beginning() {
    let collector = Collector::new();
    let house = House::with_settings(&collector.settings());
    let (run, session, after) = house.run("!tool read {\"path\":\"notes.txt\"}\n!then\n!ask rm -f notes.txt");
    let asked = wait_for("the question", || {
        house.call("approval.list", &json!({ "status": "pending" }))["approvals"].as_array()?.first().cloned()
    });
    collector.one("execute_tool read");
    house.kill_daemon();
    let answer = json!({ "approval_id": asked["approval_id"], "decision": "approve", "reason": "yes" });
    house.call("approval.request.resolve", &answer);
    let story = house.follow(&run, after);
    let agent = collector.one("invoke_agent builtin");
    let began = story.events[0]["ts"].as_str().unwrap();
    let ms = |nanos: u64| nanos / 1_000_000;
    let stamp = swb_journal::audit::Moment::parse(began).unwrap().unix_millis();
    assert_eq!(ms(agent.start_time_unix_nano), u64::try_from(stamp).unwrap());
    let deleted = collector.one("execute_tool bash");
    assert_eq!((&deleted.parent_span_id, &deleted.trace_id), (&agent.span_id, &agent.trace_id));
    let decided = collector.one("decide bash");
    let happened: Vec<_> = decided.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(happened, ["approval.requested", "approval.resolved"]);
    assert_eq!(collector.of_name("execute_tool read").len(), 1, "it had been told before");
    assert_eq!(attribute(&agent.attributes, "gen_ai.conversation.id"), Some(session));
}

#[test]
fn a_collector_that_is_not_there_is_in_nobodys_way() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let house = House::with_settings(&format!("[telemetry]\notlp_endpoint = \"http://{nobody}\"\n"));
    let story = house.story("!say Nevertheless.");
    assert_eq!(story.text(), "Nevertheless.");
    let traces = wait_for("what was dropped", || {
        let traces = house.world.status("traces");
        (traces["dropped"].as_u64()? > 0).then_some(traces)
    });
    assert!(traces["failure"].is_string() && traces["exported"] == 0, "{traces}");
    let doctor = house.world.swb(["doctor"]);
    assert!(doctor.stdout.contains("traces"), "{}", doctor.stdout);
    stops_soon(&house);
}

#[test]
fn a_collector_that_says_nothing_does_not_hold_up_the_end() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = silent.local_addr().unwrap();
    let house = House::with_settings(&format!("[telemetry]\notlp_endpoint = \"http://{endpoint}\"\n"));
    house.story("!say One.");
    let _held = silent.accept().unwrap();
    assert_eq!(house.story("!say Two.").text(), "Two.");
    stops_soon(&house);
}

#[test]
fn without_a_collector_nothing_is_started() {
    let house = House::new();
    house.story("!say Hello.");
    assert_eq!(house.world.status("traces"), Value::Null);
    wait("no word of traces", || !house.world.swb(["doctor"]).stdout.contains("traces"));
}

fn stops_soon(house: &House) {
    let began = Instant::now();
    house.world.swb(["down", "--yes"]).ok();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}
