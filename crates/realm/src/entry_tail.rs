//! The last audit entries of a stream, which a commit may replace as long as no reader has seen them.

use std::sync::Arc;

use forewarn_control::{AuditEntry, Chain, Stream};
use forewarn_ownership::BatchId;

use crate::batch::{AuditMode, BatchHeading};
use crate::commit::NewBatch;
use crate::error::CommitError;
use crate::head::StreamHead;

/// The audit entries that a rewrite may replace: those since the last append with entries.
#[derive(Clone, Debug)]
pub(crate) struct EntryTail {
    before: Chain,
    entries: Vec<Arc<AuditEntry>>,
}

impl EntryTail {
    /// No entry may be replaced.
    pub(crate) fn at(chain: Chain) -> Self {
        Self { before: chain, entries: Vec::new() }
    }

    /// The heading of the batch that follows a head.
    pub(crate) fn next_heading(
        &self,
        stream: Stream,
        head: &StreamHead,
        id: BatchId,
        new: &NewBatch,
    ) -> Result<BatchHeading, CommitError> {
        let chain_before = match (new.mode, new.entries.first()) {
            (AuditMode::Append, _) | (AuditMode::Rewrite, None) => head.details.chain,
            (AuditMode::Rewrite, Some(_)) => self.chain_before(&new.entries)?,
        };
        let (number, records) = (head.number + 1, head.details.records);
        Ok(BatchHeading::new((stream, number), (head.term, id), records, (new.mode, chain_before)))
    }

    /// The chain before entries that replace the last ones.
    fn chain_before(&self, entries: &[Arc<AuditEntry>]) -> Result<Chain, CommitError> {
        let kept = self.entries.len().checked_sub(entries.len()).ok_or(CommitError::NotTheLastEntries)?;
        let (kept, replaced) = self.entries.split_at(kept);
        let is_same = |(one, other): (&Arc<AuditEntry>, &Arc<AuditEntry>)| {
            one.number == other.number && one.at == other.at && one.subjects() == other.subjects()
        };
        if !replaced.iter().zip(entries).all(is_same) {
            return Err(CommitError::NotTheLastEntries);
        }
        kept.last()
            .map_or(Ok(self.before), |last| Chain::at(last).map_err(|link| CommitError::Batch(link.into())))
    }

    /// Takes note of a committed batch.
    pub(crate) fn add(&mut self, heading: &BatchHeading, entries: &[Arc<AuditEntry>]) {
        let chain_before = heading.chain_before;
        match heading.mode {
            _ if entries.is_empty() => {}
            AuditMode::Append => *self = Self { before: chain_before, entries: entries.to_vec() },
            AuditMode::Rewrite => {
                self.entries.retain(|entry| entry.number <= chain_before.number);
                self.entries.extend_from_slice(entries);
            }
        }
    }
}
