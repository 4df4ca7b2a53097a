//! Keeping the directory of callers, and the lists of members, as the fleet is.

use std::net::IpAddr;
use std::sync::Arc;

use forewarn_control::Details;
use forewarn_control::shared::ClusterId;
use forewarn_lifecycle::{Change, MachineId};
use forewarn_store::{Entry, Estate};

use super::Driver;
use crate::directory::Caller;
use crate::instance::instance_of;
use crate::load::Load;

/// What has been put into the directory for a machine.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) caller: Arc<Caller>,
    addresses: Vec<IpAddr>,
}

/// What is known of a machine of which nothing is known.
static NOTHING: Details =
    Details { addresses: Vec::new(), tags: std::collections::BTreeMap::new(), home: None };

/// What is known of a machine besides.
pub(super) fn details_of(estate: &Estate, machine: MachineId) -> &Details {
    estate.details.get(&machine).unwrap_or(&NOTHING)
}

impl Driver {
    /// Keeps what can be seen as what has become durable.
    pub(super) fn follow(&mut self, entry: &Entry) {
        match entry {
            Entry::Change(id, Change::MachineAdmitted { machine, new }) => {
                self.publish(*id, new.tenant);
                self.list(*id, *machine);
            }
            Entry::Change(id, Change::Completed { machine, .. } | Change::MachineForgotten(machine)) => {
                self.forget_if_gone(*id, *machine);
            }
            Entry::Described { cluster, machine, .. } => self.list(*cluster, *machine),
            Entry::Site(id, _) => self.list_all(*id),
            Entry::Catalogue(change) => self.follow_catalogue(change),
            Entry::Change(..) | Entry::Clock | Entry::Booted(_) | Entry::Unread(_) | Entry::Failed { .. } => {
            }
        }
    }

    /// A machine may have gone with the last thing that was done to it.
    fn forget_if_gone(&mut self, id: ClusterId, machine: MachineId) {
        if self.estate(id).is_ok_and(|estate| estate.cluster.machine(machine).is_some()) {
            return;
        }
        self.let_go(id, machine);
        if let Some(estate) = self.kept.clusters.get_mut(&id) {
            estate.details.remove(&machine);
        }
        if let Some(gone) = self.unlist(id, machine) {
            self.publish(id, gone.caller.slot.tenant);
        }
    }

    /// Puts every machine of a cluster into the directory.
    pub(super) fn list_all(&mut self, id: ClusterId) {
        let machines = self.kept.clusters.get(&id).into_iter().flat_map(|estate| estate.cluster.machines());
        let machines: Vec<_> = machines.map(|(machine, _)| machine).collect();
        machines.into_iter().for_each(|machine| self.list(id, machine));
    }

    /// Puts a machine into the directory, as it is described now. It is there all the time, if it was before.
    pub(super) fn list(&mut self, id: ClusterId, machine: MachineId) {
        let Some(listed) = self.listing(id, machine) else { return };
        self.directory.add(&listed.caller, &listed.addresses);
        let (kept, full_name) = (listed.addresses.clone(), listed.caller.full_name.clone());
        if let Some(former) = self.ward(id).listed.insert(machine, listed) {
            self.directory.forget_name(&former.caller, &full_name);
            let left: Vec<_> = former.addresses.iter().filter(|old| !kept.contains(old)).copied().collect();
            self.directory.forget(&former.caller, &left);
        }
    }

    /// A machine as it is put into the directory.
    fn listing(&self, id: ClusterId, machine: MachineId) -> Option<Listed> {
        let estate = self.kept.clusters.get(&id)?;
        let Details { addresses, .. } = details_of(estate, machine);
        let instance = instance_of(estate, machine, &self.identity.nth(id.0))?;
        let tenant = estate.cluster.tenant(estate.cluster.machine(machine)?.tenant)?;
        let ward = self.wards.get(&id)?;
        let slot = ward.slots.get(&estate.cluster.machine(machine)?.tenant)?;
        let former = ward.listed.get(&machine).map(|former| Arc::clone(&former.caller.polled));
        let polled = former.unwrap_or_default();
        let (name, slot, load) = (instance.name.clone(), Arc::clone(slot), Load::default());
        let full_name = match id {
            ClusterId::DEFAULT => format!("{}/{name}", tenant.name),
            _ => format!("{}/{}/{name}", self.kept.catalogue.cluster_name(id)?, tenant.name),
        };
        let full_name = full_name.into();
        let caller = Arc::new(Caller { machine, name, full_name, slot, instance, load, polled });
        Some(Listed { caller, addresses: addresses.clone() })
    }

    pub(super) fn unlist(&mut self, id: ClusterId, machine: MachineId) -> Option<Listed> {
        let listed = self.ward(id).listed.remove(&machine)?;
        self.directory.remove(&listed.caller, &listed.addresses);
        Some(listed)
    }
}
