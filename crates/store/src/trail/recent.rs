//! The trail of a journal in memory: its newest entries.

use std::collections::VecDeque;
use std::sync::Arc;

use forewarn_wire::operator::{BrokenLink, Chain, TrailEntry};

use super::search::{Kept, Seen, Step, is_in_time, range, search};
use super::{RECENT_ENTRIES_MAX, ReadFailed, TrailPage, TrailQuery};

/// The newest entries, in order and without a gap.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    entries: VecDeque<Arc<TrailEntry>>,
    chain: Chain,
}

impl Recent {
    /// Keeps entries, all or none.
    pub(crate) fn keep(&mut self, entries: &[Arc<TrailEntry>]) -> Result<(), BrokenLink> {
        let mut chain = self.chain;
        entries.iter().try_for_each(|entry| chain.verify(entry))?;
        self.chain = chain;
        self.entries.extend(entries.iter().cloned());
        let too_many = self.entries.len().saturating_sub(RECENT_ENTRIES_MAX);
        self.entries.drain(..too_many);
        Ok(())
    }

    pub(crate) fn read(&self, query: &TrailQuery) -> Result<TrailPage, ReadFailed> {
        let head = self.chain.number;
        let kept = Kept { swept: head - self.entries.len() as u64, head };
        let look = |number: u64| {
            let place = usize::try_from(number - kept.swept - 1).ok();
            let entry =
                place.and_then(|place| self.entries.get(place)).filter(|entry| entry.number == number);
            let entry = entry.ok_or_else(|| ReadFailed::Damaged(format!("entry {number} is missing")))?;
            if is_in_time(query, entry.at.0) {
                Ok(Seen::Entry { entry: Arc::clone(entry), bytes: 0 })
            } else {
                Ok(Seen::Other)
            }
        };
        search(query, kept, range(query, kept), RECENT_ENTRIES_MAX, |number| Ok(Step::At(number)), look)
    }
}
