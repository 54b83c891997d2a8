//! A connection to a server, from the first byte to the last.
//!
//! Most servers begin with a handshake. One that refuses it may be of the latest version, which knows none, and is tried
//! once more in that way; with a fresh start, because a program that was surprised may be in any state.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RoleClient, RunningService,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};

use super::client::Client;
use super::expand::{Unset, expand};
use super::fault::Fault;
use super::flow::MAX_MESSAGE_BYTES;
use super::http::{Http, HttpError};
use super::options::{Reach, ServerSpec};
use super::program::{Launch, Program, why_not};
use crate::cancel::Cancel;

/// How long what a server said last is waited for after its end.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long a good end may take.
const GOODBYE: Duration = Duration::from_millis(250);
const SHOWN_CHARS: usize = 400;
/// The protocol sets these itself.
const RESERVED: [&str; 7] = [
    "accept",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error(transparent)]
    Setting(#[from] Unset),
    #[error("the header {0:?} in its settings cannot be used")]
    Header(String),
    #[error("{0}")]
    NotStarted(String),
    #[error("it did not answer within {} s{}", limit.as_secs(), said(words))]
    TimedOut { limit: Duration, words: String },
    #[error("{words}")]
    Ended { words: String },
    /// The server has heard our greeting and does not agree.
    #[error("it refused the handshake: {0}")]
    Refused(String),
    #[error("the handshake failed: {reason}{}", said(words))]
    Handshake { reason: String, words: String },
    #[error(transparent)]
    Http(#[from] HttpError),
}

fn said(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(" ({words})") }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) peer: Peer<RoleClient>,
    pub(super) client: Client,
    pub(super) fault: Fault,
    service: RunningService<RoleClient, Client>,
    program: Option<Program>,
}

impl Link {
    /// Starts or calls the server, and agrees with it on how to talk.
    pub(super) async fn open(spec: &ServerSpec, root: &Path) -> Result<Self, ConnectError> {
        match Self::attempt(spec, root, ClientLifecycleMode::Initialize).await {
            Err(refused @ ConnectError::Refused(_)) => {
                let preferred_versions = vec![ProtocolVersion::LATEST];
                let latest = ClientLifecycleMode::Discover { preferred_versions };
                Self::attempt(spec, root, latest).await.map_err(|_| refused)
            }
            other => other,
        }
    }

    async fn attempt(
        spec: &ServerSpec,
        root: &Path,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, ConnectError> {
        let (client, fault) = (Client::new(root), Fault::new());
        let filled = |text: &String| expand(text, |name| std::env::var(name).ok());
        let (service, program) = match &spec.reach {
            Reach::Program { command, args, env, folder } => {
                let launch = Launch {
                    command: filled(command)?,
                    args: args.iter().map(filled).collect::<Result<_, _>>()?,
                    env: env
                        .iter()
                        .map(|(name, value)| Ok((name.clone(), filled(value)?)))
                        .collect::<Result<_, Unset>>()?,
                    folder: root.join(folder.as_deref().unwrap_or(Path::new(""))),
                };
                let (program, heard, told) = Program::start(&launch, &fault)
                    .map_err(|error| ConnectError::NotStarted(why_not(&launch, &error)))?;
                // The pipe has a stricter limit of its own; this one would only drop the message in silence.
                let transport = AsyncRwTransport::new_client(heard, told).with_max_line_length(usize::MAX);
                let serving = client.clone().serve_with_lifecycle(transport, lifecycle);
                (tokio::time::timeout(spec.start_timeout, serving).await, Some(program))
            }
            Reach::Address { url, headers } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(filled(url)?)
                    .custom_headers(filled_headers(headers, filled)?)
                    .max_sse_event_size(MAX_MESSAGE_BYTES);
                let mut retries = ExponentialBackoff::default();
                retries.max_delay = Some(Duration::from_secs(30));
                config.retry_config = Arc::new(retries);
                let transport = StreamableHttpClientTransport::with_client(Http::new(&fault)?, config);
                let serving = client.clone().serve_with_lifecycle(transport, lifecycle);
                (tokio::time::timeout(spec.start_timeout, serving).await, None)
            }
        };
        match service {
            Ok(Ok(service)) => Ok(Link { peer: service.peer().clone(), client, fault, service, program }),
            Ok(Err(error)) => Err(not_agreed(error, program, &fault).await),
            Err(_) => {
                let words = words_of(program).await;
                Err(ConnectError::TimedOut { limit: spec.start_timeout, words })
            }
        }
    }

    /// Returns why, once it is over; or nothing once we have ended it because we were told to.
    pub(super) async fn ended(self, told: &Cancel) -> Option<String> {
        let Link { service, program, fault, .. } = self;
        let goodbye = service.cancellation_token();
        let mut closed = pin!(service.waiting());
        let Some(mut program) = program else {
            return tokio::select! {
                _ = &mut closed => Some(fault.cause().unwrap_or("it closed the connection").to_owned()),
                () = fault.happened() => fault.cause().map(str::to_owned),
                () = told.cancelled() => {
                    goodbye.cancel();
                    let _ = tokio::time::timeout(GOODBYE, closed).await;
                    None
                }
            };
        };
        let words = tokio::select! {
            words = program.ended() => {
                // What it said last is still in the pipe.
                let _ = tokio::time::timeout(LAST_WORDS, closed).await;
                words
            }
            _ = &mut closed => program.bury().await,
            () = fault.happened() => String::new(),
            () = told.cancelled() => {
                // Its input ends, which is how a server is asked to end; whoever does not is killed.
                goodbye.cancel();
                let _ = tokio::time::timeout(GOODBYE, async { tokio::join!(closed, program.ended()) }).await;
                return None;
            }
        };
        Some(fault.cause().map_or(words, str::to_owned))
    }
}

fn filled_headers(
    headers: &std::collections::BTreeMap<String, String>,
    filled: impl Fn(&String) -> Result<String, Unset>,
) -> Result<HashMap<HeaderName, HeaderValue>, ConnectError> {
    let mut ready = HashMap::new();
    for (name, value) in headers {
        let unusable = || ConnectError::Header(name.clone());
        let known: HeaderName = name.parse().map_err(|_| unusable())?;
        if RESERVED.contains(&known.as_str()) {
            return Err(unusable());
        }
        let mut value = HeaderValue::from_str(&filled(value)?).map_err(|_| unusable())?;
        value.set_sensitive(true);
        ready.insert(known, value);
    }
    Ok(ready)
}

async fn words_of(program: Option<Program>) -> String {
    match program {
        Some(program) => program.bury().await,
        None => String::new(),
    }
}

async fn not_agreed(error: ClientInitializeError, program: Option<Program>, fault: &Fault) -> ConnectError {
    let words = words_of(program).await;
    if let Some(cause) = fault.cause() {
        return ConnectError::Ended { words: cause.to_owned() };
    }
    match error {
        ClientInitializeError::JsonRpcError(error) => ConnectError::Refused(error.message.into_owned()),
        ClientInitializeError::ConnectionClosed(_) if !words.is_empty() => ConnectError::Ended { words },
        ClientInitializeError::TransportError { error, .. } => {
            ConnectError::Handshake { reason: short(error.error.as_ref()), words }
        }
        error => ConnectError::Handshake { reason: short(&error), words },
    }
}

/// What an error says, without the protocol dump that some of them carry.
pub(super) fn short(error: &(dyn Error + 'static)) -> String {
    error.to_string().chars().take(SHOWN_CHARS).collect()
}
