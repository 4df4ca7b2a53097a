//! Resources that follow from the rules: operations end with the work that they wait for, and resources go with what they stand
//! for.

use forewarn_lifecycle::{Change, Command, MachineId, MaintenanceId, Shape, Withdrawal};

use super::draft::Draft;
use crate::command::Home;
use crate::record::Entry as RecordEntry;
use crate::resource_id::ResourceId;
use crate::shared::{self, ClusterId, Ending, Entry, Filing, Leaving, Link, Refusal};

impl Draft<'_> {
    /// Decides and applies a change of the stored resources. Returns the number of changes.
    pub(super) fn file(&mut self, filing: Filing) -> Result<usize, Refusal> {
        self.change_shared(&shared::Command::File(filing))
    }

    /// Decides and applies a change of the shared state. Returns the number of changes.
    pub(super) fn change_shared(&mut self, command: &shared::Command) -> Result<usize, Refusal> {
        let changes = self.state.shared().decide(self.now(), command)?;
        let count = changes.len();
        changes.into_iter().for_each(|change| self.write(RecordEntry::Catalogue(change)));
        Ok(count)
    }

    /// Where somebody has put a machine, or the scale set that it is of.
    pub(super) fn home_of(&self, cluster: ClusterId, machine: MachineId) -> Option<Home> {
        let rules = self.cluster(cluster).ok()?.rules();
        let own = self.state.shared().entry_of(cluster, Link::Machine(machine));
        let of_set = || match rules.tenant(rules.machine(machine)?.tenant)?.shape {
            Shape::PlacementGroup(set) => self.state.shared().entry_of(cluster, Link::ScaleSet(set)),
            Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => None,
        };
        let entries = [own, of_set()].map(|entry| entry.map(|(_, entry)| entry));
        let (first, site) = (entries.iter().flatten().next()?, self.cluster(cluster).ok()?.site());
        let location = |entry: &&Entry| {
            let body: serde_json::Value = serde_json::from_slice(&entry.body.0).ok()?;
            Some(body["location"].as_str()?.to_owned())
        };
        let location = entries.iter().flatten().find_map(location).unwrap_or_else(|| site.location.clone());
        Some(Home { resource_group: ResourceId::parse(&first.id)?.group.name, location })
    }

    /// A change of a cluster may end what somebody waits for, or take along what was written of something.
    pub(super) fn follow_up(&mut self, cluster: ClusterId, change: &Change) {
        let filing = self.work_over(cluster, change).or_else(|| self.gone_with(cluster, change));
        if let Some(filing) = filing {
            let followed = self.file(filing);
            debug_assert!(followed.is_ok(), "the resources refuse what follows from the rules: {followed:?}");
        }
    }

    /// Work that has started, or has been taken back, ends what waits for it.
    fn work_over(&self, cluster: ClusterId, change: &Change) -> Option<Filing> {
        let (maintenance, how) = if let Change::Started { maintenance, .. } = change {
            (*maintenance, Ending::Succeeded)
        } else if let Change::Withdrawn { maintenance, why, .. } = change {
            (self.is_gone(cluster, *maintenance).then_some(*maintenance)?, ending_of(*why))
        } else {
            return None;
        };
        Some(Filing::Over { cluster, maintenance, how })
    }

    /// What was written of something goes with it.
    fn gone_with(&self, cluster: ClusterId, change: &Change) -> Option<Filing> {
        let link = if let Change::Completed { machine, .. } | Change::MachineForgotten(machine) = change {
            Link::Machine(*machine)
        } else if let Change::TenantRemoved(tenant) = change {
            Link::Tenant(*tenant)
        } else if let Change::ScaleSetRemoved(set) = change {
            Link::ScaleSet(*set)
        } else {
            return None;
        };
        self.entry_if_gone(cluster, link).map(Filing::Remove)
    }

    fn is_gone(&self, cluster: ClusterId, maintenance: MaintenanceId) -> bool {
        self.rules(cluster).is_ok_and(|rules| rules.maintenance(maintenance).is_none())
    }

    /// The id under which something was written that the rules no longer know.
    fn entry_if_gone(&self, cluster: ClusterId, link: Link) -> Option<String> {
        let rules = self.cluster(cluster).ok()?.rules();
        let is_there = match link {
            Link::Machine(machine) => rules.machine(machine).is_some(),
            Link::Tenant(tenant) => rules.tenant(tenant).is_some(),
            Link::ScaleSet(set) => rules.scale_set(set).is_some(),
        };
        let (_, entry) = self.state.shared().entry_of(cluster, link)?;
        (!is_there).then(|| entry.id.clone())
    }

    /// Removes the first resource of a cluster that is marked to go and has nothing left. Returns false if there is none.
    pub(super) fn sweep(&mut self, cluster: ClusterId) -> bool {
        let leaving: Vec<_> = self.state.shared().entries_leaving().map(str::to_owned).collect();
        leaving.iter().any(|key| self.sweep_one(cluster, key))
    }

    fn sweep_one(&mut self, cluster: ClusterId, key: &str) -> bool {
        let entry = self.state.shared().entry(key).filter(|entry| entry.cluster == cluster);
        let Some(entry) = entry.cloned() else { return false };
        match self.fate(key, &entry) {
            Fate::Waits => false,
            Fate::Goes(Some(command)) => match self.change(entry.cluster, &command) {
                // The entry goes with what it is linked to.
                Ok(changes) => !changes.is_empty(),
                // Something still needs it.
                Err(_) => false,
            },
            Fate::Goes(None) => self.file(Filing::Remove(entry.id)).is_ok_and(|changes| changes > 0),
            Fate::Stays => {
                let stays = Filing::Mark { id: entry.id, leaving: Leaving::Stays };
                self.file(stays).is_ok_and(|changes| changes > 0)
            }
        }
    }

    /// What becomes of an entry that is on its way out.
    fn fate(&self, key: &str, entry: &Entry) -> Fate {
        let Ok(rules) = self.rules(entry.cluster) else { return Fate::Goes(None) };
        let of = |machines: Vec<MachineId>, command| {
            if machines.is_empty() {
                return Fate::Goes(Some(command));
            }
            // What was to be deleted and could not be keeps its set.
            if machines.iter().any(|machine| rules.is_leaving(*machine)) { Fate::Waits } else { Fate::Stays }
        };
        match entry.link {
            Some(Link::ScaleSet(id)) => match rules.scale_set(id) {
                None => Fate::Goes(None),
                Some(set) => {
                    let groups = set.groups.iter().filter_map(|group| rules.tenant(*group));
                    let machines = groups.flat_map(|tenant| tenant.machines().iter().copied()).collect();
                    of(machines, Command::RemoveScaleSet(id))
                }
            },
            Some(Link::Tenant(id)) => match rules.tenant(id) {
                None => Fate::Goes(None),
                Some(tenant) => of(tenant.machines().to_vec(), Command::RemoveTenant(id)),
            },
            Some(Link::Machine(_)) => Fate::Waits,
            None => self.fate_of_group(key, entry),
        }
    }

    fn fate_of_group(&self, key: &str, entry: &Entry) -> Fate {
        let catalogue = &self.state.shared();
        let Ok(rules) = self.rules(entry.cluster) else { return Fate::Goes(None) };
        let (mut any, mut any_leaves) = (false, false);
        for (_, inside) in catalogue.entries_below(&format!("{key}/")) {
            any = true;
            any_leaves |= inside.leaving == Leaving::Leaves
                || matches!(inside.link, Some(Link::Machine(machine)) if rules.is_leaving(machine));
        }
        match (any, any_leaves) {
            (false, _) => Fate::Goes(None),
            (true, true) => Fate::Waits,
            (true, false) => Fate::Stays,
        }
    }
}

/// What becomes of an entry that is on its way out.
enum Fate {
    /// Something of it is still there.
    Waits,
    /// Nothing is left of it: it goes by itself, or with this.
    Goes(Option<Command>),
    /// What it has will stay.
    Stays,
}

fn ending_of(why: Withdrawal) -> Ending {
    match why {
        Withdrawal::Cancelled | Withdrawal::Postponed => Ending::Canceled,
        Withdrawal::Superseded
        | Withdrawal::Unconcerned
        | Withdrawal::HostFailed
        | Withdrawal::HostRecovered => Ending::Failed {
            code: "OperationPreempted".to_owned(),
            message: "The operation has been preempted by a more recent operation.".to_owned(),
        },
    }
}
