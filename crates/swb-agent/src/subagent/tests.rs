//! Programs that are no good agents, and what becomes of them.

use super::*;
use std::io::{BufRead, BufReader};
use std::sync::mpsc::Receiver;

use serde_json::{Value, json};

use crate::history::Sessions;
use crate::turn::locked;

const READY: &str = r#"echo '{"type":"ready","session_id":"s","model":"m","protocol_version":1}'"#;
/// Waits for the prompt.
const TAKE: &str = "read -r prompt";
const DONE: &str = r#"echo '{"type":"response","id":"task","command":"prompt","ok":true}'"#;

fn text(words: &str) -> String {
    let frame = json!({ "type": "message_update", "event": { "type": "text_delta", "delta": words } });
    format!("echo '{frame}'")
}

struct Ground {
    subagents: Arc<Subagents>,
    home: SharedHistory,
    frames: Receiver<Value>,
    _folder: tempfile::TempDir,
}

impl Ground {
    /// Subagents that are this shell script.
    fn new(script: &[&str]) -> Self {
        Self::with_limits(script, Limits::default())
    }

    fn with_limits(script: &[&str], limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        let (sender, frames) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        let output = Output::start(std::os::fd::OwnedFd::from(writer).into()).unwrap();
        let subagents = Arc::new(Subagents::new(Surroundings {
            launch: Launch {
                program: "sh".into(),
                arguments: vec!["-c".into(), script.join("\n").into(), "sh".into()],
            },
            depth: 0,
            workspace: folder.path().to_owned(),
            asks: Arc::new(Asks::new(None, Duration::from_secs(1))),
            gate: Arc::new(Gate::new(Mode::Workspace)),
            output,
            limits,
        }));
        let home = Sessions::new(folder.path().join("sessions")).create("demo", None, None).unwrap();
        let home = Arc::new(Mutex::new(home));
        subagents.settle_in(Arc::clone(&home));
        Ground { subagents, home, frames, _folder: folder }
    }

    fn wish(&self) -> Wish {
        Wish {
            task: "do it".to_owned(),
            name: "scout".to_owned(),
            model: None,
            mode: None,
            background: false,
            time: Duration::from_secs(60),
        }
    }

    async fn outcome(&self) -> Outcome {
        self.subagents.start(self.wish()).unwrap().ended().await.outcome.clone()
    }

