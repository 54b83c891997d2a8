//! The arguments of every command. A doc comment here is the help text a person reads.

use clap::{Args, Parser, Subcommand, ValueHint};

use crate::commands::agents::{AgentsArgs, CancelArgs, LogsArgs, SendArgs, WhyArgs};
use crate::commands::approvals::ApprovalsArgs;
use crate::commands::audit::AuditCommand;
use crate::commands::bus::BusCommand;
use crate::commands::down::DownArgs;
use crate::commands::models::ModelsArgs;
use crate::commands::policy::PolicyCommand;
use crate::commands::projects::ProjectsArgs;
use crate::commands::rpc::RpcArgs;
use crate::commands::run::RunArgs;
use crate::commands::sessions::SessionsArgs;
use crate::commands::trust::TrustArgs;
use crate::commands::workspaces::WorkspacesArgs;

const AFTER_HELP: &str = "\
Try it:
  swb run 'what is in this folder?'       an agent answers; no key and no network needed
  swb up                                  start the daemon
  swb call agents '{\"channel_id\":\"me\",\"content\":\"hello\"}'
  swb events                              what has happened
  swb bus post --project demo --body 'tests are green'; swb bus read --project demo
  swb down                                stop it

SWB_HOME puts everything under one folder; otherwise the XDG folders are used.
Exit codes: 0 worked, 1 failed, 2 usage, 3 not running, 4 did not start,
            5 the daemon said no, 6 the configuration cannot be used,
            7 the turn failed, 8 the agent went away, 9 nobody was there to ask, 130 aborted.";

/// Switchboard: the local control plane for coding agents.
///
/// One daemon runs agents, connects them, shows them, guards them and keeps the record. This command starts and stops it
/// and talks to it.
#[derive(Debug, Parser)]
#[command(name = "swb", version, after_help = AFTER_HELP, max_term_width = 110)]
pub(crate) struct Swb {
    /// Print JSON: one object, or one per line.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Change a setting for this command (and for the daemon it starts), e.g. --set log.level=debug.
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the daemon; returns when it is ready.
    Up(UpArgs),
    /// Stop the daemon: what is in flight may finish first.
    Down(DownArgs),
    /// Stop the daemon and start it again, with this binary.
    Restart,
    /// Show whether the daemon is running, where it listens and what it is doing.
    Status,
    /// Call any method of the control socket.
    #[command(after_help = CALL_HELP)]
    Call(CallArgs),
    /// Show events: those that are kept, or new ones as they happen.
    #[command(after_help = EVENTS_HELP)]
    Events(EventsArgs),
    /// Post and read messages in plain Markdown files; works without the daemon.
    #[command(subcommand, arg_required_else_help = true)]
    Bus(Box<BusCommand>),
    /// Give an agent something to do and see it work; starts the daemon if it is not running.
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// List the agents at work: session, state, what for, age, tokens, cost, containment.
    Agents(AgentsArgs),
    /// Show what a session has done, and with --follow what it does.
    #[command(after_help = LOGS_HELP)]
    Logs(LogsArgs),
    /// Say something to an agent: it hears it when it is done, or before its next step.
    Send(SendArgs),
    /// End a run, with everything it has started.
    Cancel(CancelArgs),
    /// Tell what a run waits for: an approval, a tool, its model, a slot, another run.
    Why(WhyArgs),
    /// Be an agent that a parent drives over stdin and stdout; works without the daemon.
    #[command(after_help = RPC_HELP)]
    Rpc(RpcArgs),
    /// List what agents have worked on: their sessions, the latest first; works without the daemon.
    #[command(after_help = SESSIONS_HELP)]
    Sessions(SessionsArgs),
    /// List the models that can be used now, and what the others want; works without the daemon.
    #[command(after_help = MODELS_HELP)]
    Models(ModelsArgs),
    /// List, make, open, close and forget workspaces.
    #[command(after_help = WORKSPACES_HELP)]
    Workspaces(WorkspacesArgs),
    /// List projects, clone one, or take a folder in.
    #[command(after_help = PROJECTS_HELP)]
    Projects(ProjectsArgs),
    /// List what waits for an answer; approve, deny, and take back what was allowed for a session.
    #[command(after_help = APPROVALS_HELP, args_conflicts_with_subcommands = true)]
    Approvals(ApprovalsArgs),
    /// Read, search, verify and export the record of what happened; works without the daemon.
    #[command(subcommand, arg_required_else_help = true)]
    Audit(AuditCommand),
    /// Print the tools of that agent; with --json, their schemas.
    #[command(name = "tools_list")]
    ToolsList,
    /// Look at the rules for what may be done, check them, ask them; works without the daemon.
    #[command(subcommand, arg_required_else_help = true)]
    Policy(Box<PolicyCommand>),
    /// Let what a project's files name be run: its MCP servers, until the files change.
    #[command(after_help = TRUST_HELP)]
    Trust(TrustArgs),
    /// Print the token that opens the HTTP interface, or a link that signs a browser in.
    #[command(after_help = TOKEN_HELP)]
    Token(TokenArgs),
    /// Show every setting, its value and where it comes from.
    Config(ConfigArgs),
    /// Look for anything that keeps Switchboard from working, and say what to do about it.
    Doctor,
    /// Print a completion script for a shell.
    #[command(after_help = "For bash: swb completion bash > ~/.local/share/bash-completion/completions/swb")]
    Completion(CompletionArgs),
    /// Print a manual page, or write all of them into a folder.
    Man(ManArgs),
    /// Print a schema: the methods of the socket, the envelopes, the HTTP interface, or the configuration.
    Schema(SchemaArgs),
}

