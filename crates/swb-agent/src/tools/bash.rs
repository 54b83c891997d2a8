//! `bash`: a command line with everything it starts.
//!
//! Both streams go through one pipe, so that they stay in order, and are shown while they come. A guard stands between
//! the agent and the command: the whole tree ends when the time is up, the call is aborted, or the agent is killed; what
//! a finished command left running in the background goes on until the agent ends. The folder a command ends in is the
//! folder the next one begins in, which is why there is only one at a time.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use swb_host::guard::End;
use swb_host::{Guarded, descendants};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Mutex;

use super::limits::CAPTURED_BYTES;
use super::{Call, Effect, Place, Printer, Tool, ToolError, ToolSettings, arguments};

/// How long output is waited for that background processes may still hold back.
const DRAIN: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 16 * 1024;
const FULL: &str = "\n[there is more than can be shown]\n";
/// Notes the folder at the end, however the command leaves.
const SCRIPT: &str =
    "__swb_place=$SWB_PLACE; unset SWB_PLACE; trap 'pwd -P > \"$__swb_place\"' EXIT; eval \"$1\"";

/// The tool.
#[derive(Debug)]
pub(super) struct Bash {
    one_at_a_time: Mutex<()>,
    usual_seconds: u64,
    most_seconds: u64,
}

impl Bash {
    pub(super) fn new(settings: &ToolSettings) -> Self {
        Bash {
            one_at_a_time: Mutex::default(),
            usual_seconds: settings.bash_time.as_secs(),
            most_seconds: settings.bash_time_max.as_secs(),
        }
    }

    fn limit(&self, wanted: Option<u64>) -> Duration {
        Duration::from_secs(wanted.unwrap_or(self.usual_seconds).clamp(1, self.most_seconds.max(1)))
    }
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
    timeout: Option<u64>,
}

impl Tool for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn description(&self) -> &'static str {
        "Run a command line with bash. The working directory is kept between calls. Output of both streams is returned, \
         with the exit code if it is not 0. Standard input is empty."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "command": { "type": "string", "description": "The command line." },
                "timeout": { "type": "integer", "minimum": 1, "maximum": self.most_seconds,
                             "description": format!("Seconds after which it is killed; {} if not given.", self.usual_seconds) },
            },
            "required": ["command"],
        })
    }

    fn effect(&self, value: &Value, place: &Place) -> Result<Effect, ToolError> {
        let Arguments { command, .. } = arguments(value)?;
        Ok(Effect::Run { command, folder: place.folder() })
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        async move {
            let _alone = self.one_at_a_time.lock().await;
            let result = run(call, |wanted| self.limit(wanted)).await;
            // What earlier commands left behind and has ended is nobody else's to reap.
            descendants::reap_ended();
            result
        }
        .boxed()
    }
}

async fn run(call: Call, limit: impl Fn(Option<u64>) -> Duration) -> Result<String, ToolError> {
    let Arguments { command, timeout } = arguments(&call.arguments)?;
    let limit = limit(timeout);
    let bash = PathBuf::from("bash");
    let lost = call.place.leave_lost_folder();
    let left_in = tempfile::NamedTempFile::new().map_err(ToolError::io(&bash))?;
    let (reader, writer) = std::io::pipe().map_err(ToolError::io(&bash))?;
    let arguments = ["-c", SCRIPT, "bash", &command].map(OsStr::new);
    let started = Guarded::spawn(bash.as_os_str(), &arguments, |guard| {
        guard.current_dir(call.place.folder()).env("SWB_PLACE", left_in.path()).stdout(writer);
        for name in &call.place.settings.hidden_variables {
            guard.env_remove(name);
        }
        Ok(())
    });
    // Our copy of the pipe's end is gone with it; it ends when the last process has closed it.
    let mut guarded = started.map_err(ToolError::io(&bash))?;
    let mut output = Printed::new(reader, call.printer).map_err(ToolError::io(&bash))?;
    let finished = tokio::time::timeout(limit, async {
        tokio::select! {
            end = guarded.wait() => end,
            never = output.read_for_ever() => match never {},
        }
    })
    .await;
    let note = match finished {
        Ok(end) => {
            guarded.release();
            note_of(end)
        }
        Err(_) => {
            guarded.end().await;
            format!("[killed after {} seconds]", limit.as_secs())
        }
    };
    // What is still in the pipe belongs to it; a background process that keeps it open does not hold us up.
    let _ = tokio::time::timeout(DRAIN, output.read_to_end()).await;
    if let Ok(folder) = std::fs::read(left_in.path())
        && let Some(folder) = folder.strip_suffix(b"\n")
    {
        call.place.enter(OsStr::from_bytes(folder).into());
    }
    let mut result = output.result(&note);
    if let Some(lost) = lost {
        result.insert_str(0, &format!("[{lost} is gone; this ran in {}]\n", call.place.root().display()));
    }
    output.let_go();
    Ok(result)
}

