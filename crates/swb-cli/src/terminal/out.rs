//! Bytes on their way out, written by a thread of its own.
//!
//! A terminal that was stopped, or a program that does not read, holds up that thread alone: whoever writes keeps hearing
//! signals and keys, and sees that there is no room. When the reader goes away this is known even with nothing to write.

use std::io::Write;

use tokio::sync::{mpsc, oneshot, watch};

/// What is written next waits here while the last is being written.
const WAITING: usize = 1;

/// The way to standard output.
#[derive(Debug)]
pub(crate) struct Out {
    sender: mpsc::Sender<Vec<u8>>,
    written: oneshot::Receiver<()>,
    gone: watch::Receiver<bool>,
}

impl Out {
    /// Starts writing to standard output.
    pub(crate) fn start() -> Self {
        let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(WAITING);
        let (done, written) = oneshot::channel();
        let (went, gone) = watch::channel(false);
        let noticed = went.clone();
        std::thread::spawn(move || {
            while let Some(bytes) = receiver.blocking_recv() {
                // Not held in between: who stops for a while has a last word to say.
                let mut stdout = std::io::stdout().lock();
                if stdout.write_all(&bytes).and_then(|()| stdout.flush()).is_err() {
                    went.send_replace(true);
                    break;
                }
            }
            let _ = done.send(());
        });
        std::thread::spawn(move || {
            crate::io::wait_for_reader_to_go();
            noticed.send_replace(true);
        });
        Out { sender, written, gone }
    }

    /// Returns when there is room for more.
    pub(crate) async fn room(&self) {
        if self.sender.reserve().await.is_err() {
            // The thread has given up, which is told by `gone`.
            std::future::pending::<()>().await;
        }
    }

    /// Writes this next. Only when there is room, which nobody else takes.
    pub(crate) fn send(&self, bytes: Vec<u8>) {
        let _ = self.sender.try_send(bytes);
    }

    /// Returns when nobody reads any more.
    pub(crate) async fn gone(&self) {
        if self.gone.clone().wait_for(|gone| *gone).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when everything was written, or cannot be.
    pub(crate) async fn finish(self) {
        drop(self.sender);
        let _ = self.written.await;
    }
}
