//! One file's posts, in the order in which they came.
//!
//! ```text
//!  post ─► nobody at it? ─ yes ─► append in place ─► answer
//!                 │ no
//!                 └─► queue ─► one thread takes what has gathered ─► one lock, one write ─► an answer to each
//! ```
//!
//! An append to a bus in order takes microseconds: less than handing it to another thread and waiting for that, which is
//! two wake-ups. So whoever finds the lane empty appends where it is. Whatever could take longer is done by a thread of the
//! lane: the first post, a search for an earlier one, a lock that somebody holds, an account that is kept of it. Posts that come meanwhile gather, and are
//! written together. However many wait, a lane has one thread; so a file whose disk or lock does not move holds up its own
//! posters and nobody else, and those beyond what a lane holds are refused at once.
//!
//! Invariants: posts are written in the order in which they were taken; every post has exactly one answer, and what is
//! wrong with one is told to it alone; what was written is announced whether or not its poster still listens, and in the
//! order of the file; a poster that has gone before its turn is not posted.
//! Proof: `tests/http/posting.rs`.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use swb_journal::message_bus::{
    AppendError, AppendErrorKind, Appended, BusOptions, BusPath, Draft, MessageBus,
};
use swb_proto::Actor;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;

use crate::announce::Announce;
use crate::failure::{ErrorCode, Failure};
use crate::messages::Scope;
use crate::metrics::{Counted, Metrics};
use crate::postmaster::Expected;

/// Posts that may wait for one file, and their bytes.
const MOST_WAITING: usize = 1024;
const MOST_BYTES: usize = 32 << 20;
/// Written together at the most: writers of other processes want the lock too.
const LARGEST_GATHERING: usize = 256;
const LARGEST_WRITE: usize = 4 << 20;

/// One bus and those who post to it.
#[derive(Debug)]
pub(crate) struct Lane {
    root: Arc<Path>,
    scope: Scope,
    announce: Arc<Announce>,
    open: Mutex<Option<Open>>,
    line: Mutex<Line>,
}

/// The bus, opened twice: for work that may take its time, and for a post that must not.
#[derive(Debug, Clone)]
struct Open {
    patient: Arc<MessageBus>,
    quick: Arc<MessageBus>,
    /// A post went through: the folders are there and the end of the file was in order.
    proven: bool,
}

/// Those who wait.
#[derive(Debug, Default)]
struct Line {
    posts: VecDeque<Post>,
    bytes: usize,
    /// Somebody appends, and will see to those who wait.
    busy: bool,
}

#[derive(Debug)]
struct Post {
    draft: Draft,
    bytes: usize,
    actor: Actor,
    answer: oneshot::Sender<Answer>,
    waiting: Counted<Gauge>,
    expected: Option<Box<dyn Expected>>,
}

type Gauge = fn(&Metrics) -> &AtomicI64;

type Answer = Result<Appended, Failure>;

impl Lane {
    pub(crate) fn new(root: Arc<Path>, scope: Scope, announce: Arc<Announce>) -> Self {
        Lane { root, scope, announce, open: Mutex::default(), line: Mutex::default() }
    }

    /// The bus where it lies now, for reading. Looks at the disk: not for a task.
    pub(crate) fn bus(&self) -> Result<Arc<MessageBus>, Failure> {
        Ok(self.opened()?.patient)
    }

    /// Posts a message and announces it. `in_place` is the permission to append right here.
    pub(crate) async fn append(
        self: &Arc<Self>,
        draft: Draft,
        actor: Actor,
        in_place: &Semaphore,
    ) -> Result<Appended, Failure> {
        let expected = self.announce.expect(&self.scope);
        // To be accounted for is to wait for the disk.
        if expected.is_none()
            && draft.idempotency_key.is_none()
            && let Some(quick) = self.proven()
            && let Ok(_permit) = in_place.try_acquire()
            && let Some(turn) = Turn::take(self)
        {
            match quick.append(&draft) {
                Err(error) if wants_patience(&error) => {}
                done => {
                    let appended = done?;
                    self.announce.written();
                    self.announce.posted(&self.scope, &draft, &actor, &appended, None);
                    return Ok(appended);
                }
            }
            // In front of those who came meanwhile.
            let answer = self.line_up(draft, actor, None, VecDeque::push_front)?;
            drop(turn);
            return answered(answer).await;
        }
        let answer = self.line_up(draft, actor, expected, VecDeque::push_back)?;
        drop(Turn::take(self));
        answered(answer).await
    }

    fn line_up(
        &self,
        draft: Draft,
        actor: Actor,
        expected: Option<Box<dyn Expected>>,
        push: fn(&mut VecDeque<Post>, Post),
    ) -> Result<oneshot::Receiver<Answer>, Failure> {
        let (answer, receiver) = oneshot::channel();
        let mut line = lock(&self.line);
        if line.posts.len() >= MOST_WAITING || line.bytes >= MOST_BYTES {
            let why = "too many messages wait to be written to this bus";
            return Err(Failure::new(ErrorCode::TooManyRequests, why));
        }
        let waiting = Counted::new(&self.announce.metrics, (|metrics| &metrics.waiting) as Gauge);
        let post = Post { bytes: weight(&draft), draft, actor, answer, waiting, expected };
        line.bytes += post.bytes;
        push(&mut line.posts, post);
        Ok(receiver)
    }

