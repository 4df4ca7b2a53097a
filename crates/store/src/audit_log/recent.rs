//! The audit log of a journal in memory: its newest entries.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use forewarn_control::{AuditEntry, Chain, Stream};

use super::search::{Candidate, SearchStep, StoredRange, is_in_time, range, search};
use super::table::is_about_the_same;
use super::{AuditBatch, AuditQuery, LoggedEntry, RECENT_ENTRIES_MAX, ReadError};
use crate::error::AppendError;

/// The newest entries of all streams, by position and without a gap.
#[derive(Clone, Debug)]
pub(crate) struct RecentEntries {
    entries_max: usize,
    entries: VecDeque<LoggedEntry>,
    /// Position of the newest entry.
    last: u64,
    streams: BTreeMap<Stream, RecentStream>,
    /// Last number that readers see, of streams with hidden entries.
    hidden: BTreeMap<Stream, u64>,
}

/// The part of a stream.
#[derive(Clone, Debug, Default)]
struct RecentStream {
    chain: Chain,
    /// The last entry that was dropped.
    swept: Chain,
    /// Positions of the entries after that one.
    positions: VecDeque<u64>,
}

/// Reason why entries are no audit log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLog {
    #[error("{0}")]
    Unchained(#[from] forewarn_control::BrokenLink),
    #[error("it has more audit entries than positions")]
    Positions,
    #[error("the audit log of a stream ends elsewhere than its entries")]
    End,
}

impl Default for RecentEntries {
    fn default() -> Self {
        let (entries, streams, hidden) = (VecDeque::new(), BTreeMap::new(), BTreeMap::new());
        Self { entries_max: RECENT_ENTRIES_MAX, entries, last: 0, streams, hidden }
    }
}

impl RecentStream {
    /// The position of the entry of that number, if it is stored.
    fn position(&self, number: u64) -> Option<u64> {
        let place = number.checked_sub(self.swept.number + 1)?;
        self.positions.get(usize::try_from(place).ok()?).copied()
    }
}

/// The last position of a log that is restored: far more than any log has, and far from the end of numbers.
const POSITION_MAX: u64 = 1 << 53;

impl RecentEntries {
    /// Appends entries of a stream, all or none. Returns the position of the first.
    pub(crate) fn keep(&mut self, stream: Stream, entries: &[Arc<AuditEntry>]) -> Result<u64, AppendError> {
        let first = self.last + 1;
        if entries.is_empty() {
            return Ok(first);
        }
        let part = self.streams.entry(stream).or_default();
        let mut chain = part.chain;
        entries.iter().try_for_each(|entry| chain.verify(entry))?;
        part.chain = chain;
        for entry in entries {
            self.last += 1;
            part.positions.push_back(self.last);
            self.entries.push_back(LoggedEntry { position: self.last, entry: Arc::clone(entry) });
        }
        while self.entries.len() > self.entries_max {
            self.drop_oldest();
        }
        Ok(first)
    }

