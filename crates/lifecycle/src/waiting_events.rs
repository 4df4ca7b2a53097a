//! Events that wait for the approval of their tenants, for monitoring. A reading costs the same in a large cluster as in
//! a small one.

use std::time::Duration;

use forewarn_types::{MaintenanceId, Now, TenantId};

use crate::cluster::Cluster;

impl Cluster {
    /// The tenants with an event of a maintenance that they have not approved.
    pub fn unapproved_tenants(&self, id: MaintenanceId) -> impl Iterator<Item = TenantId> {
        let all = (id, TenantId(0))..=(id, TenantId(u32::MAX));
        self.unapproved.range(all).map(|(_, tenant)| *tenant)
    }

    /// The number of visible events that wait for the approval of their tenants.
    #[must_use]
    pub fn unapproved_count(&self) -> usize {
        self.unapproved.len()
    }

    /// The age of the first announcement that waits for an approval, counted from the beginning of its usual notice. It
    /// is longer than that notice if the start of the work is late.
    #[must_use]
    pub fn unapproved_age(&self, now: Now) -> Option<Duration> {
        let plan = &self.maintenance(self.unapproved.first()?.0)?.plan;
        let notice = plan.cause.event_template()?.notice;
        Some(now.wall.plus(notice).since(plan.not_before))
    }
}
