//! Our end of the protocol: who we are, and what a server may tell or ask us unbidden.
//!
//! A server may say that its tools have changed and how far a call has come, and it may ask which folder we work in. It
//! may not have our model speak for it (sampling) or ask the user for anything (elicitation); such requests are refused.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ClientCapabilities, Implementation, InitializeRequestParams, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};
use tokio::sync::{Notify, mpsc};

/// How many signs of progress may wait to be shown; more are dropped.
const PROGRESS_WAITING: usize = 16;

/// What a server hears from us, and what we hear from it.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// The folder we work in, as a URI.
    root: Arc<str>,
    /// The server's tools are not what they were.
    pub(super) changed: Arc<Notify>,
    pub(super) progress: Progress,
}

impl Client {
    pub(super) fn new(root: &Path) -> Self {
        Client { root: file_uri(root).into(), changed: Arc::default(), progress: Progress::default() }
    }
}

#[expect(deprecated, reason = "servers of every version but the latest ask for the folder in this way")]
impl ClientHandler for Client {
    fn get_info(&self) -> InitializeRequestParams {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(Default::default());
        let us = Implementation::new("switchboard", env!("CARGO_PKG_VERSION"));
        InitializeRequestParams::new(capabilities, us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Ok(rmcp::model::ListRootsResult::new(vec![rmcp::model::Root::new(&*self.root)]))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.pass_on(progress);
    }
}

/// Who waits for signs of progress.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<String>>>>);

impl Progress {
    /// Signs of progress of one call, until this is dropped.
    pub(super) fn of(&self, token: ProgressToken) -> Signs {
        let (sender, signs) = mpsc::channel(PROGRESS_WAITING);
        self.lock().insert(token.clone(), sender);
        Signs { token, signs, progress: self.clone() }
    }

    fn pass_on(&self, said: ProgressNotificationParam) {
        let ProgressNotificationParam { progress_token, progress, total, message, .. } = said;
        if let Some(sender) = self.lock().get(&progress_token) {
            let total = total.map(|total| format!("/{total}")).unwrap_or_default();
            let message = message.map(|message| format!(": {message}")).unwrap_or_default();
            // Who does not keep up misses some; the next one says more anyway.
            let _ = sender.try_send(format!("progress {progress}{total}{message}\n"));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The signs of progress of one call.
#[derive(Debug)]
pub(super) struct Signs {
    token: ProgressToken,
    signs: mpsc::Receiver<String>,
    progress: Progress,
}

impl Signs {
    pub(super) async fn next(&mut self) -> String {
        match self.signs.recv().await {
            Some(sign) => sign,
            None => std::future::pending().await,
        }
    }

    /// One that has come already.
    pub(super) fn waiting(&mut self) -> Option<String> {
        self.signs.try_recv().ok()
    }
}

impl Drop for Signs {
    fn drop(&mut self) {
        self.progress.lock().remove(&self.token);
    }
}

fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    #[test]
    fn a_folder_is_a_uri_whatever_it_is_called() {
        assert_eq!(file_uri(Path::new("/a b/ü%.x")), "file:///a%20b/%C3%BC%25.x");
    }

    #[tokio::test]
    async fn progress_reaches_the_call_it_is_about_and_no_other() {
        let progress = Progress::default();
        let token = |number| ProgressToken(NumberOrString::Number(number));
        let mut one = progress.of(token(1));
        let two = progress.of(token(2));
        progress.pass_on(ProgressNotificationParam::new(token(1), 1.0).with_total(4.0).with_message("half"));
        progress.pass_on(ProgressNotificationParam::new(token(3), 1.0));
        assert_eq!(one.next().await, "progress 1/4: half\n");
        for _ in 0..100 {
            progress.pass_on(ProgressNotificationParam::new(token(2), 1.0));
        }
        assert_eq!(two.signs.len(), PROGRESS_WAITING);
        drop((one, two));
        assert!(progress.lock().is_empty());
    }
}