    /// The log that ends at a position, with the ends of its streams and their newest entries. Earlier entries count as
    /// dropped.
    pub(crate) fn restored(
        last: u64,
        ends: &BTreeMap<Stream, Chain>,
        entries: Vec<Arc<AuditEntry>>,
    ) -> Result<Self, BadLog> {
        let before = last.checked_sub(entries.len() as u64).ok_or(BadLog::Positions)?;
        if last > POSITION_MAX || ends.values().any(|end| end.number > last) {
            return Err(BadLog::Positions);
        }
        let mut chains = BTreeMap::<Stream, Chain>::new();
        let mut log = Self { last, ..Self::default() };
        for (position, entry) in (before + 1..).zip(entries) {
            let stream = entry.belongs_to();
            let part = log.streams.entry(stream).or_default();
            match chains.get_mut(&stream) {
                Some(chain) => chain.verify(&entry)?,
                None => {
                    // The hash of the entry before the first is unknown, unless there is none.
                    let mut first = Chain::default();
                    let at = if entry.number == 1 {
                        first.verify(&entry).map(|()| first)
                    } else {
                        Chain::at(&entry)
                    };
                    part.swept = Chain { number: entry.number.saturating_sub(1), ..Chain::default() };
                    chains.insert(stream, at?);
                }
            }
            part.positions.push_back(position);
            log.entries.push_back(LoggedEntry { position, entry });
        }
        if chains.iter().any(|(stream, chain)| ends.get(stream) != Some(chain)) {
            return Err(BadLog::End);
        }
        for (stream, end) in ends {
            let part = log.streams.entry(*stream).or_default();
            part.chain = *end;
            if part.positions.is_empty() {
                part.swept = *end;
            }
        }
        while log.entries.len() > log.entries_max {
            log.drop_oldest();
        }
        Ok(log)
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn ends(&self) -> BTreeMap<Stream, Chain> {
        self.streams.iter().map(|(stream, part)| (*stream, part.chain)).collect()
    }

    pub(crate) fn newest(&self, max: usize) -> Vec<Arc<AuditEntry>> {
        let entries = self.entries.iter().skip(self.entries.len().saturating_sub(max));
        entries.map(|logged| Arc::clone(&logged.entry)).collect()
    }

    fn drop_oldest(&mut self) {
        let Some(LoggedEntry { position, entry }) = self.entries.pop_front() else { return };
        // Each entry is the oldest of its stream.
        let oldest = self.streams.values_mut().find(|part| part.positions.front() == Some(&position));
        if let (Some(part), Ok(swept)) = (oldest, Chain::at(&entry)) {
            part.positions.pop_front();
            part.swept = swept;
        }
    }

    /// Replaces the last entries of a stream, all or none. Returns the position of the first.
    pub(crate) fn rewrite(
        &mut self,
        stream: Stream,
        entries: &[Arc<AuditEntry>],
    ) -> Result<u64, AppendError> {
        if entries.is_empty() {
            return Ok(self.last + 1);
        }
        let part = self.streams.get(&stream).ok_or(AppendError::OtherEntry)?;
        // Of a long batch only the end is stored.
        let (gone, entries) = entries.split_at(entries.len().saturating_sub(part.positions.len()));
        let stored = part.positions.len() - entries.len();
        let former = |place: usize| part.positions.get(place).and_then(|position| self.at(*position));
        let is_same = |(place, entry): (usize, &Arc<AuditEntry>)| {
            former(place).is_some_and(|former| is_about_the_same(&former.entry, entry))
        };
        if !(stored..).zip(entries).all(is_same) {
            return Err(AppendError::OtherEntry);
        }
        let swept = gone.last().map_or(Ok(part.swept), |last| Chain::at(last))?;
        let mut chain = match stored.checked_sub(1).and_then(former) {
            Some(before) => Chain::at(&before.entry)?,
            None => swept,
        };
        entries.iter().try_for_each(|entry| chain.verify(entry))?;
        let replaced: Vec<_> = part.positions.range(stored..).copied().collect();
        for (position, entry) in replaced.iter().zip(entries) {
            if let Some(place) = self.place(*position) {
                self.entries[place].entry = Arc::clone(entry);
            }
        }
        if let Some(part) = self.streams.get_mut(&stream) {
            (part.chain, part.swept) = (chain, swept);
        }
        Ok(replaced.first().copied().unwrap_or(self.last + 1))
    }

    /// Hides entries of a stream with a greater number.
    pub(crate) fn hide_after(&mut self, stream: Stream, number: u64) {
        self.hidden.insert(stream, number);
    }

    pub(crate) fn show_all(&mut self, stream: Stream) {
        self.hidden.remove(&stream);
    }

    /// The last position before all hidden entries.
    fn shown_to(&self) -> u64 {
        let first = |(stream, number): (&Stream, &u64)| {
            let part = self.streams.get(stream)?;
            part.position(number.saturating_add(1).max(part.swept.number + 1))
        };
        self.hidden.iter().filter_map(first).min().map_or(u64::MAX, |position| position - 1)
    }

    fn swept(&self) -> u64 {
        self.last - self.entries.len() as u64
    }

    fn place(&self, position: u64) -> Option<usize> {
        usize::try_from(position.checked_sub(self.swept() + 1)?).ok()
    }

    fn at(&self, position: u64) -> Option<&LoggedEntry> {
        self.entries.get(self.place(position)?)
    }

    pub(crate) fn read(&self, query: &AuditQuery) -> Result<AuditBatch, ReadError> {
        match query.stream {
            None => {
                let swept = self.swept();
                let stored = StoredRange::new(swept, self.last, self.shown_to());
                self.search(query, stored, Some)
            }
            Some(stream) => {
                let none = RecentStream::default();
                let part = self.streams.get(&stream).unwrap_or(&none);
                let (swept, last) = (part.swept.number, part.chain.number);
                let shown_to = self.hidden.get(&stream).copied().unwrap_or(u64::MAX);
                let stored = StoredRange::new(swept, last, shown_to);
                self.search(query, stored, |number| part.position(number))
            }
        }
    }

    fn search(
        &self,
        query: &AuditQuery,
        stored: StoredRange,
        position_of: impl Fn(u64) -> Option<u64>,
    ) -> Result<AuditBatch, ReadError> {
        let look = |number: u64| {
            let found = position_of(number).and_then(|position| self.at(position));
            let entry =
                found.ok_or_else(|| ReadError::Damaged(format!("audit entry {number} is missing")))?;
            if is_in_time(query, entry.entry.at.0) {
                Ok(Candidate::Entry { entry: entry.clone(), bytes: 0 })
            } else {
                Ok(Candidate::Other)
            }
        };
        let step = |number| Ok(SearchStep::At(number));
        search(query, stored, range(query, stored), self.entries_max, step, look)
    }
}

#[cfg(test)]
mod tests {
    use forewarn_control::{ClusterId, NewAuditEntry};

