//! A batch: the records and audit entries that one commit adds to a stream.
//!
//! ```text
//!   log/<stream>/<number>   number, term, batch id, records before, mode, chain before, parts, length, content
//!   part/…/<i>              content of a batch above 1 MiB, written before its head
//! ```
//!
//! The seal of each value covers its key. Decoding is total and bounded.

use std::sync::Arc;

use bytes::Bytes;
use forewarn_control::{AuditEntry, BrokenLink, Chain, Record, Stream};
use forewarn_ownership::{BatchId, Term};
use forewarn_store::{AppendError, BatchContent, Malformed};

use crate::keys::{PartKey, RealmKey};
use crate::seal;

/// Bytes of content that fit into the value of one key, and of each part of a larger one.
pub const PART_BYTES_MAX: usize = 1 << 20;

/// Maximum bytes of the content of a batch.
pub const BATCH_BYTES_MAX: usize = 64 << 20;

/// Maximum number of parts of a batch.
const PARTS_MAX: usize = BATCH_BYTES_MAX / PART_BYTES_MAX;

/// Bytes of a heading.
const HEADING_BYTES: usize = 8 + 8 + 16 + 8 + 1 + 8 + 32 + 4 + 8;

/// Place of the audit entries of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditMode {
    /// After the last entry of the stream.
    Append,
    /// In place of the last entries of the stream, which no reader has seen.
    Rewrite,
}

/// The data that one commit adds to a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub stream: Stream,
    /// The number in the log, from 1.
    pub number: u64,
    /// The term of the owner that committed it; 0 in the shared stream.
    pub term: Term,
    pub id: BatchId,
    /// Number of records of the stream before it.
    pub records_before: u64,
    pub mode: AuditMode,
    /// The audit chain before its first entry.
    pub chain_before: Chain,
    pub records: Vec<Record>,
    pub entries: Vec<Arc<AuditEntry>>,
}

/// Reason why a batch cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The batch has too many bytes, or one of its records has.
    #[error("batch is too large: {0} bytes")]
    TooLarge(usize),
    #[error("a record or an audit entry belongs to another stream")]
    OtherStream,
    /// An audit entry does not continue the chain of its stream.
    #[error("the audit chain would be broken: {0}")]
    Unchained(#[from] BrokenLink),
}

/// A batch as values of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodedBatch {
    /// The audit chain after its last entry.
    pub(crate) chain_after: Chain,
    /// The value of the key in the log.
    pub(crate) log: Bytes,
    /// The parts, with their keys; none if the content fits into the log.
    pub(crate) parts: Vec<(PartKey, Bytes)>,
}

/// The heading of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeading {
    pub(crate) stream: Stream,
    pub(crate) number: u64,
    pub(crate) term: Term,
    pub(crate) id: BatchId,
    pub(crate) records_before: u64,
    pub(crate) mode: AuditMode,
    pub(crate) chain_before: Chain,
    /// Number of parts; 0 if the content is in the log.
    pub(crate) parts: usize,
    /// Bytes of the content.
    length: usize,
}

/// The value of a key in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogValue {
    pub(crate) heading: BatchHeading,
    content: Bytes,
}

impl EncodedBatch {
    /// Bytes of all its values.
    pub(crate) fn bytes(&self) -> usize {
        self.log.len() + self.parts.iter().map(|(_, part)| part.len()).sum::<usize>()
    }
}

impl Batch {
    /// The audit chain after its last entry.
    ///
    /// # Errors
    /// Fails if the entries do not continue the chain before them.
    pub fn chain_after(&self) -> Result<Chain, BrokenLink> {
        let mut chain = self.chain_before;
        self.entries.iter().try_for_each(|entry| chain.verify(entry))?;
        Ok(chain)
    }

    /// Number of records of the stream after it.
    #[must_use]
    pub fn records_after(&self) -> u64 {
        self.records_before + self.records.len() as u64
    }
}

fn batch_error(error: &AppendError) -> BatchError {
    match error {
        AppendError::TooLarge(bytes) => BatchError::TooLarge(*bytes),
        AppendError::Unchained(link) => BatchError::Unchained(*link),
        AppendError::OtherStream
        | AppendError::OtherEntry
        | AppendError::Earlier
        | AppendError::Memory
        | AppendError::Full
        | AppendError::Failed(_)
        | AppendError::Moved(_)
        | AppendError::Closed => BatchError::OtherStream,
    }
}

impl BatchHeading {
    /// The heading of a batch that is not encoded yet.
    pub(crate) fn new(
        (stream, number): (Stream, u64),
        (term, id): (Term, BatchId),
        records_before: u64,
        (mode, chain_before): (AuditMode, Chain),
    ) -> Self {
        let (parts, length) = (0, 0);
        Self { stream, number, term, id, records_before, mode, chain_before, parts, length }
    }

