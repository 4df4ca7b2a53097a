//! The durable state of the control plane, and the one function that changes it.
//!
//! ```text
//!   Change of the shared state ──▶ SharedState::apply  ──▶ Effect
//!   Entry of a cluster         ──▶ ClusterState::apply ──▶ Effect
//!                                  live and in replay      run by the driver once the record is durable
//! ```
//!
//! The fields are private: outside of this module only `apply` changes a state. Copies share what they have in
//! common, so that a copy is cheap. A [`ControlState`] is all of these states at one moment, for readers.

mod apply;
mod claims;
mod cluster;
mod details;
mod group_members;
mod member_index;
mod reminders;
mod renew;
mod rows;

use std::iter::Peekable;
use std::sync::Arc;

use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{Action, Seed};

use crate::resource_id::GroupId;
use crate::resources::{Operation, Resource};
use crate::shared::SharedState;
use crate::stream::ClusterId;

pub(crate) use claims::claim_of_resource;
pub use claims::{claims_needed, missing_claims, unused_claims};
pub use cluster::{ClosedBy, ClusterState};
pub use details::DetailsTable;
pub use reminders::HostReminders;
pub use renew::INCARNATION_STEP;
pub use rows::{RestoringCluster, RestoringState, StateRow};

/// The durable state: the state that clusters share, and the state of each cluster. A change of it belongs to one of
/// these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlState {
    shared: Arc<SharedState>,
    clusters: PagedMap<ClusterId, Arc<ClusterState>>,
}

impl ControlState {
    /// The state of a new server: one empty cluster.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        let shared = SharedState::new(seed);
        let initial = shared.initial_cluster(ClusterId::DEFAULT);
        let clusters = initial.map(|initial| (ClusterId::DEFAULT, Arc::new(initial)));
        Self::from_parts(Arc::new(shared), clusters)
    }

    /// The state that consists of these states.
    pub fn from_parts(
        shared: Arc<SharedState>,
        clusters: impl IntoIterator<Item = (ClusterId, Arc<ClusterState>)>,
    ) -> Self {
        Self { shared, clusters: clusters.into_iter().collect() }
    }

    /// The same state with another state that clusters share.
    #[must_use]
    pub fn with_shared(&self, shared: Arc<SharedState>) -> Self {
        Self { shared, clusters: self.clusters.clone() }
    }

    /// The same state with another state of a cluster, which may be new.
    #[must_use]
    pub fn with_cluster(&self, id: ClusterId, cluster: Arc<ClusterState>) -> Self {
        let mut clusters = self.clusters.clone();
        clusters.insert(id, cluster);
        Self { shared: Arc::clone(&self.shared), clusters }
    }

    /// The same state without a cluster.
    #[must_use]
    pub fn without_cluster(&self, id: ClusterId) -> Self {
        let mut clusters = self.clusters.clone();
        clusters.remove(&id);
        Self { shared: Arc::clone(&self.shared), clusters }
    }

    /// The state of a cluster, for a reader that keeps it.
    #[must_use]
    pub fn cluster_arc(&self, id: ClusterId) -> Option<Arc<ClusterState>> {
        self.clusters.get(&id).map(Arc::clone)
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

    /// The resource with a key: in the cluster that has its group, or else in any. The key is the id in lower case.
    #[must_use]
    pub fn resource(&self, key: &str) -> Option<&Resource> {
        let claim = GroupId::containing(key).and_then(|group| self.shared.claim(&group.key()));
        let claimed = claim.and_then(|claim| self.cluster(claim.cluster)?.resources.get(key));
        claimed.or_else(|| self.clusters.values().find_map(|cluster| cluster.resources.get(key)))
    }

    /// Resources whose key begins with a prefix, in all clusters, by key.
    pub fn resources_below<'a>(
        &'a self,
        prefix: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Resource)> + use<'a> {
        self.resources_below_from(prefix, "")
    }

    /// Resources whose key begins with a prefix, from a key on, in all clusters, by key.
    pub fn resources_below_from<'a>(
        &'a self,
        prefix: &str,
        from: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Resource)> + use<'a> {
        let below = |cluster: &'a Arc<ClusterState>| {
            let mut below = cluster.resources.below_from(prefix, from).peekable();
            below.peek().is_some().then_some(below)
        };
        let mut clusters: Vec<_> = self.clusters.values().filter_map(below).collect();
        std::iter::from_fn(move || next_by_key(&mut clusters))
    }

    /// Resources directly below a prefix, from a key on, in all clusters, by key. Those inside of others cost nothing.
    pub fn resources_directly_below<'a>(
        &'a self,
        prefix: &str,
        from: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Resource)> + use<'a> {
        let lists = self.clusters.values().map(|cluster| cluster.resources.directly_below(prefix, from));
        let mut lists: Vec<_> = lists.map(Iterator::peekable).collect();
        std::iter::from_fn(move || next_by_key(&mut lists))
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
}

/// The next of several lists that are ordered by key.
fn next_by_key<'a>(
    lists: &mut [Peekable<impl Iterator<Item = (&'a str, &'a Resource)>>],
) -> Option<(&'a str, &'a Resource)> {
    let heads = lists.iter_mut().enumerate().filter_map(|(place, list)| Some((list.peek()?.0, place)));
    let (_, first) = heads.min()?;
    lists[first].next()
}
