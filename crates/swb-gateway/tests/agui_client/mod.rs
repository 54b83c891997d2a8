//! The real client, `@ag-ui/client` from npm, in the two versions that matter.
//!
//! It comes into the build folder, once. Without npm or a way to its registry the tests say so and do nothing.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

/// Seconds for getting one, and for one conversation with it.
const PATIENCE: [&str; 2] = ["50", "100"];
const A_WHILE: Duration = Duration::from_secs(600);

/// A version of the client.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) version: &'static str,
    library: PathBuf,
}

impl Client {
    /// Both versions, or none.
    pub(crate) fn both() -> Vec<Client> {
        let clients: Vec<_> = ["1.0.0", "0.0.58"].into_iter().filter_map(Client::installed).collect();
        if clients.len() == 2 { clients } else { Vec::new() }
    }

    /// Whether it is of today's protocol.
    pub(crate) fn is_one(&self) -> bool {
        self.version.starts_with('1')
    }

    /// Goes through the steps, and returns what the client saw. It must not complain, whatever happens.
    #[track_caller]
    pub(crate) fn drive(&self, url: &str, token: &str, thread: &str, steps: &Value) -> Value {
        let plan = json!({
            "library": self.library, "url": url, "headers": { "Authorization": format!("Bearer {token}") },
            "threadId": thread, "steps": steps,
        });
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../swb-gateway/tests/agui_client/drive.mjs");
        let mut node = Command::new("timeout");
        node.args([PATIENCE[1], "node", script, &plan.to_string()]).stdin(Stdio::null());
        let output = node.output().expect("node is there, npm was");
        let words = String::from_utf8_lossy(&output.stderr);
        let seen: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{} said nothing: {error}\n{words}", self.version));
        let runs = seen["runs"].as_array().expect("runs");
        // The client tells of a request that was refused twice: to whoever runs it, and on the console.
        let told = |warning: &&Value| {
            warning.as_str().is_some_and(|text| text.starts_with("Agent execution failed"))
        };
        let warnings = seen["warnings"].as_array().expect("warnings");
        let refused = runs.iter().filter(|run| run.get("rejected").is_some()).count();
        assert!(warnings.iter().filter(told).count() <= refused, "{}: {seen}", self.version);
        assert_eq!(warnings.iter().find(|warning| !told(warning)), None, "{}: {seen}", self.version);
        assert_eq!(seen["uncaught"], json!([]), "{}: {seen}", self.version);
        for run in runs {
            assert!(run.get("failed").is_none() || run.get("rejected").is_some(), "{}: {run}", self.version);
            assert!(run.get("lost").is_none(), "where it comes from was stripped: {run}");
        }
        seen
    }

    fn installed(version: &'static str) -> Option<Client> {
        let release = format!("@ag-ui/client@{version}");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ag-ui-{version}"));
        std::fs::create_dir_all(&folder).expect("the build folder can be written");
        // Tests run side by side, each in a process of its own.
        let lock = File::create(folder.join("lock")).expect("a lock");
        flock(&lock, FlockOperation::LockExclusive).expect("a lock");
        let library = folder.join("node_modules/@ag-ui/client/dist/index.mjs");
        let (done, refused) = (folder.join("installed"), folder.join("refused"));
        if std::fs::read_to_string(&done).is_ok_and(|known| known == release) {
            return Some(Client { version, library });
        }
        let failed_at = refused.metadata().and_then(|file| file.modified());
        let failed_just_now =
            failed_at.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|since| since < A_WHILE));
        let why = match std::fs::read_to_string(&refused) {
            Ok(why) if failed_just_now => why,
            _ => match install(&folder, &release) {
                Ok(()) => {
                    std::fs::write(done, &release).expect("the build folder can be written");
                    return Some(Client { version, library });
                }
                Err(why) => {
                    std::fs::write(refused, &why).expect("the build folder can be written");
                    why
                }
            },
        };
        // Past the test runner, which would keep it to itself.
        let _ = writeln!(std::io::stderr(), "the tests with the real AG-UI client are skipped: {why}");
        None
    }
}

fn install(folder: &Path, release: &str) -> Result<(), String> {
    let options = ["--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix"];
    let mut npm = Command::new("timeout");
    npm.args([PATIENCE[0], "npm", "install"]).args(options).arg(folder).arg(release);
    let output =
        npm.stdin(Stdio::null()).output().map_err(|error| format!("there is no timeout(1): {error}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Ok(()),
        Some(124) => Err(format!("npm takes more than {} s for {release}", PATIENCE[0])),
        Some(126 | 127) => Err("npm is not installed".to_owned()),
        _ => Err(format!("{release} cannot be had from npm: {}", words.trim())),
    }
}
