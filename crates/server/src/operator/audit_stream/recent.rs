//! The newest events, for clients that have almost all of them: these need no read of the audit log.

use std::collections::BTreeMap;
use std::ops::RangeFrom;
use std::sync::Arc;

use super::event::StreamEvent;

/// Number of events that are kept. It exceeds the entries that may be beyond a missing one.
const RECENT_MAX: usize = 256;

/// The newest events by position.
#[derive(Debug)]
pub(super) struct RecentEvents {
    events: BTreeMap<u64, Arc<StreamEvent>>,
    /// Every examined entry after this position is here.
    floor: u64,
}

impl RecentEvents {
    /// No events: all entries up to a position are in the audit log.
    pub(super) fn after(floor: u64) -> Self {
        Self { events: BTreeMap::new(), floor }
    }

    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    pub(super) fn add(&mut self, event: Arc<StreamEvent>) {
        self.events.insert(event.position, event);
        while self.events.len() > RECENT_MAX {
            if let Some((position, _)) = self.events.pop_first() {
                self.floor = self.floor.max(position);
            }
        }
    }

    /// Forgets the entries up to a position.
    pub(super) fn forget_to(&mut self, position: u64) {
        self.floor = self.floor.max(position);
        self.events = self.events.split_off(&self.floor.saturating_add(1));
    }

    pub(super) fn range(&self, positions: RangeFrom<u64>) -> impl Iterator<Item = &StreamEvent> {
        self.events.range(positions).map(|(_, event)| event.as_ref())
    }
}
