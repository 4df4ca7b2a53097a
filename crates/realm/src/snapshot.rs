//! Writes the state of a stream as parts of about 32 KiB, in transactions of about a mebibyte.
//!
//! The parts count once a head names them; until then they are nothing but garbage. So they are written beside commits,
//! and a crash loses only the work.

use std::iter::Peekable;

use forewarn_control::Stream;
use forewarn_ownership::Term;
use forewarn_store::{StateChunks, StreamState};

use crate::engine::{EngineOperation, EngineTransaction};
use crate::error::RealmError;
use crate::head::{SnapshotRef, StreamHead, StreamPosition, position_of};
use crate::keys::{RealmKey, SnapshotId};
use crate::realm::{Realm, random};
use crate::seal;

/// Bytes and parts of one transaction. The last part may have a mebibyte more than 32 KiB.
const TRANSACTION_BYTES: usize = 400 << 10;
const TRANSACTION_PARTS: usize = 64;

/// Maximum number of parts of a state.
const CHUNKS_MAX: u32 = 999_999;

/// A state that is being written.
#[derive(Debug)]
pub struct SnapshotWriting {
    stream: Stream,
    id: SnapshotId,
    position: StreamPosition,
    chunks: Peekable<CountedChunks>,
    /// Number of parts that are written, or in the pending transaction.
    taken: u32,
    /// Rows of these parts.
    rows: u64,
    pending: Option<EngineTransaction>,
}

/// The parts of a state, each with the number of rows so far.
#[derive(Debug)]
struct CountedChunks(StateChunks);

impl Iterator for CountedChunks {
    type Item = (Vec<u8>, u64);

    fn next(&mut self) -> Option<(Vec<u8>, u64)> {
        let chunk = self.0.next()?;
        Some((chunk, self.0.rows()))
    }
}

/// Progress of a state that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotProgress {
    /// More parts are to be written.
    Goes,
    /// All parts are written: a head may name the state.
    Done(SnapshotRef),
}

impl SnapshotWriting {
    /// Begins to write the state of a stream at its head.
    pub(crate) fn begin(stream: Stream, head: &StreamHead, state: StreamState) -> Result<Self, RealmError> {
        Self::at(stream, (head.term, position_of(head)), state)
    }

    /// Begins to write the state of a stream at a position.
    pub(crate) fn at(
        stream: Stream,
        (term, position): (Term, StreamPosition),
        state: StreamState,
    ) -> Result<Self, RealmError> {
        let id = SnapshotId { term, base: position.number, nonce: random()? };
        let chunks = CountedChunks(StateChunks::new(state)).peekable();
        Ok(Self { stream, id, position, chunks, taken: 0, rows: 0, pending: None })
    }

    /// Writes some parts, about a mebibyte. May be dropped at any time, and called again.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the state is too large.
    pub async fn go_on(&mut self, realm: &Realm) -> Result<SnapshotProgress, RealmError> {
        if self.pending.is_none() {
            self.pending = self.next_transaction(realm)?;
        }
        if let Some(transaction) = &self.pending {
            realm.repeat(transaction).await?;
            self.pending = None;
        }
        if self.chunks.peek().is_some() {
            return Ok(SnapshotProgress::Goes);
        }
        let StreamPosition { records, chain, .. } = self.position;
        let (id, chunks, rows) = (self.id, self.taken, self.rows);
        Ok(SnapshotProgress::Done(SnapshotRef { id, chunks, rows, records, chain }))
    }

    /// Writes all parts.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the state is too large.
    pub async fn finish(mut self, realm: &Realm) -> Result<SnapshotRef, RealmError> {
        loop {
            match self.go_on(realm).await? {
                SnapshotProgress::Goes => {}
                SnapshotProgress::Done(snapshot) => return Ok(snapshot),
            }
        }
    }

    fn next_transaction(&mut self, realm: &Realm) -> Result<Option<EngineTransaction>, RealmError> {
        let mut then = Vec::new();
        let mut bytes = 0;
        while bytes < TRANSACTION_BYTES
            && then.len() < TRANSACTION_PARTS
            && let Some((chunk, rows)) = self.chunks.next()
        {
            if self.taken == CHUNKS_MAX {
                return Err(RealmError::Limit("parts of a state"));
            }
            let key = RealmKey::Snapshot(self.stream, self.id, self.taken);
            let put = EngineOperation::put(realm.key(&key), seal::seal(&key, &chunk));
            bytes += put.bytes();
            then.push(put);
            (self.taken, self.rows) = (self.taken + 1, rows);
        }
        Ok((!then.is_empty()).then(|| EngineTransaction { then, ..EngineTransaction::default() }))
    }
}
