//! One call of a tool: asked, waited for within limits, withdrawn if nobody wants it any more.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam, ClientRequest,
    JsonObject, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use tokio::time::{Instant, sleep};

use super::answer::text_of;
use super::link::short;
use super::server::{Connection, Server};
use crate::tools::Printer;

/// However much progress there is.
const LONGEST_CALL: Duration = Duration::from_secs(30 * 60);
/// How long a server may take at most to show that it is alive after it let a call time out.
const PING_PATIENCE: Duration = Duration::from_secs(5);
/// How long a message may take to leave us.
const SEND_PATIENCE: Duration = Duration::from_secs(10);
/// How soon it is known why a connection broke.
const EXPLANATION: Duration = Duration::from_secs(1);

/// Why a call did not work. The text is for the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("the server `{server}` is down: {reason}{}", later(pause))]
    Down { server: String, reason: String, pause: Duration },
    #[error("the server ended before it had answered: {reason}")]
    Ended { reason: String },
    #[error("the server gave no answer and no sign of progress for {} s", limit.as_secs())]
    TimedOut { limit: Duration },
    #[error("the server refused the call: {message} ({code})")]
    Refused { message: String, code: i32 },
    /// The tool itself failed; these are its words.
    #[error("{0}")]
    Failed(String),
    #[error("the server wants {0}, which is not supported here")]
    Unsupported(&'static str),
    #[error("the arguments are not an object")]
    Arguments,
}

impl CallError {
    /// Whether the same call may succeed later.
    pub(crate) fn retryable(&self) -> bool {
        matches!(self, CallError::Down { .. } | CallError::Ended { .. } | CallError::TimedOut { .. })
    }
}

fn later(pause: &Duration) -> String {
    match pause.as_millis().div_ceil(1000) {
        0 => String::new(),
        seconds => format!("; it is started again at the earliest in {seconds} s"),
    }
}

impl Server {
    /// Calls the tool of this name.
    pub(super) async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: JsonObject,
        printer: &Printer,
    ) -> Result<String, CallError> {
        let connection = self.connection().await?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        match self.ask(&connection, request, printer).await? {
            Ok(ServerResult::CallToolResult(result)) => {
                self.has_worked();
                let (text, failed) = text_of(&result);
                if failed { Err(CallError::Failed(text)) } else { Ok(text) }
            }
            Ok(ServerResult::InputRequiredResult(_)) => {
                Err(CallError::Unsupported("an answer from a person"))
            }
            Ok(ServerResult::CreateTaskResult(_)) => Err(CallError::Unsupported("to answer later")),
            Ok(_) => Err(CallError::Failed("the server's answer is not that of a tool".to_owned())),
            Err(ServiceError::McpError(error)) => {
                self.has_worked();
                Err(CallError::Refused { message: error.message.into_owned(), code: error.code.0 })
            }
            Err(error) => {
                if let ServiceError::TransportSend(error) = &error {
                    connection.fault.raise(short(error.error.as_ref()));
                }
                let reason = self.why_down(EXPLANATION).await;
                Err(CallError::Ended { reason: reason.unwrap_or_else(|| short(&error)) })
            }
        }
    }

    async fn ask(
        &self,
        connection: &Connection,
        request: ClientRequest,
        printer: &Printer,
    ) -> Result<Result<ServerResult, ServiceError>, CallError> {
        let limit = self.spec.call_timeout;
        let sending = connection.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let mut handle = match tokio::time::timeout(SEND_PATIENCE, sending).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(error)) => return Ok(Err(error)),
            Err(_) => return Err(CallError::TimedOut { limit: SEND_PATIENCE }),
        };
        let mut open = Open { peer: &connection.peer, id: Some(handle.id.clone()) };
        let mut signs = connection.progress.of(handle.progress_token.clone());
        let mut silence = pin!(sleep(limit));
        let mut end = pin!(sleep(LONGEST_CALL));
        let limit = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    open.id = None;
                    while let Some(sign) = signs.waiting() {
                        printer.print(&sign).await;
                    }
                    return Ok(answer.unwrap_or(Err(ServiceError::TransportClosed)));
                }
                sign = signs.next() => {
                    silence.as_mut().reset(Instant::now() + limit);
                    printer.print(&sign).await;
                }
                () = &mut silence => break limit,
                () = &mut end => break LONGEST_CALL,
            }
        };
        tokio::spawn(check(connection.clone(), limit.min(PING_PATIENCE)));
        Err(CallError::TimedOut { limit })
    }
}

/// A server that answers nothing at all is given up, so that the next call meets a fresh one.
async fn check(connection: Connection, patience: Duration) {
    let ping = connection.peer.send_request(ClientRequest::PingRequest(Default::default()));
    // Any answer will do, a refusal too.
    if tokio::time::timeout(patience, ping).await.is_err() {
        connection.fault.raise("it does not answer any more");
    }
}

/// A call that the server works on. Dropped before its answer has come, the server is told that nobody waits.
struct Open<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let reason = "nobody waits for it any more".to_owned();
            let params = CancelledNotificationParam::new(Some(id), Some(reason));
            let peer = self.peer.clone();
            tokio::spawn(async move {
                let said = peer.send_notification(CancelledNotification::new(params).into());
                let _ = tokio::time::timeout(SEND_PATIENCE, said).await;
            });
        }
    }
}
