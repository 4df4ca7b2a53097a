//! Orders of an operator: commands by name, all or none.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use forewarn_lifecycle::{Change, MachineId, Now};
use forewarn_store::{Entry, Record};
use forewarn_wire::operator::{Details, NamedCommand, Outcome, Resolved, outcome};

use super::Driver;
use crate::engine::{Hands, Problem};

/// What is known of a machine after some commands; `None`: of one that is not there yet.
type Described = (Option<MachineId>, Details);

impl Driver {
    /// Carries out commands by name, whole or not at all, and what follows from them at this moment.
    pub(super) fn order(&mut self, commands: &[NamedCommand]) -> Result<Outcome, Problem> {
        let now = self.clock.now();
        match commands {
            [only] => self.check_addresses(&self.described(only)?)?,
            several => self.rehearse(several)?,
        }
        let first = self.batch.records.len();
        let mut own = 0;
        for command in commands {
            own += self.obey(now, command)?;
        }
        while self.step(now) {}
        let changes: Vec<_> = self.batch.records[first..].iter().filter_map(change_of).cloned().collect();
        let outcome = outcome(&self.kept.cluster, now, &changes);
        Ok(Outcome { changes: outcome.changes + own, ..outcome })
    }

    /// What one command would make known of machines.
    fn described(&self, command: &NamedCommand) -> Result<Vec<Described>, Problem> {
        Ok(match command.resolve(&self.kept.cluster)? {
            Resolved::Admit(_, details) => vec![(None, details)],
            Resolved::Describe(machine, change) => {
                vec![(Some(machine), change.apply(self.details_of(machine)))]
            }
            Resolved::Rules(_) | Resolved::Site(_) | Resolved::Jam(_) => Vec::new(),
        })
    }

    /// Tries commands on a copy: the first that would be refused refuses all of them.
    pub(super) fn rehearse(&self, commands: &[NamedCommand]) -> Result<(), Problem> {
        let now = self.clock.now();
        let mut copy = self.kept.cluster.clone();
        let (mut known, mut new) = (BTreeMap::new(), Vec::new());
        for command in commands {
            let rules = match command.resolve(&copy)? {
                Resolved::Rules(rules) => rules,
                Resolved::Admit(rules, details) => {
                    new.push((None, details));
                    rules
                }
                Resolved::Describe(machine, change) => {
                    known.insert(machine, change.apply(self.details_of(machine)));
                    continue;
                }
                Resolved::Site(_) | Resolved::Jam(_) => continue,
            };
            let changes = copy.decide(now, &rules)?;
            changes.iter().for_each(|change| drop(copy.evolve(now, change)));
        }
        new.extend(known.into_iter().map(|(machine, details)| (Some(machine), details)));
        self.check_addresses(&new)
    }

    /// Says how much has changed of which the rules know nothing.
    fn obey(&mut self, now: Now, command: &NamedCommand) -> Result<usize, Problem> {
        match command.resolve(&self.kept.cluster)? {
            Resolved::Rules(command) => drop(self.decide(now, &command)?),
            Resolved::Admit(command, details) => {
                for change in self.decide(now, &command)? {
                    if let Change::MachineAdmitted { machine, .. } = change {
                        self.describe(now, machine, details.clone());
                    }
                }
            }
            Resolved::Describe(machine, change) => {
                let known = self.details_of(machine);
                let details = change.apply(known);
                if *known != details {
                    self.describe(now, machine, details);
                    return Ok(1);
                }
            }
            Resolved::Site(change) => {
                let site = change.apply(&self.kept.site);
                if site != self.kept.site {
                    self.batch.records.push(Record { now, entry: Entry::Site(site.clone()) });
                    self.kept.site = site;
                    return Ok(1);
                }
            }
            Resolved::Jam(machine) => match self.hands {
                Hands::Pretend => return Ok(usize::from(self.jammed.insert(machine))),
                Hands::Program(_) => return Err(Problem::NotPretending),
            },
        }
        Ok(0)
    }

    fn describe(&mut self, now: Now, machine: MachineId, details: Details) {
        self.let_go(machine);
        self.held.extend(details.addresses.iter().map(|address| (address.to_canonical(), machine)));
        let entry = Entry::Described { machine, details: details.clone() };
        self.batch.records.push(Record { now, entry });
        self.kept.details.insert(machine, details);
    }

    /// The addresses of a machine are free, but for those that another has taken over.
    pub(super) fn let_go(&mut self, machine: MachineId) {
        let Some(known) = self.kept.details.get(&machine) else { return };
        for address in known.addresses.iter().map(IpAddr::to_canonical) {
            if self.held.get(&address) == Some(&machine) {
                self.held.remove(&address);
            }
        }
    }

    /// An address is that of one machine, when all is done.
    fn check_addresses(&self, described: &[Described]) -> Result<(), Problem> {
        let mut claimed: BTreeMap<IpAddr, usize> = BTreeMap::new();
        let anew: BTreeSet<_> = described.iter().filter_map(|(machine, _)| *machine).collect();
        for (index, (machine, details)) in described.iter().enumerate() {
            for address in details.addresses.iter().map(IpAddr::to_canonical) {
                let taken = |machine: String| Err(Problem::AddressTaken { address, machine });
                if claimed.insert(address, index).is_some_and(|other| other != index) {
                    return taken("another machine of the same order".to_owned());
                }
                let Some(holder) = self.held.get(&address).filter(|holder| Some(**holder) != *machine) else {
                    continue;
                };
                // Who is described anew may have let go of it.
                if !anew.contains(holder) {
                    let name = self.kept.cluster.machine(*holder).map(|holder| holder.name.to_string());
                    return taken(name.unwrap_or_default());
                }
            }
        }
        Ok(())
    }
}

fn change_of(record: &Record) -> Option<&Change> {
    match &record.entry {
        Entry::Change(change) => Some(change),
        Entry::Clock | Entry::Described { .. } | Entry::Site(_) | Entry::Booted(_) => None,
    }
}
