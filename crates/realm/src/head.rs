//! The head of a stream: its position, as stored under `head/<stream>`.

use forewarn_control::{Chain, Stream};
use forewarn_ownership::{BatchId, BootId, ClockAnchor, Head, HeadClock, Revision, Term};
use forewarn_store::Malformed;
use forewarn_types::{Steady, Timestamp, base64url};
use serde::{Deserialize, Serialize};

use bytes::Bytes;

use crate::keys::{RealmKey, SnapshotId};
use crate::seal;

/// The head of a stream.
pub type StreamHead = Head<HeadDetails>;

/// Maximum bytes of a stored head.
const HEAD_BYTES_MAX: usize = 4 << 10;

/// The part of a head that the commit protocol does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadDetails {
    /// Number of records of the stream.
    pub records: u64,
    /// End of the audit log.
    pub chain: Chain,
    /// The stored state; none if the stream is still as it was created.
    pub snapshot: Option<SnapshotRef>,
    /// Highest value of the wall clock.
    pub wall: Timestamp,
    /// The format in which records are written.
    pub format: u32,
}

/// A stored state, as a head names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRef {
    pub id: SnapshotId,
    /// Number of its parts.
    pub chunks: u32,
    /// Number of its rows.
    pub rows: u64,
    /// Number of records that it replaces.
    pub records: u64,
    /// End of the audit log at that state.
    pub chain: Chain,
}

/// A head that was read, with its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownHead {
    /// The revision of the key.
    pub revision: Revision,
    pub head: Box<StreamHead>,
}

/// The position of a stream: everything up to there is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamPosition {
    /// The number of the last batch.
    pub number: u64,
    /// Number of records of the stream.
    pub records: u64,
    /// End of the audit log.
    pub chain: Chain,
}

/// The clocks of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTime {
    /// The clock of the stream.
    pub clock: HeadClock,
    /// The wall clock.
    pub wall: Timestamp,
}

/// Returns the position at a head.
#[must_use]
pub fn position_of(head: &StreamHead) -> StreamPosition {
    let HeadDetails { records, chain, .. } = head.details;
    StreamPosition { number: head.number, records, chain }
}

impl SnapshotRef {
    /// Returns true if the head names a state of the same position, or a later one.
    pub(crate) fn is_older_than(&self, head: &StreamHead) -> bool {
        head.details.snapshot.is_some_and(|stored| stored.id.base >= self.id.base)
    }

