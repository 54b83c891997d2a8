//! `tools_list`: at once, unless some server has not said yet what it has. Then it waits a moment for it, and nothing else
//! waits with it.

use std::time::Duration;

use tokio::time::Instant;

use super::reply::Tools;
use super::{Agent, Gone, until};
use crate::mcp::Mcp;

/// Parents that only want to know the tools lose patience after eight seconds.
const PATIENCE: Duration = Duration::from_secs(4);

/// Lists that wait to be answered.
#[derive(Debug, Default)]
pub(super) struct Lists {
    ids: Vec<String>,
    deadline: Option<Instant>,
}

impl Lists {
    /// Returns once they are to be answered; never if there are none.
    pub(super) async fn due(&self, mcp: &Mcp) {
        tokio::select! {
            () = until(self.deadline) => {}
            () = mcp.settled(PATIENCE), if self.deadline.is_some() => {}
        }
    }
}

impl Agent {
    pub(super) async fn list_tools(&mut self, id: String) -> Result<(), Gone> {
        self.lists.ids.push(id);
        if self.toolbox.mcp.is_starting() {
            self.lists.deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
            return Ok(());
        }
        self.answer_lists().await
    }

    pub(super) async fn answer_lists(&mut self) -> Result<(), Gone> {
        let lists = std::mem::take(&mut self.lists);
        for id in lists.ids {
            let body = Tools { ok: true, tools: self.toolbox.describe() };
            self.respond(&id, "tools_list", &body).await?;
        }
        Ok(())
    }
}