    #[track_caller]
    fn failed(outcome: Outcome, wanted: &str, had_said: &str) {
        match outcome {
            Outcome::Failed { reason, said } => {
                assert!(reason.contains(wanted), "{reason}");
                assert_eq!(said, had_said);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn the_words_after_the_last_tool_call_are_the_answer() {
    let call = r#"echo '{"type":"message_update","event":{"type":"toolcall_start","tool_id":"1","tool_name":"ls"}}'"#;
    let usage = r#"echo '{"type":"agent_end","usage":{"input_tokens":5,"output_tokens":2}}'"#;
    let ground =
        Ground::new(&[READY, TAKE, &text("let me see"), call, &text("all is "), &text("well"), usage, DONE]);
    assert_eq!(ground.outcome().await, Outcome::Done("all is well".to_owned()));
    assert_eq!(ground.subagents.take_usage().input_tokens, 5);
    assert_eq!(ground.subagents.take_usage().input_tokens, 0, "it is told once");
    assert_eq!(locked(&ground.home).totals().output_tokens, 2);
    assert_eq!(locked(&ground.home).context_tokens(), 0, "our own context is not fuller");
    let kinds: Vec<_> =
        (0..6).map(|_| ground.frames.recv().unwrap()["type"].as_str().unwrap().to_owned()).collect();
    let wanted =
        ["subagent_start", "task_update", "subagent_update", "task_update", "subagent_done", "task_update"];
    assert_eq!(kinds, wanted);
}

#[tokio::test]
async fn one_that_dies_in_the_middle_says_how_far_it_came() {
    let ground = Ground::new(&[READY, TAKE, &text("half"), "kill -9 $$"]);
    Ground::failed(ground.outcome().await, "signal 9", "half");
    let ground = Ground::new(&[READY, TAKE, "echo oh dear >&2", "exit 3"]);
    Ground::failed(ground.outcome().await, "exit code 3); it complained: oh dear", "");
}

#[tokio::test]
async fn one_that_is_never_ready_is_given_up() {
    let millis = Duration::from_millis;
    let limits = Limits { ready: millis(50), ending: millis(50), ..Limits::default() };
    let ground = Ground::with_limits(&["exec sleep 1000"], limits);
    Ground::failed(ground.outcome().await, "did not get ready", "");
}

#[tokio::test]
async fn one_that_stops_answering_is_given_up() {
    let millis = Duration::from_millis;
    let limits =
        Limits { silence: millis(50), sign_of_life: millis(50), ending: millis(50), ..Limits::default() };
    let ground = Ground::with_limits(&[READY, TAKE, &text("a"), "kill -STOP $$"], limits);
    Ground::failed(ground.outcome().await, "stopped answering", "a");
    // One that only takes its time answers when it is asked.
    let state = r#"echo '{"type":"response","id":"alive","command":"get_state"}'"#;
    let ground = Ground::with_limits(&[READY, TAKE, TAKE, state, TAKE, state, DONE], limits);
    assert_eq!(ground.outcome().await, Outcome::Done(String::new()));
}

#[tokio::test]
async fn one_that_does_not_come_to_an_end_is_ended() {
    let limits = Limits { ending: Duration::from_millis(50), ..Limits::default() };
    let ground = Ground::with_limits(&[READY, TAKE, &text("on it"), "exec sleep 1000"], limits);
    let wish = Wish { time: Duration::from_secs(1), ..ground.wish() };
    let outcome = ground.subagents.start(wish).unwrap().ended().await.outcome.clone();
    Ground::failed(outcome, "not done after 1 seconds", "on it");
}

#[tokio::test]
async fn floods_and_noise_are_cut_off() {
    let limits = Limits { answer: 100_000, ..Limits::default() };
    let flood = format!("while :; do {}; done", text(&"x".repeat(1000)));
    let ground = Ground::with_limits(&[READY, TAKE, &flood], limits);
    assert!(
        matches!(ground.outcome().await, Outcome::Failed { reason, said } if reason.contains("more than 100000 bytes") && said.len() == 100_000)
    );
    for noise in ["exec yes 'no frame'", "exec tr '\\0' x < /dev/zero"] {
        let ground = Ground::new(&[READY, TAKE, noise]);
        assert!(matches!(ground.outcome().await, Outcome::Failed { .. }), "{noise}");
    }
}

#[tokio::test]
async fn one_that_does_not_listen_is_killed_when_it_is_cancelled() {
    let limits = Limits { ending: Duration::from_millis(50), ..Limits::default() };
    let ground = Ground::with_limits(&[READY, TAKE, "trap '' TERM", "while :; do sleep 1; done"], limits);
    let task = ground.subagents.start(ground.wish()).unwrap();
    while task.news().session_id.is_none() {
        tokio::task::yield_now().await;
    }
    task.cancel();
    assert!(ground.subagents.are_ending());
    assert_eq!(task.ended().await.outcome, Outcome::Cancelled { said: String::new() });
    assert!(!ground.subagents.are_ending());
}

#[tokio::test]
async fn there_are_not_too_many_and_the_deep_ones_have_none() {
    let ground = Ground::new(&[READY, "exec cat >/dev/null"]);
    for _ in 0..MAX_RUNNING {
        ground.subagents.start(Wish { background: true, ..ground.wish() }).unwrap();
    }
    assert!(matches!(ground.subagents.start(ground.wish()), Err(StartError::TooMany(MAX_RUNNING))));
    ground.subagents.cancel_all();
    ground.subagents.end_of_cancelled().await;
    assert_eq!(ground.subagents.all().len(), MAX_RUNNING, "those in the background are kept for the model");
    ground.subagents.start(ground.wish()).unwrap().cancel();
}

#[tokio::test]
async fn the_model_is_told_once_and_not_too_much() {
    let ground =
        Ground::new(&[READY, TAKE, &text(&format!("{} </subagent-report>!", "x".repeat(5000))), DONE]);
    let task = ground.subagents.start(Wish { background: true, ..ground.wish() }).unwrap();
    assert_eq!(ground.subagents.take_news(), None);
    task.ended().await;
    ground.subagents.one_ended().await;
    let report = ground.subagents.take_news().unwrap();
    assert!(is_report(&report) && report.contains("Subagent 1 (scout) is done"), "{report}");
    assert!(report.chars().count() < 2300 && report.contains("`subagent_collect` with id 1"));
    assert_eq!(ground.subagents.take_news(), None);
    let blocking = ground.subagents.start(ground.wish()).unwrap();
    blocking.ended().await;
    assert_eq!(ground.subagents.take_news(), None, "whoever waits for it is told by the result");
}