    /// The batch with this heading as values of keys.
    pub(crate) fn encode(
        mut self,
        records: &[Record],
        entries: &[Arc<AuditEntry>],
    ) -> Result<EncodedBatch, BatchError> {
        let mut chain_after = self.chain_before;
        entries.iter().try_for_each(|entry| chain_after.verify(entry))?;
        let content = BatchContent::encode(self.stream, records, entries);
        let content = content.map_err(|error| batch_error(&error))?;
        if content.len() > BATCH_BYTES_MAX {
            return Err(BatchError::TooLarge(content.len()));
        }
        let is_inline = content.len() <= PART_BYTES_MAX;
        self.parts = if is_inline { 0 } else { content.len().div_ceil(PART_BYTES_MAX) };
        self.length = content.len();
        let mut log = self.to_bytes();
        if is_inline {
            log.extend_from_slice(&content);
        }
        let log = seal::seal(&self.key(), &log);
        let chunks = content.chunks(PART_BYTES_MAX).take(self.parts);
        let parts = (0..).zip(chunks).map(|(part, chunk)| {
            let key = self.part(part);
            (key, seal::seal(&RealmKey::Part(key), chunk))
        });
        Ok(EncodedBatch { chain_after, log, parts: parts.collect() })
    }

    pub(crate) fn key(&self) -> RealmKey {
        RealmKey::Log(self.stream, self.number)
    }

    pub(crate) fn part(&self, part: u32) -> PartKey {
        let Self { stream, term, number, id: batch, .. } = *self;
        PartKey { stream, term, number, batch, part }
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADING_BYTES + if self.parts == 0 { self.length } else { 0 });
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.term.0.to_le_bytes());
        out.extend_from_slice(&self.id.0);
        out.extend_from_slice(&self.records_before.to_le_bytes());
        out.push(match self.mode {
            AuditMode::Append => 0,
            AuditMode::Rewrite => 1,
        });
        out.extend_from_slice(&self.chain_before.number.to_le_bytes());
        out.extend_from_slice(&self.chain_before.hash);
        // Both are far below the limits of their types.
        out.extend_from_slice(&u32::try_from(self.parts).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&(self.length as u64).to_le_bytes());
        out
    }

    /// Reads a heading. Returns it and the bytes after it.
    fn read(stream: Stream, bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut input = HeadingReader(bytes);
        let (number, term, id) = (input.number()?, Term(input.number()?), BatchId(input.array()?));
        let records_before = input.number()?;
        let mode = match input.array::<1>()? {
            [0] => AuditMode::Append,
            [1] => AuditMode::Rewrite,
            _ => return Err(Malformed::Impossible("mode of audit entries")),
        };
        let chain_before = Chain { number: input.number()?, hash: input.array()? };
        let parts = u32::from_le_bytes(input.array()?) as usize;
        let length = usize::try_from(input.number()?).unwrap_or(usize::MAX);
        if length > BATCH_BYTES_MAX || parts > PARTS_MAX {
            return Err(Malformed::Impossible("length of a batch"));
        }
        let heading = Self { stream, number, term, id, records_before, mode, chain_before, parts, length };
        Ok((heading, input.0))
    }
}

struct HeadingReader<'a>(&'a [u8]);

impl HeadingReader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }
}

impl LogValue {
    /// Reads the value of a key in the log.
    pub(crate) fn read(stream: Stream, number: u64, value: &Bytes) -> Result<Self, Malformed> {
        let opened = seal::open(&RealmKey::Log(stream, number), value)?;
        let (heading, content) = BatchHeading::read(stream, opened)?;
        if heading.number != number {
            return Err(Malformed::Impossible("number of a batch"));
        }
        let content = value.slice_ref(content);
        let expected = if heading.parts == 0 { heading.length } else { 0 };
        if content.len() == expected { Ok(Self { heading, content }) } else { Err(Malformed::Short) }
    }

    /// Bytes of the content, parts included.
    pub(crate) fn content_length(&self) -> usize {
        self.heading.length
    }

    /// The batch. `parts` are the values of its parts, in their order.
    pub(crate) fn into_batch(self, parts: &[Bytes]) -> Result<Batch, Malformed> {
        let Self { heading, content } = self;
        if parts.len() != heading.parts {
            return Err(Malformed::Short);
        }
        let content = if parts.is_empty() { content } else { heading.join(parts)? };
        let BatchHeading { stream, number, term, id, records_before, mode, chain_before, .. } = heading;
        let BatchContent { records, entries } = BatchContent::decode(stream, &content)?;
        let batch = Batch { stream, number, term, id, records_before, mode, chain_before, records, entries };
        batch.chain_after().map_err(|_| Malformed::Impossible("audit chain"))?;
        Ok(batch)
    }
}

