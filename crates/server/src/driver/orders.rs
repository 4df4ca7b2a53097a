//! Orders of an operator: commands by name, all or none.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use forewarn_control::shared::ClusterId;
use forewarn_control::{Details, NamedCommand, Outcome, Resolved, Site, outcome};
use forewarn_lifecycle::{Change, Cluster, MachineId, Now};
use forewarn_store::{Entry, Estate, Record};

use super::Driver;
use super::listing::details_of;
use super::telling::commands_told;
use crate::engine::{Condition, Hands, Order, Problem, RefusedCommand, Terms};

/// Details of a machine after some commands.
struct Described {
    /// The machine; `None` if a command admits it.
    machine: Option<MachineId>,
    details: Details,
    /// Index of the command that says it.
    command: usize,
}

impl Driver {
    /// Carries out commands by name, whole or not at all, and what follows from them at this moment.
    pub(super) fn order(&mut self, id: ClusterId, order: Order) -> Result<Outcome, Problem> {
        let now = self.clock.now();
        let Order { commands, mut terms } = order;
        self.check_token(now, &terms)?;
        self.check(id, terms.permitted.take())?;
        if let Some(answer) = self.receipt(now, &terms)? {
            return Ok(answer);
        }
        self.check(id, terms.only_if.take())?;
        match commands.as_slice() {
            [] => Ok(()),
            [only] => self.check_addresses(id, &described(self.estate(id)?, only)?),
            several => self.rehearse(id, several),
        }
        .map_err(|refused| refused.problem)?;
        let first = self.batch.records.len();
        let asked = terms.asked.take().unwrap_or_else(|| commands_told(&commands));
        let mark = match terms.because {
            None => self.tell_command(now, Some(id), &terms.by, &asked),
            Some(entry) => self.tell_because(&terms.by, entry),
        };
        let entry = terms.because.or(Some(self.chain.number));
        let obeyed: Result<usize, _> = commands.iter().map(|command| self.obey(now, id, command)).sum();
        let own = obeyed.inspect_err(|_| self.untell(&mark))?;
        while self.step(now) {}
        self.told();
        let decided = self.batch.records[first..].iter().filter_map(|record| change_of(id, record));
        let changes: Vec<_> = decided.cloned().collect();
        let outcome = outcome(&self.estate(id)?.cluster, now, &changes);
        let outcome = Outcome { changes: outcome.changes + own, entry, ..outcome };
        self.keep_receipt(now, &terms, &outcome)?;
        Ok(outcome)
    }

    /// Rejects a request whose token was revoked or has expired since the request came.
    pub(super) fn check_token(&self, now: Now, terms: &Terms) -> Result<(), Problem> {
        let Some(number) = terms.token else { return Ok(()) };
        let token = self.kept.catalogue.find_token(number).filter(|token| !token.is_expired(now.wall));
        token.map(drop).ok_or(Problem::TokenGone)
    }

    pub(super) fn check(&self, id: ClusterId, condition: Option<Condition>) -> Result<(), Problem> {
        let Some(Condition(holds)) = condition else { return Ok(()) };
        holds(&self.state(id).ok_or(Problem::NoSuchCluster)?)
    }

    /// Tries commands on a copy: the first that would be refused refuses all of them.
    pub(super) fn rehearse(&self, id: ClusterId, commands: &[NamedCommand]) -> Result<(), RefusedCommand> {
        let estate = self.estate(id).map_err(|problem| RefusedCommand { index: 0, problem })?;
        let mut copy = estate.cluster.clone();
        let (mut known, mut new) = (BTreeMap::new(), Vec::new());
        let mut site = estate.site.clone();
        for (index, command) in commands.iter().enumerate() {
            let resolved = self.try_on_copy(id, command, &mut copy, &mut site);
            match resolved.map_err(|problem| RefusedCommand { index, problem })? {
                Resolved::Admit(_, details) => new.push(Described { machine: None, details, command: index }),
                Resolved::Describe(machine, change) => {
                    let details = change.apply(details_of(estate, machine));
                    known.insert(machine, Described { machine: Some(machine), details, command: index });
                }
                Resolved::Rules(_) | Resolved::Site(_) | Resolved::Jam(_) => {}
            }
        }
        new.extend(known.into_values());
        self.check_addresses(id, &new)
    }

    /// Carries out one command on a copy of a cluster and of its site.
    fn try_on_copy(
        &self,
        id: ClusterId,
        command: &NamedCommand,
        copy: &mut Cluster,
        site: &mut Site,
    ) -> Result<Resolved, Problem> {
        let now = self.clock.now();
        let resolved = command.resolve(copy)?;
        match &resolved {
            Resolved::Rules(rules) | Resolved::Admit(rules, _) => {
                let changes = copy.decide(now, rules)?;
                changes.iter().for_each(|change| drop(copy.evolve(now, change)));
            }
            Resolved::Site(change) => *site = self.other_site(id, site, change)?,
            Resolved::Describe(..) | Resolved::Jam(_) => {}
        }
        Ok(resolved)
    }

