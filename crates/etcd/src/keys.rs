//! Keys and values: ranges of keys, reads, writes, deletions and compactions.

use bytes::Bytes;

use crate::client::{EtcdClient, Header};
use crate::error::EtcdError;
use crate::messages::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, KeyValueMessage,
    PutRequest, PutResponse, RangeRequest, RangeResponse,
};
use crate::method::{COMPACT, DELETE_RANGE, PUT, RANGE, SERIALIZABLE_RANGE};

/// One key, or the keys from one to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub(crate) key: Bytes,
    /// Empty for one key; a zero byte for all keys from `key` on.
    pub(crate) end: Bytes,
}

/// A read of keys. By default of the newest revision, linearizable, with values, without a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeQuery {
    keys: KeyRange,
    revision: i64,
    limit: i64,
    content: RangeContent,
    consistency: Consistency,
}

/// The part of keys that a read returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeContent {
    Values,
    Keys,
    Count,
}

/// The consistency of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consistency {
    /// Confirmed by a majority: at least as new as everything that was committed before.
    Linearizable,
    /// From one member, possibly old; works without a majority.
    Serializable,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Bytes,
    /// The value; empty if only keys were read.
    pub value: Bytes,
    /// Revision at which the key was created last.
    pub create_revision: i64,
    /// Revision at which the key was written last.
    pub mod_revision: i64,
    /// Number of writes since the key was created.
    pub version: i64,
    /// Lease that deletes the key when it ends; 0 for none.
    pub lease: i64,
}

/// Keys that a read has found, in the order of their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundKeys {
    /// Keys and values.
    pub entries: Vec<KeyValue>,
    /// True if the limit has left keys out.
    pub has_more: bool,
    /// Number of keys in the range, regardless of the limit.
    pub count: i64,
}

/// Answer to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeAnswer {
    /// State of the store; its revision is the newest, even if an older one was read.
    pub header: Header,
    /// Keys found.
    pub found: FoundKeys,
}

/// A write of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutOperation {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
    pub(crate) lease: i64,
}

/// Answer to a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteAnswer {
    /// State of the store after the deletion.
    pub header: Header,
    /// Number of deleted keys.
    pub deleted: i64,
}

impl KeyRange {
    /// One key.
    #[must_use]
    pub fn key(key: impl Into<Bytes>) -> Self {
        Self { key: key.into(), end: Bytes::new() }
    }

    /// All keys that begin with these bytes.
    ///
    /// ```
    /// use forewarn_etcd::KeyRange;
    /// assert_eq!(KeyRange::prefix("a/"), KeyRange::between("a/", "a0"));
    /// assert_eq!(KeyRange::prefix(&b"a\xff"[..]), KeyRange::between(&b"a\xff"[..], "b"));
    /// assert_eq!(KeyRange::prefix(""), KeyRange::all());
    /// ```
    #[must_use]
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        let key = prefix.into();
        let kept = key.iter().rposition(|byte| *byte < u8::MAX);
        let end = kept.map(|at| {
            let mut end = key[..=at].to_vec();
            end[at] += 1;
            Bytes::from(end)
        });
        match end {
            Some(end) => Self { key, end },
            None if key.is_empty() => Self::all(),
            None => Self::starting_at(key),
        }
    }

    /// The keys from `first` to the one before `end`.
    #[must_use]
    pub fn between(first: impl Into<Bytes>, end: impl Into<Bytes>) -> Self {
        Self { key: first.into(), end: end.into() }
    }

    /// A key and all keys after it.
    #[must_use]
    pub fn starting_at(first: impl Into<Bytes>) -> Self {
        Self { key: first.into(), end: Bytes::from_static(b"\0") }
    }

    /// All keys.
    #[must_use]
    pub fn all() -> Self {
        Self::starting_at(&b"\0"[..])
    }

    /// The part of this range after a key: the next page.
    #[must_use]
    pub fn after(&self, key: &[u8]) -> Self {
        let first = [key, b"\0"].concat();
        Self { key: first.into(), end: self.end.clone() }
    }
}

impl RangeQuery {
    /// A read of these keys.
    #[must_use]
    pub fn new(keys: KeyRange) -> Self {
        let (content, consistency) = (RangeContent::Values, Consistency::Linearizable);
        Self { keys, revision: 0, limit: 0, content, consistency }
    }

