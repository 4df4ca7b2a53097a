//! Per-cluster runtime state that is not journaled: rebuilt on start, or lost with the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forewarn_control::{Effect, RecentOutcomes};
use forewarn_lifecycle::simulator::{Completion, Environment};
use forewarn_lifecycle::{MachineId, MaintenanceId, Now, Report, SimulatedMachines, Steady, TenantId};
use forewarn_metadata::DocumentSlot;

use crate::publication::PublishedCluster;
use crate::snapshot::ClusterRuntimeView;

/// The runtime state of one cluster.
#[derive(Default)]
pub(crate) struct ClusterRuntime {
    pub(crate) simulator: SimulatedMachines,
    /// Simulated machines whose next action fails.
    pub(crate) jammed: BTreeSet<MachineId>,
    /// Running impact tasks: each action has at most one.
    pub(crate) impact_tasks: BTreeSet<(MaintenanceId, MachineId)>,
    /// Reasons why impact tasks retry.
    delays: Arc<BTreeMap<(MaintenanceId, MachineId), String>>,
    pub(crate) published: PublishedCluster,
    outcomes: RecentOutcomes,
    /// Number of decisions that have changed the cluster.
    pub(crate) revision: u64,
}

impl ClusterRuntime {
    /// Records an effect on the work of the cluster.
    pub(crate) fn follow_work(&mut self, effect: &Effect) {
        self.outcomes.follow(effect);
    }

    /// Records that an impact task retries.
    pub(crate) fn delay_impact(&mut self, work: MaintenanceId, machine: MachineId, reason: String) {
        Arc::make_mut(&mut self.delays).insert((work, machine), reason);
    }

    /// Records the end of an impact task. Returns true if readers saw that it was delayed.
    pub(crate) fn end_impact(&mut self, work: MaintenanceId, machine: MachineId) -> bool {
        self.impact_tasks.remove(&(work, machine));
        let was_delayed = self.delays.contains_key(&(work, machine));
        if was_delayed {
            Arc::make_mut(&mut self.delays).remove(&(work, machine));
        }
        was_delayed
    }

    /// The part that readers see.
    pub(crate) fn view(&self) -> ClusterRuntimeView {
        ClusterRuntimeView {
            revision: self.revision,
            next_simulated: self.simulator.next(),
            outcomes: self.outcomes.clone(),
            delays: Arc::clone(&self.delays),
            listed: self.published.listed().clone(),
        }
    }
}

impl Environment for ClusterRuntime {
    fn take_completion(&mut self, now: Now) -> Option<Completion> {
        let (maintenance, machine) = self.simulator.take_finished(now.steady)?;
        let report = if self.jammed.remove(&machine) { Report::Failed } else { Report::Done };
        Some(Completion { maintenance, machine, report })
    }

    fn next_completion(&self) -> Option<Steady> {
        self.simulator.next()
    }

    fn last_heard(&self, tenant: TenantId, _: Now) -> Option<Steady> {
        Some(self.published.document(tenant).map_or(Steady::START, DocumentSlot::last_request))
    }
}
