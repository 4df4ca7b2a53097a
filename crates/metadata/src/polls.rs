//! When each machine last asked for its events, and what it was shown.
//!
//! It is noted by whoever answers, without a lock, and at next to no cost: it is read, and written only if it differs. It is
//! not kept: after a restart nobody has asked yet.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use forewarn_imds::Edition;
use forewarn_types::Timestamp;

/// A request for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Its time.
    pub at: Timestamp,
    /// Edition of the document that was asked for.
    pub edition: Edition,
    /// Last audit entry before that document was published.
    pub told: u64,
}

/// The last time that a machine asked.
#[derive(Debug, Default)]
pub(crate) struct LastPoll {
    /// The milliseconds of the moment, and below them one more than the number of the edition; 0: it never has.
    asked: AtomicI64,
    /// The last entry of the trail when the document was published that it was shown.
    told: AtomicU64,
}

/// Bits for an edition.
const EDITION_BITS: u32 = 4;

impl LastPoll {
    /// A machine has asked, and is shown a document that was published after that entry.
    pub(crate) fn note(&self, at: Timestamp, edition: Edition, told: u64) {
        // Each is true for itself: nothing else is made visible by it.
        if self.told.load(Ordering::Relaxed) != told {
            self.told.store(told, Ordering::Relaxed);
        }
        let asked = at.millis() << EDITION_BITS | (edition as i64 + 1);
        if self.asked.load(Ordering::Relaxed) != asked {
            self.asked.store(asked, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> Option<Poll> {
        let asked = self.asked.load(Ordering::Relaxed);
        let number = usize::try_from(asked & ((1 << EDITION_BITS) - 1)).ok()?.checked_sub(1)?;
        let edition = *Edition::ALL.get(number)?;
        let at = Timestamp::from_millis(asked >> EDITION_BITS);
        Some(Poll { at, edition, told: self.told.load(Ordering::Relaxed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_is_noted_with_its_moment_its_edition_and_what_was_shown() {
        let last = LastPoll::default();
        assert_eq!(last.get(), None);
        for (millis, edition) in [(1, Edition::V2017_03_01), (253_000_000_000_000, Edition::V2020_07_01)] {
            last.note(Timestamp::from_millis(millis), edition, 7);
            let at = Timestamp::from_millis(millis);
            assert_eq!(last.get(), Some(Poll { at, edition, told: 7 }));
        }
    }
}
