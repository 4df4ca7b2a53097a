//! Heads and owners of streams.

use std::collections::BTreeMap;

use forewarn_control::Stream;
use forewarn_ownership::{OwnerRecord, Revision};

use crate::engine::{EngineOperation, EngineTransaction, KeyValue, ReadRequest};
use crate::error::RealmError;
use crate::head::{KnownHead, head_from_bytes};
use crate::keys::{KeyFamily, RealmKey};
use crate::realm::{Realm, STREAMS_MAX};
use crate::records::JsonRecord;

/// All heads and owners at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RealmHeads {
    /// The revision of the store.
    pub revision: Revision,
    pub heads: BTreeMap<Stream, KnownHead>,
    pub owners: BTreeMap<Stream, OwnerRecord>,
}

impl Realm {
    /// Reads all heads and owners by one call that a majority confirms.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or a value is damaged.
    pub async fn heads(&self) -> Result<RealmHeads, RealmError> {
        let read = |family| {
            let request = ReadRequest::new(self.keys().family(family));
            EngineOperation::Read(request.limit(STREAMS_MAX))
        };
        let then = vec![read(KeyFamily::Head), read(KeyFamily::Owner)];
        let answer = self.repeat(&EngineTransaction { then, ..EngineTransaction::default() }).await?;
        let mut found = RealmHeads { revision: answer.revision, ..RealmHeads::default() };
        for entry in answer.reads.into_iter().flatten() {
            let key = self.keys().parse(&entry.key);
            if let Some(RealmKey::Head(stream)) = key {
                found.heads.insert(stream, known_head(stream, &entry)?);
            } else if let Some(RealmKey::Owner(stream)) = key {
                found.owners.insert(stream, owner_record(stream, &entry)?);
            }
        }
        Ok(found)
    }

    /// Reads the head of a stream. None if the stream does not exist.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the head is damaged.
    pub async fn head(&self, stream: Stream) -> Result<Option<KnownHead>, RealmError> {
        let found = self.get(&RealmKey::Head(stream)).await?;
        found.map(|entry| known_head(stream, &entry)).transpose()
    }

    /// Reads the owner of a stream.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the value is damaged.
    pub async fn owner(&self, stream: Stream) -> Result<Option<OwnerRecord>, RealmError> {
        let found = self.get(&RealmKey::Owner(stream)).await?;
        found.map(|entry| owner_record(stream, &entry)).transpose()
    }
}

pub(crate) fn known_head(stream: Stream, entry: &KeyValue) -> Result<KnownHead, RealmError> {
    let head =
        head_from_bytes(stream, &entry.value).map_err(RealmError::malformed(&RealmKey::Head(stream)))?;
    Ok(KnownHead { revision: entry.mod_revision, head: Box::new(head) })
}

pub(crate) fn owner_record(stream: Stream, entry: &KeyValue) -> Result<OwnerRecord, RealmError> {
    OwnerRecord::from_json(&entry.value).map_err(RealmError::malformed(&RealmKey::Owner(stream)))
}