    /// Says how much has changed of which the rules know nothing.
    fn obey(&mut self, now: Now, id: ClusterId, command: &NamedCommand) -> Result<usize, Problem> {
        let estate = self.estate(id)?;
        match command.resolve(&estate.cluster)? {
            Resolved::Rules(command) => drop(self.decide(now, id, &command)?),
            Resolved::Admit(command, details) => {
                for change in self.decide(now, id, &command)? {
                    if let Change::MachineAdmitted { machine, .. } = change {
                        let home = self.home_of(id, machine);
                        self.describe(now, id, machine, Details { home, ..details.clone() });
                    }
                }
            }
            Resolved::Describe(machine, change) => {
                let known = details_of(estate, machine);
                let details = change.apply(known);
                if *known != details {
                    self.describe(now, id, machine, details);
                    return Ok(1);
                }
            }
            Resolved::Site(change) => {
                let site = self.other_site(id, &estate.site, &change)?;
                if site != estate.site {
                    self.move_to(now, id, site);
                    return Ok(1);
                }
            }
            Resolved::Jam(machine) => match self.hands {
                Hands::Pretend => return Ok(usize::from(self.ward(id).jammed.insert(machine))),
                Hands::Program(_) => return Err(Problem::NotPretending),
            },
        }
        Ok(0)
    }

    pub(super) fn describe(&mut self, now: Now, id: ClusterId, machine: MachineId, details: Details) {
        self.let_go(id, machine);
        self.held.extend(details.addresses.iter().map(|address| (address.to_canonical(), (id, machine))));
        let entry = Entry::Described { cluster: id, machine, details: details.clone() };
        self.batch.records.push(Record { now, entry });
        if let Some(estate) = self.kept.clusters.get_mut(&id) {
            estate.details.insert(machine, details);
        }
    }

    /// The addresses of a machine are free, but for those that another has taken over.
    pub(super) fn let_go(&mut self, id: ClusterId, machine: MachineId) {
        let Some(known) = self.kept.clusters.get(&id).and_then(|estate| estate.details.get(&machine)) else {
            return;
        };
        for address in known.addresses.iter().map(IpAddr::to_canonical) {
            if self.held.get(&address) == Some(&(id, machine)) {
                self.held.remove(&address);
            }
        }
    }

    /// An address is that of one machine, when all is done.
    fn check_addresses(&self, id: ClusterId, described: &[Described]) -> Result<(), RefusedCommand> {
        let mut claimed: BTreeMap<IpAddr, usize> = BTreeMap::new();
        let anew: BTreeSet<_> = described.iter().filter_map(|one| one.machine).collect();
        for (index, Described { machine, details, command }) in described.iter().enumerate() {
            for address in details.addresses.iter().map(IpAddr::to_canonical) {
                let taken = |machine: String| {
                    let problem = Problem::AddressTaken { address, machine };
                    Err(RefusedCommand { index: *command, problem })
                };
                if claimed.insert(address, index).is_some_and(|other| other != index) {
                    return taken("another machine of the same order".to_owned());
                }
                let own = |holder: &&(ClusterId, MachineId)| holder.0 == id && Some(holder.1) == *machine;
                let Some(holder) = self.held.get(&address).filter(|holder| !own(holder)) else { continue };
                if holder.0 != id {
                    // Whoever asks may not know of that cluster.
                    return taken("a machine of another cluster".to_owned());
                }
                // Who is described anew may have let go of it.
                if !anew.contains(&holder.1) {
                    return taken(self.name_of(*holder));
                }
            }
        }
        Ok(())
    }

    fn name_of(&self, (id, machine): (ClusterId, MachineId)) -> String {
        let machine = self.kept.clusters.get(&id).and_then(|estate| estate.cluster.machine(machine));
        machine.map(|machine| machine.name.to_string()).unwrap_or_default()
    }
}

/// What one command would make known of machines.
fn described(estate: &Estate, command: &NamedCommand) -> Result<Vec<Described>, Problem> {
    let described = |machine, details| vec![Described { machine, details, command: 0 }];
    Ok(match command.resolve(&estate.cluster)? {
        Resolved::Admit(_, details) => described(None, details),
        Resolved::Describe(machine, change) => {
            described(Some(machine), change.apply(details_of(estate, machine)))
        }
        Resolved::Rules(_) | Resolved::Site(_) | Resolved::Jam(_) => Vec::new(),
    })
}

/// The change of that cluster which a record holds.
fn change_of(id: ClusterId, record: &Record) -> Option<&Change> {
    match &record.entry {
        Entry::Change(of, change) if *of == id => Some(change),
        Entry::Change(..)
        | Entry::Clock
        | Entry::Described { .. }
        | Entry::Site(..)
        | Entry::Booted(_)
        | Entry::Unread(_)
        | Entry::Failed { .. }
        | Entry::Catalogue(_) => None,
    }
}
