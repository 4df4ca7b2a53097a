//! The identity of a realm and its secrets: created once, by exactly one server. Detects an engine that was restored.

use std::collections::BTreeMap;

use bytes::Bytes;
use forewarn_control::Stream;
use forewarn_types::Name;

use crate::engine::{EngineOperation, EngineStatus, EngineTransaction};
use crate::error::RealmError;
use crate::heads::RealmHeads;
use crate::keys::RealmKey;
use crate::realm::{Realm, random};
use crate::records::{JsonRecord, RealmHistory, RealmRecord};
use crate::seal;
use forewarn_ownership::Revision;

/// Maximum bytes of a secret.
pub const SECRET_BYTES_MAX: usize = 64 << 10;

/// Random bytes in front of a secret: two servers that create the same one can tell whose it is.
const MARK_BYTES: usize = 16;

/// A value that exists in any case afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined<T> {
    /// This call has created it.
    Created(T),
    /// It existed.
    Found(T),
}

/// Memory of the engine that a server had before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineMemory {
    /// The id of the cluster of the engine.
    pub cluster_id: Option<u64>,
    /// The history of the realm. None if the server has never been in one.
    pub history: Option<RealmHistory>,
    /// The numbers of the last batches that the server has archived.
    pub archived: BTreeMap<Stream, u64>,
}

/// Evidence that the engine was restored from an older backup. Nothing is owned then, until an operator accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreEvidence {
    /// An operator has accepted an older state since: the memory, and everything that was archived, is of before.
    #[error("an older state of the engine was accepted since this server has started: restart it")]
    Accepted,
    /// The engine is from before a restore that was accepted.
    #[error("engine has another history than before: {found} accepted restores instead of {known}")]
    OtherHistory { known: u64, found: u64 },
    /// The engine is another cluster.
    #[error("engine has another cluster id than before: {found:x} instead of {known:x}")]
    OtherCluster { known: u64, found: u64 },
    /// A stream ends before a batch that was archived.
    #[error("stream {stream} ends with batch {found}, and batch {archived} is in the archive")]
    OlderHead { stream: Stream, archived: u64, found: u64 },
}

impl<T> Joined<T> {
    /// The value.
    pub fn into_value(self) -> T {
        match self {
            Self::Created(value) | Self::Found(value) => value,
        }
    }
}

impl EngineMemory {
    /// Compares the memory with the engine. A stream that does not exist any more may have been removed; `record` is
    /// missing if the realm is.
    ///
    /// # Errors
    /// Fails if the engine was restored.
    pub fn check(
        &self,
        status: &EngineStatus,
        record: Option<&RealmRecord>,
        heads: &RealmHeads,
    ) -> Result<(), RestoreEvidence> {
        if let Some((known, record)) = self.history.zip(record)
            && known != record.history()
        {
            let (known, found) = (known.restores, record.restores);
            return Err(if found > known {
                RestoreEvidence::Accepted
            } else {
                RestoreEvidence::OtherHistory { known, found }
            });
        }
        let found = status.cluster_id;
        if let Some(known) = self.cluster_id.filter(|known| *known != found) {
            return Err(RestoreEvidence::OtherCluster { known, found });
        }
        for (stream, archived) in &self.archived {
            let Some(head) = heads.heads.get(stream) else { continue };
            let (stream, archived, found) = (*stream, *archived, head.head.number);
            if found < archived {
                return Err(RestoreEvidence::OlderHead { stream, archived, found });
            }
        }
        Ok(())
    }
}

impl Realm {
    /// The identity of the realm. None if nobody has created it.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the value is damaged.
    pub async fn record(&self) -> Result<Option<RealmRecord>, RealmError> {
        let found = self.get(&RealmKey::Realm).await?;
        found.map(|entry| read_record(&entry.value)).transpose()
    }

