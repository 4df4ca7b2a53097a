//! A run: entries of one stream that were committed together and wait in the journal.

use crate::codec::stored_struct;
use crate::stream_key::StreamKey;

/// Entries of a stream with consecutive numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) stream: StreamKey,
    /// Number of the first entry.
    pub(crate) first: u64,
    /// First position, and count, of each group of entries with consecutive positions.
    spans: Vec<(u64, u64)>,
}

stored_struct! { Run { stream, first, spans } }

impl Run {
    /// Entries at these positions.
    pub(crate) fn new(stream: StreamKey, first: u64, positions: &[u64]) -> Self {
        let groups = positions.chunk_by(|one, next| one + 1 == *next);
        let spans = groups.map(|group| (group[0], group.len() as u64)).collect();
        Self { stream, first, spans }
    }

    /// Entries at these groups of positions.
    pub(crate) fn at_spans(stream: StreamKey, first: u64, spans: Vec<(u64, u64)>) -> Self {
        Self { stream, first, spans }
    }

    /// First position, and count, of each group of entries with consecutive positions.
    pub(crate) fn spans(&self) -> &[(u64, u64)] {
        &self.spans
    }

    pub(crate) fn count(&self) -> u64 {
        self.spans.iter().map(|(_, count)| count).sum()
    }

    /// The number after its last entry.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.count()
    }

    /// The position of the entry with that number.
    pub(crate) fn position(&self, number: u64) -> Option<u64> {
        let mut index = number.checked_sub(self.first)?;
        for (position, count) in &self.spans {
            if index < *count {
                return Some(position + index);
            }
            index -= count;
        }
        None
    }

    /// The number of the entry at a position.
    pub(crate) fn number(&self, position: u64) -> Option<u64> {
        let mut number = self.first;
        for (first, count) in &self.spans {
            if (*first..first + count).contains(&position) {
                return Some(number + position - first);
            }
            number += count;
        }
        None
    }

    /// Drops the entries from that number on.
    pub(crate) fn cut(&mut self, number: u64) {
        let mut left = number.saturating_sub(self.first);
        self.spans.retain_mut(|(_, count)| {
            *count = left.min(*count);
            left -= *count;
            *count > 0
        });
    }
}
