//! The audit log of a journal in memory as a value: to be kept, saved, and given to another journal in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::{AuditEntry, Chain, Stream};

use crate::audit_log::{BadLog, RecentEntries};

/// The audit log of a journal in memory, as it was at one moment.
#[derive(Clone, Debug, Default)]
pub struct RecentLog(RecentEntries);

impl RecentLog {
    pub(crate) fn new(entries: RecentEntries) -> Self {
        Self(entries)
    }

    pub(crate) fn into_entries(self) -> RecentEntries {
        self.0
    }

    /// A log that ends at a position, with the ends of its streams and the newest entries of all of them.
    ///
    /// # Errors
    /// Fails if the entries do not follow each other, or do not lead to the ends.
    pub fn from_parts(
        last: u64,
        ends: &BTreeMap<Stream, Chain>,
        entries: Vec<AuditEntry>,
    ) -> Result<Self, BadLog> {
        RecentEntries::restored(last, ends, entries.into_iter().map(Arc::new).collect()).map(Self)
    }

    /// Position of the newest entry.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.0.last()
    }

    /// The end of the log of each stream that has entries.
    #[must_use]
    pub fn ends(&self) -> BTreeMap<Stream, Chain> {
        self.0.ends()
    }

    /// The newest entries, in the order of their positions.
    #[must_use]
    pub fn newest(&self, max: usize) -> Vec<Arc<AuditEntry>> {
        self.0.newest(max)
    }
}

#[cfg(test)]
mod tests {
    use forewarn_control::{ClusterId, NewAuditEntry};

    use super::*;
    use crate::{AuditQuery, Journal};

    const CLUSTER: Stream = Stream::Cluster(ClusterId(3));

    fn journal() -> Journal {
        let journal = Journal::memory();
        let (mut shared, mut cluster) = (Chain::default(), Chain::default());
        for _ in 0..3 {
            for (stream, chain) in [(Stream::Shared, &mut shared), (CLUSTER, &mut cluster)] {
                let new = NewAuditEntry { stream: Some(stream), ..NewAuditEntry::default() };
                journal.append(stream, &[], &[Arc::new(chain.seal(new))]).unwrap();
            }
        }
        journal
    }

    fn numbers(journal: &Journal, stream: Option<Stream>) -> Vec<(u64, u64)> {
        let page = journal.audit_log_reader().read(AuditQuery { stream, ..AuditQuery::default() }).unwrap();
        page.entries.iter().map(|one| (one.position, one.entry.number)).collect()
    }

    fn restored(log: &RecentLog, newest: usize) -> Result<RecentLog, BadLog> {
        let entries = log.newest(newest).iter().map(|entry| AuditEntry::clone(entry)).collect();
        RecentLog::from_parts(log.last(), &log.ends(), entries)
    }

    #[test]
    fn a_log_goes_on_in_another_journal_with_the_same_positions_and_chains() {
        let former = journal();
        let log = former.recent_log().unwrap();
        for (newest, first) in [(100, 1), (3, 4), (0, 7)] {
            let journal = Journal::memory_with(restored(&log, newest).unwrap());
            let all = numbers(&former, None);
            let kept: Vec<_> = all.into_iter().filter(|(position, _)| *position >= first).collect();
            assert_eq!(numbers(&journal, None), kept);
            let mut chain = log.ends()[&CLUSTER];
            let next = chain.seal(NewAuditEntry { stream: Some(CLUSTER), ..NewAuditEntry::default() });
            assert_eq!(journal.append(CLUSTER, &[], &[Arc::new(next)]).unwrap().first_position, 7);
            assert_eq!(numbers(&journal, Some(CLUSTER)).last(), Some(&(7, 4)));
        }
        assert_eq!(numbers(&former, None).len(), 6, "the former journal is unchanged");
    }

    #[test]
    fn changed_entries_and_other_ends_are_no_log() {
        let log = journal().recent_log().unwrap();
        let entries = || -> Vec<_> { log.newest(100).iter().map(|entry| AuditEntry::clone(entry)).collect() };
        let of = |last, ends: &BTreeMap<_, _>, entries| RecentLog::from_parts(last, ends, entries).err();
        assert_eq!(of(6, &log.ends(), entries()), None);
        let mut changed = entries();
        changed[4].text = "another text".to_owned();
        assert!(matches!(of(6, &log.ends(), changed), Some(BadLog::Unchained(_))));
        let mut gap = entries();
        gap.remove(2);
        assert!(matches!(of(6, &log.ends(), gap), Some(BadLog::Unchained(_))));
        assert_eq!(of(5, &log.ends(), entries()), Some(BadLog::Positions));
        let mut ends = log.ends();
        ends.insert(CLUSTER, Chain { number: 5, hash: [0; 32] });
        assert_eq!(of(6, &ends, entries()), Some(BadLog::End));
        ends.insert(CLUSTER, Chain { number: 7, hash: [0; 32] });
        assert_eq!(of(6, &ends, entries()), Some(BadLog::Positions));
        assert_eq!(of(u64::MAX, &log.ends(), Vec::new()), Some(BadLog::Positions));
        ends.remove(&CLUSTER);
        assert_eq!(of(6, &ends, entries()), Some(BadLog::End));
    }
}
