//! Broadcasts of the drivers: audit entries, commits, snapshots, write errors of the journal.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use forewarn_control::AuditEntry;
use forewarn_control::shared::SharedState;
use forewarn_store::{AuditBatch, AuditCheck, AuditLogReader, AuditQuery, LoggedEntry, ReadError};
use tokio::sync::{broadcast, oneshot, watch};

use crate::snapshot::Snapshot;

/// Senders of the drivers.
#[derive(Clone, Debug)]
pub(crate) struct Broadcasts {
    pub(crate) audit_entries: broadcast::Sender<LoggedEntry>,
    pub(crate) commits: watch::Sender<u64>,
    /// Changes when this server has published announcements: the other servers of a realm wait for that.
    pub(crate) announcements: watch::Sender<()>,
    /// Reason why the journal cannot be written. None if it can.
    pub(crate) write_error: watch::Sender<Option<String>>,
    /// Results of the verification of the audit log.
    pub(crate) audit_check: watch::Sender<AuditCheck>,
    pub(crate) clock_steps: Arc<AtomicU64>,
    pub(crate) failed_actions: Arc<AtomicU64>,
    /// Number of replacements of the whole state.
    pub(crate) replacements: watch::Sender<u64>,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(crate) reader: Arc<ArcSwap<AuditLogReader>>,
    published: Arc<Mutex<PublishedPositions>>,
    /// Position up to which entries may be missing that other servers of the realm have.
    skipped: Arc<AtomicU64>,
}

/// Positions of the audit entries whose consequences are published: each driver publishes for itself.
#[derive(Debug, Default)]
struct PublishedPositions {
    /// All entries up to this one are published.
    up_to: u64,
    /// Entries after it that are published.
    beyond: BTreeSet<u64>,
}

/// Entries that are buffered for a slow receiver; it reads further ones from the audit log.
pub(crate) const ENTRIES_BUFFERED_MAX: usize = 1_024;

/// Pause before a busy audit log is read again.
const READ_PAUSE: Duration = Duration::from_millis(20);

impl Broadcasts {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self {
            audit_entries: broadcast::Sender::new(ENTRIES_BUFFERED_MAX),
            reader: Arc::new(ArcSwap::from_pointee(AuditLogReader::closed())),
            commits: watch::Sender::new(0),
            announcements: watch::Sender::new(()),
            write_error: watch::Sender::new(None),
            audit_check: watch::Sender::new(AuditCheck::default()),
            clock_steps: Arc::default(),
            failed_actions: Arc::default(),
            replacements: watch::Sender::new(0),
            snapshot: Arc::new(ArcSwap::from_pointee(snapshot)),
            published: Arc::default(),
            skipped: Arc::default(),
        }
    }

    /// Counts a step of the clock, or a suspension.
    pub(crate) fn count_clock_step(&self) {
        self.clock_steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an action that failed.
    pub(crate) fn count_failed_action(&self) {
        self.failed_actions.fetch_add(1, Ordering::Relaxed);
    }

    /// The state that clusters share, as it was after its last commit.
    pub(crate) fn shared(&self) -> Arc<SharedState> {
        self.snapshot.load().state.shared_arc()
    }

    /// Publishes a change of the state. Several drivers do so at once: the change is applied again if another one came
    /// in between.
    pub(crate) fn publish(&self, change: impl Fn(&mut Snapshot)) {
        self.snapshot.rcu(|snapshot| {
            let mut changed = Snapshot::clone(snapshot);
            change(&mut changed);
            changed
        });
    }

    /// Position of an audit entry such that the consequences of all entries up to it are published.
    pub(crate) fn published(&self) -> u64 {
        self.published_mut().up_to
    }

    /// Sets the reader of the audit log at the start: all of its entries, up to its head, are published.
    pub(crate) fn begin(&self, reader: AuditLogReader, head: u64) {
        self.published_mut().set_up_to(head);
        self.set_audit_reader(reader);
    }

    /// Continues with another audit log: all of its entries, up to its head, are published.
    pub(crate) fn restart(&self, reader: AuditLogReader, head: u64) {
        *self.published_mut() = PublishedPositions { up_to: head, beyond: BTreeSet::new() };
        self.set_audit_reader(reader);
        self.set_write_error(None);
        self.replacements.send_modify(|replacements| *replacements += 1);
    }

    /// Replaces the reader of the audit log.
    pub(crate) fn set_audit_reader(&self, reader: AuditLogReader) {
        self.reader.store(Arc::new(reader));
    }

    /// Reads the audit log.
    pub(crate) async fn read_audit_log(&self, query: AuditQuery) -> Result<AuditBatch, ReadError> {
        let (reply, result) = oneshot::channel();
        // The caller may have gone.
        self.reader.load().read_then(query, move |page| drop(reply.send(page)));
        result.await.unwrap_or(Err(ReadError::Closed))
    }

    /// Sets or clears the reason why the journal cannot be written.
    pub(crate) fn set_write_error(&self, error: Option<String>) {
        self.write_error.send_replace(error);
    }

    /// Entries up to a position are missing, or published: they are not broadcast.
    pub(crate) fn skip_entries(&self, position: u64) {
        self.skipped.fetch_max(position, Ordering::AcqRel);
        self.published_mut().set_up_to(position);
        self.commits.send_modify(|commits| *commits += 1);
    }

    /// The last position of entries that were not broadcast.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Acquire)
    }

    /// Broadcasts audit entries and a commit. The entries follow each other in the log.
    pub(crate) fn publish_entries(&self, first_position: u64, entries: Vec<Arc<AuditEntry>>) {
        let logged = (first_position..).zip(entries).map(|(position, entry)| LoggedEntry { position, entry });
        self.send(logged.collect());
        self.commits.send_modify(|commits| *commits += 1);
    }

    /// Broadcasts entries up to a position that are in the log and were not broadcast: their commit was taken for failed.
    /// No driver will publish them.
    ///
    /// # Errors
    /// Fails if the log cannot be read at the moment. The rest has to be published later: until then, readers see nothing
    /// after it.
    pub(crate) async fn publish_missed_entries(
        &self,
        reader: &AuditLogReader,
        head: u64,
    ) -> Result<(), ReadError> {
        let mut after = self.published();
        while after < head {
            let (reply, result) = oneshot::channel();
            let query = AuditQuery { after: Some(after), before: Some(head + 1), ..AuditQuery::default() };
            // The result is awaited below.
            reader.read_then(query, move |page| drop(reply.send(page)));
            match result.await.unwrap_or(Err(ReadError::Closed)) {
                Ok(page) => {
                    let Some(last) = page.entries.last() else { break };
                    after = last.position;
                    let is_missed = |logged: &LoggedEntry| !self.published_mut().contains(logged.position);
                    self.send(page.entries.into_iter().filter(is_missed).collect());
                }
                Err(ReadError::Busy) => tokio::time::sleep(READ_PAUSE).await,
                Err(error @ (ReadError::Closed | ReadError::Failed(_))) => return Err(error),
                Err(error @ (ReadError::Damaged(_) | ReadError::TooMany(_))) => {
                    // Another attempt gives the same error, and so does the audit log to its readers.
                    tracing::error!(%error, "missed audit entries are not broadcast");
                    break;
                }
            }
        }
        // Entries that were deleted leave no gap.
        self.published_mut().set_up_to(head);
        self.commits.send_modify(|commits| *commits += 1);
        Ok(())
    }

    fn published_mut(&self) -> MutexGuard<'_, PublishedPositions> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, entries: Vec<LoggedEntry>) {
        self.published_mut().add(&entries);
        for entry in entries {
            // There may be no receiver.
            drop(self.audit_entries.send(entry));
        }
    }
}

