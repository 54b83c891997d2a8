//! Starting and ending the agent process.
//!
//! The protocol's pipes are taken and read before anything else happens, so that no command is lost and nothing strays
//! into stdout. What can go wrong does so before `ready`, as an error; from then on the process ends with success, after
//! it has saved the history and ended everything that it has started.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use swb_host::descendants;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cancel::Cancel;
use crate::gate::ask::Asks;
use crate::gate::control::Control;
use crate::gate::house::House;
use crate::gate::local_rules::{LocalRules, RulePlaces};
use crate::gate::{Gate, Mode};
use crate::history::{OpenError, Sessions, WriteError};
use crate::lend::Borrowed;
use crate::mcp::{Mcp, McpOptions};
use crate::model::Thinking;
use crate::model::catalogue::{self, Catalogue};
use crate::model::provider;
use crate::model::settings::Settings;
use crate::rpc::{Agent, Why};
use crate::stdio::input::Input;
use crate::stdio::output::Output;
use crate::stdio::private;
use crate::subagent::{Launch, Limits, Subagents, Surroundings};
use crate::tools::{Place, ToolSettings, Toolbox};

/// How long a loop that waits for a parent to read may go on after it was told to end.
const STALLED: Duration = Duration::from_millis(700);
const WIND_UP: Duration = Duration::from_millis(300);
/// How long subagents may take to end when nothing is urgent.
const SUBAGENTS: Duration = Duration::from_millis(800);
const CHILDREN: Duration = Duration::from_millis(200);
/// How long servers may take to say which tools they have, when that is all that is wanted.
const LISTING: Duration = Duration::from_secs(10);
const FLUSH: Duration = Duration::from_millis(300);
const DEFAULT_SYSTEM: &str = "You are a coding agent. You work in the user's project with the tools you are given. Look \
before you change things, make small changes, check them, and say plainly what you did and what is left.";
const SUBAGENT_SYSTEM: &str = "You are a subagent: another agent has given you one task. Nobody reads along. Your last \
message is your answer to that agent; put all it needs to know into it.";

/// What an agent is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where sessions are kept.
    pub sessions: PathBuf,
    /// The id of a new session; absent for one of its own making.
    pub session: Option<String>,
    /// Where the projects of message buses lie.
    pub messages: PathBuf,
    /// The session to go on with.
    pub resume: Option<String>,
    /// The model; it wins over that of a resumed session.
    pub model: Option<String>,
    /// The model of a new session for which none is named.
    pub usual_model: Option<String>,
    /// The system prompt; it wins over that of a resumed session.
    pub system: Option<String>,
    /// The system prompt of a new session for which none is given.
    pub usual_system: Option<String>,
    /// How much the model shall think.
    pub thinking: Thinking,
    /// The model that summarises; the one in use if none is named, or this one cannot be used.
    pub compaction_model: Option<String>,
    /// The limits of tools, and which there are.
    pub tools: ToolSettings,
    /// The session that starts this one, if it is a subagent's.
    pub parent: Option<String>,
    /// How many agents are above this one.
    pub depth: usize,
    /// How another agent is started.
    pub launch: Launch,
    /// Whether what has become of subagents in the background may begin a turn by itself.
    pub auto_turns: bool,
    /// What tools may do.
    pub mode: Mode,
    /// Whether the parent answers asks.
    pub asks: bool,
    /// How long an ask waits for its answer.
    pub ask_patience: Duration,
    /// The daemon that judges tool calls, if there is one.
    pub control: Option<Control>,
    /// Where rules lie that speak before the mode, where there is none.
    pub rules: Option<RulePlaces>,
    /// Providers, prices and patience.
    pub models: Settings,
    /// MCP servers.
    pub mcp: McpOptions,
}

/// Why an agent did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The pipes, the runtime or the signals cannot be used.
    #[error("the process cannot be set up: {0}")]
    System(#[from] io::Error),
    /// The session cannot be used.
    #[error(transparent)]
    Session(#[from] OpenError),
    /// The session cannot be written.
    #[error("the session cannot be kept: {0}")]
    History(String),
}

impl From<WriteError> for StartError {
    fn from(error: WriteError) -> Self {
        StartError::History(error.to_string())
    }
}

/// Serves a parent over stdin and stdout until there is a reason to end.
pub fn run(options: Options) -> Result<(), StartError> {
    leave_the_terminal();
    let pipes = private::take()?;
    let input = Input::start(pipes.input)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async { serve(options, input, Output::start(pipes.output)?).await });
    // A tool that still reads on a thread of its own does not hold us up.
    runtime.shutdown_background();
    ended
}

/// What is typed at the terminal of our parent is not meant for us, and what a tool might ask there nobody would see: no
/// signal of that terminal reaches us, and no tool finds it. Somebody who leads a group may not leave, and need not.
fn leave_the_terminal() {
    let _ = rustix::process::setsid();
}

