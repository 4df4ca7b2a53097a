//! The durable state of one cluster.

use std::collections::BTreeMap;

use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{Cluster, MachineId, MaintenanceId, Seed};

use super::details::DetailsTable;
use crate::command::{MachineDetails, Site};
use crate::receipts::Receipts;
use crate::resources::Resources;

/// The durable state of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterState {
    pub(super) rules: Cluster,
    pub(super) site: Site,
    pub(super) details: DetailsTable,
    pub(super) failures: PagedMap<(MaintenanceId, MachineId), String>,
    pub(super) receipts: Receipts,
    pub(super) resources: Resources,
}

/// The details of a machine that has none.
static NO_DETAILS: MachineDetails =
    MachineDetails { addresses: Vec::new(), tags: BTreeMap::new(), home: None };

impl ClusterState {
    #[must_use]
    pub fn new(seed: Seed, site: Site) -> Self {
        Self {
            rules: Cluster::new(seed),
            site,
            details: DetailsTable::default(),
            failures: PagedMap::default(),
            receipts: Receipts::default(),
            resources: Resources::default(),
        }
    }

    /// The state of the rules.
    #[must_use]
    pub fn rules(&self) -> &Cluster {
        &self.rules
    }

    /// The location and resource group of the cluster.
    #[must_use]
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// The details of a machine.
    #[must_use]
    pub fn details_of(&self, machine: MachineId) -> &MachineDetails {
        self.details.get(&machine).unwrap_or(&NO_DETAILS)
    }

    /// The details of every machine that has some.
    #[must_use]
    pub fn details(&self) -> &DetailsTable {
        &self.details
    }

    /// The receipts of requests to the cluster.
    #[must_use]
    pub fn receipts(&self) -> &Receipts {
        &self.receipts
    }

    /// The resources and operations of the cluster.
    #[must_use]
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The reason why some work, which is not finished, failed for a machine.
    #[must_use]
    pub fn failure(&self, work: MaintenanceId, machine: MachineId) -> Option<&str> {
        self.failures.get(&(work, machine)).map(String::as_str)
    }

    /// The failures of some work that is not finished: machines and reasons.
    pub fn failures_of(&self, work: MaintenanceId) -> impl Iterator<Item = (MachineId, &str)> {
        let all = self.failures.range((work, MachineId(0))..=(work, MachineId(u32::MAX)));
        all.map(|((_, machine), reason)| (*machine, reason.as_str()))
    }
}
