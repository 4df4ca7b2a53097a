//! Keeping the directory of callers, and the lists of members, as the fleet is.

use std::net::IpAddr;
use std::sync::Arc;

use forewarn_lifecycle::{Change, MachineId, Name};
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
        self.details.get(&machine).unwrap_or(&NOTHING)
    }

    pub(super) fn follow(&mut self, change: &Change) {
        if let Change::MachineAdmitted { machine, new } = change {
            self.publish(new.tenant);
            self.list(*machine);
        }
        if let Change::Completed { machine, .. } = change
            && self.cluster.machine(*machine).is_none()
        {
            self.details.remove(machine);
            if let Some(gone) = self.unlist(*machine) {
                self.publish(gone.caller.slot.tenant);
            }
        }
    }

    /// Puts a machine into the directory, as it is described now.
    pub(super) fn list(&mut self, id: MachineId) {
        self.unlist(id);
        let details = self.details_of(id).clone();
        let Some(instance) = instance_of(&self.cluster, id, &self.seed, &self.site, &details) else { return };
        let Some(tenant) = self.cluster.machine(id).and_then(|machine| self.cluster.tenant(machine.tenant))
        else {
            return;
        };
        let Some(slot) = self.cluster.tenant_named(tenant.name.as_str()).and_then(|id| self.slots.get(&id))
        else {
            return;
        };
        let (tenant, name) = (tenant.name.clone(), instance.name.clone());
        let (slot, load) = (Arc::clone(slot), Load::default());
        let caller = Arc::new(Caller { machine: id, name, slot, instance, load });
        self.directory.add(&tenant, &caller, &details.addresses);
        self.listed.insert(id, Listed { tenant, caller, addresses: details.addresses });
    }

    fn unlist(&mut self, id: MachineId) -> Option<Listed> {
        let listed = self.listed.remove(&id)?;
        self.directory.remove(&listed.tenant, &listed.caller, &listed.addresses);
        Some(listed)
    }
}
