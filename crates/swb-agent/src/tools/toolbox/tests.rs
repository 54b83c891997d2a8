//! What is lent is judged as the borrower's.

use super::*;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::io::{BufRead, BufReader, PipeReader};
use std::time::Duration;

use crate::stdio::output::Output;
use crate::tools::ToolSettings;

/// Would write a file; says who wanted it instead.
#[derive(Debug)]
struct Pen {
    lendable: bool,
}

impl Tool for Pen {
    fn name(&self) -> &'static str {
        if self.lendable { "pen" } else { "quill" }
    }

    fn description(&self) -> &'static str {
        ""
    }

    fn input_schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn lendable(&self) -> bool {
        self.lendable
    }

    fn effect(&self, arguments: &Value, place: &Place) -> Result<Effect, ToolError> {
        Ok(Effect::Write(place.resolve(arguments["path"].as_str().unwrap_or_default())))
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        async move { Ok(format!("{} {}", call.session_id, call.agents.join("/"))) }.boxed()
    }
}

struct Ground {
    toolbox: Arc<Toolbox>,
    frames: BufReader<PipeReader>,
    _folder: tempfile::TempDir,
}

impl Ground {
    fn new(mode: Mode) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        let output = Output::start(std::os::fd::OwnedFd::from(writer).into()).unwrap();
        let asks = Arc::new(Asks::new(Some(output), Duration::from_secs(60)));
        let place = Arc::new(Place::new(folder.path(), folder.path().into(), ToolSettings::default()));
        let nowhere = Arc::new(Subagents::nowhere());
        let mcp = Mcp::new(Default::default(), folder.path(), None);
        let mut toolbox = Toolbox::new(place, Arc::new(Gate::new(mode)), asks, nowhere, Arc::default(), mcp);
        toolbox.tools = vec![Arc::new(Pen { lendable: true }), Arc::new(Pen { lendable: false })];
        Ground { toolbox: Arc::new(toolbox), frames: BufReader::new(reader), _folder: folder }
    }

    fn call(&self, name: &'static str, path: &str, mode: Mode) -> impl Future<Output = Ran> + use<> {
        let toolbox = Arc::clone(&self.toolbox);
        let caller = Caller { session_id: "s2".to_owned(), agents: vec!["scout".to_owned()], mode };
        let arguments = json!({ "path": path });
        async move { toolbox.run_lent(&caller, name, arguments, &Cancel::new(), Printer::mute("t")).await }
    }
}

#[tokio::test]
async fn the_borrower_may_do_no_more_than_it_may_and_no_more_than_the_lender_may() {
    for (lender, borrower, may) in [
        (Mode::Workspace, Mode::Workspace, true),
        (Mode::Full, Mode::Workspace, true),
        (Mode::Full, Mode::ReadOnly, false),
        (Mode::ReadOnly, Mode::Full, false),
    ] {
        let ran = Ground::new(lender).call("pen", "a", borrower).await;
        assert_eq!(!ran.failed, may, "{lender:?} {borrower:?}: {}", ran.result);
        assert_eq!(ran.result == "s2 scout", may);
        assert_eq!(ran.result.contains("read-only"), !may);
    }
}

#[tokio::test]
async fn what_has_to_be_asked_is_asked_in_the_borrowers_name() {
    let mut ground = Ground::new(Mode::Workspace);
    let running = tokio::spawn(ground.call("pen", "/elsewhere", Mode::Full));
    tokio::task::yield_now().await;
    let mut line = String::new();
    ground.frames.read_line(&mut line).unwrap();
    let ask: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&ask["subject"]["agents"], &ask["subject"]["session_id"]), (&json!(["scout"]), &json!("s2")));
    let answer = crate::gate::ask::Answer { option: Some("allow".to_owned()), ..Default::default() };
    ground.toolbox.asks.answer(ask["ask_id"].as_str().unwrap(), answer).unwrap();
    assert_eq!(running.await.unwrap().result, "s2 scout");
}

#[tokio::test]
async fn what_is_not_lent_is_not_there() {
    let ground = Ground::new(Mode::Full);
    let lent: Vec<_> = ground.toolbox.lendable().into_iter().map(|tool| tool.name).collect();
    assert_eq!(lent, ["pen"]);
    assert_eq!(ground.call("quill", "a", Mode::Full).await.result, "Unknown tool: quill");
}