    use super::*;

    const CLUSTER: Stream = Stream::Cluster(ClusterId(3));

    fn sealed(chain: &mut Chain, count: usize) -> Vec<Arc<AuditEntry>> {
        (0..count).map(|_| Arc::new(chain.seal(NewAuditEntry::default()))).collect()
    }

    fn numbers(page: &AuditBatch) -> Vec<(u64, u64)> {
        page.entries.iter().map(|one| (one.position, one.entry.number)).collect()
    }

    #[test]
    fn the_newest_are_kept() {
        let mut recent = RecentEntries { entries_max: 3, ..RecentEntries::default() };
        let mut chain = Chain::default();
        for batch in [1, 2, 7, 0] {
            recent.keep(Stream::Shared, &sealed(&mut chain, batch)).unwrap();
        }
        let page = recent.read(&AuditQuery::default()).unwrap();
        assert_eq!(numbers(&page), [(8, 8), (9, 9), (10, 10)]);
        assert_eq!((page.swept, page.head, page.next), (7, 10, None));
    }

    #[test]
    fn the_newest_of_all_streams_are_kept() {
        let mut recent = RecentEntries { entries_max: 4, ..RecentEntries::default() };
        let (mut shared, mut cluster) = (Chain::default(), Chain::default());
        for _ in 0..5 {
            recent.keep(Stream::Shared, &sealed(&mut shared, 1)).unwrap();
            recent.keep(CLUSTER, &sealed(&mut cluster, 2)).unwrap();
        }
        let page = recent.read(&AuditQuery::default()).unwrap();
        assert_eq!(numbers(&page), [(12, 8), (13, 5), (14, 9), (15, 10)]);
        let of = |stream| recent.read(&AuditQuery { stream: Some(stream), ..AuditQuery::default() }).unwrap();
        let page = of(CLUSTER);
        assert_eq!((numbers(&page), page.swept, page.head), (vec![(12, 8), (14, 9), (15, 10)], 7, 10));
        let page = of(Stream::Shared);
        assert_eq!((numbers(&page), page.swept, page.head), (vec![(13, 5)], 4, 5));
        let page = of(Stream::Cluster(ClusterId(9)));
        assert_eq!((numbers(&page), page.swept, page.head), (vec![], 0, 0));
    }
}
