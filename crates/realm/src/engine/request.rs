//! Requests to the engine and its answers, as data.

use bytes::Bytes;
use forewarn_ownership::Revision;

/// One key, or the keys from one to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpan {
    first: Bytes,
    /// The first key after the span. None: the span is one key.
    end: Option<Bytes>,
}

/// A read of keys, confirmed by a majority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    pub(crate) keys: KeySpan,
    /// None for the newest.
    pub(crate) revision: Option<Revision>,
    /// Maximum number of keys. None for all.
    pub(crate) limit: Option<u32>,
    pub(crate) content: ReadContent,
}

/// The part of keys that a read returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadContent {
    /// Keys and values.
    Values,
    /// Keys only.
    Keys,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    pub key: Bytes,
    /// The value; empty if only keys were read.
    pub value: Bytes,
    /// The revision at which the key was written last.
    pub mod_revision: Revision,
}

/// Keys that a read has found, in the order of their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPage {
    pub entries: Vec<KeyValue>,
    /// True if the limit has left keys out.
    pub has_more: bool,
    /// The revision of the store.
    pub revision: Revision,
}

/// A condition of a transaction: the key was last written at this revision. [`Revision::ABSENT`]: it does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    pub key: Bytes,
    pub revision: Revision,
}

/// A lease: its keys are deleted when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseId(pub i64);

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineOperation {
    Put { key: Bytes, value: Bytes, lease: Option<LeaseId> },
    Delete(KeySpan),
    Read(ReadRequest),
}

/// Operations that are applied together if all guards hold, or others if not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineTransaction {
    pub guards: Vec<Guard>,
    pub then: Vec<EngineOperation>,
    pub otherwise: Vec<EngineOperation>,
}

/// The answer to a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionAnswer {
    /// True if all guards held.
    pub succeeded: bool,
    /// The revision of the store after the transaction: that of its writes, if it has written.
    pub revision: Revision,
    /// Keys found by its reads, in their order.
    pub reads: Vec<Vec<KeyValue>>,
}

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyEvent {
    Put(KeyValue),
    Deleted { key: Bytes, mod_revision: Revision },
}

/// The identity and the state of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineStatus {
    /// The id of the cluster of the engine: another one after it was restored.
    pub cluster_id: u64,
    /// The revision of the store.
    pub revision: Revision,
}

impl KeySpan {
    /// One key.
    #[must_use]
    pub fn one(key: impl Into<Bytes>) -> Self {
        Self { first: key.into(), end: None }
    }

    /// The keys from `first` to the one before `end`.
    #[must_use]
    pub fn between(first: impl Into<Bytes>, end: impl Into<Bytes>) -> Self {
        Self { first: first.into(), end: Some(end.into()) }
    }

    /// All keys that begin with a text that ends with an ASCII character.
    #[must_use]
    pub fn prefix(prefix: &str) -> Self {
        let mut end = prefix.as_bytes().to_vec();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        Self::between(prefix.to_owned(), end)
    }

    /// Returns true if the key is in the span.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        match &self.end {
            None => self.first == key,
            Some(end) => *self.first <= *key && *key < **end,
        }
    }

    /// The keys of the span after a key: the next page.
    #[must_use]
    pub fn after(&self, key: &[u8]) -> Self {
        let first = [key, b"\0"].concat().into();
        let end = Some(self.end.clone().unwrap_or_else(|| self.first.clone()));
        Self { first, end }
    }

    /// The first key.
    #[must_use]
    pub fn first(&self) -> &Bytes {
        &self.first
    }

    /// The first key after the span. None: the span is one key.
    #[must_use]
    pub fn end(&self) -> Option<&Bytes> {
        self.end.as_ref()
    }
}

impl ReadRequest {
    /// A read of keys and values at the newest revision.
    #[must_use]
    pub fn new(keys: KeySpan) -> Self {
        Self { keys, revision: None, limit: None, content: ReadContent::Values }
    }

    /// The same at a revision.
    #[must_use]
    pub fn at(self, revision: Revision) -> Self {
        Self { revision: Some(revision), ..self }
    }

    /// The same with at most so many keys.
    #[must_use]
    pub fn limit(self, keys: u32) -> Self {
        Self { limit: Some(keys), ..self }
    }

    /// The same without values.
    #[must_use]
    pub fn keys_only(self) -> Self {
        Self { content: ReadContent::Keys, ..self }
    }
}

impl EngineOperation {
    /// A write without a lease.
    #[must_use]
    pub fn put(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self::Put { key: key.into(), value: value.into(), lease: None }
    }

    /// A read of one key.
    #[must_use]
    pub fn get(key: impl Into<Bytes>) -> Self {
        Self::Read(ReadRequest::new(KeySpan::one(key)))
    }

    /// Bytes of the keys and values.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Put { key, value, .. } => key.len() + value.len(),
            Self::Delete(keys) => keys.bytes(),
            Self::Read(read) => read.keys.bytes(),
        }
    }
}

impl KeySpan {
    fn bytes(&self) -> usize {
        self.first.len() + self.end.as_ref().map_or(0, Bytes::len)
    }
}

impl EngineTransaction {
    /// A transaction with one guard.
    #[must_use]
    pub fn guarded(key: impl Into<Bytes>, revision: Revision) -> Self {
        let guard = Guard { key: key.into(), revision };
        Self { guards: vec![guard], ..Self::default() }
    }

    /// Bytes of its keys and values.
    pub(crate) fn bytes(&self) -> usize {
        let guards: usize = self.guards.iter().map(|guard| guard.key.len()).sum();
        let operations = self.then.iter().chain(&self.otherwise);
        guards + operations.map(EngineOperation::bytes).sum::<usize>()
    }
}

impl KeyEvent {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &Bytes {
        match self {
            Self::Put(entry) => &entry.key,
            Self::Deleted { key, .. } => key,
        }
    }

    /// The revision of the change.
    #[must_use]
    pub fn mod_revision(&self) -> Revision {
        match self {
            Self::Put(entry) => entry.mod_revision,
            Self::Deleted { mod_revision, .. } => *mod_revision,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_contains_its_keys_and_the_next_page_the_later_ones() {
        let span = KeySpan::prefix("/a/");
        assert!(span.contains(b"/a/") && span.contains(b"/a/\xff") && !span.contains(b"/a0"));
        let rest = span.after(b"/a/b");
        assert!(!rest.contains(b"/a/b") && rest.contains(b"/a/b\0") && rest.contains(b"/a/c"));
        let one = KeySpan::one("k");
        assert!(one.contains(b"k") && !one.contains(b"k\0"));
        assert!(!one.after(b"k").contains(b"k\0"));
    }
}
