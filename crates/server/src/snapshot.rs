//! Snapshots: the state as it was after a commit. Each driver publishes its part after each of its commits; readers
//! never wait for a driver.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::shared::SharedState;
use forewarn_control::{ClusterState, ControlState, CurrentFleet, DetailsTable, RecentOutcomes, Site};
use forewarn_explain::Poll;
use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{Cluster, MachineId, MaintenanceId, Name, Now, Seed, Steady, Target};
use forewarn_metadata::{CallerId, Directory};
use forewarn_types::Moment;

use crate::clock::shifted;
use crate::role::Role;
use crate::work_times::WorkTimes;

/// The state after a commit.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) state: ControlState,
    pub(crate) runtimes: PagedMap<ClusterId, Arc<ClusterRuntimeView>>,
    /// Number of decisions that have changed the state that clusters share.
    pub(crate) revision: u64,
    /// Secret seed of machine ids.
    pub(crate) identity: Seed,
    /// The latest time that readers may see.
    pub(crate) clock_limit: Option<Now>,
}

/// The part of the runtime state of a cluster that readers see.
#[derive(Clone, Debug)]
pub(crate) struct ClusterRuntimeView {
    pub(crate) revision: u64,
    /// The part of this server in the cluster.
    pub(crate) role: Role,
    pub(crate) next_simulated: Option<Steady>,
    pub(crate) outcomes: RecentOutcomes,
    pub(crate) times: WorkTimes,
    pub(crate) delays: Arc<BTreeMap<(MaintenanceId, Target), String>>,
    /// Machines that have called the metadata endpoint.
    pub(crate) directory: Arc<Directory>,
    /// Number of the last audit entry that the state reflects.
    pub(crate) audit_end: u64,
    /// Milliseconds by which the steady clock of the cluster is ahead of that of the process.
    pub(crate) shift: i64,
    /// Number of changes of documents.
    pub(crate) document_changes: u64,
}

/// A cluster in a snapshot, at a time.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// Number of the cluster.
    pub id: ClusterId,
    /// Secret seed of the ids of its machines.
    pub seed: Seed,
    /// Name of the cluster.
    pub name: &'a Name,
    /// The state that clusters share.
    pub shared: &'a SharedState,
    /// The state of all clusters.
    pub all: &'a ControlState,
    /// The durable state of the cluster.
    pub durable: &'a ClusterState,
    /// The state of its rules.
    pub cluster: &'a Cluster,
    pub now: Now,
    snapshot: &'a Snapshot,
    /// Location and resource group of the cluster.
    pub site: &'a Site,
    /// Details of machines that have some.
    pub details: &'a DetailsTable,
    /// Results of work that has finished lately.
    pub outcomes: &'a RecentOutcomes,
    /// Reasons why orders to the driver program are repeated.
    pub delays: &'a BTreeMap<(MaintenanceId, Target), String>,
    /// Times of unfinished actions.
    pub(crate) times: &'a WorkTimes,
    /// Last polls of machines.
    pub polls: Polls<'a>,
    /// Revision of the cluster: a request that was planned for it can be made to depend on it.
    pub revision: u64,
    /// Revision of the state that clusters share.
    pub shared_revision: u64,
}

/// Last polls of the machines of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Polls<'a> {
    cluster: ClusterId,
    directory: &'a Directory,
}

impl Polls<'_> {
    /// The last poll of a machine since the server started.
    #[must_use]
    pub fn of(&self, machine: MachineId) -> Option<Poll> {
        let caller = self.directory.known_caller(CallerId { cluster: self.cluster, machine })?;
        let forewarn_metadata::Poll { at, edition, last_audit_entry } = caller.last_poll()?;
        Some(Poll { at: Moment(at), edition, last_entry: last_audit_entry })
    }
}

impl State<'_> {
    /// Calls `look` with the fleet of the cluster.
    pub fn with_fleet<T>(&self, look: impl FnOnce(CurrentFleet<'_>) -> T) -> T {
        let details = |machine: MachineId| self.details.get(&machine);
        look(CurrentFleet { cluster: self.cluster, site: self.site, details: &details, now: self.now })
    }

    /// Time on the clock until time alone changes something in any cluster.
    #[must_use]
    pub fn next_in(&self) -> Option<Duration> {
        self.snapshot.next_after(self.now)
    }
}

