//! Snapshots: the state as it was after a commit. The driver publishes one after each commit; readers never wait for
//! the driver.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::shared::SharedState;
use forewarn_control::{ClusterState, ControlState, DetailsTable, RecentOutcomes, Site};
use forewarn_explain::Poll;
use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{Cluster, MachineId, MaintenanceId, Name, Now, Seed, Steady};
use forewarn_metadata::Caller;
use forewarn_types::Moment;

/// The state after a commit.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) state: ControlState,
    pub(crate) runtimes: BTreeMap<ClusterId, ClusterRuntimeView>,
    /// Number of decisions that have changed anything.
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
    pub(crate) next_simulated: Option<Steady>,
    pub(crate) outcomes: RecentOutcomes,
    pub(crate) delays: Arc<BTreeMap<(MaintenanceId, MachineId), String>>,
    pub(crate) listed: PagedMap<MachineId, ListedMachine>,
}

/// A machine that is listed as a caller of the metadata endpoint.
#[derive(Clone, Debug)]
pub(crate) struct ListedMachine {
    pub(crate) caller: Arc<Caller>,
    pub(crate) addresses: Arc<[IpAddr]>,
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
    /// Time on the clock until time alone changes something in any cluster.
    pub next_in: Option<Duration>,
    /// Location and resource group of the cluster.
    pub site: &'a Site,
    /// Details of machines that have some.
    pub details: &'a DetailsTable,
    /// Results of work that has finished lately.
    pub outcomes: &'a RecentOutcomes,
    /// Reasons why orders to the driver program are repeated.
    pub delays: &'a BTreeMap<(MaintenanceId, MachineId), String>,
    /// Last polls of machines.
    pub polls: Polls<'a>,
    /// Revision of the cluster: a request that was planned for it can be made to depend on it.
    pub revision: u64,
    /// Revision of all clusters and of the state that they share.
    pub server_revision: u64,
}

/// Last polls of the machines of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Polls<'a>(&'a PagedMap<MachineId, ListedMachine>);

impl Polls<'_> {
    /// The last poll of a machine since the server started.
    #[must_use]
    pub fn of(&self, machine: MachineId) -> Option<Poll> {
        let forewarn_metadata::Poll { at, edition, last_audit_entry } =
            self.0.get(&machine)?.caller.last_poll()?;
        Some(Poll { at: Moment(at), edition, last_entry: last_audit_entry })
    }
}

impl Snapshot {
    /// A state whose driver has not started: no document is published yet, and no machine is listed.
    pub(crate) fn new(state: ControlState, identity: Seed) -> Self {
        Self { state, runtimes: BTreeMap::new(), revision: 0, identity, clock_limit: None }
    }

    /// A cluster at a time.
    #[must_use]
    pub fn cluster(&self, id: ClusterId, now: Now) -> Option<State<'_>> {
        let now = self.clock_limit.filter(|limit| limit.steady < now.steady).unwrap_or(now);
        let durable = self.state.cluster(id)?;
        let runtime = self.runtimes.get(&id)?;
        Some(State {
            id,
            seed: self.identity.nth(id.0),
            name: self.state.shared().cluster_name(id)?,
            shared: self.state.shared(),
            all: &self.state,
            durable,
            cluster: durable.rules(),
            now,
            next_in: self.next_after(now),
            site: durable.site(),
            details: durable.details(),
            outcomes: &runtime.outcomes,
            delays: &runtime.delays,
            polls: Polls(&runtime.listed),
            revision: runtime.revision,
            server_revision: self.revision,
        })
    }

    /// Time on the clock until something is due.
    pub(crate) fn next_after(&self, now: Now) -> Option<Duration> {
        let clusters = self.state.clusters();
        let rules = clusters.filter_map(|(_, state)| Some(state.rules().next_deadline()?.wait(now)));
        let machines = self.runtimes.values().filter_map(|view| Some(view.next_simulated?.since(now.steady)));
        rules.chain(machines).min()
    }
}