fn note_of(end: End) -> String {
    match end {
        End::Exit(0) => String::new(),
        End::Exit(code) => format!("[exit code {code}]"),
        End::Signal(signal) => format!("[ended by signal {signal}]"),
        End::NotStarted(why) => format!("[it could not be started: {why}]"),
        End::Unknown => "[how it ended is not known: the process that watched over it was killed]".to_owned(),
    }
}

/// What a command prints: shown as it comes, kept up to a limit.
struct Printed {
    pipe: Receiver,
    printer: Printer,
    kept: Vec<u8>,
    dropped: usize,
    /// The beginning of a character whose rest has not come yet.
    split: Vec<u8>,
    ended: bool,
    /// No more of it is shown.
    full: bool,
}

impl Printed {
    fn new(reader: std::io::PipeReader, printer: Printer) -> std::io::Result<Self> {
        let pipe = Receiver::from_owned_fd(reader.into())?;
        Ok(Printed {
            pipe,
            printer,
            kept: Vec::new(),
            dropped: 0,
            split: Vec::new(),
            ended: false,
            full: false,
        })
    }

    async fn read_for_ever(&mut self) -> std::convert::Infallible {
        self.read_to_end().await;
        std::future::pending().await
    }

    async fn read_to_end(&mut self) {
        let mut chunk = vec![0; READ_BYTES];
        while !self.ended {
            match self.pipe.read(&mut chunk).await {
                Ok(0) | Err(_) => self.ended = true,
                Ok(count) => self.take(&chunk[..count]).await,
            }
        }
    }

    async fn take(&mut self, chunk: &[u8]) {
        let room = CAPTURED_BYTES.saturating_sub(self.kept.len()).min(chunk.len());
        self.kept.extend_from_slice(&chunk[..room]);
        self.dropped += chunk.len() - room;
        if self.full {
            return;
        }
        self.split.extend_from_slice(chunk);
        let whole = whole_characters(&self.split);
        let text = String::from_utf8_lossy(&self.split[..whole]).into_owned();
        self.split.drain(..whole);
        if !text.is_empty() {
            self.printer.print(&text).await;
        }
        if self.dropped > 0 {
            self.full = true;
            self.printer.print(FULL).await;
        }
    }

    /// A process that goes on in the background may go on printing: without a reader it would be killed for it.
    fn let_go(mut self) {
        if self.ended {
            return;
        }
        tokio::spawn(async move {
            let mut chunk = vec![0; READ_BYTES];
            while self.pipe.read(&mut chunk).await.is_ok_and(|count| count > 0) {}
        });
    }

    fn result(&self, note: &str) -> String {
        let mut result = String::from_utf8_lossy(&self.kept).into_owned();
        let mut add = |line: &str| {
            if !result.is_empty() && !result.ends_with('\n') {
                result.push('\n');
            }
            result.push_str(line);
        };
        if self.dropped > 0 {
            add(&format!("[{} more bytes were dropped]", self.dropped));
        }
        if !note.is_empty() {
            add(note);
        }
        result
    }
}

/// How many bytes can be shown without cutting a character that may still be completed.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Broken in the middle: only what could be an unfinished end is kept back.
        Err(_) => {
            let last = bytes.len().saturating_sub(3);
            (last..bytes.len())
                .find(|at| {
                    std::str::from_utf8(&bytes[*at..])
                        .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
                })
                .unwrap_or(bytes.len())
        }
    }
}
