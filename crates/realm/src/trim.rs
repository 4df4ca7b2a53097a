//! Deletes batches that a stored state covers, their parts, and states that no head names; and streams.

use std::collections::BTreeSet;

use forewarn_control::Stream;
use forewarn_ownership::Revision;

use crate::engine::{EngineOperation, EngineTransaction, KeySpan, ReadRequest};
use crate::error::RealmError;
use crate::head::KnownHead;
use crate::keys::{PartKey, RealmKey};
use crate::pages::Pages;
use crate::realm::Realm;

/// Batches that one transaction deletes.
const BATCHES_PER_STEP: u64 = 1_000;

/// Other deletions of one transaction.
const DELETIONS_PER_STEP: usize = 100;

/// Progress of a trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimProgress {
    /// There may be more to delete.
    Goes,
    /// Nothing is left to delete.
    Done,
    /// The head is another one: nothing was deleted.
    Outdated,
}

impl Realm {
    /// Deletes some batches up to a number that the stored state covers, and some garbage.
    pub(crate) async fn trim_step(
        &self,
        stream: Stream,
        known: &KnownHead,
        upto: u64,
    ) -> Result<TrimProgress, RealmError> {
        let Some(snapshot) = known.head.details.snapshot else { return Ok(TrimProgress::Done) };
        let upto = upto.min(snapshot.id.base);
        if let Some(first) = self.first_number(stream).await?.filter(|first| *first <= upto) {
            let last = upto.min(first.saturating_add(BATCHES_PER_STEP - 1));
            let span = self.keys().log_between(stream, first, last);
            return self.delete_guarded(stream, known.revision, vec![span]).await;
        }
        let is_old_part = |key: &RealmKey| {
            let part = key.as_part().filter(|part| part.number <= upto)?;
            Some(PartKey { part: 0, ..part })
        };
        let parts = self.find_some(self.keys().parts(stream), is_old_part).await?;
        let mut spans: Vec<_> = parts.into_iter().map(|part| self.keys().parts_of(part)).collect();
        let is_old_snapshot =
            |key: &RealmKey| key.as_snapshot().filter(|id| id.base <= snapshot.id.base && *id != snapshot.id);
        if spans.is_empty() {
            let snapshots = self.find_some(self.keys().snapshots(stream), is_old_snapshot).await?;
            spans.extend(snapshots.into_iter().map(|id| self.keys().snapshot(stream, id)));
        }
        if spans.is_empty() {
            return Ok(TrimProgress::Done);
        }
        self.delete_guarded(stream, known.revision, spans).await
    }

    /// The number of the first batch in the log.
    async fn first_number(&self, stream: Stream) -> Result<Option<u64>, RealmError> {
        let request = ReadRequest::new(self.keys().log(stream)).limit(1).keys_only();
        let page = self.read(&request).await?;
        Ok(page.entries.first().and_then(|entry| self.keys().parse(&entry.key)?.as_log()))
    }

    /// Some different values that a function finds in keys.
    async fn find_some<T: Ord>(
        &self,
        keys: KeySpan,
        find: impl Fn(&RealmKey) -> Option<T>,
    ) -> Result<BTreeSet<T>, RealmError> {
        let mut found = BTreeSet::new();
        let mut pages = Pages::keys_only(keys);
        while let Some(page) = pages.next(self).await? {
            for entry in page {
                found.extend(self.keys().parse(&entry.key).as_ref().and_then(&find));
                if found.len() == DELETIONS_PER_STEP {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    async fn delete_guarded(
        &self,
        stream: Stream,
        revision: Revision,
        spans: Vec<KeySpan>,
    ) -> Result<TrimProgress, RealmError> {
        let guarded = EngineTransaction::guarded(self.key(&RealmKey::Head(stream)), revision);
        let then = spans.into_iter().map(EngineOperation::Delete).collect();
        let answer = self.repeat(&EngineTransaction { then, ..guarded }).await?;
        Ok(if answer.succeeded { TrimProgress::Goes } else { TrimProgress::Outdated })
    }

    /// Removes a stream whose head is known: head, owner, log and states. Returns false if its head is another one.
    ///
    /// # Errors
    /// Fails if the engine is unavailable. It may be removed then: see [`Self::delete_leftovers`].
    pub async fn remove_stream(&self, stream: Stream, known: &KnownHead) -> Result<bool, RealmError> {
        let head = self.key(&RealmKey::Head(stream));
        let keys = [head.clone(), self.key(&RealmKey::Owner(stream)), self.key(&RealmKey::Preferred(stream))];
        let then = keys.map(|key| EngineOperation::Delete(KeySpan::one(key))).to_vec();
        let guarded = EngineTransaction::guarded(head.clone(), known.revision);
        let otherwise = vec![EngineOperation::get(head)];
        let answer = self.repeat(&EngineTransaction { then, otherwise, ..guarded }).await?;
        if !answer.succeeded && answer.reads.iter().any(|found| !found.is_empty()) {
            return Ok(false);
        }
        self.delete_leftovers(stream).await
    }

    /// Deletes everything that is left of a stream without a head. Returns false if the stream exists.
    ///
    /// # Errors
    /// Fails if the engine is unavailable.
    pub async fn delete_leftovers(&self, stream: Stream) -> Result<bool, RealmError> {
        let keys = self.keys();
        let spans = vec![keys.log(stream), keys.parts(stream), keys.snapshots(stream)];
        let deleted = self.delete_guarded(stream, Revision::ABSENT, spans).await?;
        Ok(deleted == TrimProgress::Goes)
    }
}
