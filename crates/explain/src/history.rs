//! The audit entries about an object, and those that identify the requests behind them.
//!
//! An entry may name the command that caused it. An entry that was caused by the passing of time does not: it belongs
//! to a piece of work or to a rollout, whose first entry names the command.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::AuditEntry;

/// Audit entries about an object, and the entries that explain them.
#[derive(Clone, Debug, Default)]
pub struct AuditHistory {
    entries: BTreeMap<u64, Arc<AuditEntry>>,
    /// Results of other lookups; None if the entry does not exist.
    lookups: BTreeMap<HistoryLookup, Option<Arc<AuditEntry>>>,
}

/// A lookup that a history needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HistoryLookup {
    /// The entry with a number.
    Entry(u64),
    /// The first entry about a piece of work.
    OfWork(u64),
    /// The first entry about a rollout.
    OfRollout(u64),
}

/// State of a lookup.
#[derive(Clone, Copy)]
enum LookupState<'a> {
    Found(&'a AuditEntry),
    Missing,
    Pending(HistoryLookup),
}

impl AuditHistory {
    /// A history of these entries, in any order.
    #[must_use]
    pub fn new(entries: impl IntoIterator<Item = Arc<AuditEntry>>) -> Self {
        let entries = entries.into_iter().map(|entry| (entry.number, entry)).collect();
        Self { entries, lookups: BTreeMap::new() }
    }

    /// The lookups that are still needed. Their results may need further lookups.
    #[must_use]
    pub fn missing(&self) -> Vec<HistoryLookup> {
        let unresolved = |known: LookupState<'_>| match known {
            LookupState::Pending(lookup) => Some(lookup),
            LookupState::Found(_) | LookupState::Missing => None,
        };
        let steps = self.entries.values();
        let all = steps.flat_map(|entry| {
            [unresolved(self.look_up_request(entry)), unresolved(self.look_up_origin(entry))]
        });
        let mut all: Vec<_> = all.flatten().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Adds the result of a lookup.
    pub fn add(&mut self, lookup: HistoryLookup, found: Option<Arc<AuditEntry>>) {
        self.lookups.insert(lookup, found);
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &AuditEntry> {
        self.entries.values().map(Arc::as_ref)
    }

    /// Returns true if it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The command that directly caused an entry.
    pub(crate) fn request(&self, entry: &AuditEntry) -> Option<&AuditEntry> {
        found(self.look_up_request(entry))
    }

    /// The command behind the work of an entry.
    pub(crate) fn origin(&self, entry: &AuditEntry) -> Option<&AuditEntry> {
        found(self.look_up_origin(entry))
    }

    fn look_up_request(&self, entry: &AuditEntry) -> LookupState<'_> {
        entry.because.map_or(LookupState::Missing, |number| self.look_up(HistoryLookup::Entry(number)))
    }

    fn look_up_origin(&self, entry: &AuditEntry) -> LookupState<'_> {
        let first = match (entry.work, entry.rollout) {
            (Some(work), _) => self.look_up(HistoryLookup::OfWork(work)),
            (None, Some(rollout)) => self.look_up(HistoryLookup::OfRollout(rollout)),
            (None, None) => return self.look_up_request(entry),
        };
        match first {
            LookupState::Found(AuditEntry { because: None, rollout: Some(rollout), .. }) => {
                self.begun(self.look_up(HistoryLookup::OfRollout(*rollout)))
            }
            LookupState::Found(_) | LookupState::Missing | LookupState::Pending(_) => self.begun(first),
        }
    }

    /// The command that started something, by the first entry about it: the command itself, or its direct effect.
    fn begun<'a>(&'a self, first: LookupState<'a>) -> LookupState<'a> {
        match first {
            LookupState::Found(first) if first.kind == COMMAND => LookupState::Found(first),
            LookupState::Found(first) => self.look_up_request(first),
            LookupState::Missing => LookupState::Missing,
            LookupState::Pending(lookup) => LookupState::Pending(lookup),
        }
    }

    fn look_up(&self, lookup: HistoryLookup) -> LookupState<'_> {
        let here = match lookup {
            HistoryLookup::Entry(number) => self.entries.get(&number),
            HistoryLookup::OfWork(_) | HistoryLookup::OfRollout(_) => None,
        };
        match (here, self.lookups.get(&lookup)) {
            (Some(entry), _) | (None, Some(Some(entry))) => LookupState::Found(entry),
            (None, Some(None)) => LookupState::Missing,
            (None, None) => LookupState::Pending(lookup),
        }
    }
}

/// Kind of the entries of requests.
const COMMAND: &str = "command";

fn found(known: LookupState<'_>) -> Option<&AuditEntry> {
    match known {
        LookupState::Found(entry) => Some(entry),
        LookupState::Missing | LookupState::Pending(_) => None,
    }
}