const CALL_HELP: &str = "\
Examples:
  swb call bus.status
  swb call agents.echo.handle '{\"channel_id\":\"me\",\"content\":\"hello\"}'
  echo '{\"limit\":5}' | swb call events.read -
Dots and slashes mean the same. `swb schema openrpc` lists the methods with their types.";

const EVENTS_HELP: &str = "\
Examples:
  swb events                              everything that is kept
  swb events --topic 'agents.*' --follow  new events about agents, until Ctrl-C
  swb events --after 120 --follow         go on after event 120; a gap is announced as bus.gap";

const RUN_HELP: &str = "\
Examples:
  swb run 'what is in this folder?'       the model `demo` answers unless another is named
  swb run --model local/llama3 'where is the port chosen?'
  git diff | swb run - > review.md        without a terminal only the answer is printed
  swb run --continue 'and now the tests'  go on with the latest session of this project
  swb run --detach 'fix the failing test' prints the session; `swb logs --follow` shows it
  swb run --json 'hello' | jq .topic      every event of the run, one per line
  swb run --no-daemon --mode read-only 'what is this?'
The daemon is started if it is not running, and the folder (or the git repository around it) becomes a project.
On a terminal: Ctrl-C cancels the run, twice leaves it at work. When it asks: y yes, n no, a allow the like for
this session, d details; somebody else may answer with `swb approvals`. Without a terminal nobody can be asked:
what needs approval is denied, and the exit code says so.
Exit codes: 0 done, 7 the turn failed, 8 the agent went away, 9 something was denied because nobody was there to
            ask, 129 the terminal went away, 130 cancelled or left, 143 terminated.";

const LOGS_HELP: &str = "\
Examples:
  swb logs                                the only one at work
  swb logs 7QK2PX                         one end of an id, as `swb agents --all` shows it
  swb logs 7QK2PX --follow                questions can be answered here; Ctrl-C leaves it at work
  swb logs 7QK2PX --json | jq -r .topic   the events themselves";

const RPC_HELP: &str = "\
Example:
  printf '%s\\n' '{\"type\":\"prompt\",\"id\":\"1\",\"message\":\"hello\"}' '{\"type\":\"shutdown\"}' | swb rpc
One JSON object per line, both ways. docs/demo-model.md says what the model `demo` can be told to do.";

const WORKSPACES_HELP: &str = "\
Examples:
  swb workspaces create home ~/src        make one; it is open at once
  swb workspaces                          list them
  swb workspaces close home               nothing in it is lost";

const APPROVALS_HELP: &str = "\
Examples:
  swb approvals                           what waits, with the time left
  swb approvals show 7QK2                 an id, or so much of its beginning or end that only one is meant
  swb approvals approve 7QK2 --for-session
  swb approvals deny 7QK2 --reason 'not on a Friday'
  swb approvals grants                    what was allowed for a session
The first answer counts. Without one the call is denied when its time is over.";

