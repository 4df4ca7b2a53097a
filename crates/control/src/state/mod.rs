//! The durable state of the control plane, and the one function that changes it.
//!
//! ```text
//!   Record ──▶ ControlState::apply ──▶ Effect
//!              live and in replay      run by the driver once the record is durable
//! ```
//!
//! The fields are private: outside of this module only [`ControlState::apply`] changes a state. Copies share what they have in
//! common, so that a copy is cheap.

mod apply;
mod cluster;
mod details;
mod effect;
mod renew;
mod rows;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{Action, MachineId, Seed};

use crate::record::Boot;
use crate::shared::{Catalogue, ClusterId};

pub use cluster::ClusterState;
pub use details::DetailsTable;
pub use effect::{Effect, FinishedWork, PlannedWork};
pub use renew::INCARNATION_STEP;
pub use rows::{RestoringState, StateRow};

/// The durable state: the state of each cluster, and the state that clusters share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlState {
    shared: Arc<Catalogue>,
    clusters: BTreeMap<ClusterId, Arc<ClusterState>>,
    boot: Option<Boot>,
    /// Index: the machine that has an address.
    addresses: PagedMap<IpAddr, (ClusterId, MachineId)>,
}

impl ControlState {
    /// The state of a new server: one empty cluster.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        let clusters = BTreeMap::from([(ClusterId::DEFAULT, Arc::new(ClusterState::new(seed)))]);
        Self { shared: Arc::new(Catalogue::new()), clusters, boot: None, addresses: PagedMap::default() }
    }

    /// The state that clusters share: names, tokens, webhooks, receipts, resources.
    #[must_use]
    pub fn shared(&self) -> &Catalogue {
        &self.shared
    }

    /// The state that clusters share, for a reader that keeps it.
    #[must_use]
    pub fn shared_arc(&self) -> Arc<Catalogue> {
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

    /// The boot of the computer that the steady clock last belonged to.
    #[must_use]
    pub fn boot(&self) -> Option<Boot> {
        self.boot
    }

    /// The machine that has an address.
    #[must_use]
    pub fn machine_at(&self, address: &IpAddr) -> Option<(ClusterId, MachineId)> {
        self.addresses.get(&address.to_canonical()).copied()
    }
}
