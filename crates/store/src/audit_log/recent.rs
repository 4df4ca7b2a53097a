//! The audit log of a journal in memory: its newest entries.

use std::collections::VecDeque;
use std::sync::Arc;

use forewarn_control::{AuditEntry, BrokenLink, Chain};

use super::search::{Candidate, SearchStep, StoredRange, is_in_time, range, search};
use super::table::is_about_the_same;
use super::{AuditBatch, AuditQuery, RECENT_ENTRIES_MAX, ReadError};
use crate::error::AppendError;

/// The newest entries, in order and without a gap.
#[derive(Debug)]
pub(crate) struct RecentEntries {
    entries_max: usize,
    entries: VecDeque<Arc<AuditEntry>>,
    chain: Chain,
    /// The last entry that was dropped.
    swept: Chain,
    /// Last entry that readers see, if it exists.
    shown_to: u64,
}

impl Default for RecentEntries {
    fn default() -> Self {
        Self {
            entries_max: RECENT_ENTRIES_MAX,
            entries: VecDeque::new(),
            chain: Chain::default(),
            swept: Chain::default(),
            shown_to: u64::MAX,
        }
    }
}

impl RecentEntries {
    /// Appends entries, all or none.
    pub(crate) fn keep(&mut self, entries: &[Arc<AuditEntry>]) -> Result<(), BrokenLink> {
        let mut chain = self.chain;
        entries.iter().try_for_each(|entry| chain.verify(entry))?;
        self.chain = chain;
        self.entries.extend(entries.iter().cloned());
        let too_many = self.entries.len().saturating_sub(self.entries_max);
        if let Some(last) = self.entries.drain(..too_many).next_back() {
            self.swept = Chain::at(&last)?;
        }
        Ok(())
    }

    /// Replaces the last entries, all or none.
    pub(crate) fn rewrite(&mut self, entries: &[Arc<AuditEntry>]) -> Result<(), AppendError> {
        // Of a long batch only the end is stored.
        let (gone, entries) = entries.split_at(entries.len().saturating_sub(self.entries.len()));
        let stored = self.entries.len() - entries.len();
        if !self.entries.range(stored..).zip(entries).all(|(former, entry)| is_about_the_same(former, entry))
        {
            return Err(AppendError::OtherEntry);
        }
        let swept = gone.last().map_or(Ok(self.swept), |last| Chain::at(last))?;
        let before = stored.checked_sub(1).map_or(Ok(swept), |last| Chain::at(&self.entries[last]))?;
        let mut chain = before;
        entries.iter().try_for_each(|entry| chain.verify(entry))?;
        (self.chain, self.swept) = (chain, swept);
        self.entries.truncate(stored);
        self.entries.extend(entries.iter().cloned());
        Ok(())
    }

    /// Makes entries up to that number visible.
    pub(crate) fn show_to(&mut self, number: u64) {
        self.shown_to = number;
    }

    pub(crate) fn read(&self, query: &AuditQuery) -> Result<AuditBatch, ReadError> {
        let swept = self.chain.number - self.entries.len() as u64;
        let stored = StoredRange { swept, head: self.chain.number.min(self.shown_to).max(swept) };
        let look = |number: u64| {
            let place = usize::try_from(number - stored.swept - 1).ok();
            let entry =
                place.and_then(|place| self.entries.get(place)).filter(|entry| entry.number == number);
            let entry =
                entry.ok_or_else(|| ReadError::Damaged(format!("audit entry {number} is missing")))?;
            if is_in_time(query, entry.at.0) {
                Ok(Candidate::Entry { entry: Arc::clone(entry), bytes: 0 })
            } else {
                Ok(Candidate::Other)
            }
        };
        search(
            query,
            stored,
            range(query, stored),
            self.entries_max,
            |number| Ok(SearchStep::At(number)),
            look,
        )
    }
}

#[cfg(test)]
mod tests {
    use forewarn_control::NewAuditEntry;

    use super::*;

    #[test]
    fn the_newest_are_kept() {
        let mut recent = RecentEntries { entries_max: 3, ..RecentEntries::default() };
        let mut chain = Chain::default();
        for batch in [1, 2, 7, 0] {
            let entries: Vec<_> =
                (0..batch).map(|_| Arc::new(chain.seal(NewAuditEntry::default()))).collect();
            recent.keep(&entries).unwrap();
        }
        let page = recent.read(&AuditQuery::default()).unwrap();
        let numbers: Vec<_> = page.entries.iter().map(|entry| entry.number).collect();
        assert_eq!((numbers, page.swept, page.head, page.next), (vec![8, 9, 10], 7, 10, None));
    }
}