const PROJECTS_HELP: &str = "\
Examples:
  swb projects init                       take this folder in
  swb projects clone https://example.org/x.git
  swb projects --json | jq -r .root_path";

const MODELS_HELP: &str = "\
Examples:
  swb models                              demo, and whatever your keys and servers offer
  swb run --model local/llama3 'hello'    use one of them
  swb models --json | jq -r '.provider + \"/\" + .model_id'
Context is in tokens, prices are in US dollars for a million of them, as configured ([models] of docs/models.md).";

const TRUST_HELP: &str = "\
Examples:
  swb trust                               the project around this folder; shows what it would run
  swb trust --list                        what is trusted, and what has changed since
  swb trust --revoke ~/src/x              take it back
Files that count: .switchboard/config.toml, .switchboard/mcp.json, .mcp.json. After any change they are inert again.";

const SESSIONS_HELP: &str = "\
Examples:
  swb sessions                            the latest, each with how its first prompt begins
  swb sessions --here                     only those that were started in this folder
  swb sessions --json | jq -r 'select(.live).id'
A session that is live is open in some process. Any other goes on with `swb run --continue=ID PROMPT`.";

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Stay in the foreground, for a service manager. Crashes are repaired all the same.
    #[arg(long)]
    pub(crate) foreground: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The method, dotted or slashed.
    pub(crate) method: String,
    /// The parameters as a JSON object; `-` reads them from standard input.
    #[arg(value_name = "JSON|-")]
    pub(crate) params: Option<String>,
    /// The workspace of the call.
    #[arg(long, value_name = "ID")]
    pub(crate) workspace: Option<String>,
    /// The session of the call.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// What the call is part of; events it causes carry the same.
    #[arg(long, value_name = "ID")]
    pub(crate) correlation: Option<String>,
    /// Give up after this many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Only topics that match; `*` stands for anything. May be given several times.
    #[arg(long, value_name = "GLOB")]
    pub(crate) topic: Vec<String>,
    /// Begin after this event.
    #[arg(long, value_name = "SEQ")]
    pub(crate) after: Option<u64>,
    /// Go on with new events until interrupted. Without --after: only new ones.
    #[arg(long, short)]
    pub(crate) follow: bool,
}

const TOKEN_HELP: &str = "\
Examples:
  curl -H \"Authorization: Bearer $(swb token)\" 'http://127.0.0.1:14355/api/v1/messages?project_id=demo'
  xdg-open \"$(swb token --link)\"            sign a browser in; the link works once, within ten minutes
A client that can send no header puts the token into the path: http://127.0.0.1:14355/t/TOKEN/api/...";

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// The token of this agent instead of the user's; made if it has none.
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Print a link that signs a browser in, once.
    #[arg(long)]
    pub(crate) link: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Only this setting, e.g. log.level.
    pub(crate) key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command whose page is wanted, e.g. `bus post`; none for swb itself.
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands into this folder.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<std::path::PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Which one.
    #[arg(value_enum, default_value = "openrpc")]
    pub(crate) which: SchemaName,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum SchemaName {
    /// The methods of the control socket, as an OpenRPC document.
    Openrpc,
    /// Command, response, event and error envelopes, as JSON Schema.
    Envelope,
    /// The HTTP interface, as an OpenAPI document.
    Openapi,
    /// The configuration file, as JSON Schema.
    Config,
}

/// What `swb up` and the daemon start. Parsed apart from the commands of people, so that help, completions and the manual do not know it.
#[derive(Debug, Parser)]
#[command(name = "swb")]
pub(crate) struct Inner {
    /// Settings from the command line of `swb up`.
    #[arg(long, global = true)]
    pub(crate) set: Vec<String>,

    #[command(subcommand)]
    pub(crate) process: Process,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Process {
    /// The daemon itself, started by its watch.
    Daemon,
    /// The process that restarts a crashed daemon.
    Watch(WatchArgs),
    /// Asks the model one question for the daemon.
    Complete,
}

impl Process {
    /// The words that make a command line one of these.
    pub(crate) const NAMES: [&str; 3] = ["daemon", "watch", "complete"];
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Watch over the daemon at the other end of standard input.
    #[arg(long, value_name = "PID")]
    pub(crate) adopt: Option<u32>,
}
