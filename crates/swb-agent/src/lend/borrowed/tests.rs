use super::*;
use serde_json::json;
use std::io::{BufRead, BufReader, PipeReader};

use crate::cancel::Cancel;
use crate::gate::Mode;
use crate::tools::Printer;

fn tool(name: &str) -> LentTool {
    LentTool { name: name.to_owned(), description: "d".to_owned(), input_schema: json!({ "type": "object" }) }
}

fn borrowed() -> (Arc<Borrowed>, BufReader<PipeReader>) {
    let (reader, writer) = std::io::pipe().unwrap();
    let output = Output::start(std::os::fd::OwnedFd::from(writer).into()).unwrap();
    (Arc::new(Borrowed::new(output)), BufReader::new(reader))
}

fn call() -> Call {
    Call {
        arguments: json!({ "x": 1 }),
        session_id: "s".to_owned(),
        agents: vec!["scout".to_owned()],
        mode: Mode::ReadOnly,
        place: Arc::new(Place::new("/".as_ref(), "/".into(), crate::tools::ToolSettings::default())),
        cancel: Cancel::new(),
        printer: Printer::mute("t"),
    }
}

async fn frame(frames: &mut BufReader<PipeReader>) -> Value {
    tokio::task::yield_now().await;
    let mut line = String::new();
    frames.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn only_what_fits_is_taken() {
    let borrowed = Arc::new(Borrowed::default());
    let no_schema = LentTool { input_schema: json!("x"), ..tool("odd") };
    let tools = vec![tool("a__b"), tool("bash"), tool(""), tool("a b"), tool("a__b"), no_schema];
    let (count, refused) = borrowed.take(tools, false, |name| name == "bash");
    assert_eq!((count, refused), (1, ["bash", "", "a b", "a__b", "odd"].map(str::to_owned).to_vec()));
    assert_eq!(borrowed.take(vec![tool("c")], true, |_| false).0, 2);
    assert_eq!(borrowed.take(vec![tool("d")], false, |_| false).0, 1, "what was lent before is taken back");
    let many = (0..MAX_TOOLS + 1).map(|at| tool(&format!("t{at}"))).collect();
    assert_eq!(borrowed.take(many, false, |_| false), (MAX_TOOLS, vec![format!("t{MAX_TOOLS}")]));
    let large = |name| LentTool { description: "x".repeat(MAX_BYTES / 2), ..tool(name) };
    assert_eq!(borrowed.take(vec![large("a"), large("b")], false, |_| false).1, ["b"]);
}

#[tokio::test]
async fn a_call_goes_up_and_its_result_comes_down() {
    let (borrowed, mut frames) = borrowed();
    borrowed.take(vec![tool("docs__search")], false, |_| false);
    let found = borrowed.tools().remove(0);
    assert!(found.lendable());
    let running = tokio::spawn(async move { found.run(call()).await.map_err(|error| error.to_string()) });
    let asked = frame(&mut frames).await;
    let wanted = json!({ "type": "lent_call", "call_id": "lent_1", "name": "docs__search", "input": { "x": 1 },
        "session_id": "s", "mode": "read-only", "agents": ["scout"] });
    assert_eq!(asked, wanted);
    let ran = || Ran { result: "Denied: no".to_owned(), failed: true };
    borrowed.answer("lent_1", ran()).unwrap();
    assert!(borrowed.answer("lent_1", ran()).is_err(), "a call is answered once");
    assert_eq!(running.await.unwrap(), Err("Denied: no".to_owned()));
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_aloud() {
    let (borrowed, mut frames) = borrowed();
    borrowed.take(vec![tool("t")], false, |_| false);
    let found = borrowed.tools().remove(0);
    let running = tokio::spawn(async move { found.run(call()).await.map_err(|error| error.to_string()) });
    frame(&mut frames).await;
    running.abort();
    assert!(running.await.is_err());
    assert_eq!(frame(&mut frames).await, json!({ "type": "lent_cancel", "call_id": "lent_1" }));
    assert!(borrowed.answer("lent_1", Ran::canceled()).is_err());
}
