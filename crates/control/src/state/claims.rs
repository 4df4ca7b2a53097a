//! Claims: indexes of everything that must be unique over all clusters. They are derived from the clusters.

use std::net::IpAddr;
use std::sync::Arc;

use forewarn_lifecycle::MachineId;
use forewarn_lifecycle::paged::PagedMap;

use super::ClusterState;
use crate::command::MachineDetails;
use crate::resources::ResourceChange;
use crate::stream::ClusterId;

/// Addresses of machines and ids of resources, each with the cluster that has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claims {
    addresses: PagedMap<IpAddr, (ClusterId, MachineId)>,
    resources: PagedMap<Arc<str>, ClusterId>,
}

impl Claims {
    pub(super) fn machine_at(&self, address: &IpAddr) -> Option<(ClusterId, MachineId)> {
        self.addresses.get(&address.to_canonical()).copied()
    }

    /// The cluster of the resource with a key.
    pub(super) fn cluster_of(&self, key: &str) -> Option<ClusterId> {
        self.resources.get(key).copied()
    }

    /// Keys that begin with a prefix, each with its cluster.
    pub(super) fn resources_below<'a>(
        &'a self,
        prefix: &str,
    ) -> impl Iterator<Item = (&'a str, ClusterId)> + use<'a> {
        let prefix: Arc<str> = prefix.into();
        let from = self.resources.range(Arc::clone(&prefix)..);
        from.take_while(move |(key, _)| key.starts_with(&*prefix)).map(|(key, id)| (&**key, *id))
    }

    /// A machine has these addresses.
    pub(super) fn claim_addresses(&mut self, id: ClusterId, machine: MachineId, details: &MachineDetails) {
        let addresses = details.addresses.iter().map(IpAddr::to_canonical);
        self.addresses.extend(addresses.map(|address| (address, (id, machine))));
    }

    /// Releases the addresses of a machine, except those that another machine has taken over.
    pub(super) fn release_addresses(&mut self, id: ClusterId, machine: MachineId, former: &MachineDetails) {
        for address in former.addresses.iter().map(IpAddr::to_canonical) {
            if self.addresses.get(&address) == Some(&(id, machine)) {
                self.addresses.remove(&address);
            }
        }
    }

    /// Follows a change of the resources of a cluster.
    pub(super) fn follow(&mut self, id: ClusterId, change: &ResourceChange) {
        match change {
            ResourceChange::Put(resource) => {
                self.resources.insert(resource.key().into(), id);
            }
            ResourceChange::Removed(key) => self.release_resource(id, key),
            ResourceChange::Marked { .. } | ResourceChange::Opened(_) | ResourceChange::WorkEnded { .. } => {}
        }
    }

    fn release_resource(&mut self, id: ClusterId, key: &str) {
        if self.resources.get(key) == Some(&id) {
            self.resources.remove(key);
        }
    }

    /// Adds everything that a cluster has.
    pub(super) fn claim_all(&mut self, id: ClusterId, cluster: &ClusterState) {
        for (machine, details) in cluster.details.iter() {
            self.claim_addresses(id, machine, details);
        }
        self.resources.extend(cluster.resources.below("").map(|(key, _)| (key.into(), id)));
    }

    /// Releases everything that a cluster had.
    pub(super) fn release_all(&mut self, id: ClusterId, cluster: &ClusterState) {
        for (machine, details) in cluster.details.iter() {
            self.release_addresses(id, machine, details);
        }
        cluster.resources.below("").for_each(|(key, _)| self.release_resource(id, key));
    }
}
