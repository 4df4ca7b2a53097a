//! Last poll of each machine: its time, and the document that it got.
//!
//! The connection records it without a lock, and writes only a value that differs. It is not stored: after a restart no
//! machine has a last poll.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use forewarn_imds::Edition;
use forewarn_types::Timestamp;

/// A poll for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    pub at: Timestamp,
    /// Requested edition of the document.
    pub edition: Edition,
    /// Last audit entry before that document was published.
    pub last_audit_entry: u64,
}

/// The last poll of a machine.
#[derive(Debug, Default)]
pub(crate) struct LastPoll {
    /// Milliseconds of the time, shifted by [`EDITION_BITS`], plus the number of the edition and one; 0 if the machine
    /// has never polled.
    action: AtomicI64,
    /// Last audit entry before the document of that poll was published.
    last_audit_entry: AtomicU64,
}

const EDITION_BITS: u32 = 4;

impl LastPoll {
    /// Records a poll whose document was published after that audit entry.
    pub(crate) fn note(&self, at: Timestamp, edition: Edition, last_audit_entry: u64) {
        // Each value is valid by itself: relaxed ordering is enough.
        if self.last_audit_entry.load(Ordering::Relaxed) != last_audit_entry {
            self.last_audit_entry.store(last_audit_entry, Ordering::Relaxed);
        }
        let action = at.millis() << EDITION_BITS | (edition as i64 + 1);
        if self.action.load(Ordering::Relaxed) != action {
            self.action.store(action, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> Option<Poll> {
        let action = self.action.load(Ordering::Relaxed);
        let number = usize::try_from(action & ((1 << EDITION_BITS) - 1)).ok()?.checked_sub(1)?;
        let edition = *Edition::ALL.get(number)?;
        let at = Timestamp::from_millis(action >> EDITION_BITS);
        Some(Poll { at, edition, last_audit_entry: self.last_audit_entry.load(Ordering::Relaxed) })
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
            assert_eq!(last.get(), Some(Poll { at, edition, last_audit_entry: 7 }));
        }
    }
}
