//! Finds the number of the last batch that a replica has, from its records and its audit log.

use forewarn_control::{Chain, Stream};

use crate::batch::{AuditMode, Batch};
use crate::engine::{EngineError, KeySpan, ReadRequest};
use crate::error::RealmError;
use crate::head::{StreamPosition, position_of};
use crate::heads::known_head;
use crate::keys::RealmKey;
use crate::links::BatchLinks;
use crate::pages::Pages;
use crate::read::{READS_MAX, ReadFailure};
use crate::realm::Realm;

impl Realm {
    /// Finds the position at which a stream had that many records and that end of the audit log: a replica in a
    /// directory knows these, and not the number of its last batch. None if the log does not tell: read the state then.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, the stream does not exist, or a batch is damaged.
    pub async fn locate(
        &self,
        stream: Stream,
        records: u64,
        chain: Chain,
    ) -> Result<Option<StreamPosition>, RealmError> {
        for _ in 0..READS_MAX {
            match self.try_locate(stream, records, chain).await {
                Ok(found) => return Ok(found),
                Err(ReadFailure::Realm(error)) => return Err(error),
                Err(ReadFailure::Compacted) => {}
            }
        }
        Err(RealmError::Unavailable(EngineError::Compacted(None)))
    }

    async fn try_locate(
        &self,
        stream: Stream,
        records: u64,
        chain: Chain,
    ) -> Result<Option<StreamPosition>, ReadFailure> {
        let is_there = |position: &StreamPosition| (position.records, position.chain) == (records, chain);
        let page = self.read(&ReadRequest::new(KeySpan::one(self.key(&RealmKey::Head(stream))))).await?;
        let entry = page.entries.first().ok_or(RealmError::NoStream(stream))?;
        let head = known_head(stream, entry)?.head;
        let end = position_of(&head);
        let begin = head.details.snapshot.map(|snapshot| snapshot.position()).unwrap_or_default();
        if let Some(found) = [end, begin].into_iter().find(is_there) {
            return Ok(Some(found));
        }
        let mut links: Option<BatchLinks> = None;
        let mut pages = Pages::new(self.keys().log(stream), page.revision);
        while let Some(entries) = pages.next(self).await? {
            for entry in entries {
                let Some(number) = self.keys().parse(&entry.key).and_then(|key| key.as_log()) else {
                    continue;
                };
                let batch =
                    self.read_batch(stream, number, &entry.value, Some(page.revision), &mut 0).await?;
                if let Some(before) = position_before(&batch).filter(is_there) {
                    return Ok(Some(before));
                }
                let key = RealmKey::Log(stream, number);
                match &mut links {
                    Some(links) => links.add(&batch).map_err(|error| RealmError::damaged(&key, &error))?,
                    None => links = Some(BatchLinks::new(position_after(&batch)?)),
                }
                if let Some(found) = links.as_ref().map(BatchLinks::position).filter(is_there) {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }
}

/// The position before a batch. A rewrite does not tell the end of the audit log before it.
fn position_before(batch: &Batch) -> Option<StreamPosition> {
    let (number, records, chain) = (batch.number.checked_sub(1)?, batch.records_before, batch.chain_before);
    (batch.mode == AuditMode::Append).then_some(StreamPosition { number, records, chain })
}

fn position_after(batch: &Batch) -> Result<StreamPosition, RealmError> {
    let key = RealmKey::Log(batch.stream, batch.number);
    let chain = batch.chain_after().map_err(|error| RealmError::damaged(&key, &error))?;
    Ok(StreamPosition { number: batch.number, records: batch.records_after(), chain })
}
