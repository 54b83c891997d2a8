//! `POST /agui`: a run, as the real client wants it.
//!
//! ```text
//! input ─► thread ─ known? ─ no ─► project ─► session.create ─► kept
//!             │ yes              ┌────────────────────────────────┘
//!             ├─ prompt ─► agent.run ────────────────► relay from behind its beginning
//!             └─ resume ─► approval.request.resolve ─► relay from behind the question
//! ```
//!
//! What goes wrong before the stream is an answer with a status; a denial of the policy is 403. Every command passes the
//! gate as whoever sent the request.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::stream;
use serde_json::Map;
use swb_bus::CallError;
use swb_proto::approval::{self, Approval, ApprovalStatus, WhichApproval};
use swb_proto::error::{ERR_HANDLER, ERR_SHUTTING_DOWN};
use swb_proto::id::{RunId, SessionId};
use swb_proto::project::{self, ListProjectsParams};
use swb_proto::run::{self, Attended, RunParams, WhichRun};
use swb_proto::session::{self, CreateSessionParams, SessionMode, SessionState, WhichSession};
use swb_proto::{BusError, TopicGlob};

use super::dialect::Dialect;
use super::input::{Resume, ResumeStatus, RunAgentInput};
use super::project as projects;
use super::relay::{EXPIRED, Relay, Watched};
use super::threads::{Thread, Waiting};
use super::translator::{Names, Translator};
use crate::failure::{ErrorCode, Failure};
use crate::messages::Query;
use crate::routes::App;
use crate::sse;
use crate::visit::Visit;

/// What may concern a run.
const TOPICS: [&str; 5] = ["agent.run.*", "approval.*", "terminal.*", "session.*", "renderer.switch.*"];

/// `POST /agui`.
pub(crate) async fn post_run(
    State(app): State<Arc<App>>,
    Extension(visit): Extension<Visit>,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    if visit.is_impostor() {
        // The gate refuses and records it, before anything here is told.
        visit.pass_about("agent/run", &Map::new(), async { Ok(()) }).await?;
    }
    let input = RunAgentInput::read(body).await?;
    let seat = sse::seat(&app)?;
    let Some(resume) = input.resume.as_deref().filter(|resume| !resume.is_empty()) else {
        let prompt = input.prompt()?;
        let thread = thread(&app, &visit, &query, &headers, &input).await?;
        let visit = visit.within(&thread.session_id);
        let params = RunParams {
            session_id: Some(thread.session_id.clone()),
            prompt,
            model: input.prop("model").map(str::to_owned),
            agent: input.prop("agent").map(str::to_owned),
            attended: Attended::Later,
            ..RunParams::default()
        };
        let taken = visit.call::<run::Start>(&app.bus, params).await?;
        let request = Request { app, visit, input, thread, seat };
        return request.relay(taken.run_id, taken.after, Going::FromTheStart);
    };
    let thread = app.threads.get(&input.thread_id).ok_or_else(nothing_waits)?;
    let visit = visit.within(&thread.session_id);
    let (waiting, late) = answer(&app, &visit, &thread, resume).await?;
    let which =
        WhichRun { run_id: Some(waiting.run_id.clone()), session_id: Some(thread.session_id.clone()) };
    let model = visit.call::<run::Get>(&app.bus, which).await?.run.model;
    let request = Request { app, visit, input, thread, seat };
    let going = match late {
        None => Going::On { model, calls: waiting.calls },
        Some(why) => Going::Nowhere { why },
    };
    request.relay(waiting.run_id, waiting.after, going)
}

/// A request that is about to become a stream.
struct Request {
    app: Arc<App>,
    visit: Visit,
    input: RunAgentInput,
    thread: Thread,
    seat: sse::Seat,
}

/// How a stream begins.
enum Going {
    /// With the run.
    FromTheStart,
    /// Behind a question.
    On { model: Option<String>, calls: Vec<String> },
    /// Not at all: the answer came too late.
    Nowhere { why: String },
}

impl Request {
    /// The stream of a run from behind a place.
    fn relay(self, run_id: RunId, after: u64, going: Going) -> Result<Response, Failure> {
        let Request { app, visit, input, thread, seat } = self;
        let session_id = thread.session_id.clone();
        let which = WhichRun { run_id: Some(run_id.clone()), session_id: Some(session_id.clone()) };
        // From here on nobody has to remember to cancel it.
        let armed = !matches!(going, Going::Nowhere { .. });
        let watched = Watched { app: Arc::clone(&app), visit, which, armed };
        let names = Names {
            thread_id: input.thread_id,
            run_id: input.run_id,
            session_id: session_id.to_string(),
            bus_run_id: run_id.to_string(),
        };
        let dialect = Dialect::of(input.protocol_version.as_deref());
        let mut translator = Translator::new(dialect, names, input.state);
        let globs = TOPICS.iter().filter_map(|glob| TopicGlob::try_from((*glob).to_owned()).ok()).collect();
        let events = app.bus.topics().subscribe(globs, Some(after)).map_err(BusError::from)?;
        if let Going::On { model, calls } = &going {
            translator = translator.going_on(model.clone(), calls.clone());
        }
        translator.start();
        if let Going::Nowhere { why } = going {
            translator.fail(EXPIRED, &why);
        }
        let relay = Relay::new(translator, events, watched, thread, seat);
        Ok(sse::response(stream::unfold(relay, |mut relay| async move {
            let chunk = relay.next().await?;
            Some((chunk, relay))
        })))
    }
}

