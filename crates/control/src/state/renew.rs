//! A state that continues elsewhere: after an import, or after an accepted loss of commits or restore of the engine.

use std::sync::Arc;

use forewarn_lifecycle::{BadRows, Brake, EventId, MaintenanceId, Part, Restoring, Row, Seed};

use super::{ClusterState, ControlState};
use crate::stream::ClusterId;

/// Step of every incarnation: larger than the number of changes that a tenant can have seen since any copy was made.
pub const INCARNATION_STEP: u64 = 1 << 20;

impl ControlState {
    /// The state as it continues: later incarnations, other event ids, the brake on, no boot.
    ///
    /// # Errors
    /// Fails if the state is inconsistent.
    pub fn renewed(self, seed: Seed) -> Result<Self, BadRows> {
        self.renewed_above(seed, 0)
    }

    /// The same, with incarnations that are also later than `seen`, one that VMs may have seen.
    ///
    /// # Errors
    /// Fails if the state is inconsistent.
    pub fn renewed_above(self, seed: Seed, seen: u64) -> Result<Self, BadRows> {
        let Self { mut shared, clusters } = self;
        Arc::make_mut(&mut shared).renew(seed);
        let renew = |(id, cluster): (ClusterId, Arc<ClusterState>)| {
            let renewed = Arc::unwrap_or_clone(cluster).renewed(seed.nth(id.0), seen)?;
            Ok((id, Arc::new(renewed)))
        };
        let clusters = clusters.into_iter().map(renew).collect::<Result<_, BadRows>>()?;
        Ok(Self { shared, clusters })
    }

    /// The state with new, empty audit logs: webhooks begin with their first entries, and get no more messages of
    /// removed clusters.
    #[must_use]
    pub fn with_new_audit_log(self) -> Self {
        let begun = |(id, mut cluster): (ClusterId, Arc<ClusterState>)| {
            let progress = cluster.webhooks.iter().map(|(number, it)| (*number, it.in_new_audit_log()));
            Arc::make_mut(&mut cluster).webhooks = progress.collect();
            (id, cluster)
        };
        let mut shared = self.shared;
        Arc::make_mut(&mut shared).forget_undelivered();
        Self { shared, clusters: self.clusters.into_iter().map(begun).collect() }
    }

    /// The highest incarnation of any tenant; 0 without tenants.
    #[must_use]
    pub fn highest_incarnation(&self) -> u64 {
        let tenants = self.clusters().flat_map(|(_, cluster)| cluster.rules().tenants());
        tenants.map(|(_, tenant)| tenant.incarnation).max().unwrap_or(0)
    }

    /// Every announcement that waits. In a renewed state each has a new id, which no VM has read.
    #[must_use]
    pub fn announced(&self) -> Vec<(ClusterId, MaintenanceId)> {
        let of_cluster = |(id, cluster): (ClusterId, &ClusterState)| {
            cluster.announced().into_iter().map(move |maintenance| (id, maintenance))
        };
        self.clusters().flat_map(of_cluster).collect()
    }
}

impl ClusterState {
    fn renewed(self, seed: Seed, seen: u64) -> Result<Self, BadRows> {
        let parts = self.rules.maintenances().flat_map(|maintenance| &maintenance.plan.parts);
        let visible = parts.filter(|part| part.announcement.is_some()).count() as u64;
        // The driver may have been called for work of the copy since: its actions keep their names.
        let former_seeds = self.rules.seeds_in_use();
        let mut restoring = Restoring::new();
        let mut next = 0;
        for mut row in self.rules.into_rows() {
            match &mut row {
                Row::Head(head) => {
                    (head.seed, head.brake) = (seed, Brake::On);
                    next = head.next.event;
                    head.next.event += visible;
                    restoring.add(row)?;
                    former_seeds.iter().try_for_each(|former| restoring.add(Row::FormerSeed(*former)))?;
                    continue;
                }
                Row::FormerSeed(_) => continue,
                Row::Maintenance(maintenance) => {
                    let mut renewed = |mut part: Part| {
                        if let Some(announcement) = &mut part.announcement {
                            Arc::make_mut(announcement).id = EventId::nth(&seed, next);
                            next += 1;
                        }
                        part
                    };
                    let parts = maintenance.plan.parts.iter().cloned();
                    maintenance.plan.parts = parts.map(&mut renewed).collect();
                }
                Row::Tenant(tenant) => {
                    tenant.incarnation = tenant.incarnation.max(seen).saturating_add(INCARNATION_STEP);
                    tenant.ended.clear();
                }
                Row::Host(_)
                | Row::ScaleSet(..)
                | Row::Rollout(..)
                | Row::EndedRollout(..)
                | Row::Machine(_)
                | Row::Windows(..)
                | Row::Capacity(..)
                | Row::MachineSize(..)
                | Row::InstanceSize(..)
                | Row::Presence(..) => {}
            }
            restoring.add(row)?;
        }
        Ok(Self { rules: restoring.finish()?, boot: None, position: None, ..self })
    }
}
