//! Publication of one cluster: the documents that VMs have read follow the durable state.
//!
//! The snapshot is the published state. The directory of the metadata endpoint makes callers and documents from it when
//! a VM needs them, so a machine that never polls costs nothing here.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_control::{ClusterId, ClusterState, document_of};
use forewarn_lifecycle::{Cluster, MachineId, Steady, Tenant, TenantId};
use forewarn_metadata::{CallerId, Directory, DirectoryChanges, PollDuty, PublishedDocument, PublishedState};

use crate::broadcasts::Broadcasts;
use crate::clock::{Clock, shifted};

/// The published documents of a cluster.
pub(crate) struct ClusterPublication {
    id: ClusterId,
    directory: Arc<Directory>,
    /// The silence of tenants begins at this time: earlier polls are unknown.
    resumed: Steady,
    /// Milliseconds by which the steady clock of the cluster is ahead of that of the process.
    shift: i64,
    /// Number of changes of documents.
    document_changes: u64,
}

/// Changes of a batch that are to be published.
#[derive(Debug, Default)]
pub(crate) struct PublicationChanges {
    /// Tenants with new documents, or gone.
    pub(crate) tenants: BTreeSet<TenantId>,
    pub(crate) gone_machines: Vec<MachineId>,
    /// Machines are new, or have other names or addresses.
    pub(crate) names: bool,
}

impl ClusterPublication {
    pub(crate) fn new(id: ClusterId, directory: Arc<Directory>, now: Steady) -> Self {
        Self { id, directory, resumed: now, shift: 0, document_changes: 0 }
    }

    /// Milliseconds by which the steady clock of the cluster is ahead of that of the process.
    pub(crate) fn shift(&self) -> i64 {
        self.shift
    }

    /// The number of changes of documents.
    pub(crate) fn document_changes(&self) -> u64 {
        self.document_changes
    }

    pub(crate) fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// The last request of a machine of a tenant.
    pub(crate) fn last_request(&self, tenant: TenantId) -> Steady {
        let slot = self.directory.known_document(self.id, tenant);
        slot.map_or(self.resumed, |slot| shifted(slot.last_request(), self.shift).max(self.resumed))
    }

    /// Counts the documents that a batch changes, for the snapshot that is published next.
    pub(crate) fn count_changes(
        &mut self,
        changes: &PublicationChanges,
        former: &ClusterState,
        state: &ClusterState,
    ) {
        let incarnation =
            |state: &ClusterState, tenant| state.rules().tenant(tenant).map(|tenant| tenant.incarnation);
        let differs = |tenant: &&TenantId| incarnation(former, **tenant) != incarnation(state, **tenant);
        self.document_changes += changes.tenants.iter().filter(differs).count() as u64;
    }

    /// Publishes the changes of a batch, which are in the snapshot.
    pub(crate) fn publish_changes(&self, broadcasts: &Broadcasts, changes: PublicationChanges) {
        let PublicationChanges { tenants, gone_machines, names } = changes;
        let is_renamed = names || !gone_machines.is_empty();
        let changes = DirectoryChanges { tenants: tenants.into_iter().collect(), gone_machines };
        self.directory.follow(broadcasts, self.id, changes);
        if is_renamed {
            self.directory.names_changed();
        }
    }

    /// Publishes a state that was replaced as a whole and is in the snapshot: after a start, or after the journal was
    /// opened again.
    pub(crate) fn publish_all(&mut self, broadcasts: &Broadcasts, clock: &Clock) {
        (self.resumed, self.shift) = (clock.now().steady, clock.shift());
        self.document_changes += 1;
        self.directory.follow_all(broadcasts, self.id);
    }
}

impl PublishedState for Broadcasts {
    fn tenant_of(&self, CallerId { cluster, machine }: CallerId) -> Option<TenantId> {
        let snapshot = self.snapshot.load();
        Some(snapshot.state.cluster(cluster)?.rules().machine(machine)?.tenant)
    }

    fn document_of(&self, cluster: ClusterId, tenant: TenantId) -> Option<PublishedDocument> {
        let snapshot = self.snapshot.load();
        let rules = snapshot.state.cluster(cluster)?.rules();
        let (duty, tenant) = (poll_duty(rules, tenant), rules.tenant(tenant)?);
        let audit_end = snapshot.runtimes.get(&cluster).map_or(0, |runtime| runtime.audit_end);
        Some(PublishedDocument::new(document_of(tenant), duty, audit_end))
    }
}

fn poll_duty(rules: &Cluster, tenant: TenantId) -> PollDuty {
    if !rules.tenant(tenant).is_some_and(Tenant::is_enrolled) {
        return PollDuty::Enrol;
    }
    let awaited = rules.polls_awaited_of(tenant);
    if awaited.is_empty() { PollDuty::None } else { PollDuty::Report(awaited.into()) }
}