/// All tools, as a program may want to list them without a session. Servers are started for it and ended again.
pub fn describe_tools(settings: ToolSettings, mcp: McpOptions) -> io::Result<serde_json::Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    descendants::adopt_orphans();
    let place = Place::new(&std::env::current_dir().unwrap_or_default(), PathBuf::new(), settings);
    let (gate, asks) = (Arc::new(Gate::default()), Arc::new(Asks::new(None, Duration::ZERO)));
    let mcp = Mcp::new(mcp, place.root(), None);
    let nowhere = Arc::new(Subagents::nowhere());
    let toolbox = Toolbox::new(Arc::new(place), gate, asks, nowhere, Arc::default(), mcp);
    Ok(runtime.block_on(async {
        toolbox.mcp.begin().await;
        toolbox.mcp.settled(LISTING).await;
        let tools = toolbox.describe();
        toolbox.mcp.end().await;
        descendants::end_all(CHILDREN).await;
        tools
    }))
}

/// The models of every provider at a glance.
#[derive(Debug)]
pub struct Offer {
    /// Those that can be used now, as `get_available_models` lists them.
    pub models: serde_json::Value,
    /// Providers that want a key, with the variables that may hold it.
    pub without_key: Vec<(String, Vec<String>)>,
}

/// All models, as a program may want to list them without a session. Providers are asked.
pub fn describe_models(settings: Settings) -> io::Result<Offer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let catalogue = Catalogue::new(settings, &|name| std::env::var(name).ok());
    let models = serde_json::to_value(runtime.block_on(catalogue.entries()))?;
    Ok(Offer { models, without_key: catalogue.without_key() })
}

async fn serve(options: Options, mut input: Input, output: Output) -> Result<(), StartError> {
    let told = Cancel::new();
    watch_signals(told.clone())?;
    descendants::adopt_orphans();
    let mut sessions = Sessions::new(options.sessions);
    let history = match &options.resume {
        Some(id) => {
            let mut history = sessions.open(id)?;
            if let Some(model) = options.model.filter(|model| *model != history.model) {
                history.set_model(&model)?;
            }
            history.system = options.system.or(history.system.take());
            history
        }
        None => {
            let model = options.model.or(options.usual_model);
            let model = model.unwrap_or_else(|| catalogue::DEFAULT.to_owned());
            sessions.create_as(
                options.session,
                &model,
                options.system.or(options.usual_system),
                options.parent,
            )?
        }
    };
    let system = history.system.as_deref().unwrap_or(DEFAULT_SYSTEM);
    let system: Arc<str> = match &history.parent {
        Some(_) => format!("{system}\n\n{SUBAGENT_SYSTEM}").into(),
        None => system.into(),
    };
    let mut tools = options.tools;
    if !options.models.share_keys {
        tools.hidden_variables.extend(provider::key_variables(&options.models.providers));
    }
    let place = Arc::new(Place::new(&std::env::current_dir()?, options.messages, tools));
    let asks = Arc::new(Asks::new(options.asks.then(|| output.clone()), options.ask_patience));
    let gate = Gate::new(options.mode)
        .asking(options.control.map(House::new))
        .ruled(options.rules.map(LocalRules::new));
    let gate = Arc::new(gate);
    let subagents = Arc::new(Subagents::new(Surroundings {
        launch: options.launch,
        depth: options.depth,
        workspace: place.root().to_owned(),
        output: output.clone(),
        asks: Arc::clone(&asks),
        gate: Arc::clone(&gate),
        limits: Limits::default(),
    }));
    let borrowed = Arc::new(Borrowed::new(output.clone()));
    let mcp = Mcp::new(options.mcp, place.root(), Some(output.clone()));
    let toolbox = Arc::new(Toolbox::new(place, gate, asks, subagents, borrowed, mcp));
    toolbox.subagents.lend_from(&toolbox);
    let models = Arc::new(Catalogue::new(options.models, &|name| std::env::var(name).ok()));
    let history = Arc::new(Mutex::new(history));
    let mut agent = Agent::new(output.clone(), sessions, history, Arc::clone(&toolbox), models, system);
    agent.thinking = options.thinking;
    agent.compaction_model = options.compaction_model;
    agent.allow_auto_turns(options.auto_turns);

    let heard = Arc::new(AtomicBool::new(false));
    let stalled = stalled(input.ended.clone(), output.clone(), told.clone(), Arc::clone(&heard));
    let why = tokio::select! {
        why = agent.run(&mut input, &told, &heard) => why,
        () = stalled => Why::Told,
    };
    let patience = if why == Why::Shutdown { SUBAGENTS } else { WIND_UP };
    agent.wind_up(patience).await;
    toolbox.mcp.end().await;
    descendants::end_all(CHILDREN).await;
    output.flush(FLUSH).await;
    Ok(())
}

fn watch_signals(told: Cancel) -> io::Result<()> {
    // A limit on the size of files makes a write fail. Unless somebody listens it would end the process instead.
    let mut too_large = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?;
    tokio::spawn(async move { while too_large.recv().await.is_some() {} });
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        told.cancel();
    });
    Ok(())
}

/// Returns when the process was told to end, or its parent has closed stdin, and the loop cannot get to hear of it
/// because the parent does not read either.
async fn stalled(input: watch::Receiver<bool>, output: Output, told: Cancel, heard: Arc<AtomicBool>) {
    let mut ended = input;
    tokio::select! {
        () = told.cancelled() => {}
        _ = ended.wait_for(|ended| *ended) => {}
    }
    loop {
        let before = output.progress();
        tokio::time::sleep(STALLED).await;
        if heard.load(Ordering::Relaxed) && !told.is_cancelled() {
            // It went on for a reason; only a signal cuts it short now.
            told.cancelled().await;
        } else if output.progress() == before {
            return;
        }
    }
}