    fn write(&self, posts: Vec<Post>) {
        let (mut drafts, mut posters) = (Vec::with_capacity(posts.len()), Vec::with_capacity(posts.len()));
        for Post { draft, actor, answer, waiting, expected, .. } in
            posts.into_iter().filter(|post| !post.answer.is_closed())
        {
            drafts.push(draft);
            posters.push((actor, answer, waiting, expected));
        }
        let bus = match self.bus() {
            Ok(bus) => bus,
            Err(failure) => {
                for (_, answer, _waiting, _) in posters {
                    let _ = answer.send(Err(failure.clone()));
                }
                return;
            }
        };
        let answers = bus.append_each(&drafts);
        self.announce.written();
        if answers.iter().any(Result::is_ok) && bus.path().is_in_usual_place() {
            self.prove(&bus);
        }
        for ((draft, (actor, answer, _waiting, expected)), appended) in
            drafts.iter().zip(posters).zip(answers)
        {
            if let Ok(appended) = &appended {
                self.announce.posted(&self.scope, draft, &actor, appended, expected);
            }
            // Who has gone does not need it.
            let _ = answer.send(appended.map_err(Failure::from));
        }
    }

    /// The bus for a post in place, if a post has gone through. A bus in another place than the usual one is looked for
    /// each time, because a folder in the usual place would come first.
    fn proven(&self) -> Option<Arc<MessageBus>> {
        lock(&self.open).as_ref().filter(|open| open.proven).map(|open| Arc::clone(&open.quick))
    }

    fn prove(&self, bus: &Arc<MessageBus>) {
        if let Some(open) = lock(&self.open).as_mut().filter(|open| Arc::ptr_eq(&open.patient, bus)) {
            open.proven = true;
        }
    }

    fn opened(&self) -> Result<Open, Failure> {
        let path = BusPath::in_root(&self.root, self.scope.project(), self.scope.task())
            .map_err(|error| Failure::bad_request(error.to_string()))?;
        let mut open = lock(&self.open);
        if let Some(open) = open.as_ref().filter(|open| *open.patient.path() == path) {
            return Ok(open.clone());
        }
        let impatient = BusOptions {
            lock_timeout: Duration::ZERO,
            max_retries: 1,
            create_folders: false,
            ..BusOptions::default()
        };
        Ok(open
            .insert(Open {
                patient: Arc::new(MessageBus::new(path.clone(), BusOptions::default())),
                quick: Arc::new(MessageBus::new(path, impatient)),
                proven: false,
            })
            .clone())
    }
}

impl Line {
    /// What is to be written together.
    fn gather(&mut self) -> Vec<Post> {
        let mut bytes = 0;
        let fits = |post: &&Post| {
            bytes += post.bytes;
            bytes <= LARGEST_WRITE
        };
        let few = self.posts.iter().take(LARGEST_GATHERING).take_while(fits).count().max(1);
        let posts: Vec<_> = self.posts.drain(..few.min(self.posts.len())).collect();
        self.bytes -= posts.iter().map(|post| post.bytes).sum::<usize>();
        posts
    }
}

/// The right to append, and the duty to see to those who wait: whoever lets it go hands them to a thread.
#[derive(Debug)]
struct Turn(Arc<Lane>);

impl Turn {
    /// `None` if somebody has it.
    fn take(lane: &Arc<Lane>) -> Option<Self> {
        let taken = std::mem::replace(&mut lock(&lane.line).busy, true);
        (!taken).then(|| Turn(Arc::clone(lane)))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut line = lock(&self.0.line);
        line.busy = !line.posts.is_empty();
        if line.busy {
            drop(line);
            let shift = Shift { lane: Arc::clone(&self.0), over: false };
            spawn_blocking(move || shift.work());
        }
    }
}

/// A thread's turn. One that ends early, in a panic or because the runtime stops, leaves nobody waiting.
#[derive(Debug)]
struct Shift {
    lane: Arc<Lane>,
    over: bool,
}

impl Shift {
    /// Writes what waits until nothing does.
    fn work(mut self) {
        loop {
            let mut line = lock(&self.lane.line);
            let posts = line.gather();
            if posts.is_empty() {
                line.busy = false;
                self.over = true;
                return;
            }
            drop(line);
            self.lane.write(posts);
        }
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        if !self.over {
            *lock(&self.lane.line) = Line::default();
        }
    }
}

async fn answered(answer: oneshot::Receiver<Answer>) -> Answer {
    answer.await.unwrap_or_else(|gone| Err(Failure::internal("the request did not finish", &gone)))
}

/// Somebody holds the lock, or the folder has gone: nothing for a thread of the runtime to wait for.
fn wants_patience(error: &AppendError) -> bool {
    match &error.kind {
        AppendErrorKind::LockTimeout { .. } => true,
        AppendErrorKind::Open(error) => error.is_missing(),
        _ => false,
    }
}

/// About what a draft takes in memory.
fn weight(draft: &Draft) -> usize {
    let meta: usize = draft.meta.iter().map(|(key, value)| key.len() + value.len()).sum();
    let parents: usize = draft.parents.iter().map(|parent| parent.id.len() + parent.kind.len()).sum();
    let links: usize = draft.links.iter().map(|link| link.url.len() + link.label.len()).sum();
    size_of::<Post>() + draft.body.len() + meta + parents + links
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
