//! The daemon's gate, asked about every call where the parent has named it ([`super::control`]).
//!
//! A call is asked about with `policy.decide` under an id of its own. If somebody has to agree, `approval.wait` waits for
//! that, and `policy.decide` under the same id says what has come of it. A daemon that is away, or goes while it is asked,
//! is asked again under the same id, so a question is put to people once; it is away for good when the deadline of the
//! question has passed, and the call is denied. A call that is aborted cancels its wait, which takes the question back.
//!
//! The rules of the daemon alone decide, and nobody is asked twice; only a mode that changes nothing still does not. What
//! was lent is judged by whoever lends it. Proof: unit tests beside it, and `crates/swb-cli/tests/gate/tools.rs` with a real
//! host and a real daemon.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use swb_bus::transport::client::ConnectErrorKind;
use swb_bus::{BusHandle, CallError};
use swb_proto::approval::{Wait, WaitParams};
use swb_proto::id::{ApprovalId, MAX_ID_BYTES};
use swb_proto::policy::{Decide, DecideParams, Decided, Verdict};
use swb_proto::{Actor, Meta};
use tokio::sync::Mutex;
use tokio::time::Instant;
use ulid::Ulid;

use super::control::Control;

/// How long a daemon that is away may stay away beyond the deadline of the question: a restart leaves that much.
const GRACE: Duration = Duration::from_secs(30);
/// How long a question that is taken back is waited for, so that the daemon knows of the wait before its end.
const TAKE_BACK: Duration = Duration::from_millis(300);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Arguments that are longer than this as a whole are shortened, for a line has an end.
const MAX_ARGUMENTS: usize = 256 * 1024;
/// What is left of a long text, besides its length and its hash.
const SHORT: usize = 2048;

/// The daemon's gate.
#[derive(Debug)]
pub(crate) struct House {
    control: Control,
    /// Made at the first call, and kept: it connects again by itself.
    line: Mutex<Option<BusHandle>>,
}

/// A call as the daemon is told of it.
#[derive(Debug)]
pub(super) struct Errand<'a> {
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Value,
    /// The folder it works in.
    pub(super) folder: &'a Path,
    /// The subagents of this process that lead to whoever calls.
    pub(super) subagents: &'a [String],
    /// The caller's name for it.
    pub(super) call_id: Option<&'a str>,
}

impl House {
    pub(crate) fn new(control: Control) -> Self {
        House { control, line: Mutex::new(None) }
    }

    /// What a subagent of this name is told.
    pub(crate) fn below(&self, name: &str) -> String {
        let above = self.control.subagents.iter().cloned();
        above.chain([as_id(name)]).collect::<Vec<_>>().join("/")
    }