    /// The position at which the state was stored.
    #[must_use]
    pub fn position(&self) -> StreamPosition {
        StreamPosition { number: self.id.base, records: self.records, chain: self.chain }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredHead {
    number: u64,
    term: u64,
    #[serde(with = "base64url")]
    batch: [u8; 16],
    records: u64,
    chain: StoredChain,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    snapshot: Option<StoredSnapshot>,
    steady: u64,
    wall: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    anchor: Option<StoredAnchor>,
    format: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredChain {
    number: u64,
    #[serde(with = "base64url")]
    hash: [u8; 32],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSnapshot {
    term: u64,
    base: u64,
    #[serde(with = "base64url")]
    nonce: [u8; 8],
    chunks: u32,
    rows: u64,
    records: u64,
    chain: StoredChain,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredAnchor {
    #[serde(with = "base64url")]
    boot: [u8; 16],
    offset_millis: i64,
}

impl From<Chain> for StoredChain {
    fn from(Chain { number, hash }: Chain) -> Self {
        Self { number, hash }
    }
}

impl From<StoredChain> for Chain {
    fn from(StoredChain { number, hash }: StoredChain) -> Self {
        Self { number, hash }
    }
}

impl From<&SnapshotRef> for StoredSnapshot {
    fn from(snapshot: &SnapshotRef) -> Self {
        let SnapshotRef { id: SnapshotId { term: Term(term), base, nonce }, .. } = *snapshot;
        let SnapshotRef { chunks, rows, records, chain, .. } = *snapshot;
        Self { term, base, nonce, chunks, rows, records, chain: chain.into() }
    }
}

impl From<StoredSnapshot> for SnapshotRef {
    fn from(stored: StoredSnapshot) -> Self {
        let StoredSnapshot { term, base, nonce, chunks, rows, records, chain } = stored;
        let id = SnapshotId { term: Term(term), base, nonce };
        Self { id, chunks, rows, records, chain: chain.into() }
    }
}

/// The value of the key of a head.
pub(crate) fn head_to_bytes(stream: Stream, head: &StreamHead) -> Bytes {
    let HeadDetails { records, chain, snapshot, wall, format } = &head.details;
    let anchor = head
        .clock
        .anchor
        .map(|ClockAnchor { boot: BootId(boot), offset_millis }| StoredAnchor { boot, offset_millis });
    let stored = StoredHead {
        number: head.number,
        term: head.term.0,
        batch: head.batch.0,
        records: *records,
        chain: (*chain).into(),
        snapshot: snapshot.as_ref().map(StoredSnapshot::from),
        steady: head.clock.steady.millis(),
        wall: wall.millis(),
        anchor,
        format: *format,
    };
    let json = serde_json::to_vec(&stored).expect("numbers and texts are JSON");
    seal::seal(&RealmKey::Head(stream), &json)
}

/// Reads the value of the key of a head.
pub(crate) fn head_from_bytes(stream: Stream, value: &[u8]) -> Result<StreamHead, Malformed> {
    if value.len() > HEAD_BYTES_MAX {
        return Err(Malformed::Long);
    }
    let json = seal::open(&RealmKey::Head(stream), value)?;
    let stored: StoredHead = serde_json::from_slice(json).map_err(|_| Malformed::Impossible("head"))?;
    let anchor = stored
        .anchor
        .map(|StoredAnchor { boot, offset_millis }| ClockAnchor { boot: BootId(boot), offset_millis });
    let details = HeadDetails {
        records: stored.records,
        chain: stored.chain.into(),
        snapshot: stored.snapshot.map(SnapshotRef::from),
        wall: Timestamp::from_millis(stored.wall),
        format: stored.format,
    };
    if details.snapshot.is_some_and(|snapshot| snapshot.id.base > stored.number) {
        return Err(Malformed::Impossible("snapshot after the head"));
    }
    let clock = HeadClock { steady: Steady::from_millis(stored.steady), anchor };
    let (number, term, batch) = (stored.number, Term(stored.term), BatchId(stored.batch));
    Ok(Head { number, term, batch, clock, details })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> StreamHead {
        let chain = Chain { number: 40, hash: [7; 32] };
        let id = SnapshotId { term: Term(2), base: 5, nonce: [8; 8] };
        let snapshot = SnapshotRef { id, chunks: 3, rows: 900, records: 20, chain };
        let wall = Timestamp::from_millis(1_767_225_600_000);
        let details = HeadDetails { records: 31, chain, snapshot: Some(snapshot), wall, format: 1 };
        let anchor = ClockAnchor { boot: BootId([1; 16]), offset_millis: -4 };
        let clock = HeadClock { steady: Steady::from_millis(77), anchor: Some(anchor) };
        Head { number: 9, term: Term(3), batch: BatchId([5; 16]), clock, details }
    }

    #[test]
    fn a_head_is_read_as_it_was_written_and_damage_is_detected() {
        let bare = HeadDetails { snapshot: None, ..head().details };
        let bare = Head { details: bare, clock: HeadClock::default(), ..head() };
        for head in [head(), bare] {
            let bytes = head_to_bytes(Stream::Shared, &head);
            assert!(bytes.len() < 600, "{}", bytes.len());
            assert_eq!(head_from_bytes(Stream::Shared, &bytes), Ok(head));
            for place in 0..bytes.len() {
                let mut damaged = bytes.to_vec();
                damaged[place] ^= 1;
                assert!(head_from_bytes(Stream::Shared, &damaged).is_err(), "{place}");
                assert!(head_from_bytes(Stream::Shared, &bytes[..place]).is_err(), "{place}");
            }
        }
    }

    #[test]
    fn a_snapshot_after_the_head_is_impossible() {
        let bytes = head_to_bytes(Stream::Shared, &Head { number: 4, ..head() });
        let found = head_from_bytes(Stream::Shared, &bytes);
        assert_eq!(found, Err(Malformed::Impossible("snapshot after the head")));
    }
}
