//! Publication of one cluster: its documents, and its machines as callers of the metadata endpoint, follow the durable
//! state.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::ClusterId;
use forewarn_control::{ClusterState, ControlState, document_of};
use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{MachineId, Seed, Steady, TenantId};
use forewarn_metadata::{Caller, Directory, DocumentSlot, PublishedDocument};

use crate::instance::instance_of;
use crate::snapshot::ListedMachine;

/// The published documents of a cluster, and its machines that are listed as callers.
#[derive(Default)]
pub(crate) struct PublishedCluster {
    documents: BTreeMap<TenantId, Arc<DocumentSlot>>,
    listed: PagedMap<MachineId, ListedMachine>,
}

impl PublishedCluster {
    /// The document of a tenant.
    pub(crate) fn document(&self, tenant: TenantId) -> Option<&DocumentSlot> {
        self.documents.get(&tenant).map(|slot| &**slot)
    }

    pub(crate) fn documents(&self) -> impl Iterator<Item = &DocumentSlot> {
        self.documents.values().map(|slot| &**slot)
    }

    /// Machines that are listed.
    pub(crate) fn listed(&self) -> &PagedMap<MachineId, ListedMachine> {
        &self.listed
    }

    /// Withdraws the document of a tenant that is gone.
    pub(crate) fn withdraw(&mut self, tenant: TenantId) {
        self.documents.remove(&tenant);
    }
}

/// The published part of a cluster, and the state that it follows.
pub(crate) struct ClusterPublication<'a> {
    pub(crate) id: ClusterId,
    pub(crate) state: &'a ControlState,
    /// Ids of machines are made of it.
    pub(crate) identity: Seed,
    /// Number of the last audit entry.
    pub(crate) audit_end: u64,
    pub(crate) directory: &'a Directory,
    pub(crate) published: &'a mut PublishedCluster,
}

impl ClusterPublication<'_> {
    fn cluster(&self) -> Option<&ClusterState> {
        self.state.cluster(self.id)
    }

    /// Publishes every document, and lists every machine. The silence of a tenant begins now: earlier polls are
    /// unknown.
    pub(crate) fn publish_all(&mut self, now: Steady) {
        let tenants = self.state.cluster(self.id).into_iter().flat_map(|one| one.rules().tenants());
        for (tenant, _) in tenants {
            self.publish(tenant);
            self.published.document(tenant).into_iter().for_each(|slot| slot.record_request(now));
        }
        self.list_all();
    }

    /// Publishes the document of a tenant.
    pub(crate) fn publish(&mut self, tenant_id: TenantId) {
        let Some(rules) = self.cluster().map(ClusterState::rules) else { return };
        let Some(tenant) = rules.tenant(tenant_id) else { return };
        let machines = tenant.machines().iter().filter_map(|id| rules.machine(*id));
        let members = machines.map(|machine| machine.name.clone()).collect();
        let (document, enrolled) = (document_of(tenant), tenant.is_enrolled());
        let published = PublishedDocument::new(document, enrolled, members, self.audit_end);
        let documents = &mut self.published.documents;
        match documents.get(&tenant_id) {
            Some(slot) => slot.publish(published),
            None => {
                drop(documents.insert(tenant_id, Arc::new(DocumentSlot::new(self.id, tenant_id, published))));
            }
        }
    }

    /// Withdraws documents of tenants that are gone, and callers.
    pub(crate) fn withdraw_gone(&mut self) {
        let rules = self.state.cluster(self.id).map(ClusterState::rules);
        let PublishedCluster { documents, listed } = &mut *self.published;
        documents.retain(|tenant, _| rules.is_some_and(|all| all.tenant(*tenant).is_some()));
        let is_gone = |machine: &MachineId| rules.is_none_or(|all| all.machine(*machine).is_none());
        let gone: Vec<_> = listed.keys().copied().filter(is_gone).collect();
        gone.into_iter().for_each(|machine| drop(self.unlist(machine)));
    }

    pub(crate) fn list_all(&mut self) {
        let machines = self.state.cluster(self.id).into_iter().flat_map(|one| one.rules().machines());
        machines.for_each(|(machine, _)| self.list(machine));
    }

    /// Lists a machine that is new, or has new details. The document of its tenant names its members.
    pub(crate) fn list_with_document(&mut self, machine: MachineId) {
        let is_listed = self.published.listed.contains_key(&machine);
        let tenant = self.cluster().and_then(|one| Some(one.rules().machine(machine)?.tenant));
        tenant.filter(|_| !is_listed).into_iter().for_each(|tenant| self.publish(tenant));
        self.list(machine);
    }

    /// Removes a machine that is gone from the callers, and from the document of its tenant.
    pub(crate) fn remove(&mut self, machine: MachineId) {
        if let Some(gone) = self.unlist(machine) {
            self.publish(gone.caller.slot.tenant);
        }
    }

    /// Lists a machine as a caller. It stays listed throughout, if it was before.
    fn list(&mut self, machine: MachineId) {
        let Some(listed) = self.listing(machine) else { return };
        self.directory.add(&listed.caller, &listed.addresses);
        let (kept, full_name) = (listed.addresses.clone(), listed.caller.full_name.clone());
        if let Some(former) = self.published.listed.insert(machine, listed) {
            self.directory.forget_name(&former.caller, &full_name);
            let left: Vec<_> = former.addresses.iter().filter(|old| !kept.contains(old)).copied().collect();
            self.directory.forget(&former.caller, &left);
        }
    }

    fn listing(&self, machine: MachineId) -> Option<ListedMachine> {
        let cluster = self.cluster()?;
        let addresses = cluster.details_of(machine).addresses.as_slice().into();
        let instance = instance_of(cluster, machine, &self.identity.nth(self.id.0))?;
        let tenant_id = cluster.rules().machine(machine)?.tenant;
        let tenant = cluster.rules().tenant(tenant_id)?;
        let slot = Arc::clone(self.published.documents.get(&tenant_id)?);
        let former = self.published.listed.get(&machine).map(|former| &*former.caller);
        let name = &instance.name;
        let full_name = match self.id {
            ClusterId::DEFAULT => format!("{}/{name}", tenant.name),
            id => format!("{}/{}/{name}", self.state.shared().cluster_name(id)?, tenant.name),
        };
        let caller = Arc::new(Caller::new(machine, full_name.into(), slot, instance, former));
        Some(ListedMachine { caller, addresses })
    }

    fn unlist(&mut self, machine: MachineId) -> Option<ListedMachine> {
        let listed = self.published.listed.remove(&machine)?;
        self.directory.remove(&listed.caller, &listed.addresses);
        Some(listed)
    }
}
