//! Sizes and capacities: no choice of a host gives it more than it has, and the amounts in use are right.

use std::collections::BTreeMap;

use forewarn_lifecycle::*;

use crate::promise::{BrokenPromises, Promise};

/// Sizes and capacities as the changes said them, and the amounts in use that follow.
#[derive(Default)]
pub struct CapacityRecords {
    sizes: BTreeMap<MachineId, Size>,
    capacities: BTreeMap<HostId, Size>,
    used: BTreeMap<HostId, (u32, u64)>,
    /// True while the changes of a command are applied that states facts and chooses no host.
    states_facts: bool,
}

impl CapacityRecords {
    pub(super) fn asked(&mut self, command: &Command) {
        self.states_facts = matches!(
            command,
            Command::ChangeCapacity { .. }
                | Command::Resize { .. }
                | Command::ResizeInstances { .. }
                | Command::Move { .. }
        );
    }

    /// Checks the hosts after a change. Returns also a word for what was seen.
    pub(super) fn changed(&mut self, cluster: &Cluster, change: &Change) -> (BrokenPromises, &'static str) {
        match change {
            Change::CapacityChanged { host, capacity } => drop(self.capacities.insert(*host, *capacity)),
            Change::MachineResized { machine, size } => drop(self.sizes.insert(*machine, *size)),
            _ => {}
        }
        if self.sizes.is_empty() && self.capacities.is_empty() {
            return (Vec::new(), "");
        }
        let mut broken = Vec::new();
        let used = self.amounts(cluster);
        let before = std::mem::replace(&mut self.used, used);
        let mut seen = "";
        for (id, host) in cluster.hosts() {
            let capacity = self.capacities.get(&id).copied().unwrap_or_default();
            let used = self.used.get(&id).copied().unwrap_or_default();
            let was = before.get(&id).copied().unwrap_or_default();
            let room = cluster.room_of(id);
            if (room.capacity, (room.used.cpus, room.used.memory_mib)) != (capacity, used) {
                broken.push((Promise::Capacity, format!("{} has {room:?}, not {used:?}", host.name)));
            }
            let more_cpus = used.0 > was.0 && capacity.cpus > 0;
            let more_memory = used.1 > was.1 && capacity.memory_mib > 0;
            let too_many = more_cpus && used.0 > u32::from(capacity.cpus);
            let too_much = more_memory && used.1 > u64::from(capacity.memory_mib);
            if (too_many || too_much) && !self.states_facts {
                broken.push((Promise::Capacity, format!("{change:?} gives {} {used:?}", host.name)));
            }
            if more_cpus || more_memory {
                seen = "room taken";
            }
        }
        (broken, seen)
    }

    /// What the machines of each host take.
    fn amounts(&self, cluster: &Cluster) -> BTreeMap<HostId, (u32, u64)> {
        let mut amounts = BTreeMap::<HostId, (u32, u64)>::new();
        for (id, machine) in cluster.machines() {
            let Some(size) = self.sizes.get(&id) else { continue };
            let actions = cluster.pending_of(id).filter_map(|pending| pending.action(id));
            let mut hosts: Vec<_> = actions
                .filter_map(|action| match action.impact {
                    Impact::Start { to: None } => Some(machine.host),
                    impact => impact.destination(),
                })
                .collect();
            if machine.power != Power::Deallocated {
                hosts.push(machine.host);
            }
            hosts.sort_unstable();
            hosts.dedup();
            for host in hosts {
                let amount = amounts.entry(host).or_default();
                *amount = (amount.0 + u32::from(size.cpus), amount.1 + u64::from(size.memory_mib));
            }
        }
        amounts
    }
}
