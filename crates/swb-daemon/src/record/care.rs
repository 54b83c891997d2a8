//! What the record needs from day to day: the old is purged, the end is anchored.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use swb_bus::topics::Topics;
use swb_journal::audit::{
    AuditReader, Entry, Hold, HoldScope, Moment, PurgeError, PurgeOrder, Purged, Receipt, RecordedActor,
};
use swb_proto::control::AuditStatus;
use swb_proto::{Actor, Meta};
use tokio::task::AbortHandle;

use super::{RecordError, Recorder};

/// How often somebody looks after the record.
const LOOK: Duration = Duration::from_secs(60);
/// How many looks lie between two purges: a day.
const PURGE_EVERY: u64 = 24 * 60;

/// Looks after the record until it is dropped.
#[derive(Debug)]
pub(crate) struct Care(AbortHandle);

impl Drop for Care {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Recorder {
    /// Looks after the record from now on.
    pub(crate) fn look_after(self: &Arc<Self>, topics: &Arc<Topics>) -> Care {
        let (recorder, topics) = (Arc::clone(self), Arc::clone(topics));
        let task = tokio::spawn(async move {
            let mut segment = recorder.log.segment();
            let mut clock = tokio::time::interval(LOOK);
            clock.tick().await;
            for look in 0_u64.. {
                clock.tick().await;
                if look % PURGE_EVERY == 0 {
                    recorder.purge_by_age(&topics).await;
                }
                let current = recorder.log.segment();
                if std::mem::replace(&mut segment, current) != current {
                    recorder.anchor().await;
                }
            }
        });
        Care(task.abort_handle())
    }

    /// Tells the end of the record to the place outside.
    pub(crate) async fn anchor(&self) {
        self.anchor.tell(self.log.head()).await;
    }

    async fn purge_by_age(self: &Arc<Self>, topics: &Topics) {
        let recorder = Arc::clone(self);
        let by = recorded(&Actor::system());
        let days = self.retention_days;
        let done =
            tokio::task::spawn_blocking(move || recorder.purge(by, "retention".to_owned(), days)).await;
        match done {
            Ok(Ok(purged)) => tell_of(&purged, topics),
            Ok(Err(error)) => tracing::error!(%error, "old records were not purged"),
            Err(error) => tracing::error!(%error, "old records were not purged"),
        }
    }

    /// Removes segments whose records are all older, and proves it.
    pub(crate) fn purge(&self, by: RecordedActor, reason: String, days: u32) -> Result<Purged, PurgeError> {
        self.log.purge(&PurgeOrder { by, reason, retention_days: days, now: Moment::now() })
    }

    /// Keeps records from being purged. The id is that of the hold.
    pub(crate) fn hold(
        &self,
        by: RecordedActor,
        scope: HoldScope,
        reason: String,
    ) -> Result<(String, Receipt), RecordError> {
        // The number of the next record would do, but is not known before it is written.
        let id = format!("hold_{}", ulid::Ulid::from_parts(millis(), random()));
        let hold = Hold { id: id.clone(), scope, reason };
        let receipt = self.log.append_now(&Entry::hold(Moment::now(), by, hold))?;
        Ok((id, receipt))
    }

    /// Ends a hold; none if there is none of this name.
    pub(crate) fn release(
        &self,
        by: RecordedActor,
        id: &str,
        reason: String,
    ) -> Result<Option<Receipt>, RecordError> {
        let holds = AuditReader::new(self.log.folder()).holds();
        if !holds.is_ok_and(|holds| holds.iter().any(|hold| hold.id == id)) {
            return Ok(None);
        }
        let release = Entry { message: Some(reason), ..Entry::release(Moment::now(), by, id) };
        Ok(Some(self.log.append_now(&release)?))
    }

    /// How long records are kept.
    pub(crate) fn retention_days(&self) -> u32 {
        self.retention_days
    }

    /// How the record stands.
    pub(crate) fn status(&self, events_not_recorded: u64) -> AuditStatus {
        let head = self.log.head();
        let (segments, bytes) = size(self.log.folder());
        let anchor = self.anchor.last();
        AuditStatus {
            chain: head.chain,
            number: head.number,
            hash: head.hash.to_string(),
            segments,
            bytes,
            durability: format!("{:?}", self.durability).to_lowercase(),
            retention_days: self.retention_days,
            unavailable: self.check().err().map(|error| swb_proto::BusError::from(error).message),
            events_not_recorded,
            anchored: anchor.head.map(|head| head.number),
            anchor_failure: anchor.failure,
        }
    }
}

pub(crate) fn recorded(actor: &Actor) -> RecordedActor {
    RecordedActor { kind: actor.kind.as_str().to_owned(), id: actor.id.as_str().to_owned() }
}

/// What was purged is an event too.
pub(crate) fn tell_of(purged: &Purged, topics: &Topics) {
    if purged.segments == 0 {
        return;
    }
    let Purged { records, segments, kept, proof } = purged;
    tracing::info!(records, segments, kept, "old records were purged");
    let payload = json!({ "deleted_count": records, "segments": segments, "kept_segments": kept, "audit_id": proof.map(|n| n.to_string()) });
    if let Err(error) =
        topics.publish("audit.retention.deleted", &Meta::default(), Some(&Actor::system()), &payload)
    {
        tracing::warn!(%error, "not published");
    }
}

/// How many segments there are, and how many bytes in them.
fn size(folder: &Path) -> (u64, u64) {
    let files = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let segments = files.filter(|file| file.path().extension().is_some_and(|it| it == "jsonl"));
    segments
        .fold((0, 0), |(count, bytes), file| (count + 1, bytes + file.metadata().map_or(0, |it| it.len())))
}

fn millis() -> u64 {
    u64::try_from(Moment::now().unix_millis()).unwrap_or_default()
}

fn random() -> u128 {
    let mut bytes = [0; 16];
    // Without randomness the time still tells holds apart.
    let _ = getrandom::fill(&mut bytes);
    u128::from_le_bytes(bytes)
}
