//! The field's own test server, `@modelcontextprotocol/server-everything`, over both transports.
//!
//! It comes from npm into the build folder, once. Without npm or a way to its registry the tests say so and do nothing.

use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use testkit::{World, wait};

use super::{agent, call, configured, failure, record, result, tools, until_state};
use crate::child::{Child, results};

const RELEASE: &str = "@modelcontextprotocol/server-everything@2026.8.31";
/// Seconds for getting it; two of these must fit into the time of a test.
const PATIENCE: &str = "50";
const A_WHILE: Duration = Duration::from_secs(600);

#[test]
fn a_real_server_over_its_pipes() {
    let Some(script) = installed() else { return };
    let args = json!([script.to_str().unwrap(), "stdio"]);
    let world = configured(&format!("[mcp.everything]\ncommand = \"node\"\nargs = {args}\n"));
    let mut child = agent(&world);
    assert!(until_state(&mut child, "everything", "ready")["tools"].as_u64().unwrap() > 8);
    use_it(&world, &mut child);
}

#[test]
fn a_real_server_over_http() {
    let Some(script) = installed() else { return };
    let port = free_port();
    let mut server = Http::start(&script, port);
    let world = configured(&format!(
        "[mcp.everything]\nurl = \"http://127.0.0.1:{port}/mcp\"\nheaders = {{ X-Test = \"${{HOME}}\" }}\n"
    ));
    let mut child = agent(&world);
    assert!(until_state(&mut child, "everything", "ready")["tools"].as_u64().unwrap() > 8);
    use_it(&world, &mut child);

    server.end();
    let (error, record) = failure(&mut child, "everything__echo", json!({ "message": "anybody there?" }));
    assert!(error.contains("before it had answered"), "{error}");
    assert_eq!(record["error"]["code"], "MCP_CALL_FAILED");
    let _server = Http::start(&script, port);
    testkit::wait_for("the server to be found again", || {
        let response = call(&mut child, "everything__echo", json!({ "message": "back" })).pop().unwrap();
        (response["ok"] == true).then(|| assert_eq!(response["result"], "Echo: back"))
    });
}

/// What both transports have to do.
fn use_it(world: &World, child: &mut Child) {
    let names = tools(child);
    for tool in ["bash", "everything__echo", "everything__get-sum", "everything__get-tiny-image"] {
        assert!(names.contains(&tool.to_owned()), "{names:?}");
    }
    let frames = child.turn(
        "p",
        "!tool everything__echo {\"message\": \"hé\"}\n!tool everything__get-sum {\"a\": 2, \"b\": 3}",
    );
    let mut said = results(&frames);
    said.sort_unstable();
    assert_eq!(said, ["Echo: hé", "The sum of 2 and 3 is 5."]);
    let records: Vec<_> = frames.iter().filter(|frame| frame["type"] == "mcp_call").collect();
    assert!(records.len() == 2 && records.iter().all(|record| record["outcome"] == "ok"), "{records:?}");

    let frames = call(child, "everything__echo", json!({ "message": "password=hunter2hunter2" }));
    assert_eq!(frames[frames.len() - 1]["result"], "Echo: password=hunter2hunter2");
    assert!(!record(&frames).to_string().contains("hunter2"), "{frames:?}");

    let image = result(child, "everything__get-tiny-image", json!({}));
    assert!(image.contains("[image: image/png, ") && image.len() < 1000, "{image}");
    let slow = json!({ "duration": 1, "steps": 2 });
    let frames = call(child, "everything__trigger-long-running-operation", slow);
    let progress = |frame: &&Value| frame["type"] == "tool_output";
    assert_eq!(frames.iter().filter(progress).count(), 2, "{frames:#?}");
    let links = result(child, "everything__get-resource-links", json!({ "count": 2 }));
    assert!(links.contains("[link to "), "{links}");
    let (error, _) = failure(child, "everything__echo", json!({}));
    assert!(error.contains("message"), "{error}");
    // Tools that a server offers only to clients with a folder.
    let roots = result(child, "everything__get-roots-list", json!({}));
    assert!(roots.contains(world.folder().canonicalize().unwrap().to_str().unwrap()), "{roots}");
}

/// The server over HTTP, as a process of its own.
struct Http(Process);

impl Http {
    fn start(script: &Path, port: u16) -> Self {
        let process = Command::new("node")
            .arg(script)
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("node is there, npm was");
        wait("the server to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Http(process)
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.end();
    }
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// The server's script, installed on the first call. Where it cannot be had, the next tests do not try for a while.
fn installed() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-everything");
    std::fs::create_dir_all(&folder).unwrap();
    // Tests run side by side, each in a process of its own.
    let lock = File::create(folder.join("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let script = folder.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let (done, refused) = (folder.join("installed"), folder.join("refused"));
    if std::fs::read_to_string(&done).is_ok_and(|release| release == RELEASE) {
        return Some(script);
    }
    let failed_at = refused.metadata().and_then(|file| file.modified());
    let failed_just_now =
        failed_at.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|since| since < A_WHILE));
    let why = match std::fs::read_to_string(&refused) {
        Ok(why) if failed_just_now => why,
        _ => match install(&folder) {
            Ok(()) => {
                std::fs::write(done, RELEASE).unwrap();
                return Some(script);
            }
            Err(why) => {
                std::fs::write(refused, &why).unwrap();
                why
            }
        },
    };
    // Past the test runner, which would keep it to itself.
    let _ = writeln!(std::io::stderr(), "the tests with a real MCP server are skipped: {why}");
    None
}

fn install(folder: &Path) -> Result<(), String> {
    let options = ["--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix"];
    let mut npm = Command::new("timeout");
    npm.args([PATIENCE, "npm", "install"]).args(options).arg(folder).arg(RELEASE);
    let output =
        npm.stdin(Stdio::null()).output().map_err(|error| format!("there is no timeout(1): {error}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Ok(()),
        Some(124) => Err(format!("npm takes more than {PATIENCE} s for {RELEASE}")),
        Some(126 | 127) => Err("npm is not installed".to_owned()),
        _ => Err(format!("{RELEASE} cannot be had from npm: {}", words.trim())),
    }
}
