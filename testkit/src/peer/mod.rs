//! A provider of models on loopback that does what it is told: streams, stalls, breaks off, refuses.
//!
//! A [`Peer`] answers each call of a model with the next [`Reply`] of its script, and keeps what it was asked. It is a
//! thread per connection and knows just enough HTTP. [`anthropic`], [`openai`] and [`gemini`] write the streams of the
//! three dialects, frame by frame, so that a test can cut and rearrange them.

pub mod anthropic;
pub mod gemini;
mod http;
pub mod openai;
mod reply;

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

pub use http::Request;
pub use reply::{Gate, Reply};

use crate::wait;

/// What a call is answered with when the script is over.
const NOTHING_LEFT: u16 = 418;

/// The provider.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    script: Mutex<VecDeque<Reply>>,
    models: Mutex<Option<(u16, Value)>>,
    asked: Mutex<Vec<Request>>,
    hung_up: AtomicU64,
    sent: AtomicU64,
    held_up: AtomicBool,
    closed: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Peer {
    fn default() -> Self {
        Self::start()
    }
}

impl Peer {
    /// Listens on a port of its own.
    ///
    /// # Panics
    /// If there is none.
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if serving.closed.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || serve(connection, &shared));
            }
        });
        Peer { address, shared }
    }

    /// Its address, as far as the path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers the next call that has no answer yet with this.
    pub fn reply(&self, reply: Reply) -> &Self {
        locked(&self.shared.script).push_back(reply);
        self
    }

    /// Answers questions for models with this.
    pub fn list_models(&self, status: u16, list: Value) -> &Self {
        *locked(&self.shared.models) = Some((status, list));
        self
    }

    /// The calls of models so far.
    pub fn asked(&self) -> Vec<Request> {
        locked(&self.shared.asked).clone()
    }

    /// The only call so far.
    ///
    /// # Panics
    /// If there was none, or more than one.
    #[track_caller]
    pub fn only_request(&self) -> Request {
        let mut asked = self.asked();
        assert_eq!(asked.len(), 1, "{asked:#?}");
        asked.remove(0)
    }

    /// Waits until somebody who was still being answered has hung up.
    #[track_caller]
    pub fn wait_for_hang_up(&self) {
        wait("somebody to hang up", || self.shared.hung_up.load(Ordering::Relaxed) > 0);
    }

    /// Waits until nobody takes what it sends.
    #[track_caller]
    pub fn wait_until_held_up(&self) {
        wait("the peer to be held up", || self.shared.held_up.load(Ordering::Relaxed));
    }

    /// How many bytes of streams it has sent.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        // Wakes the one who accepts; failing means there is none.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut connection: TcpStream, shared: &Shared) {
    let Some(request) = http::read(&mut connection) else { return };
    let reply = if request.method == "GET" {
        let (status, list) =
            locked(&shared.models).clone().unwrap_or((404, json!({ "error": "no models are listed" })));
        Reply::status(status, list.to_string())
    } else {
        locked(&shared.asked).push(request);
        let next = locked(&shared.script).pop_front();
        next.unwrap_or_else(|| Reply::status(NOTHING_LEFT, "the script is over"))
    };
    // Whoever hangs up early has a reason that the test knows.
    if reply.send(&mut connection, shared).is_err() {
        shared.hung_up.fetch_add(1, Ordering::Relaxed);
    }
}