impl BatchHeading {
    fn join(&self, parts: &[Bytes]) -> Result<Bytes, Malformed> {
        let mut content = Vec::with_capacity(self.length);
        for (part, value) in (0..).zip(parts) {
            content.extend_from_slice(seal::open(&RealmKey::Part(self.part(part)), value)?);
        }
        if content.len() == self.length { Ok(content.into()) } else { Err(Malformed::Short) }
    }
}

#[cfg(test)]
mod tests {
    use forewarn_control::{ClusterEntry, ClusterId, NewAuditEntry, NewReceipt, StoredResponse};
    use forewarn_types::Now;

    use super::*;

    /// A batch with that many large records.
    fn large_batch(count: usize) -> Batch {
        let answer = StoredResponse(vec![7; 200_000].into());
        let (by, key, fingerprint) = ("socket".to_owned(), "k".to_owned(), [0; 32]);
        let entry = ClusterEntry::ReceiptKept(NewReceipt { by, key, fingerprint, answer });
        let record = Record::in_cluster(Now::at_millis(5), ClusterId(2), entry);
        Batch { records: vec![record; count], ..batch(2) }
    }

    fn batch(entries: usize) -> Batch {
        let stream = Stream::Cluster(ClusterId(2));
        let mut chain = Chain { number: 6, hash: [4; 32] };
        let chain_before = chain;
        let entries = (0..entries).map(|_| Arc::new(chain.seal(NewAuditEntry::default()))).collect();
        let records = vec![Record::clock_in(Now::at_millis(5), stream)];
        let (number, term, id, records_before) = (7, Term(3), BatchId([9; 16]), 20);
        let mode = AuditMode::Append;
        Batch { stream, number, term, id, records_before, mode, chain_before, records, entries }
    }

    fn encode(batch: &Batch) -> Result<EncodedBatch, BatchError> {
        let Batch { stream, number, term, id, records_before, mode, chain_before, .. } = *batch;
        BatchHeading::new((stream, number), (term, id), records_before, (mode, chain_before))
            .encode(&batch.records, &batch.entries)
    }

    fn read(encoded: &EncodedBatch, batch: &Batch) -> Result<Batch, Malformed> {
        let parts: Vec<_> = encoded.parts.iter().map(|(_, value)| value.clone()).collect();
        LogValue::read(batch.stream, batch.number, &encoded.log)?.into_batch(&parts)
    }

    #[test]
    fn a_small_batch_is_read_as_it_was_written_and_damage_is_detected() {
        let written = batch(2);
        let encoded = encode(&written).unwrap();
        assert!(encoded.parts.is_empty());
        assert_eq!(read(&encoded, &written), Ok(written.clone()));
        assert_eq!(written.records_after(), 21);
        for place in 0..encoded.log.len() {
            let mut damaged = encoded.log.to_vec();
            damaged[place] ^= 1;
            let damaged = EncodedBatch { log: damaged.into(), ..encoded.clone() };
            assert!(read(&damaged, &written).is_err(), "{place}");
            let short = EncodedBatch { log: encoded.log.slice(..place), ..encoded.clone() };
            assert!(read(&short, &written).is_err(), "{place}");
        }
        let other = Batch { number: 8, ..written };
        assert_eq!(read(&encoded, &other), Err(Malformed::Checksum));
    }

    #[test]
    fn a_large_batch_has_parts_and_needs_all_of_them() {
        let written = large_batch(20);
        let encoded = encode(&written).unwrap();
        assert_eq!(encoded.parts.len(), 4);
        assert!(encoded.log.len() < 200);
        assert_eq!(read(&encoded, &written), Ok(written.clone()));
        for missing in 0..4 {
            let mut parts = encoded.parts.clone();
            parts.remove(missing);
            assert!(read(&EncodedBatch { parts, ..encoded.clone() }, &written).is_err());
        }
        let mut swapped = encoded.clone();
        swapped.parts.swap(1, 2);
        assert_eq!(read(&swapped, &written), Err(Malformed::Checksum));
    }

    #[test]
    fn a_batch_that_breaks_the_chain_is_refused() {
        let mut broken = batch(2);
        broken.chain_before.hash = [5; 32];
        assert!(matches!(encode(&broken), Err(BatchError::Unchained(_))));
        let other = Batch { stream: Stream::Shared, ..batch(0) };
        assert_eq!(encode(&other), Err(BatchError::OtherStream));
        let large = large_batch(340);
        assert!(matches!(encode(&large), Err(BatchError::TooLarge(_))));
    }
}
