//! How work ended that is over: for those who waited for it.
//!
//! The rules forget what is over. This remembers the last of it, and is not kept over a restart.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_control::{Ending, FAILURES_MAX, FailureView, full_name};
use forewarn_lifecycle::{Change, Cluster, MachineId, MaintenanceId, Name, Report, Shape, TenantId};
use forewarn_store::Estate;

/// Work whose end is remembered.
const REMEMBERED_MAX: usize = 4_096;

/// How work ended that is over.
#[derive(Debug, Default)]
pub struct Endings {
    ended: BTreeMap<MaintenanceId, Ended>,
    /// Whose the work is that is not over.
    whose: BTreeMap<MaintenanceId, Vec<Name>>,
    /// Work that is not over, and has failed for some machine.
    failing: BTreeSet<MaintenanceId>,
}

/// How some work ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub how: Ending,
    /// The machines for which it has failed, and why: the first of them, each with whose it is.
    pub failures: Vec<(Name, FailureView)>,
    /// Whose it was, as far as that is remembered: tenants that may be gone, called as their scale set if they are of one.
    pub whose: Vec<Name>,
}

impl Endings {
    /// How that work ended, if it has, and if it is remembered.
    #[must_use]
    pub fn of(&self, work: MaintenanceId) -> Option<&Ended> {
        self.ended.get(&work)
    }

    /// Takes note of a change that has been applied.
    pub(super) fn follow(&mut self, estate: &Estate, change: &Change) {
        let cluster = &estate.cluster;
        let (work, how) = match change {
            Change::Planned(plan) => {
                let tenants = plan.parts.iter().filter_map(|part| called(cluster, part.tenant));
                self.whose.insert(plan.id, tenants.cloned().collect());
                return;
            }
            Change::Withdrawn { maintenance, .. } => (*maintenance, Ending::Withdrawn),
            Change::Started { maintenance, .. } => (*maintenance, Ending::Done),
            Change::Completed { maintenance, report: Report::Done, .. } => (*maintenance, Ending::Done),
            Change::Completed { maintenance, report: Report::Failed, .. } => {
                self.failing.insert(*maintenance);
                (*maintenance, Ending::Failed)
            }
            Change::SeedSet(_)
            | Change::HostAdmitted { .. }
            | Change::HostRemoved(_)
            | Change::HealthChanged { .. }
            | Change::TenantAdmitted { .. }
            | Change::PolicyChanged { .. }
            | Change::TenantRemoved(_)
            | Change::ScaleSetAdmitted { .. }
            | Change::ModelChanged { .. }
            | Change::UpgradePolicyChanged { .. }
            | Change::BatchUpgraded(_)
            | Change::RollingEnded(_)
            | Change::ScaleSetPolicyChanged { .. }
            | Change::ScaleSetRemoved(_)
            | Change::MachineAdmitted { .. }
            | Change::ProfileChanged { .. }
            | Change::MachineForgotten(_)
            | Change::MachineMoved { .. }
            | Change::RolloutPlanned { .. }
            | Change::RolloutWaits { .. }
            | Change::RolloutPaused { .. }
            | Change::RolloutResumed(_)
            | Change::RolloutChanged { .. }
            | Change::RolloutEnded { .. }
            | Change::Approved { .. }
            | Change::Waits { .. }
            | Change::NoticeExtended { .. }
            | Change::Enrolled(_)
            | Change::Heard { .. }
            | Change::Disabled(_)
            | Change::BrakeSet(_)
            | Change::SettingsChanged(_) => return,
        };
        if cluster.maintenance(work).is_none() {
            let failures = estate.failures_of(work);
            let failure = |(machine, reason): (MachineId, &str)| {
                let whose = called(cluster, cluster.machine(machine)?.tenant)?.clone();
                let (machine, reason) = (full_name(cluster, machine), reason.to_owned());
                Some((whose, FailureView { machine, reason }))
            };
            // Each tenant may read its own.
            let mut counts = BTreeMap::new();
            let is_within_limit = |(whose, _): &(Name, FailureView)| {
                let count = counts.entry(whose.clone()).or_insert(0);
                *count += 1;
                *count <= FAILURES_MAX
            };
            let failures: Vec<_> = failures.filter_map(failure).filter(is_within_limit).collect();
            // What failed before a restart is known by its reason.
            let has_failed = self.failing.remove(&work) || !failures.is_empty();
            let how = if has_failed { Ending::Failed } else { how };
            let whose = self.whose.remove(&work).unwrap_or_default();
            self.ended.insert(work, Ended { how, whose, failures });
            if self.ended.len() > REMEMBERED_MAX {
                self.ended.pop_first();
            }
        }
    }
}

/// What people call a tenant: a placement group as its scale set.
fn called(cluster: &Cluster, tenant: TenantId) -> Option<&Name> {
    let tenant = cluster.tenant(tenant)?;
    match tenant.shape {
        Shape::PlacementGroup(set) => cluster.scale_set(set).map(|set| &set.name),
        Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => Some(&tenant.name),
    }
}