    /// Creates the realm, unless it exists. Identities of different servers must differ.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the value is damaged.
    pub async fn join(&self, new: RealmRecord) -> Result<Joined<RealmRecord>, RealmError> {
        let stored = self.create(&RealmKey::Realm, new.to_json()).await?;
        match read_record(&stored)? {
            // An answer may have been lost: the identity tells whose the realm is.
            record if record.identity == new.identity => Ok(Joined::Created(record)),
            record => Ok(Joined::Found(record)),
        }
    }

    /// Changes the record of the realm, if it is still the known one. Returns false if it is another one.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the value is damaged.
    pub async fn change_record(&self, known: &RealmRecord, new: &RealmRecord) -> Result<bool, RealmError> {
        let Some(entry) = self.get(&RealmKey::Realm).await? else { return Ok(false) };
        if read_record(&entry.value)? != *known {
            return Ok(false);
        }
        let key = self.key(&RealmKey::Realm);
        let guarded = EngineTransaction::guarded(key.clone(), entry.mod_revision);
        let then = vec![EngineOperation::put(key.clone(), new.to_json())];
        let otherwise = vec![EngineOperation::get(key)];
        let answer = self.repeat(&EngineTransaction { then, otherwise, ..guarded }).await?;
        let found = answer.reads.into_iter().flatten().next();
        let found = found.map(|entry| read_record(&entry.value)).transpose()?;
        Ok(answer.succeeded || found.as_ref() == Some(new))
    }

    /// Stores a secret, unless it exists.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, the secret is too large, or the stored one is damaged.
    pub async fn join_secret(&self, name: &Name, new: &[u8]) -> Result<Joined<Bytes>, RealmError> {
        if new.len() > SECRET_BYTES_MAX {
            return Err(RealmError::Limit("bytes of a secret"));
        }
        let key = RealmKey::Secret(name.clone());
        let mark = random::<MARK_BYTES>()?;
        let stored = self.create(&key, seal::seal(&key, &[&mark, new].concat())).await?;
        let (found, secret) = read_secret(&key, &stored)?;
        Ok(if found == mark { Joined::Created(secret) } else { Joined::Found(secret) })
    }

    /// A stored secret.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the secret is damaged.
    pub async fn secret(&self, name: &Name) -> Result<Option<Bytes>, RealmError> {
        let key = RealmKey::Secret(name.clone());
        let found = self.get(&key).await?;
        found.map(|entry| read_secret(&key, &entry.value).map(|(_, secret)| secret)).transpose()
    }

    /// The identity and the revision of the engine.
    ///
    /// # Errors
    /// Fails if the engine is unavailable.
    pub async fn engine_status(&self) -> Result<EngineStatus, RealmError> {
        let status = |limit| self.engine().status(limit);
        Ok(self.until_answered(status).await?)
    }

    /// Writes a key unless it exists. Returns the value that it has afterwards.
    async fn create(&self, key: &RealmKey, value: Bytes) -> Result<Bytes, RealmError> {
        let bytes = self.key(key);
        let guarded = EngineTransaction::guarded(bytes.clone(), Revision::ABSENT);
        let then = vec![EngineOperation::put(bytes.clone(), value.clone())];
        let otherwise = vec![EngineOperation::get(bytes)];
        let answer = self.repeat(&EngineTransaction { then, otherwise, ..guarded }).await?;
        if answer.succeeded {
            return Ok(value);
        }
        let found = answer.reads.into_iter().flatten().next();
        found.map(|entry| entry.value).ok_or_else(|| RealmError::missing(key, "it exists and has no value"))
    }
}

fn read_record(value: &[u8]) -> Result<RealmRecord, RealmError> {
    RealmRecord::from_json(value).map_err(RealmError::malformed(&RealmKey::Realm))
}

/// The mark and the content of a secret.
fn read_secret(key: &RealmKey, value: &Bytes) -> Result<([u8; MARK_BYTES], Bytes), RealmError> {
    let content = seal::open(key, value).map_err(RealmError::malformed(key))?;
    let (mark, secret) =
        content.split_first_chunk().ok_or_else(|| RealmError::damaged(key, &"it is cut short"))?;
    Ok((*mark, value.slice_ref(secret)))
}
