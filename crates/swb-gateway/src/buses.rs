//! The buses under the root, opened: one [`Lane`] each. An open one keeps its file between posts, which makes a post
//! several times cheaper; which ones are open is forgotten freely.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use swb_journal::message_bus::{Appended, Draft, MessageBus};
use swb_proto::Actor;
use tokio::sync::Semaphore;

use crate::announce::Announce;
use crate::failure::Failure;
use crate::lane::Lane;
use crate::messages::Scope;

/// Each holds a few descriptors.
const MOST_OPEN: usize = 64;

#[derive(Debug)]
pub(crate) struct Buses {
    root: Arc<Path>,
    lanes: Mutex<HashMap<Scope, Arc<Lane>>>,
    announce: Arc<Announce>,
    /// Who may append on a thread of the runtime. One at a time, whatever the file, and none if that thread is the only
    /// one: a disk that hangs then holds up one thread and no other caller.
    in_place: Semaphore,
}

impl Buses {
    /// `threads` is how many threads the runtime has.
    pub(crate) fn new(root: PathBuf, threads: usize, announce: Announce) -> Self {
        Buses {
            root: root.into(),
            lanes: Mutex::default(),
            announce: Arc::new(announce),
            in_place: Semaphore::new(usize::from(threads > 1)),
        }
    }

    /// The bus, for reading. Looks at the disk: not for a task.
    pub(crate) fn get(&self, scope: &Scope) -> Result<Arc<MessageBus>, Failure> {
        self.lane(scope).bus()
    }

    /// Posts a message and announces it.
    pub(crate) async fn append(
        &self,
        scope: &Scope,
        draft: Draft,
        actor: Actor,
    ) -> Result<Appended, Failure> {
        self.lane(scope).append(draft, actor, &self.in_place).await
    }

    fn lane(&self, scope: &Scope) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(scope) {
            return Arc::clone(lane);
        }
        if lanes.len() >= MOST_OPEN {
            // Whoever posts or reads holds its lane; the others are idle.
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
        }
        let lane = Arc::new(Lane::new(Arc::clone(&self.root), scope.clone(), Arc::clone(&self.announce)));
        lanes.insert(scope.clone(), Arc::clone(&lane));
        lane
    }
}
