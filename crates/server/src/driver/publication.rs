//! Publication: documents, callers of the metadata endpoint, and snapshots follow what has become durable.

use std::sync::Arc;

use forewarn_control::shared::ClusterId;
use forewarn_control::{ClusterState, Effect};
use forewarn_lifecycle::{Action, MachineId, TenantId};

use super::Driver;
use super::batch::Batch;
use crate::directory::Caller;
use crate::instance::instance_of;
use crate::load::Load;
use crate::published::{Published, Slot};
use crate::snapshot::{ListedMachine, Snapshot};

impl Driver {
    /// Takes an effect into the batch. Effects on runtime state that nobody sees take place at once.
    pub(super) fn prepare(&mut self, effect: Effect) {
        if let Effect::Jam(id, machine) = effect {
            self.runtime(id).jammed.insert(machine);
        } else {
            self.batch.add(effect);
        }
    }

    /// Publishes a batch that is durable. Returns the actions that are due.
    pub(super) fn publish_batch(&mut self, batch: &Batch) -> Vec<(ClusterId, Action)> {
        let (mut actions, mut unpublish) = (Vec::new(), Vec::new());
        for effect in &batch.effects {
            match effect {
                Effect::MachineChanged(id, machine) => self.list_with_document(*id, *machine),
                Effect::MachineGone(id, machine) => {
                    if let Some(gone) = self.unlist(*id, *machine) {
                        self.publish(*id, gone.caller.slot.tenant);
                    }
                }
                Effect::ClusterCreated(id) => self.publish_cluster(*id),
                Effect::ClusterChanged(id) => self.list_all(*id),
                Effect::ClusterGone(id) => drop(self.runtimes.remove(id)),
                Effect::WorkPlanned(work) => self.runtime(work.cluster).follow_work(effect),
                Effect::WorkFailed(id, _) => self.runtime(*id).follow_work(effect),
                Effect::WorkFinished(work) => self.runtime(work.cluster).follow_work(effect),
                Effect::Unpublish(id, tenant) => unpublish.push((*id, *tenant)),
                Effect::Perform(id, action) => actions.push((*id, *action)),
                Effect::Publish(..) | Effect::Announced(..) | Effect::Jam(..) => {}
            }
        }
        batch.publish.iter().for_each(|(id, tenant)| self.publish(*id, *tenant));
        unpublish.iter().for_each(|(id, tenant)| drop(self.runtime(*id).documents.remove(tenant)));
        actions
    }

    /// Publishes everything: after a start, or after the journal was opened again.
    pub(super) fn publish_all(&mut self) {
        let former: Vec<_> = self.runtimes.keys().copied().collect();
        former.into_iter().for_each(|id| self.unlist_gone(id));
        self.runtimes.retain(|id, _| self.state.cluster(*id).is_some());
        let clusters: Vec<_> = self.state.clusters().map(|(id, _)| id).collect();
        clusters.into_iter().for_each(|id| self.publish_cluster(id));
        self.broadcasts.has_published(self.audit_end.number);
        self.publish_snapshot();
    }

    /// Publishes the state for readers.
    pub(super) fn publish_snapshot(&self) {
        let runtimes = self.runtimes.iter().map(|(id, runtime)| (*id, runtime.view())).collect();
        let (state, revision, identity) = (self.state.clone(), self.revision, self.identity);
        let clock_limit = self.clock_limit();
        let snapshot = Snapshot { state, runtimes, revision, identity, clock_limit };
        self.broadcasts.publish(snapshot);
    }

    /// Publishes every document of a cluster, and lists its machines.
    fn publish_cluster(&mut self, id: ClusterId) {
        self.has_changed(id);
        let Some(cluster) = self.state.cluster(id) else { return };
        let tenants: Vec<_> = cluster.rules().tenants().map(|(id, _)| id).collect();
        let now = self.clock.now().steady;
        for tenant in tenants {
            self.publish(id, tenant);
            // Polls while no server was there are not known: silences begin now.
            if let Some(slot) = self.runtime(id).documents.get(&tenant) {
                slot.hear(now);
            }
        }
        self.list_all(id);
    }

