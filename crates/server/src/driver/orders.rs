//! Orders of an operator: commands by name, all or none.

use std::collections::BTreeMap;
use std::net::IpAddr;

use forewarn_lifecycle::{Change, MachineId, Now};
use forewarn_store::{Entry, Record};
use forewarn_wire::operator::{Details, NamedCommand, Outcome, Resolved, outcome};

use super::Driver;
use crate::engine::{Hands, Problem};

impl Driver {
    /// Carries out commands by name, whole or not at all, and what follows from them at this moment.
    pub(super) fn order(&mut self, commands: &[NamedCommand]) -> Result<Outcome, Problem> {
        let now = self.clock.now();
        if commands.len() > 1 {
            self.rehearse(now, commands)?;
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

    /// Tries commands on a copy: the first that would be refused refuses all of them.
    fn rehearse(&self, now: Now, commands: &[NamedCommand]) -> Result<(), Problem> {
        let mut copy = self.kept.cluster.clone();
        let mut claimed = BTreeMap::new();
        for command in commands {
            let (rules, details) = match command.resolve(&copy)? {
                Resolved::Rules(rules) => (Some(rules), None),
                Resolved::Admit(rules, details) => (Some(rules), Some((None, details))),
                Resolved::Describe(machine, details) => (None, Some((Some(machine), details))),
                Resolved::Site(_) | Resolved::Jam(_) => (None, None),
            };
            if let Some((machine, details)) = details {
                self.check_addresses(machine, &details)?;
                claim(&mut claimed, &details)?;
            }
            if let Some(rules) = rules {
                let changes = copy.decide(now, &rules)?;
                changes.iter().for_each(|change| drop(copy.evolve(now, change)));
            }
        }
        Ok(())
    }

    /// Says how much has changed of which the rules know nothing.
    fn obey(&mut self, now: Now, command: &NamedCommand) -> Result<usize, Problem> {
        match command.resolve(&self.kept.cluster)? {
            Resolved::Rules(command) => drop(self.decide(now, &command)?),
            Resolved::Admit(command, details) => {
                self.check_addresses(None, &details)?;
                let changes = self.decide(now, &command)?;
                for change in &changes {
                    if let Change::MachineAdmitted { machine, .. } = change {
                        self.describe(now, *machine, &details);
                    }
                }
            }
            Resolved::Describe(machine, details) => {
                self.check_addresses(Some(machine), &details)?;
                if *self.details_of(machine) == details {
                    return Ok(0);
                }
                self.describe(now, machine, &details);
                return Ok(1);
            }
            Resolved::Site(site) if site == self.kept.site => {}
            Resolved::Site(site) => {
                self.batch.records.push(Record { now, entry: Entry::Site(site.clone()) });
                self.kept.site = site;
                return Ok(1);
            }
            Resolved::Jam(machine) => match self.hands {
                Hands::Pretend => return Ok(usize::from(self.jammed.insert(machine))),
                Hands::Program(_) => return Err(Problem::NotPretending),
            },
        }
        Ok(0)
    }

    fn describe(&mut self, now: Now, machine: MachineId, details: &Details) {
        let entry = Entry::Described { machine, details: details.clone() };
        self.batch.records.push(Record { now, entry });
        self.kept.details.insert(machine, details.clone());
    }

    /// An address is that of one machine.
    fn check_addresses(&self, machine: Option<MachineId>, details: &Details) -> Result<(), Problem> {
        for address in &details.addresses {
            if let Some(caller) = self.directory.at(*address)
                && Some(caller.machine) != machine
            {
                return Err(Problem::AddressTaken { address: *address, machine: caller.name.to_string() });
            }
        }
        Ok(())
    }
}

fn claim(claimed: &mut BTreeMap<IpAddr, ()>, details: &Details) -> Result<(), Problem> {
    for address in &details.addresses {
        if claimed.insert(address.to_canonical(), ()).is_some() {
            let machine = "another machine of this fleet".to_owned();
            return Err(Problem::AddressTaken { address: *address, machine });
        }
    }
    Ok(())
}

fn change_of(record: &Record) -> Option<&Change> {
    match &record.entry {
        Entry::Change(change) => Some(change),
        Entry::Clock | Entry::Described { .. } | Entry::Site(_) | Entry::Booted(_) => None,
    }
}
