//! The part of the audit log that is about events, as far as it has been read.

use forewarn_control::AuditEntry;
use forewarn_verdict::{EventHistory, event_histories};

/// The entries about events that have been read so far.
#[derive(Default)]
pub(crate) struct AuditTrail {
    entries: Vec<AuditEntry>,
    last: u64,
}

impl AuditTrail {
    /// The number of the last entry that has been read; 0 before the first.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Adds the entries after the last one.
    pub(crate) fn add(&mut self, entries: Vec<AuditEntry>) {
        self.last = entries.last().map_or(self.last, |entry| entry.number);
        let is_about_events = |entry: &AuditEntry| !entry.events.is_empty() || !entry.notices.is_empty();
        self.entries.extend(entries.into_iter().filter(is_about_events));
    }

    /// The histories of all events, in the order in which they appeared.
    pub(crate) fn event_histories(&self) -> Vec<EventHistory> {
        event_histories(&self.entries)
    }
}
