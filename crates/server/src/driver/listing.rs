//! Keeping the directory of callers, and the lists of members, as the fleet is.

use std::net::IpAddr;
use std::sync::Arc;

use forewarn_lifecycle::{Change, MachineId, Name};
use forewarn_store::{Entry, State as Kept};
use forewarn_wire::operator::Details;

use super::Driver;
use crate::directory::Caller;
use crate::instance::instance_of;
use crate::load::Load;

/// What has been put into the directory for a machine.
pub(super) struct Listed {
    tenant: Name,
    caller: Arc<Caller>,
    addresses: Vec<IpAddr>,
}

/// What is known of a machine of which nothing is known.
static NOTHING: Details = Details { addresses: Vec::new(), tags: std::collections::BTreeMap::new() };

impl Driver {
    pub(super) fn details_of(&self, machine: MachineId) -> &Details {
        self.kept.details.get(&machine).unwrap_or(&NOTHING)
    }

    /// Keeps what can be seen as what has become durable.
    pub(super) fn follow(&mut self, entry: &Entry) {
        match entry {
            Entry::Change(Change::MachineAdmitted { machine, new }) => {
                self.publish(new.tenant);
                self.list(*machine);
            }
            Entry::Change(Change::Completed { machine, .. })
                if self.kept.cluster.machine(*machine).is_none() =>
            {
                self.let_go(*machine);
                self.kept.details.remove(machine);
                if let Some(gone) = self.unlist(*machine) {
                    self.publish(gone.caller.slot.tenant);
                }
            }
            Entry::Described { machine, .. } => self.list(*machine),
            Entry::Site(_) => {
                let listed: Vec<_> = self.listed.keys().copied().collect();
                listed.into_iter().for_each(|machine| self.list(machine));
            }
            Entry::Change(_) | Entry::Clock | Entry::Booted(_) => {}
        }
    }

    /// Puts a machine into the directory, as it is described now. It is there all the time, if it was before.
    pub(super) fn list(&mut self, id: MachineId) {
        let details = self.details_of(id).clone();
        let Kept { cluster, site, .. } = &self.kept;
        let Some(instance) = instance_of(cluster, id, &self.identity, site, &details) else { return };
        let Some(machine) = cluster.machine(id) else { return };
        let (Some(tenant), Some(slot)) = (cluster.tenant(machine.tenant), self.slots.get(&machine.tenant))
        else {
            return;
        };
        let (tenant, name) = (tenant.name.clone(), instance.name.clone());
        let (slot, load) = (Arc::clone(slot), Load::default());
        let caller = Arc::new(Caller { machine: id, name, slot, instance, load });
        self.directory.add(&tenant, &caller, &details.addresses);
        let listed = Listed { tenant, caller, addresses: details.addresses };
        if let Some(former) = self.listed.insert(id, listed) {
            let kept = &self.listed[&id].addresses;
            let left: Vec<_> = former.addresses.iter().filter(|old| !kept.contains(old)).copied().collect();
            self.directory.forget(&former.caller, &left);
        }
    }

    pub(super) fn unlist(&mut self, id: MachineId) -> Option<Listed> {
        let listed = self.listed.remove(&id)?;
        self.directory.remove(&listed.tenant, &listed.caller, &listed.addresses);
        Some(listed)
    }
}
