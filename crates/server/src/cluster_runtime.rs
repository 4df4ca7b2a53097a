//! Per-cluster runtime state that is not journaled: rebuilt on start, or lost with the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::{ClusterId, Effect, RecentOutcomes};
use forewarn_lifecycle::limits::SILENCE_MAX;
use forewarn_lifecycle::simulator::{Completion, Environment};
use forewarn_lifecycle::{MachineId, MaintenanceId, Now, SimulatedMachines, Steady, Target, TenantId};
use forewarn_metadata::Directory;
use tokio::sync::Notify;

use crate::message::ImpactEnd;
use crate::peer_polls::PeerPolls;
use crate::publication::ClusterPublication;
use crate::role::{RealmScope, Role};
use crate::snapshot::ClusterRuntimeView;
use crate::work_times::WorkTimes;

/// The runtime state of one cluster.
pub(crate) struct ClusterRuntime {
    pub(crate) simulator: SimulatedMachines,
    /// Simulated machines whose next action fails.
    pub(crate) jammed: BTreeSet<MachineId>,
    /// Running impact tasks, and the way to wake them: each action has at most one.
    pub(crate) impact_tasks: BTreeMap<(MaintenanceId, Target), Arc<Notify>>,
    /// Reasons why impact tasks retry.
    delays: Arc<BTreeMap<(MaintenanceId, Target), String>>,
    pub(crate) publication: ClusterPublication,
    outcomes: RecentOutcomes,
    pub(crate) times: WorkTimes,
    /// Number of decisions that have changed the cluster.
    pub(crate) revision: u64,
    pub(crate) scope: RealmScope,
    /// Polls that other servers of the realm have answered.
    pub(crate) peer_polls: Option<Arc<PeerPolls>>,
    id: ClusterId,
}

/// Time until a tenant that seems silent is examined again, while other servers have not said when it polled them.
const SILENCE_RETRY: Duration = Duration::from_mins(1);

impl ClusterRuntime {
    /// The runtime state of a cluster whose driver starts now.
    pub(crate) fn new(id: ClusterId, directory: Arc<Directory>, now: Steady) -> Self {
        Self {
            simulator: SimulatedMachines::default(),
            jammed: BTreeSet::new(),
            impact_tasks: BTreeMap::new(),
            delays: Arc::default(),
            publication: ClusterPublication::new(id, directory, now),
            outcomes: RecentOutcomes::default(),
            times: WorkTimes::default(),
            revision: 0,
            scope: RealmScope::Alone,
            peer_polls: None,
            id,
        }
    }

    /// Wakes all impact tasks, to find that their driver is gone.
    pub(crate) fn wake_impact_tasks(&self) {
        self.impact_tasks.values().for_each(|wake| wake.notify_one());
    }

    /// Records an effect on the work of the cluster.
    pub(crate) fn follow_work(&mut self, effect: &Effect) {
        self.outcomes.follow(effect);
        self.times.follow(effect);
    }

    /// Records that an impact task retries.
    pub(crate) fn delay_impact(&mut self, work: MaintenanceId, target: Target, reason: String) {
        Arc::make_mut(&mut self.delays).insert((work, target), reason);
    }

    /// Records the end of an impact task. Returns true if readers saw that it was delayed.
    pub(crate) fn end_impact(&mut self, work: MaintenanceId, target: Target, end: ImpactEnd) -> bool {
        self.impact_tasks.remove(&(work, target));
        let was_delayed = self.delays.contains_key(&(work, target));
        if was_delayed && end != ImpactEnd::Suspended {
            Arc::make_mut(&mut self.delays).remove(&(work, target));
        }
        was_delayed
    }

    /// The part that readers see, with the part of this server and the number of the last audit entry.
    pub(crate) fn view(&self, role: Role, audit_end: u64) -> ClusterRuntimeView {
        ClusterRuntimeView {
            revision: self.revision,
            role,
            next_simulated: self.simulator.next(),
            outcomes: self.outcomes.clone(),
            times: self.times.clone(),
            delays: Arc::clone(&self.delays),
            directory: Arc::clone(self.publication.directory()),
            audit_end,
            shift: self.publication.shift(),
            document_changes: self.publication.document_changes(),
        }
    }
}

impl Environment for ClusterRuntime {
    fn take_completion(&mut self, now: Now) -> Option<Completion> {
        self.simulator.take_completion(now.steady, &mut self.jammed)
    }

    fn next_completion(&self) -> Option<Steady> {
        self.simulator.next()
    }

    fn last_heard(&self, tenant: TenantId, now: Now) -> Option<Steady> {
        let own = self.publication.last_request(tenant);
        let others = match (self.scope, &self.peer_polls) {
            (RealmScope::Realm, Some(polls)) if now.steady.since(own) >= SILENCE_MAX => {
                let ago =
                    polls.last_poll(self.id, tenant).unwrap_or(SILENCE_MAX.saturating_sub(SILENCE_RETRY));
                now.steady.minus(ago)
            }
            (RealmScope::Alone | RealmScope::Realm, _) => own,
        };
        Some(own.max(others))
    }
}
