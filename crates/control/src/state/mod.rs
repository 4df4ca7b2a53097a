//! The durable state of the control plane, and the one function that changes it.
//!
//! ```text
//!   Record ──▶ ControlState::apply ──▶ Effect
//!              live and in replay      run by the driver once the record is durable
//! ```
//!
//! The fields are private: outside of this module only [`ControlState::apply`] changes a state. Copies share what
//! they have in common, so that a copy is cheap.

mod apply;
mod claims;
mod cluster;
mod details;
mod effect;
mod renew;
mod rows;

use std::net::IpAddr;
use std::sync::Arc;

use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{Action, MachineId, Seed};

use crate::command::Site;
use crate::refusal::Refusal;
use crate::resources::{Body, Operation, Resource, key_of};
use crate::shared::SharedState;
use crate::stream::ClusterId;
use claims::Claims;

pub use cluster::ClusterState;
pub use details::DetailsTable;
pub use effect::{Effect, FinishedWork, PlannedWork};
pub use renew::INCARNATION_STEP;
pub use rows::{RestoringState, StateRow};

/// The durable state: the state that clusters share, and the state of each cluster. A change of it belongs to one of
/// these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlState {
    shared: Arc<SharedState>,
    clusters: PagedMap<ClusterId, Arc<ClusterState>>,
    /// Index: the clusters that have addresses and ids of resources.
    claims: Claims,
}

impl ControlState {
    /// The state of a new server: one empty cluster.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        let mut clusters = PagedMap::default();
        clusters.insert(ClusterId::DEFAULT, Arc::new(ClusterState::new(seed, Site::default())));
        Self { shared: Arc::new(SharedState::new()), clusters, claims: Claims::default() }
    }

    /// The state that clusters share: names, tokens, webhooks.
    #[must_use]
    pub fn shared(&self) -> &SharedState {
        &self.shared
    }

    /// The state that clusters share, for a reader that keeps it.
    #[must_use]
    pub fn shared_arc(&self) -> Arc<SharedState> {
        Arc::clone(&self.shared)
    }

    /// The state of a cluster.
    #[must_use]
    pub fn cluster(&self, id: ClusterId) -> Option<&ClusterState> {
        self.clusters.get(&id).map(|cluster| &**cluster)
    }

    /// Every cluster, by number.
    pub fn clusters(&self) -> impl Iterator<Item = (ClusterId, &ClusterState)> {
        self.clusters.iter().map(|(id, cluster)| (*id, &**cluster))
    }

    /// Actions of every cluster that have no result yet.
    pub fn unfinished(&self) -> impl Iterator<Item = (ClusterId, Action)> {
        self.clusters().flat_map(|(id, one)| one.rules().unfinished().map(move |action| (id, action)))
    }

    /// The machine that has an address.
    #[must_use]
    pub fn machine_at(&self, address: &IpAddr) -> Option<(ClusterId, MachineId)> {
        self.claims.machine_at(address)
    }

    /// The resource with a key, in any cluster. The key is the id in lower case.
    #[must_use]
    pub fn resource(&self, key: &str) -> Option<&Resource> {
        self.cluster(self.claims.cluster_of(key)?)?.resources.get(key)
    }

    /// Resources whose key begins with a prefix, in all clusters, by key.
    pub fn resources_below<'a>(
        &'a self,
        prefix: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Resource)> + use<'a> {
        let claimed = self.claims.resources_below(prefix);
        claimed.filter_map(|(key, id)| Some((key, self.cluster(id)?.resources.get(key)?)))
    }

    /// The operation with a name, in any cluster, if it is open or ended not long ago.
    #[must_use]
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.clusters.values().find_map(|cluster| cluster.resources.operation(name))
    }

    /// Returns true while an operation about a resource is open.
    #[must_use]
    pub fn is_operated_on(&self, resource: &Resource) -> bool {
        self.cluster(resource.cluster)
            .is_some_and(|cluster| cluster.resources.is_operated_on(&resource.key()))
    }

    /// The clusters that have resources which are marked for removal.
    #[must_use]
    pub fn clusters_to_sweep(&self) -> Vec<ClusterId> {
        let clusters = self.clusters();
        clusters.filter(|(_, one)| one.resources.leaving().next().is_some()).map(|(id, _)| id).collect()
    }

    /// Checks that resources can be written in a cluster: ids, bodies and notes.
    ///
    /// # Errors
    /// Fails if they exceed a limit, or an id is that of a resource in another cluster.
    pub fn check_room<'a>(
        &self,
        id: ClusterId,
        put: impl Iterator<Item = (&'a String, &'a Body, &'a Body)> + Clone,
    ) -> Result<(), Refusal> {
        let is_taken = |key: &String| self.claims.cluster_of(&key_of(key)).is_some_and(|owner| owner != id);
        let mut ids = put.clone().map(|(key, _, _)| key);
        if let Some(taken) = ids.find(|key| is_taken(key)) {
            return Err(Refusal::IdTaken(taken.clone()));
        }
        self.cluster(id).map_or(Ok(()), |cluster| cluster.resources.check_room(put))
    }
}
