//! Applying records: the only code that changes a [`ControlState`].

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_lifecycle::{
    Change, Cluster, Effect as RulesEffect, MachineId, MaintenanceId, Name, Now, Report, Shape, TenantId,
};

use super::effect::{Effect, FinishedWork, PlannedWork};
use super::{ClusterState, ControlState};
use crate::command::lookup::full_name;
use crate::record::{ClusterEntry, Entry, Record};
use crate::shared;
use crate::stream::ClusterId;
use crate::view::{Ending, FAILURES_MAX, FailureView};

impl ControlState {
    /// Applies a record. It cannot fail: a record about something that was removed changes nothing.
    ///
    /// Replay ignores the effects; [`Cluster::unfinished`] lists actions that are still owed.
    pub fn apply(&mut self, record: &Record) -> Vec<Effect> {
        let mut effects = Vec::new();
        match &record.entry {
            Entry::Shared(change) => self.apply_shared(record.now, change, &mut effects),
            Entry::Cluster(id, change) => self.apply_to_cluster(record.now, *id, change, &mut effects),
        }
        effects
    }

    fn apply_to_cluster(
        &mut self,
        now: Now,
        id: ClusterId,
        change: &ClusterEntry,
        effects: &mut Vec<Effect>,
    ) {
        let Some(state) = self.clusters.get_mut(&id).map(Arc::make_mut) else { return };
        match change {
            ClusterEntry::Rules(change) => self.apply_change(now, id, change, effects),
            ClusterEntry::Described { machine, details } => {
                let former = state.details.insert(*machine, details.clone());
                self.claims.release_addresses(id, *machine, &former.unwrap_or_default());
                self.claims.claim_addresses(id, *machine, details);
                effects.push(Effect::MachineChanged(id, *machine));
            }
            ClusterEntry::Site(site) => {
                state.site = site.clone();
                effects.push(Effect::ClusterChanged(id));
            }
            ClusterEntry::Unread(_) => {}
            ClusterEntry::Failed { maintenance, machine, reason } => {
                state.failures.insert((*maintenance, *machine), reason.clone());
            }
            ClusterEntry::ReceiptKept(new) => state.receipts.keep(now.steady, new),
            ClusterEntry::Resource(change) => {
                state.resources.apply(now, change);
                self.claims.follow(id, change);
            }
        }
    }

    fn cluster_mut(&mut self, id: ClusterId) -> Option<&mut ClusterState> {
        self.clusters.get_mut(&id).map(Arc::make_mut)
    }

    fn apply_change(&mut self, now: Now, id: ClusterId, change: &Change, effects: &mut Vec<Effect>) {
        let Some(state) = self.cluster_mut(id) else { return };
        for effect in state.rules.evolve(now, change) {
            effects.push(match effect {
                RulesEffect::Publish(tenant) => Effect::Publish(id, tenant),
                RulesEffect::Unpublish(tenant) => Effect::Unpublish(id, tenant),
                RulesEffect::Perform(action) => Effect::Perform(id, action),
            });
        }
        effects.extend(state.follow_work(id, change));
        if let Change::MachineAdmitted { machine, .. } = change {
            effects.push(Effect::MachineChanged(id, *machine));
        }
        // A machine is removed with its last action, or when it is forgotten.
        if let Change::Completed { machine, .. } | Change::MachineForgotten(machine) = change
            && state.rules.machine(*machine).is_none()
        {
            let gone = state.details.remove(machine);
            effects.push(Effect::MachineGone(id, *machine));
            self.claims.release_addresses(id, *machine, &gone.unwrap_or_default());
        }
    }

    /// Clusters appear and disappear with their names.
    fn apply_shared(&mut self, now: Now, change: &shared::Change, effects: &mut Vec<Effect>) {
        use shared::Change as Step;
        Arc::make_mut(&mut self.shared).evolve(now, change);
        match change {
            Step::ClusterCreated { cluster, seed, site, .. } => {
                self.clusters.insert(*cluster, Arc::new(ClusterState::new(*seed, site.clone())));
                effects.push(Effect::ClusterCreated(*cluster));
            }
            Step::ClusterRemoved(cluster) => {
                if let Some(gone) = self.clusters.remove(cluster) {
                    self.claims.release_all(*cluster, &gone);
                }
                effects.push(Effect::ClusterGone(*cluster));
            }
            Step::ClusterRenamed { cluster, .. } => effects.push(Effect::ClusterChanged(*cluster)),
            Step::TokenIssued(_)
            | Step::TokenRevoked(_)
            | Step::Webhook(_)
            | Step::ReceiptKept(_)
            | Step::Clock
            | Step::Booted(_) => {}
        }
    }
}

impl ClusterState {
    /// Effects of a change, which the rules have applied, on planned work. Forgets the failures of work that is
    /// finished.
    fn follow_work(&mut self, id: ClusterId, change: &Change) -> Vec<Effect> {
        let mut effects = Vec::new();
        let (work, ending) = if let Change::Planned(plan) = change {
            let tenants = plan.parts.iter().filter_map(|part| owner_name(&self.rules, part.tenant));
            let tenants = tenants.cloned().collect();
            effects.push(Effect::WorkPlanned(PlannedWork { cluster: id, work: plan.id, tenants }));
            if plan.is_announced() {
                effects.push(Effect::Announced(id, plan.id));
            }
            return effects;
        } else if let Change::Withdrawn { maintenance, .. } = change {
            (*maintenance, Ending::Withdrawn)
        } else if let Change::Started { maintenance, .. } = change {
            (*maintenance, Ending::Done)
        } else if let Change::Completed { maintenance, report, .. } = change {
            let ending = match report {
                Report::Done => Ending::Done,
                Report::Failed => Ending::Failed,
            };
            (*maintenance, ending)
        } else {
            return effects;
        };
        if ending == Ending::Failed {
            effects.push(Effect::WorkFailed(id, work));
        }
        if self.rules.maintenance(work).is_none() {
            let failures = self.first_failures(work);
            effects.push(Effect::WorkFinished(FinishedWork { cluster: id, work, ending, failures }));
            self.forget_failures(work);
        }
        effects
    }

    /// The first failures of some work, of each tenant: it may read its own.
    fn first_failures(&self, work: MaintenanceId) -> Vec<(Name, FailureView)> {
        let rules = &self.rules;
        let mut counts = BTreeMap::new();
        let failure = |(machine, reason): (MachineId, &str)| {
            let owner = owner_name(rules, rules.machine(machine)?.tenant)?.clone();
            let (machine, reason) = (full_name(rules, machine), reason.to_owned());
            Some((owner, FailureView { machine, reason }))
        };
        let is_within_limit = |(owner, _): &(Name, FailureView)| {
            let count = counts.entry(owner.clone()).or_insert(0);
            *count += 1;
            *count <= FAILURES_MAX
        };
        self.failures_of(work).filter_map(failure).filter(is_within_limit).collect()
    }

    fn forget_failures(&mut self, work: MaintenanceId) {
        let machines: Vec<_> = self.failures_of(work).map(|(machine, _)| machine).collect();
        machines.into_iter().for_each(|machine| drop(self.failures.remove(&(work, machine))));
    }
}

/// The name of a tenant for people: for a placement group, the name of its scale set.
fn owner_name(rules: &Cluster, tenant: TenantId) -> Option<&Name> {
    let tenant = rules.tenant(tenant)?;
    match tenant.shape {
        Shape::PlacementGroup(set) => rules.scale_set(set).map(|set| &set.name),
        Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => Some(&tenant.name),
    }
}