    /// The state at a revision instead of the newest.
    #[must_use]
    pub fn at_revision(self, revision: i64) -> Self {
        Self { revision, ..self }
    }

    /// At most so many keys, the first ones.
    #[must_use]
    pub fn limit(self, keys: u32) -> Self {
        Self { limit: i64::from(keys), ..self }
    }

    /// Keys without values.
    #[must_use]
    pub fn keys_only(self) -> Self {
        Self { content: RangeContent::Keys, ..self }
    }

    /// Only the number of keys.
    #[must_use]
    pub fn count_only(self) -> Self {
        Self { content: RangeContent::Count, ..self }
    }

    /// A read from one member, which may be old, and works without a majority.
    #[must_use]
    pub fn serializable(self) -> Self {
        Self { consistency: Consistency::Serializable, ..self }
    }

    pub(crate) fn message(&self) -> RangeRequest {
        RangeRequest {
            key: self.keys.key.clone(),
            range_end: self.keys.end.clone(),
            limit: self.limit,
            revision: self.revision,
            serializable: self.consistency == Consistency::Serializable,
            keys_only: self.content == RangeContent::Keys,
            count_only: self.content == RangeContent::Count,
        }
    }
}

impl PutOperation {
    /// A write without a lease.
    #[must_use]
    pub fn new(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self { key: key.into(), value: value.into(), lease: 0 }
    }

    /// The same write with a lease, which deletes the key when it ends.
    #[must_use]
    pub fn with_lease(self, lease: i64) -> Self {
        Self { lease, ..self }
    }

    pub(crate) fn message(&self) -> PutRequest {
        PutRequest { key: self.key.clone(), value: self.value.clone(), lease: self.lease }
    }
}

impl FoundKeys {
    pub(crate) fn of(response: RangeResponse) -> Self {
        let RangeResponse { kvs, more, count, .. } = response;
        Self { entries: kvs.into_iter().map(KeyValue::from).collect(), has_more: more, count }
    }
}

impl From<KeyValueMessage> for KeyValue {
    fn from(message: KeyValueMessage) -> Self {
        let KeyValueMessage { key, create_revision, mod_revision, version, value, lease } = message;
        Self { key, value, create_revision, mod_revision, version, lease }
    }
}

impl EtcdClient {
    /// Reads keys.
    ///
    /// # Errors
    /// Fails if there is no answer, or etcd rejects the request, as for a compacted revision.
    pub async fn range(&self, query: &RangeQuery) -> Result<RangeAnswer, EtcdError> {
        let chosen = self.chosen();
        let method = match query.consistency {
            Consistency::Linearizable => RANGE,
            Consistency::Serializable => SERIALIZABLE_RANGE,
        };
        let response: RangeResponse = self.call_at(&chosen, method, &query.message()).await?;
        let header = Header::of(response.header.clone(), &chosen)?;
        Ok(RangeAnswer { header, found: FoundKeys::of(response) })
    }

    /// Writes a key.
    ///
    /// # Errors
    /// Fails if there is no answer, or etcd rejects the request.
    pub async fn put(&self, put: &PutOperation) -> Result<Header, EtcdError> {
        let chosen = self.chosen();
        let response: PutResponse = self.call_at(&chosen, PUT, &put.message()).await?;
        Header::of(response.header, &chosen)
    }

    /// Deletes keys.
    ///
    /// # Errors
    /// Fails if there is no answer, or etcd rejects the request.
    pub async fn delete(&self, keys: &KeyRange) -> Result<DeleteAnswer, EtcdError> {
        let chosen = self.chosen();
        let request = DeleteRangeRequest { key: keys.key.clone(), range_end: keys.end.clone() };
        let response: DeleteRangeResponse = self.call_at(&chosen, DELETE_RANGE, &request).await?;
        Ok(DeleteAnswer { header: Header::of(response.header, &chosen)?, deleted: response.deleted })
    }

    /// Removes the history before a revision: older revisions can no longer be read or watched.
    ///
    /// # Errors
    /// Fails if there is no answer, or etcd rejects the request, as for a revision that has been compacted.
    pub async fn compact(&self, revision: i64) -> Result<Header, EtcdError> {
        let chosen = self.chosen();
        let request = CompactionRequest { revision, physical: false };
        let response: CompactionResponse = self.call_at(&chosen, COMPACT, &request).await?;
        Header::of(response.header, &chosen)
    }
}
