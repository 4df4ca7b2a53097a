//! How work ended that is over: for those who waited for it.
//!
//! The rules forget what is over. This remembers the last of it, and is not kept over a restart.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_lifecycle::{Change, Cluster, MaintenanceId, Report};
use forewarn_wire::operator::Ending;

/// Work whose end is remembered.
const REMEMBERED_MAX: usize = 4_096;

/// How work ended that is over.
#[derive(Debug, Default)]
pub struct Endings {
    ended: BTreeMap<MaintenanceId, Ending>,
    /// Work that is not over, and has failed for some machine.
    failing: BTreeSet<MaintenanceId>,
}

impl Endings {
    /// How that work ended, if it has, and if it is remembered.
    #[must_use]
    pub fn of(&self, work: MaintenanceId) -> Option<Ending> {
        self.ended.get(&work).copied()
    }

    /// Takes note of a change that has been applied.
    pub(super) fn follow(&mut self, cluster: &Cluster, change: &Change) {
        let (work, how) = match change {
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
            | Change::ScaleSetPolicyChanged { .. }
            | Change::ScaleSetRemoved(_)
            | Change::MachineAdmitted { .. }
            | Change::ProfileChanged { .. }
            | Change::RolloutPlanned { .. }
            | Change::RolloutWaits { .. }
            | Change::RolloutPaused { .. }
            | Change::RolloutResumed(_)
            | Change::RolloutChanged { .. }
            | Change::RolloutEnded { .. }
            | Change::Planned(_)
            | Change::Approved { .. }
            | Change::Waits { .. }
            | Change::Enrolled(_)
            | Change::Heard { .. }
            | Change::Disabled(_)
            | Change::BrakeSet(_)
            | Change::SettingsChanged(_) => return,
        };
        if cluster.maintenance(work).is_none() {
            let how = if self.failing.remove(&work) { Ending::Failed } else { how };
            self.ended.insert(work, how);
            if self.ended.len() > REMEMBERED_MAX {
                self.ended.pop_first();
            }
        }
    }
}
