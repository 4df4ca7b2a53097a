//! The journal: decided changes, each with its time, in the order in which they were decided.
//!
//! Whoever owns a cluster appends a batch, and only then publishes, answers and acts. A failed append means that nothing
//! of the batch counts: the owner drops its state and replays.

use forewarn_lifecycle::{Change, Now};

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was decided.
    pub now: Now,
    /// What happened.
    pub entry: Entry,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A change of a cluster.
    Change(Change),
    /// A virtual clock stood here: it never goes back over a restart.
    Clock,
}

/// Where records are kept.
#[derive(Debug)]
pub enum Journal {
    /// In memory, for as long as the process lives.
    Memory {
        /// How many records have been appended.
        length: u64,
    },
}

/// An append that did not succeed: nothing of it counts.
#[derive(Debug, thiserror::Error)]
#[error("the journal cannot be written")]
pub struct AppendFailed;

impl Journal {
    /// A journal that lives as long as the process.
    #[must_use]
    pub fn memory() -> Self {
        Self::Memory { length: 0 }
    }

    /// Appends records, all or none. When this returns they are as durable as this journal can make them.
    ///
    /// # Errors
    /// When they could not be written.
    pub fn append(&mut self, records: &[Record]) -> Result<(), AppendFailed> {
        match self {
            Self::Memory { length } => *length += records.len() as u64,
        }
        Ok(())
    }

    /// How many records it has.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self {
            Self::Memory { length } => *length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_counts_what_it_was_given() {
        let mut journal = Journal::memory();
        let record = Record { now: Now::at_millis(5), entry: Entry::Clock };
        journal.append(&[record.clone(), record]).unwrap();
        journal.append(&[]).unwrap();
        assert_eq!(journal.length(), 2);
    }
}