    fn publish(&mut self, id: ClusterId, tenant_id: TenantId) {
        let Some(rules) = self.state.cluster(id).map(ClusterState::rules) else { return };
        let Some(tenant) = rules.tenant(tenant_id) else { return };
        let machines = tenant.machines().iter().filter_map(|id| rules.machine(*id));
        let members = machines.map(|machine| machine.name.clone()).collect();
        let published = Published::of(tenant, members, self.audit_end.number);
        let documents = &mut self.runtimes.entry(id).or_default().documents;
        match documents.get(&tenant_id) {
            Some(slot) => slot.publish(published),
            None => drop(documents.insert(tenant_id, Arc::new(Slot::new(id, tenant_id, published)))),
        }
    }

    /// Withdraws documents and callers that are gone.
    fn unlist_gone(&mut self, id: ClusterId) {
        let rules = self.state.cluster(id).map(ClusterState::rules);
        let runtime = self.runtimes.entry(id).or_default();
        runtime.documents.retain(|tenant, _| rules.is_some_and(|all| all.tenant(*tenant).is_some()));
        let is_gone = |machine: &MachineId| rules.is_none_or(|all| all.machine(*machine).is_none());
        let gone: Vec<_> = runtime.listed.keys().copied().filter(is_gone).collect();
        gone.into_iter().for_each(|machine| drop(self.unlist(id, machine)));
    }

    fn list_all(&mut self, id: ClusterId) {
        let machines = self.state.cluster(id).into_iter().flat_map(|one| one.rules().machines());
        let machines: Vec<_> = machines.map(|(machine, _)| machine).collect();
        machines.into_iter().for_each(|machine| self.list(id, machine));
    }

    /// Lists a machine that is new, or has new details. The document of its tenant names its members.
    fn list_with_document(&mut self, id: ClusterId, machine: MachineId) {
        let is_listed = self.runtimes.get(&id).is_some_and(|one| one.listed.contains_key(&machine));
        let tenant = self.state.cluster(id).and_then(|one| Some(one.rules().machine(machine)?.tenant));
        if let Some(tenant) = tenant.filter(|_| !is_listed) {
            self.publish(id, tenant);
        }
        self.list(id, machine);
    }

    /// Lists a machine as a caller. It stays listed throughout, if it was before.
    fn list(&mut self, id: ClusterId, machine: MachineId) {
        let Some(listed) = self.listing(id, machine) else { return };
        self.directory.add(&listed.caller, &listed.addresses);
        let (kept, full_name) = (listed.addresses.clone(), listed.caller.full_name.clone());
        if let Some(former) = self.runtime(id).listed.insert(machine, listed) {
            self.directory.forget_name(&former.caller, &full_name);
            let left: Vec<_> = former.addresses.iter().filter(|old| !kept.contains(old)).copied().collect();
            self.directory.forget(&former.caller, &left);
        }
    }

    fn listing(&self, id: ClusterId, machine: MachineId) -> Option<ListedMachine> {
        let cluster = self.state.cluster(id)?;
        let addresses = cluster.details_of(machine).addresses.as_slice().into();
        let instance = instance_of(cluster, machine, &self.identity.nth(id.0))?;
        let tenant_id = cluster.rules().machine(machine)?.tenant;
        let tenant = cluster.rules().tenant(tenant_id)?;
        let runtime = self.runtimes.get(&id)?;
        let slot = Arc::clone(runtime.documents.get(&tenant_id)?);
        let former = runtime.listed.get(&machine).map(|former| Arc::clone(&former.caller.polled));
        let (name, load, polled) = (instance.name.clone(), Load::default(), former.unwrap_or_default());
        let full_name = match id {
            ClusterId::DEFAULT => format!("{}/{name}", tenant.name),
            _ => format!("{}/{}/{name}", self.state.shared().cluster_name(id)?, tenant.name),
        };
        let full_name = full_name.into();
        let caller = Arc::new(Caller { machine, name, full_name, slot, instance, load, polled });
        Some(ListedMachine { caller, addresses })
    }

    fn unlist(&mut self, id: ClusterId, machine: MachineId) -> Option<ListedMachine> {
        let runtime = self.runtimes.get_mut(&id).filter(|one| one.listed.contains_key(&machine))?;
        let listed = runtime.listed.remove(&machine)?;
        self.directory.remove(&listed.caller, &listed.addresses);
        Some(listed)
    }
}
