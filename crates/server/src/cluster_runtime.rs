//! Per-cluster runtime state that is not journaled: rebuilt on start, or lost with the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forewarn_control::{Effect, RecentOutcomes};
use forewarn_lifecycle::player::{Completion, Surroundings};
use forewarn_lifecycle::{MachineId, MaintenanceId, Now, PretendMachines, Report, Steady, TenantId};
use forewarn_metadata::Slot;

use crate::publication::PublishedCluster;
use crate::snapshot::ClusterRuntimeView;

/// The runtime state of one cluster.
#[derive(Default)]
pub(crate) struct ClusterRuntime {
    pub(crate) simulator: PretendMachines,
    /// Simulated machines whose next action fails.
    pub(crate) jammed: BTreeSet<MachineId>,
    /// Impact tasks: an action is ordered once at a time.
    pub(crate) impact_tasks: BTreeSet<(MaintenanceId, MachineId)>,
    /// Reasons why impact tasks repeat their orders.
    delays: Arc<BTreeMap<(MaintenanceId, MachineId), String>>,
    pub(crate) published: PublishedCluster,
    outcomes: RecentOutcomes,
    /// Number of decisions that have changed the cluster.
    pub(crate) revision: u64,
}

impl ClusterRuntime {
    /// Takes note of an effect on the work of the cluster.
    pub(crate) fn follow_work(&mut self, effect: &Effect) {
        self.outcomes.follow(effect);
    }

    /// An impact task has to repeat its order.
    pub(crate) fn delay_impact(&mut self, work: MaintenanceId, machine: MachineId, reason: String) {
        Arc::make_mut(&mut self.delays).insert((work, machine), reason);
    }

    /// An impact task has ended. Returns true if readers saw that it was delayed.
    pub(crate) fn end_impact(&mut self, work: MaintenanceId, machine: MachineId) -> bool {
        self.impact_tasks.remove(&(work, machine));
        let was_delayed = self.delays.contains_key(&(work, machine));
        if was_delayed {
            Arc::make_mut(&mut self.delays).remove(&(work, machine));
        }
        was_delayed
    }

    /// The part of it that readers see.
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

impl Surroundings for ClusterRuntime {
    fn take_completion(&mut self, now: Now) -> Option<Completion> {
        let (maintenance, machine) = self.simulator.take_done(now.steady)?;
        let report = if self.jammed.remove(&machine) { Report::Failed } else { Report::Done };
        Some(Completion { maintenance, machine, report })
    }

    fn next_completion(&self) -> Option<Steady> {
        self.simulator.next()
    }

    fn last_heard(&self, tenant: TenantId, _: Now) -> Option<Steady> {
        Some(self.published.document(tenant).map_or(Steady::START, Slot::heard))
    }
}
