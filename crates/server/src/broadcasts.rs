//! Broadcasts of the driver: audit entries, commits, snapshots, write errors of the journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use forewarn_control::AuditEntry;
use forewarn_store::{AuditLogReader, AuditQuery};
use tokio::sync::{broadcast, watch};

use crate::snapshot::Snapshot;

/// Senders of the driver.
#[derive(Clone, Debug)]
pub(crate) struct Broadcasts {
    pub(crate) audit_entries: broadcast::Sender<Arc<AuditEntry>>,
    pub(crate) commits: watch::Sender<u64>,
    /// Reason why the journal cannot be written. None if it can.
    pub(crate) write_error: watch::Sender<Option<String>>,
    pub(crate) clock_steps: Arc<AtomicU64>,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(crate) reader: Arc<ArcSwap<AuditLogReader>>,
    /// Number of the last audit entry whose consequences are published: the snapshot is at least as new.
    pub(crate) published: Arc<AtomicU64>,
}

/// Entries that are buffered for a slow receiver; it reads further ones from the audit log.
const ENTRIES_BUFFERED_MAX: usize = 1_024;

impl Broadcasts {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self {
            audit_entries: broadcast::Sender::new(ENTRIES_BUFFERED_MAX),
            reader: Arc::new(ArcSwap::from_pointee(AuditLogReader::closed())),
            commits: watch::Sender::new(0),
            write_error: watch::Sender::new(None),
            clock_steps: Arc::default(),
            snapshot: Arc::new(ArcSwap::from_pointee(snapshot)),
            published: Arc::default(),
        }
    }

    /// Counts a step of the clock, or a suspension.
    pub(crate) fn count_clock_step(&self) {
        self.clock_steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Publishes the state after a commit.
    pub(crate) fn publish(&self, snapshot: Snapshot) {
        self.snapshot.store(Arc::new(snapshot));
    }

    /// Records that everything up to an audit entry is published.
    pub(crate) fn has_published(&self, entry: u64) {
        self.published.store(entry, Ordering::Release);
    }

    /// Number of the last published audit entry.
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Replaces the reader of the audit log.
    pub(crate) fn set_audit_reader(&self, reader: AuditLogReader) {
        self.reader.store(Arc::new(reader));
    }

    /// Sets or clears the reason why the journal cannot be written.
    pub(crate) fn set_write_error(&self, error: Option<String>) {
        self.write_error.send_replace(error);
    }

    /// Broadcasts audit entries and a commit.
    pub(crate) fn publish_entries(&self, entries: Vec<Arc<AuditEntry>>) {
        if let Some(last) = entries.last() {
            self.has_published(last.number);
        }
        for entry in entries {
            // There may be no receiver.
            drop(self.audit_entries.send(entry));
        }
        self.commits.send_modify(|commits| *commits += 1);
    }

    /// Broadcasts entries of a commit that was taken for failed and is in the journal.
    pub(crate) fn publish_missed_entries(&self, reader: &AuditLogReader, mut after: u64) {
        let read = |after| reader.read(AuditQuery { after: Some(after), ..AuditQuery::default() });
        while let Ok(page) = read(after)
            && let Some(last) = page.entries.last()
        {
            after = last.number;
            self.publish_entries(page.entries);
        }
    }
}
