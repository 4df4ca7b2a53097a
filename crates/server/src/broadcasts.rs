//! Broadcasts of the driver: audit entries, commits, snapshots, trouble with the journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use forewarn_control::AuditEntry;
use forewarn_store::{AuditQuery, TrailReader};
use tokio::sync::{broadcast, watch};

use crate::snapshot::Snapshot;

/// Senders of the driver.
#[derive(Clone, Debug)]
pub(crate) struct Broadcasts {
    pub(crate) trail: broadcast::Sender<Arc<AuditEntry>>,
    pub(crate) commits: watch::Sender<u64>,
    /// Why nothing can be written, if so.
    pub(crate) trouble: watch::Sender<Option<String>>,
    pub(crate) clock_steps: Arc<AtomicU64>,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(crate) reader: Arc<ArcSwap<TrailReader>>,
    /// The number of the last entry of the trail whose consequences are visible: the snapshot is at least as new.
    pub(crate) published: Arc<AtomicU64>,
}

/// Entries that are kept for a listener that is slow; more, and it has to read what it missed.
const ENTRIES_KEPT_MAX: usize = 1_024;

impl Broadcasts {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self {
            trail: broadcast::Sender::new(ENTRIES_KEPT_MAX),
            reader: Arc::new(ArcSwap::from_pointee(TrailReader::closed())),
            commits: watch::Sender::new(0),
            trouble: watch::Sender::new(None),
            clock_steps: Arc::default(),
            snapshot: Arc::new(ArcSwap::from_pointee(snapshot)),
            published: Arc::default(),
        }
    }

    /// A clock was set, or nobody looked at it for long.
    pub(crate) fn count_clock_step(&self) {
        self.clock_steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Publishes the state after a commit.
    pub(crate) fn publish(&self, snapshot: Snapshot) {
        self.snapshot.store(Arc::new(snapshot));
    }

    /// Everything up to that entry of the trail is visible.
    pub(crate) fn has_published(&self, entry: u64) {
        self.published.store(entry, Ordering::Release);
    }

    /// The number of the last entry of the trail that is visible.
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// The trail is read by this from now on.
    pub(crate) fn can_read(&self, reader: TrailReader) {
        self.reader.store(Arc::new(reader));
    }

    /// Tells whether something is wrong.
    pub(crate) fn is_troubled(&self, trouble: Option<String>) {
        self.trouble.send_replace(trouble);
    }

    /// Tells what has happened, and that something is not what it was.
    pub(crate) fn tell(&self, entries: Vec<Arc<AuditEntry>>) {
        if let Some(last) = entries.last() {
            self.has_published(last.number);
        }
        for entry in entries {
            // Nobody may be listening.
            drop(self.trail.send(entry));
        }
        self.commits.send_modify(|commits| *commits += 1);
    }

    /// Broadcasts entries that were found in the journal and that no listener has: their commit was taken for failed.
    pub(crate) fn tell_missed(&self, reader: &TrailReader, mut after: u64) {
        let read = |after| reader.read(AuditQuery { after: Some(after), ..AuditQuery::default() });
        while let Ok(page) = read(after)
            && let Some(last) = page.entries.last()
        {
            after = last.number;
            self.tell(page.entries);
        }
    }
}