impl Snapshot {
    /// A state whose driver has not started: no document is published yet, and no machine is listed.
    pub(crate) fn new(state: ControlState, identity: Seed) -> Self {
        Self { state, runtimes: PagedMap::new(), revision: 0, identity, clock_limit: None }
    }

    /// A cluster at a time.
    #[must_use]
    pub fn cluster(&self, id: ClusterId, now: Now) -> Option<State<'_>> {
        let now = self.clock_limit.filter(|limit| limit.steady < now.steady).unwrap_or(now);
        let durable = self.state.cluster(id)?;
        let runtime = self.runtimes.get(&id)?;
        let now = Now { steady: shifted(now.steady, runtime.shift), ..now };
        Some(State {
            id,
            seed: self.identity.nth(id.0),
            name: self.state.shared().cluster_name(id)?,
            shared: self.state.shared(),
            all: &self.state,
            durable,
            cluster: durable.rules(),
            now,
            snapshot: self,
            site: durable.site(),
            details: durable.details(),
            outcomes: &runtime.outcomes,
            delays: &runtime.delays,
            times: &runtime.times,
            polls: Polls { cluster: id, directory: &runtime.directory },
            revision: runtime.revision,
            shared_revision: self.revision,
        })
    }

    /// Replaces the state of a cluster. A cluster that was removed stays so.
    pub(crate) fn update_cluster(
        &mut self,
        id: ClusterId,
        state: &Arc<ClusterState>,
        runtime: &Arc<ClusterRuntimeView>,
    ) {
        if self.state.cluster(id).is_some() {
            self.state = self.state.with_cluster(id, Arc::clone(state));
            self.runtimes.insert(id, Arc::clone(runtime));
        }
    }

    /// Sets the runtime state of a cluster that has none.
    pub(crate) fn show_runtime(&mut self, id: ClusterId, runtime: &Arc<ClusterRuntimeView>) {
        if !self.runtimes.contains_key(&id) {
            self.runtimes.insert(id, Arc::clone(runtime));
        }
    }

    /// Sets the part of this server in a cluster. Nothing else changes.
    pub(crate) fn set_role(&mut self, id: ClusterId, role: Role) {
        if let Some(runtime) = self.runtimes.get(&id) {
            let runtime = ClusterRuntimeView { role, ..ClusterRuntimeView::clone(runtime) };
            self.runtimes.insert(id, Arc::new(runtime));
        }
    }

    /// Removes a cluster.
    pub(crate) fn remove_cluster(&mut self, id: ClusterId) {
        self.state = self.state.without_cluster(id);
        self.runtimes.remove(&id);
    }

    /// The number of changes of documents in all clusters.
    pub(crate) fn document_changes(&self) -> u64 {
        self.runtimes.values().map(|runtime| runtime.document_changes).sum()
    }

    /// The clusters in which something is due at a time.
    pub(crate) fn clusters_due(&self, now: Now) -> Vec<ClusterId> {
        let waits = self.waits(now).filter(|(_, wait)| wait.is_zero());
        waits.map(|(id, _)| id).collect()
    }

    /// Time on the clock until something is due.
    pub(crate) fn next_after(&self, now: Now) -> Option<Duration> {
        self.waits(now).map(|(_, wait)| wait).min()
    }

    /// The same without anything that is due already: it is done, or its cluster has failed.
    pub(crate) fn next_later_than(&self, now: Now) -> Option<Duration> {
        self.waits(now).map(|(_, wait)| wait).filter(|wait| !wait.is_zero()).min()
    }

    /// Time on the clock until something is due in each cluster.
    fn waits(&self, now: Now) -> impl Iterator<Item = (ClusterId, Duration)> {
        self.state.clusters().filter_map(move |(id, state)| {
            let view = self.runtimes.get(&id);
            let now = Now { steady: shifted(now.steady, view.map_or(0, |view| view.shift)), ..now };
            let rules = state.rules().next_deadline().map(|deadline| deadline.wait(now));
            let simulated = view.and_then(|view| Some(view.next_simulated?.since(now.steady)));
            Some((id, rules.into_iter().chain(simulated).min()?))
        })
    }
}