    /// Asks whether the call may be made. The error is the reason why not.
    pub(super) async fn permit(&self, errand: &Errand<'_>) -> Result<(), String> {
        let ask_id = new_id();
        let params = self.params(&ask_id, errand)?;
        let mut unsettled = Unsettled { house: self, ask_id: Some(ask_id) };
        let deadline = Instant::now() + self.control.patience + GRACE;
        let mut pause = FIRST_PAUSE;
        loop {
            let why = match self.ask(&params).await {
                Ok(()) => {
                    unsettled.ask_id = None;
                    return Ok(());
                }
                Err(No::Said(reason)) => {
                    unsettled.ask_id = None;
                    return Err(reason);
                }
                Err(No::Unheard(why)) => why,
            };
            if Instant::now() + pause > deadline {
                return Err(format!("the daemon that decides about it could not be asked: {why}"));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Asks once, and waits for the answer of a person where one is needed.
    async fn ask(&self, params: &DecideParams) -> Result<(), No> {
        let line = self.line().await?;
        let Decided { decision, reason, approval_id, .. } = line.call::<Decide>(params.clone()).await?;
        match (decision, approval_id) {
            (Verdict::Allow, _) => return Ok(()),
            (Verdict::Deny, _) | (Verdict::Ask, None) => return Err(No::Said(reason)),
            (Verdict::Ask, Some(approval_id)) => {
                line.call::<Wait>(WaitParams { approval_id, timeout_ms: None }).await?;
            }
        }
        let Decided { decision, reason, .. } = line.call::<Decide>(params.clone()).await?;
        match decision {
            Verdict::Allow => Ok(()),
            Verdict::Deny => Err(No::Said(reason)),
            Verdict::Ask => Err(No::Unheard("the question is still open".to_owned())),
        }
    }

    fn params(&self, ask_id: &ApprovalId, errand: &Errand<'_>) -> Result<DecideParams, String> {
        let folder = errand.folder.to_str().ok_or("the name of the folder is not UTF-8")?;
        let above = self.control.subagents.iter().cloned();
        // What an agent below calls it is no name that anybody above knows.
        let is_own = self.control.subagents.is_empty() && errand.subagents.is_empty();
        Ok(DecideParams {
            call_id: errand.call_id.filter(|_| is_own).map(str::to_owned),
            tool: errand.tool.to_owned(),
            args: shortened(errand.arguments),
            cwd: folder.to_owned(),
            ask_id: Some(ask_id.clone()),
            subagents: above.chain(errand.subagents.iter().map(|name| as_id(name))).collect(),
            timeout_ms: Some(u64::try_from(self.control.patience.as_millis()).unwrap_or(u64::MAX)),
        })
    }

    async fn line(&self) -> Result<BusHandle, No> {
        let mut line = self.line.lock().await;
        if let Some(line) = &*line {
            return Ok(line.clone());
        }
        let Control { socket, session_id, correlation_id, .. } = &self.control;
        let context = Meta {
            actor: Actor::new("agent", session_id.as_str()).ok(),
            session_id: Some(session_id.clone()),
            correlation_id: correlation_id.clone(),
            ..Meta::default()
        };
        let made = BusHandle::connect_as(socket, context).await.map_err(|error| match error.kind {
            ConnectErrorKind::Hello(error) => error.into(),
            other => No::Unheard(other.to_string()),
        })?;
        Ok(line.insert(made).clone())
    }
}

/// A call that was asked about and let go of: people may have been asked, too. Whoever cancels its wait for an approval takes
/// the question back, and a question that was never put is not there.
struct Unsettled<'a> {
    house: &'a House,
    ask_id: Option<ApprovalId>,
}

impl Drop for Unsettled<'_> {
    fn drop(&mut self) {
        let line = self.house.line.try_lock().ok().and_then(|line| line.clone());
        let (Some(approval_id), Some(line), Ok(runtime)) =
            (self.ask_id.take(), line, tokio::runtime::Handle::try_current())
        else {
            return;
        };
        runtime.spawn(async move {
            let wait = line.call::<Wait>(WaitParams { approval_id, timeout_ms: None });
            let _ = tokio::time::timeout(TAKE_BACK, wait).await;
        });
    }
}

/// Why a call may not be made.
#[derive(Debug, PartialEq, Eq)]
enum No {
    /// This was answered.
    Said(String),
    /// There was no answer, but there may be one later.
    Unheard(String),
}

impl From<CallError> for No {
    /// An answer that is no decision is a no, unless the daemon says that it may be asked again.
    fn from(error: CallError) -> Self {
        match error {
            CallError::Call(error) => No::Unheard(error.to_string()),
            CallError::Bus(error) if error.retryable() => No::Unheard(error.message),
            CallError::Bus(error) => No::Said(error.message),
            error @ CallError::Type(_) => No::Said(error.to_string()),
        }
    }
}

/// A name as part of an id. What people read elsewhere is the name itself.
fn as_id(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let id: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(MAX_ID_BYTES).collect();
    if id.is_empty() { "subagent".to_owned() } else { id }
}

/// The arguments, with long texts cut where the whole would not fit into a line. What is judged by its words is never cut:
/// the daemon refuses what is too long.
fn shortened(arguments: &Value) -> Map<String, Value> {
    let mut map = match arguments {
        Value::Object(map) => map.clone(),
        Value::Null => Map::new(),
        other => Map::from_iter([("arguments".to_owned(), other.clone())]),
    };
    let length = serde_json::to_vec(&map).map_or(usize::MAX, |json| json.len());
    if length > MAX_ARGUMENTS {
        let judged = ["command", "path"];
        map.iter_mut().filter(|(key, _)| !judged.contains(&key.as_str())).for_each(|(_, value)| cut(value));
    }
    map
}

fn cut(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > SHORT => {
            let hash = blake3::hash(text.as_bytes());
            let end = (0..=SHORT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            *text = format!("{}… [{} bytes, BLAKE3 {hash}]", &text[..end], text.len());
        }
        Value::Array(values) => values.iter_mut().for_each(cut),
        Value::Object(map) => map.values_mut().for_each(cut),
        _ => {}
    }
}

fn new_id() -> ApprovalId {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis());
    let mut random = [0; 16];
    // Without randomness the time alone keeps two processes apart.
    let _ = getrandom::fill(&mut random);
    ApprovalId::from_ulid(Ulid::from_parts(u64::try_from(millis).unwrap_or(0), u128::from_le_bytes(random)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn house(subagents: &[&str]) -> House {
        House::new(Control {
            socket: "/nowhere/control.sock".into(),
            session_id: "sess_1".to_owned().try_into().unwrap(),
            correlation_id: None,
            patience: Duration::from_secs(60),
            subagents: subagents.iter().map(|&name| name.to_owned()).collect(),
        })
    }

    fn errand<'a>(arguments: &'a Value, subagents: &'a [String]) -> Errand<'a> {
        Errand { tool: "bash", arguments, folder: Path::new("/w"), subagents, call_id: Some("c1") }
    }

    #[tokio::test(start_paused = true)]
    async fn a_daemon_that_stays_away_means_no_once_the_deadline_has_passed() {
        let begun = Instant::now();
        let denied = house(&[]).permit(&errand(&json!({ "command": "ls" }), &[])).await.unwrap_err();
        assert!(denied.starts_with("the daemon that decides about it could not be asked"), "{denied}");
        let waited = begun.elapsed();
        assert!((60..=90).contains(&waited.as_secs()), "{waited:?}");
    }

    #[test]
    fn a_call_is_asked_about_with_everybody_above_it() {
        let house = house(&["scout"]);
        let names = ["Dr. Who?".to_owned(), String::new()];
        let params = house.params(&new_id(), &errand(&json!({ "command": "ls" }), &names)).unwrap();
        assert_eq!(params.subagents, ["scout", "Dr.-Who-", "subagent"]);
        assert_eq!((params.cwd.as_str(), params.timeout_ms), ("/w", Some(60_000)));
        assert_eq!(house.below("a b"), "scout/a-b");
    }

    #[test]
    fn long_arguments_fit_into_a_line_and_what_is_judged_stays_whole() {
        let long = "é".repeat(MAX_ARGUMENTS);
        let cut = shortened(&json!({ "path": "/w/a", "content": long, "edits": [{ "new": long, "at": 3 }] }));
        assert!(serde_json::to_vec(&cut).unwrap().len() < 4 * SHORT, "{}", cut.len());
        assert_eq!((&cut["path"], &cut["edits"][0]["at"]), (&json!("/w/a"), &json!(3)));
        assert!(cut["content"].as_str().unwrap().contains(&format!("{} bytes", long.len())));
        let other = shortened(&json!({ "path": "/w/a", "content": format!("{long}x") }));
        assert_ne!(cut["content"], other["content"], "another text is another call");
        let command = shortened(&json!({ "command": long }));
        assert_eq!(command["command"], json!(long));
        assert_eq!(shortened(&Value::Null).len(), 0);
        assert_eq!(shortened(&json!([1]))["arguments"], json!([1]));
    }
}
