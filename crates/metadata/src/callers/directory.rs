//! The machines that have called, and the documents of their tenants.
//!
//! Nothing is listed in advance: a caller and a document are made from the published state of their cluster when they
//! are first needed. So the size of the directory, and the work of a start or of a change of the fleet, depend on the
//! machines that poll, not on those that exist.
//!
//! ```text
//!   first poll:  lock the shard ──▶ read the published state ──▶ add the caller, and the document
//!   commit:      publish the state ──▶ lock the shard ──▶ replace the document, if it is there
//! ```
//!
//! Whichever of the two comes second sees the result of the other, so no document is missed. Readers never wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use forewarn_types::{ClusterId, MachineId, TenantId};

use super::caller::{Caller, CallerId};
use super::faults::{FaultTable, FaultTarget};
use super::shards::Shards;
use crate::published::{DocumentSlot, PublishedDocument};

/// The published state of all clusters. Each call reads the newest one, and never waits.
pub trait PublishedState {
    /// The tenant of a machine. None if the machine does not exist.
    fn tenant_of(&self, caller: CallerId) -> Option<TenantId>;

    /// The document of a tenant. None if the tenant does not exist.
    fn document_of(&self, cluster: ClusterId, tenant: TenantId) -> Option<PublishedDocument>;
}

/// The machines that have called, and the documents of their tenants.
#[derive(Debug, Default)]
pub struct Directory {
    callers: Shards<CallerId, Arc<Caller>>,
    documents: Shards<(ClusterId, TenantId), Arc<DocumentSlot>>,
    generation: AtomicU64,
    /// Faults of machines; unset on a server that injects none.
    faults: OnceLock<Arc<FaultTable>>,
}

/// Changes of a cluster that are published, and that the directory has to follow.
#[derive(Debug, Default)]
pub struct DirectoryChanges {
    /// Tenants with new documents, or gone.
    pub tenants: Vec<TenantId>,
    pub gone_machines: Vec<MachineId>,
}

impl Directory {
    /// The caller that a machine is. It is made if there is none.
    pub fn caller(&self, state: &impl PublishedState, id: CallerId) -> Option<Arc<Caller>> {
        self.callers.get_or_insert_with(id, || {
            let slot = self.slot(state, id.cluster, state.tenant_of(id)?)?;
            Some(Arc::new(Caller::new(id.machine, slot)))
        })
    }

    /// The slot of a tenant's document. It is made if there is none.
    fn slot(
        &self,
        state: &impl PublishedState,
        cluster: ClusterId,
        tenant: TenantId,
    ) -> Option<Arc<DocumentSlot>> {
        self.documents.get_or_insert_with((cluster, tenant), || {
            let published = state.document_of(cluster, tenant)?;
            Some(Arc::new(DocumentSlot::new(cluster, tenant, published)))
        })
    }

    /// The machine, if it has called.
    #[must_use]
    pub fn known_caller(&self, id: CallerId) -> Option<Arc<Caller>> {
        self.callers.get(&id)
    }

    /// The document of a tenant, if one of its machines has called.
    #[must_use]
    pub fn known_document(&self, cluster: ClusterId, tenant: TenantId) -> Option<Arc<DocumentSlot>> {
        self.documents.get(&(cluster, tenant))
    }

    /// Follows changes of a cluster, after the state with them was published.
    pub fn follow(&self, state: &impl PublishedState, cluster: ClusterId, changes: DirectoryChanges) {
        let DirectoryChanges { tenants, gone_machines } = changes;
        let mut gone = Vec::new();
        for tenant in tenants {
            let Some(slot) = self.documents.get_settled(&(cluster, tenant)) else { continue };
            match state.document_of(cluster, tenant) {
                Some(published) => slot.publish(published),
                None => gone.push((cluster, tenant)),
            }
        }
        self.documents.remove(gone);
        if let Some(faults) = self.faults.get().filter(|_| !gone_machines.is_empty()) {
            faults.remove(|fault| match fault.target {
                FaultTarget::Machine(id, _) => id.cluster == cluster && gone_machines.contains(&id.machine),
                FaultTarget::Webhook(_) => false,
            });
        }
        self.callers.remove(gone_machines.into_iter().map(|machine| CallerId { cluster, machine }));
    }

    /// Follows a cluster whose state was replaced.
    pub fn follow_all(&self, state: &impl PublishedState, cluster: ClusterId) {
        let tenants = self.documents.keys().into_iter().filter(|(of, _)| *of == cluster);
        let callers = self.callers.keys().into_iter().filter(|id| id.cluster == cluster);
        let gone = callers.filter(|id| state.tenant_of(*id).is_none());
        let changes = DirectoryChanges {
            tenants: tenants.map(|(_, tenant)| tenant).collect(),
            gone_machines: gone.map(|id| id.machine).collect(),
        };
        self.follow(state, cluster, changes);
        self.names_changed();
    }

    /// Permits faults from now on. Endpoints that already exist inject none.
    pub fn permit_faults(&self) {
        self.faults.get_or_init(Arc::default);
    }

    /// The faults, if they are permitted.
    #[must_use]
    pub fn faults(&self) -> Option<&Arc<FaultTable>> {
        self.faults.get()
    }

    /// Forgets all machines, their polls and their faults, after a state was published that has nothing to do with the
    /// former one.
    /// Requests that wait for a change of a document end with the document of the new state.
    pub fn restart(&self, state: &impl PublishedState) {
        // Documents first: a caller that is added meanwhile with a former document is forgotten below.
        let former = self.documents.take_all();
        self.callers.take_all();
        for ((cluster, tenant), slot) in former {
            slot.retire(state.document_of(cluster, tenant));
        }
        // A fault is meant for a machine of the former state.
        if let Some(faults) = self.faults() {
            faults.remove(|_| true);
        }
        self.names_changed();
    }

    /// Number that changes whenever a name or an address may be that of another machine. A result of a lookup stays
    /// valid for as long as the number that was read before the lookup.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Invalidates results of lookups after machines or clusters have come, gone, or changed their names or addresses.
    pub fn names_changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
