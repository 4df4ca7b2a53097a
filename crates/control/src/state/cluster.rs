//! The durable state of one cluster.

use std::collections::BTreeMap;
use std::net::IpAddr;

use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{Cluster, HostId, MachineId, MaintenanceId, Seed, Target};

use super::details::DetailsTable;
use super::member_index::MemberIndex;
use super::reminders::HostReminders;
use crate::command::{MachineDetails, Site};
use crate::receipts::Receipts;
use crate::request::IdempotencyKey;
use crate::resource_id::GroupId;
use crate::resources::Resources;
use crate::shared::{Boot, Progress, SharedState, UndeliveredMessages};
use crate::stream::{ClusterId, StreamPosition};

/// The durable state of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterState {
    pub(super) rules: Cluster,
    pub(super) site: Site,
    pub(super) details: DetailsTable,
    pub(super) failures: PagedMap<(MaintenanceId, Target), String>,
    /// Messages about hosts that are ready for the work of a person.
    pub(super) reminders: PagedMap<(MaintenanceId, HostId), HostReminders>,
    pub(super) receipts: Receipts,
    pub(super) resources: Resources,
    /// Progress of deliveries to webhooks, by number.
    pub(super) webhooks: PagedMap<u32, Progress>,
    pub(super) boot: Option<Boot>,
    /// The place in the log of a realm. None outside of one.
    pub(super) position: Option<StreamPosition>,
    pub(super) closed: Option<ClosedBy>,
    /// Index: the machines that have addresses.
    pub(super) addresses: PagedMap<IpAddr, MachineId>,
    /// Index: the members of resource groups that clients have chosen.
    pub(super) members: MemberIndex,
}

/// The request that has closed a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedBy {
    /// The caller.
    pub by: String,
    /// The key of its request.
    pub once: Option<IdempotencyKey>,
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
            reminders: PagedMap::default(),
            receipts: Receipts::default(),
            resources: Resources::default(),
            webhooks: PagedMap::default(),
            boot: None,
            position: None,
            closed: None,
            addresses: PagedMap::default(),
            members: MemberIndex::default(),
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

    /// The machine that has an address.
    #[must_use]
    pub fn machine_at(&self, address: &IpAddr) -> Option<MachineId> {
        self.addresses.get(&address.to_canonical()).copied()
    }

    /// True if a machine has an address.
    #[must_use]
    pub fn has_addresses(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// The progress of deliveries to a webhook. None if the cluster has had no event since the webhook was added, or is
    /// not in its scope.
    #[must_use]
    pub fn webhook_progress(&self, webhook: u32) -> Option<Progress> {
        self.webhooks.get(&webhook).copied()
    }

    /// The progress of deliveries to every webhook that has some, by number.
    pub fn webhooks(&self) -> impl Iterator<Item = (u32, Progress)> {
        self.webhooks.iter().map(|(number, progress)| (*number, *progress))
    }

    /// Messages that webhooks may not have got when the cluster is removed.
    #[must_use]
    pub fn undelivered(&self) -> UndeliveredMessages {
        UndeliveredMessages { site: self.site.clone(), progress: self.webhooks().collect() }
    }

    /// The boot of the computer that the steady clock of the cluster last belonged to.
    #[must_use]
    pub fn boot(&self) -> Option<Boot> {
        self.boot
    }

    /// The place of the state in the log of a realm. None outside of one.
    #[must_use]
    pub fn position(&self) -> Option<StreamPosition> {
        self.position
    }

    /// Number of the last batch of the log that the state contains; 0 without one.
    #[must_use]
    pub fn log_number(&self) -> u64 {
        self.position.map_or(0, |position| position.number)
    }

    /// The request that has closed the cluster, if it is closed.
    #[must_use]
    pub fn closed(&self) -> Option<&ClosedBy> {
        self.closed.as_ref()
    }

    /// Returns true if the cluster has neither hosts nor tenants.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.hosts().next().is_none() && self.rules.tenants().next().is_none()
    }

    /// Returns true if the cluster uses a resource group: as that of its site, or for resources. `key` is the id of
    /// the group in lower case.
    pub(crate) fn uses_group(&self, key: &str) -> bool {
        GroupId::of_site(&self.site).key() == key
            || self.resources.get(key).is_some()
            || self.resources.below(&format!("{key}/")).next().is_some()
    }

    /// The reason why some work, which is not finished, failed for a machine.
    #[must_use]
    pub fn failure(&self, work: MaintenanceId, machine: MachineId) -> Option<&str> {
        let of = |target| self.failures.get(&(work, target)).map(String::as_str);
        of(Target::Machine(machine)).or_else(|| of(Target::Returning(machine)))
    }

    /// The messages about a host that is ready for work. None if there was none yet.
    #[must_use]
    pub fn reminders(&self, work: MaintenanceId, host: HostId) -> Option<HostReminders> {
        self.reminders.get(&(work, host)).copied()
    }

    /// Every announcement that waits.
    #[must_use]
    pub fn announced(&self) -> Vec<MaintenanceId> {
        let waiting = self.rules.maintenances().filter(|maintenance| maintenance.wait().is_some());
        let announced = waiting.filter(|maintenance| maintenance.plan.is_announced());
        announced.map(|maintenance| maintenance.plan.id).collect()
    }

    /// The reason of the last step on a host that failed, until the host is cleared.
    #[must_use]
    pub fn step_failure(&self, host: HostId) -> Option<&str> {
        let of_host = self.failures.iter().filter(|((_, target), _)| *target == Target::Host(host));
        of_host.map(|(_, reason)| reason.as_str()).last()
    }

    /// The failures of some work that is not finished: machines and hosts, and reasons.
    pub fn failures_of(&self, work: MaintenanceId) -> impl Iterator<Item = (Target, &str)> {
        let all = (work, Target::FIRST)..=(work, Target::LAST);
        self.failures.range(all).map(|((_, target), reason)| (*target, reason.as_str()))
    }
}

impl SharedState {
    /// The state that a cluster began with: its state if its stream has no record. None if the cluster does not
    /// exist, or was created by an older version or imported: its stream has a stored state.
    #[must_use]
    pub fn initial_cluster(&self, id: ClusterId) -> Option<ClusterState> {
        self.origins.get(&id).map(|origin| ClusterState::new(origin.0, origin.1.clone()))
    }
}
