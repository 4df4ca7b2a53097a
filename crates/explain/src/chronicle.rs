//! What the trail tells of something, with what is needed to say who asked for it.
//!
//! An entry may say which command it came of. One that time alone has brought does not: it is a step of a piece of work, whose
//! first entry says it, or of a rollout, whose first entry does.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::AuditEntry;

/// Entries about something, and others that say why they are.
#[derive(Clone, Debug, Default)]
pub struct Chronicle {
    told: BTreeMap<u64, Arc<AuditEntry>>,
    /// What was looked for besides; nothing, if it is not there.
    beside: BTreeMap<Wanted, Option<Arc<AuditEntry>>>,
}

/// An entry that is missing in a chronicle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// The one of that number.
    Entry(u64),
    /// The first one about a piece of work.
    OfWork(u64),
    /// The first one about a rollout.
    OfRollout(u64),
}

/// What is known of an entry that is looked for.
#[derive(Clone, Copy)]
enum Known<'a> {
    Found(&'a AuditEntry),
    Nothing,
    NotYet(Wanted),
}

impl Chronicle {
    /// A chronicle of these entries, in whatever order.
    #[must_use]
    pub fn new(entries: impl IntoIterator<Item = Arc<AuditEntry>>) -> Self {
        let told = entries.into_iter().map(|entry| (entry.number, entry)).collect();
        Self { told, beside: BTreeMap::new() }
    }

    /// The entries that have to be looked for before it is whole. When they have been learnt, there may be more.
    #[must_use]
    pub fn wants(&self) -> Vec<Wanted> {
        let missing = |known: Known<'_>| match known {
            Known::NotYet(wanted) => Some(wanted),
            Known::Found(_) | Known::Nothing => None,
        };
        let steps = self.told.values();
        let all = steps.flat_map(|entry| [missing(self.look_asked(entry)), missing(self.look_origin(entry))]);
        let mut all: Vec<_> = all.flatten().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// What was found for something that it wants.
    pub fn learn(&mut self, wanted: Wanted, found: Option<Arc<AuditEntry>>) {
        self.beside.insert(wanted, found);
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &AuditEntry> {
        self.told.values().map(Arc::as_ref)
    }

    /// Whether the trail tells nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// The command that an entry came of at once.
    pub(crate) fn asked(&self, entry: &AuditEntry) -> Option<&AuditEntry> {
        found(self.look_asked(entry))
    }

    /// The command that the work of an entry came of.
    pub(crate) fn origin(&self, entry: &AuditEntry) -> Option<&AuditEntry> {
        found(self.look_origin(entry))
    }

    fn look_asked(&self, entry: &AuditEntry) -> Known<'_> {
        entry.because.map_or(Known::Nothing, |number| self.look(Wanted::Entry(number)))
    }

    fn look_origin(&self, entry: &AuditEntry) -> Known<'_> {
        let first = match (entry.work, entry.rollout) {
            (Some(work), _) => self.look(Wanted::OfWork(work)),
            (None, Some(rollout)) => self.look(Wanted::OfRollout(rollout)),
            (None, None) => return self.look_asked(entry),
        };
        match first {
            Known::Found(AuditEntry { because: None, rollout: Some(rollout), .. }) => {
                self.begun(self.look(Wanted::OfRollout(*rollout)))
            }
            Known::Found(_) | Known::Nothing | Known::NotYet(_) => self.begun(first),
        }
    }

    /// The command with which something began, by the first entry about it: the command itself, or what came of it at once.
    fn begun<'a>(&'a self, first: Known<'a>) -> Known<'a> {
        match first {
            Known::Found(first) if first.kind == COMMAND => Known::Found(first),
            Known::Found(first) => self.look_asked(first),
            Known::Nothing => Known::Nothing,
            Known::NotYet(wanted) => Known::NotYet(wanted),
        }
    }

    fn look(&self, wanted: Wanted) -> Known<'_> {
        let here = match wanted {
            Wanted::Entry(number) => self.told.get(&number),
            Wanted::OfWork(_) | Wanted::OfRollout(_) => None,
        };
        match (here, self.beside.get(&wanted)) {
            (Some(entry), _) | (None, Some(Some(entry))) => Known::Found(entry),
            (None, Some(None)) => Known::Nothing,
            (None, None) => Known::NotYet(wanted),
        }
    }
}

/// The kind of entries about what was asked for.
const COMMAND: &str = "command";

fn found(known: Known<'_>) -> Option<&AuditEntry> {
    match known {
        Known::Found(entry) => Some(entry),
        Known::Nothing | Known::NotYet(_) => None,
    }
}
