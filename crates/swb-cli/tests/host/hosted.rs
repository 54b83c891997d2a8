//! A host of the real binary with a shell as its child.

use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use swb_host::wire::{Exit, Reply, Request, Status, Stream};
use swb_host::{HostClient, Limits, Options, Walls, client};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

pub(crate) struct Hosted {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) socket: PathBuf,
    pub(crate) host_pid: u32,
}

/// What a test starts from.
#[derive(Default)]
pub(crate) struct Wish {
    pub(crate) limits: Limits,
    pub(crate) walls: Option<Walls>,
}

/// Runs a test's story with a limit.
pub(crate) fn story<T>(story: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LONG, story).await.expect("the story comes to its end") })
}

impl Hosted {
    /// A shell; `$1` is the folder of this host.
    pub(crate) async fn start(script: &str, wish: Wish) -> Self {
        Self::run(&["sh", "-c", script, "sh"], wish).await
    }

    /// Any command; the folder of this host is its last argument.
    pub(crate) async fn run(words: &[&str], wish: Wish) -> Self {
        let folder = tempfile::Builder::new().prefix("swb-").tempdir_in("/tmp").unwrap();
        let socket = folder.path().join("host.sock");
        let command = words.iter().copied().chain([folder.path().to_str().unwrap()]);
        let options = Options {
            socket: socket.clone(),
            limits: wish.limits,
            walls: wish.walls,
            folder: None,
            environment: Vec::new(),
            command: command.map(OsString::from).collect(),
        };
        let log = std::fs::File::create(folder.path().join("host.log")).unwrap();
        client::start(&options, Path::new(env!("CARGO_BIN_EXE_swb")), log).await.unwrap();
        let (_, status) = HostClient::connect(&socket).await.unwrap();
        Hosted { folder, socket, host_pid: status.host_pid }
    }

    pub(crate) async fn connect(&self) -> (Talk, Status) {
        let (client, status) = HostClient::connect(&self.socket).await.unwrap();
        (Talk { client, exit: None }, status)
    }

    /// Whether a file that the child was to make is there; waits for it.
    pub(crate) async fn file(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        until(|| std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))).await
    }

    /// The host's process.
    pub(crate) fn host(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.host_pid).unwrap()).unwrap()
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // A test that failed leaves no process behind either.
        if self.socket.exists() {
            let _ = kill_process(self.host(), Signal::TERM);
        }
    }
}

/// Asks again and again until there is an answer. The story's limit is the limit.
pub(crate) async fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Whether a process is there and has not ended.
pub(crate) fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z")))
}

/// A connection, and the exit it may have been told of while something else was waited for.
pub(crate) struct Talk {
    pub(crate) client: HostClient,
    exit: Option<Exit>,
}

impl Talk {
    pub(crate) async fn say(&mut self, request: Request) {
        self.client.requests.send(&request).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Reply {
        let reply = self.client.replies.next().await.unwrap().expect("the host is there");
        if let Reply::Exited(exit) = reply {
            self.exit = Some(exit);
        }
        reply
    }

    /// Asks and waits for the answer to it; what else the host says meanwhile is passed over.
    pub(crate) async fn ask(&mut self, request: Request) -> Reply {
        let wanted = request.kind();
        self.say(request).await;
        loop {
            match self.hear().await {
                reply @ (Reply::Done { kind } | Reply::Refused { kind, .. }) if kind == wanted => {
                    return reply;
                }
                reply @ (Reply::Taken { .. } | Reply::Status(_)) => return reply,
                _ => {}
            }
        }
    }

    pub(crate) async fn write(&mut self, stream: Stream, number: u64, bytes: &[u8]) -> Reply {
        self.ask(Request::Write { stream, number, bytes: bytes.to_vec() }).await
    }

    pub(crate) async fn status(&mut self) -> Status {
        match self.ask(Request::Status).await {
            Reply::Status(status) => status,
            other => panic!("{other:?}"),
        }
    }

    /// Reads a stream from an offset to its end, acknowledging as it goes if told to.
    pub(crate) async fn read_all(&mut self, stream: Stream, from: u64, acknowledge: bool) -> Vec<u8> {
        self.say(Request::Follow { stream, from }).await;
        let (mut all, mut next) = (Vec::new(), from);
        loop {
            match self.hear().await {
                Reply::Data { stream: of, offset, bytes } if of == stream => {
                    assert_eq!(offset, next);
                    next += bytes.len() as u64;
                    all.extend(bytes);
                    if acknowledge {
                        self.say(Request::Acknowledge { stream, upto: next }).await;
                    }
                }
                Reply::End { stream: of, offset } if of == stream => {
                    assert_eq!(offset, next);
                    return all;
                }
                Reply::Gap { .. } | Reply::Refused { .. } => panic!("nothing is missing"),
                _ => {}
            }
        }
    }

    pub(crate) async fn exit(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.exit {
                return exit;
            }
            self.hear().await;
        }
    }
}
