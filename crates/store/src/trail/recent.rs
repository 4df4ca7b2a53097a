//! The trail of a journal in memory: its newest entries.

use std::collections::VecDeque;
use std::sync::Arc;

use forewarn_wire::operator::{BrokenLink, Chain, TrailEntry};

use super::search::{Kept, Seen, Step, is_in_time, range, search};
use super::{RECENT_ENTRIES_MAX, ReadFailed, TrailPage, TrailQuery};

/// The newest entries, in order and without a gap.
#[derive(Debug)]
pub(crate) struct Recent {
    entries_max: usize,
    entries: VecDeque<Arc<TrailEntry>>,
    chain: Chain,
}

impl Default for Recent {
    fn default() -> Self {
        Self { entries_max: RECENT_ENTRIES_MAX, entries: VecDeque::new(), chain: Chain::default() }
    }
}

impl Recent {
    /// Keeps entries, all or none.
    pub(crate) fn keep(&mut self, entries: &[Arc<TrailEntry>]) -> Result<(), BrokenLink> {
        let mut chain = self.chain;
        entries.iter().try_for_each(|entry| chain.verify(entry))?;
        self.chain = chain;
        self.entries.extend(entries.iter().cloned());
        let too_many = self.entries.len().saturating_sub(self.entries_max);
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
        search(query, kept, range(query, kept), self.entries_max, |number| Ok(Step::At(number)), look)
    }
}

#[cfg(test)]
mod tests {
    use forewarn_wire::operator::Told;

    use super::*;

    #[test]
    fn the_newest_are_kept() {
        let mut recent = Recent { entries_max: 3, ..Recent::default() };
        let mut chain = Chain::default();
        for batch in [1, 2, 7, 0] {
            let entries: Vec<_> = (0..batch).map(|_| Arc::new(chain.seal(Told::default()))).collect();
            recent.keep(&entries).unwrap();
        }
        let page = recent.read(&TrailQuery::default()).unwrap();
        let numbers: Vec<_> = page.entries.iter().map(|entry| entry.number).collect();
        assert_eq!((numbers, page.swept, page.head, page.next), (vec![8, 9, 10], 7, 10, None));
    }
}
