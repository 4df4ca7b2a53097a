//! What replaying gives: the state of the rules, and what the shell knows besides.

use std::collections::BTreeMap;

use forewarn_lifecycle::{BadRows, Change, Cluster, MachineId, Restoring, Row, Seed};
use forewarn_wire::operator::{Details, Site};

use crate::record::{Boot, Entry, Record};

/// All that has to survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The state of the rules.
    pub cluster: Cluster,
    /// What all machines are told of where they are.
    pub site: Site,
    /// What is known of machines besides; of some, nothing is.
    pub details: BTreeMap<MachineId, Details>,
    /// How the steady clock last went with a boot of the computer.
    pub boot: Option<Boot>,
}

/// One row of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StateRow {
    Rules(Row),
    Site(Site),
    Described(MachineId, Details),
    Booted(Boot),
}

/// A state that is being made from its rows.
#[derive(Debug, Default)]
pub(crate) struct RestoringState {
    rules: Restoring,
    site: Site,
    details: BTreeMap<MachineId, Details>,
    boot: Option<Boot>,
}

impl State {
    /// Nothing has happened.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Self { cluster: Cluster::new(seed), site: Site::default(), details: BTreeMap::new(), boot: None }
    }

    /// Lets happen what has happened. What was owed then, is owed no more: [`Cluster::unfinished`] says what still is.
    pub fn apply(&mut self, record: &Record) {
        match &record.entry {
            Entry::Change(change) => {
                self.cluster.evolve(record.now, change);
                // A machine goes with the last thing that is done to it, and what was known of it goes too.
                if let Change::Completed { machine, .. } = change
                    && self.cluster.machine(*machine).is_none()
                {
                    self.details.remove(machine);
                }
            }
            Entry::Clock => {}
            Entry::Described { machine, details } => drop(self.details.insert(*machine, details.clone())),
            Entry::Site(site) => self.site = site.clone(),
            Entry::Booted(boot) => self.boot = Some(*boot),
        }
    }

    /// The same as rows. Those of the rules come first.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = StateRow> + Send + 'static {
        let rules = self.cluster.into_rows().map(StateRow::Rules);
        let details =
            self.details.into_iter().map(|(machine, details)| StateRow::Described(machine, details));
        let boot = self.boot.map(StateRow::Booted);
        rules.chain([StateRow::Site(self.site)]).chain(details).chain(boot)
    }
}

impl RestoringState {
    pub(crate) fn add(&mut self, row: StateRow) -> Result<(), BadRows> {
        match row {
            StateRow::Rules(row) => self.rules.add(row)?,
            StateRow::Site(site) => self.site = site,
            StateRow::Described(machine, details) => drop(self.details.insert(machine, details)),
            StateRow::Booted(boot) => self.boot = Some(boot),
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<State, BadRows> {
        Ok(State { cluster: self.rules.finish()?, site: self.site, details: self.details, boot: self.boot })
    }
}
