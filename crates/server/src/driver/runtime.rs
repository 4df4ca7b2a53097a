//! Per-cluster runtime state that is not journaled: rebuilt on start, or lost with the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forewarn_control::{Effect, RecentOutcomes};
use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::player::{Completion, Surroundings};
use forewarn_lifecycle::{MachineId, MaintenanceId, Now, PretendMachines, Report, Steady, TenantId};

use crate::published::Slot;
use crate::snapshot::{ClusterRuntimeView, ListedMachine};

/// The runtime state of one cluster.
#[derive(Default)]
pub(super) struct ClusterRuntime {
    pub(super) simulator: PretendMachines,
    /// Simulated machines whose next action fails.
    pub(super) jammed: BTreeSet<MachineId>,
    /// Impact tasks: an action is ordered once at a time.
    pub(super) impact_tasks: BTreeSet<(MaintenanceId, MachineId)>,
    /// Reasons why impact tasks repeat their orders.
    pub(super) delays: Arc<BTreeMap<(MaintenanceId, MachineId), String>>,
    pub(super) documents: BTreeMap<TenantId, Arc<Slot>>,
    pub(super) listed: PagedMap<MachineId, ListedMachine>,
    outcomes: RecentOutcomes,
    /// Number of decisions that have changed the cluster.
    pub(super) revision: u64,
}

impl ClusterRuntime {
    /// Takes note of an effect on the work of the cluster.
    pub(super) fn follow_work(&mut self, effect: &Effect) {
        self.outcomes.follow(effect);
    }

    /// The part of it that readers see.
    pub(super) fn view(&self) -> ClusterRuntimeView {
        ClusterRuntimeView {
            revision: self.revision,
            next_simulated: self.simulator.next(),
            outcomes: self.outcomes.clone(),
            delays: Arc::clone(&self.delays),
            listed: self.listed.clone(),
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
        Some(self.documents.get(&tenant).map_or(Steady::START, |slot| slot.heard()))
    }
}
