//! Gaps: audit entries of a stream that this journal does not have yet, because its state was installed and not replayed.
//!
//! ```text
//!   number     1 … 40   │ 41 … 900 gap: their positions are reserved │ 901 …
//!   hash       known    │ that of entry 900 is known                 │ chained to it
//! ```
//!
//! A gap is filled from its end: the hash of its last entry is known, and each entry proves the hash of the one before it.
//! Its positions grow with its numbers, like those of entries that are there.

use forewarn_control::Chain;

use crate::codec::stored_struct;
use crate::entry_run::Run;

/// Entries of a stream that are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuditGap {
    /// Their numbers and positions.
    pub(crate) run: Run,
    /// The entry before them.
    before: Chain,
    /// The last of them.
    pub(crate) end: Chain,
}

stored_struct! { AuditGap { run, before, end } }

impl AuditGap {
    /// Missing entries after one, up to another one.
    pub(crate) fn new(run: Run, before: Chain, end: Chain) -> Self {
        Self { run, before, end }
    }

    /// The last missing number.
    pub(crate) fn last(&self) -> u64 {
        self.end.number
    }

    /// The first missing number.
    pub(crate) fn first(&self) -> u64 {
        self.run.first
    }

    pub(crate) fn has_number(&self, number: u64) -> bool {
        (self.run.first..=self.end.number).contains(&number)
    }

    /// The first and the last missing position of the group of positions around one, if it is missing.
    pub(crate) fn span_at(&self, position: u64) -> Option<(u64, u64)> {
        let spans = self.run.spans().iter().map(|(first, count)| (*first, first + count - 1));
        spans.into_iter().find(|(first, last)| (*first..=*last).contains(&position))
    }

    /// Returns true if the entries after one, up to the end of a chain, are the last ones of the gap.
    pub(crate) fn ends_with(&self, before: Chain, end: Chain) -> bool {
        end == self.end && (before.number >= self.run.first || before == self.before)
    }

    /// Takes the last entries out: they are there now. Returns true if nothing is missing any more.
    pub(crate) fn fill(&mut self, before: Chain) -> bool {
        self.run.cut(before.number + 1);
        self.end = before;
        self.run.count() == 0
    }
}