impl PublishedPositions {
    fn contains(&self, position: u64) -> bool {
        position <= self.up_to || self.beyond.contains(&position)
    }

    /// All entries up to a position are published, or gone.
    fn set_up_to(&mut self, position: u64) {
        self.up_to = self.up_to.max(position);
        self.beyond = self.beyond.split_off(&(self.up_to + 1));
        self.close_gap();
    }

    fn add(&mut self, entries: &[LoggedEntry]) {
        let up_to = self.up_to;
        for position in entries.iter().map(|logged| logged.position).filter(|position| *position > up_to) {
            match position == self.up_to + 1 {
                true => self.up_to = position,
                false => drop(self.beyond.insert(position)),
            }
        }
        self.close_gap();
    }

    fn close_gap(&mut self) {
        while self.beyond.remove(&(self.up_to + 1)) {
            self.up_to += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_control::{Chain, ControlState, NewAuditEntry, Stream};
    use forewarn_lifecycle::Seed;
    use forewarn_store::Journal;

    fn broadcasts() -> Broadcasts {
        let seed = Seed([3; 16]);
        Broadcasts::new(Snapshot::new(ControlState::new(seed), seed))
    }

    /// promise: C5
    #[test]
    fn a_log_that_cannot_be_read_at_the_start_leaves_no_gap() {
        let broadcasts = broadcasts();
        broadcasts.begin(AuditLogReader::closed(), 7);
        assert_eq!(broadcasts.published(), 7);
    }

    /// promise: C5
    #[tokio::test]
    async fn missed_entries_are_published_once_the_log_can_be_read() {
        let (broadcasts, journal) = (broadcasts(), Journal::memory());
        let mut chain = Chain::default();
        let new = || NewAuditEntry { stream: Some(Stream::Shared), ..NewAuditEntry::default() };
        let entries: Vec<_> = (0..3).map(|_| Arc::new(chain.seal(new()))).collect();
        journal.append(Stream::Shared, &[], &entries).unwrap();
        let mut received = broadcasts.audit_entries.subscribe();
        let failed = broadcasts.publish_missed_entries(&AuditLogReader::closed(), 3).await;
        assert_eq!((failed, broadcasts.published()), (Err(ReadError::Closed), 0));
        assert_eq!(broadcasts.publish_missed_entries(&journal.audit_log_reader(), 3).await, Ok(()));
        assert_eq!(broadcasts.published(), 3);
        let positions: Vec<_> =
            std::iter::from_fn(|| received.try_recv().ok()).map(|it| it.position).collect();
        assert_eq!(positions, [1, 2, 3]);
    }

    #[test]
    fn published_positions_have_no_gap() {
        let entry = Arc::new(Chain::default().seal(NewAuditEntry::default()));
        let logged = |position| LoggedEntry { position, entry: Arc::clone(&entry) };
        let mut published = PublishedPositions::default();
        let mut up_to = |positions: &[u64]| {
            published.add(&positions.iter().copied().map(logged).collect::<Vec<_>>());
            published.up_to
        };
        assert_eq!(up_to(&[1, 2]), 2);
        assert_eq!(up_to(&[5]), 2);
        assert_eq!(up_to(&[4]), 2);
        assert_eq!(up_to(&[3]), 5);
        assert_eq!(up_to(&[2, 6]), 6);
        assert_eq!(up_to(&[9]), 6);
        published.set_up_to(8);
        assert_eq!((published.up_to, published.beyond.len()), (9, 0));
    }
}
