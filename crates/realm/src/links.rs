//! Checks that batches follow each other without a gap.

use forewarn_control::Chain;

use crate::batch::{AuditMode, Batch};
use crate::head::StreamPosition;

/// Reason why a batch does not follow a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("batch {expected} is missing: batch {found} comes next")]
    Number { expected: u64, found: u64 },
    #[error("records before it are missing")]
    Records,
    #[error("its audit entries do not continue those before it")]
    Entries,
}

/// The end of the batches that were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchLinks {
    position: StreamPosition,
    /// Ends of the audit log before and after each entry since the last append: entries after one of them may be
    /// replaced. Earlier ends are not known.
    ends: Vec<Chain>,
}

impl BatchLinks {
    pub(crate) fn new(position: StreamPosition) -> Self {
        Self { position, ends: vec![position.chain] }
    }

    pub(crate) fn position(&self) -> StreamPosition {
        self.position
    }

    /// Checks the next batch, and advances past it.
    pub(crate) fn add(&mut self, batch: &Batch) -> Result<(), LinkError> {
        let expected = self.position.number + 1;
        if batch.number != expected {
            return Err(LinkError::Number { expected, found: batch.number });
        }
        if batch.records_before != self.position.records {
            return Err(LinkError::Records);
        }
        self.check_chain(batch)?;
        let chain = batch.chain_after().map_err(|_| LinkError::Entries)?;
        self.position = StreamPosition { number: batch.number, records: batch.records_after(), chain };
        if !batch.entries.is_empty() {
            match batch.mode {
                AuditMode::Append => self.ends = vec![batch.chain_before],
                AuditMode::Rewrite => self.ends.retain(|end| end.number <= batch.chain_before.number),
            }
            self.ends.extend(batch.entries.iter().filter_map(|entry| Chain::at(entry).ok()));
        }
        Ok(())
    }

    fn check_chain(&self, batch: &Batch) -> Result<(), LinkError> {
        let (before, end) = (batch.chain_before, self.position.chain);
        let follows = match batch.mode {
            AuditMode::Append => before == end,
            // An end before the known ones cannot be compared.
            AuditMode::Rewrite => {
                let known = self.ends.iter().find(|known| known.number == before.number);
                known.is_none_or(|known| *known == before)
                    && before.number.checked_add(batch.entries.len() as u64) == Some(end.number)
            }
        };
        if follows { Ok(()) } else { Err(LinkError::Entries) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forewarn_control::{NewAuditEntry, Stream};
    use forewarn_ownership::{BatchId, Term};

    use super::*;

    fn batch(position: StreamPosition, mode: AuditMode, before: Chain, entries: u64, text: &str) -> Batch {
        let mut chain = before;
        let told = || NewAuditEntry { text: text.to_owned(), ..NewAuditEntry::default() };
        let entries = (0..entries).map(|_| Arc::new(chain.seal(told()))).collect();
        Batch {
            stream: Stream::Shared,
            number: position.number + 1,
            term: Term(0),
            id: BatchId([1; 16]),
            records_before: position.records,
            mode,
            chain_before: before,
            records: Vec::new(),
            entries,
        }
    }

    #[test]
    fn batches_follow_each_other_and_rewrites_replace_known_entries() {
        let mut links = BatchLinks::new(StreamPosition::default());
        let begin = Chain::default();
        let first = batch(links.position(), AuditMode::Append, begin, 3, "first");
        links.add(&first).unwrap();
        assert_eq!(links.add(&first), Err(LinkError::Number { expected: 2, found: 1 }));
        let after_one = Chain::at(&first.entries[0]).unwrap();
        let rewrite = batch(links.position(), AuditMode::Rewrite, after_one, 2, "again");
        links.clone().add(&rewrite).unwrap();
        let foreign = Chain { number: 1, hash: [9; 32] };
        let foreign = batch(links.position(), AuditMode::Rewrite, foreign, 2, "again");
        assert_eq!(links.clone().add(&foreign), Err(LinkError::Entries));
        let short = batch(links.position(), AuditMode::Rewrite, after_one, 1, "again");
        assert_eq!(links.clone().add(&short), Err(LinkError::Entries));
        links.add(&rewrite).unwrap();
        let stale = batch(links.position(), AuditMode::Append, Chain::at(&first.entries[2]).unwrap(), 1, "x");
        assert_eq!(links.add(&stale), Err(LinkError::Entries));
        let next = batch(links.position(), AuditMode::Append, links.position().chain, 1, "next");
        let gap = Batch { records_before: 1, ..next.clone() };
        assert_eq!(links.add(&gap), Err(LinkError::Records));
        links.add(&next).unwrap();
        assert_eq!(links.position().chain.number, 4);
    }
}