/// The thread of the request, with its session. One that waits for answers takes nothing else.
async fn thread(
    app: &Arc<App>,
    visit: &Visit,
    query: &Query,
    headers: &HeaderMap,
    input: &RunAgentInput,
) -> Result<Thread, Failure> {
    // Two requests for one new thread: the second finds what the first has made.
    let _turn = app.threads.turn(&input.thread_id).await;
    if let Some(thread) = app.threads.get(&input.thread_id) {
        live(app, visit, &thread.session_id).await?;
        nothing_open(app, visit, &thread).await?;
        return Ok(thread);
    }
    let thread_id = input.thread_id.clone();
    let session_id = match SessionId::try_from(thread_id.clone()) {
        Ok(id) if id.as_str().starts_with(SessionId::PREFIX) => {
            live(app, visit, &id).await?;
            id
        }
        _ => {
            let handle = visit.handle(&app.bus);
            let list = handle.call::<project::List>(ListProjectsParams::default()).await.map_err(failure)?;
            let named = projects::named(query, headers, input);
            let project = projects::choose(list.projects, named.as_deref())?;
            let params = CreateSessionParams {
                project_id: project.project_id,
                profile_id: None,
                mode: SessionMode::Agent,
                rules: None,
            };
            visit.call::<session::Create>(&app.bus, params).await?.session_id
        }
    };
    let thread = Thread { thread_id, session_id, waiting: None };
    app.threads.put(thread.clone()).await?;
    Ok(thread)
}

async fn live(app: &Arc<App>, visit: &Visit, session_id: &SessionId) -> Result<(), Failure> {
    let which = WhichSession { session_id: Some(session_id.clone()) };
    let session = visit.handle(&app.bus).call::<session::Get>(which).await.map_err(failure)?;
    match session.state {
        SessionState::Terminated => {
            Err(conflict(format!("the session {session_id} has ended; a new threadId begins another")))
        }
        _ => Ok(()),
    }
}

async fn nothing_open(app: &Arc<App>, visit: &Visit, thread: &Thread) -> Result<(), Failure> {
    for id in thread.waiting.iter().flat_map(|waiting| &waiting.interrupts) {
        let which = WhichApproval { approval_id: id.clone() };
        let asked = visit.handle(&app.bus).call::<approval::Get>(which).await;
        if asked.is_ok_and(|approval| approval.status == ApprovalStatus::Pending) {
            return Err(conflict(format!("{id} waits for an answer; this thread goes on with resume")));
        }
    }
    Ok(())
}

/// Gives the answers, each once, and says where the run goes on. Told is also why the client came too late, if it did:
/// what can still be answered is answered all the same.
async fn answer(
    app: &Arc<App>,
    visit: &Visit,
    thread: &Thread,
    resume: &[Resume],
) -> Result<(Waiting, Option<String>), Failure> {
    let waiting = thread.waiting.clone().ok_or_else(nothing_waits)?;
    let mut answers = Vec::new();
    for entry in resume {
        let id = entry.approval_id()?;
        if !waiting.interrupts.contains(&id) {
            return Err(conflict(format!("{id} is no open interrupt of this thread")));
        }
        answers.push((entry, look(app, visit, id.as_str()).await?));
    }
    for id in &waiting.interrupts {
        if answers.iter().all(|(_, asked)| asked.approval_id != *id)
            && look(app, visit, id.as_str()).await?.status == ApprovalStatus::Pending
        {
            return Err(conflict(format!("resume must answer every interrupt; {id} is missing")));
        }
    }
    let mut late = None;
    for (entry, asked) in answers {
        let id = asked.approval_id;
        let mut status = asked.status;
        if status == ApprovalStatus::Pending
            && let Err(error) = visit.call::<approval::Resolve>(&app.bus, entry.answer(id.clone())).await
        {
            // Somebody else may have been quicker, or the clock.
            status = look(app, visit, id.as_str()).await?.status;
            if status == ApprovalStatus::Pending {
                return Err(error.into());
            }
        }
        if status == ApprovalStatus::TimedOut && entry.status() == ResumeStatus::Resolved {
            late.get_or_insert_with(|| {
                format!("the answer to {id} came too late: its time was over, which means no")
            });
        }
    }
    Ok((waiting, late))
}

async fn look(app: &Arc<App>, visit: &Visit, id: &str) -> Result<Approval, Failure> {
    let approval_id = id.to_owned().try_into().map_err(|_| nothing_waits())?;
    visit.handle(&app.bus).call::<approval::Get>(WhichApproval { approval_id }).await.map_err(failure)
}

fn nothing_waits() -> Failure {
    conflict("nothing in this thread waits for an answer".to_owned())
}

fn conflict(message: String) -> Failure {
    Failure::new(ErrorCode::Conflict, message)
}

fn failure(error: CallError) -> Failure {
    match error {
        CallError::Bus(error) => error.into(),
        CallError::Call(error) => BusError::new(ERR_SHUTTING_DOWN, error.to_string()).into(),
        CallError::Type(_) => BusError::new(ERR_HANDLER, error.to_string()).into(),
    }
}
