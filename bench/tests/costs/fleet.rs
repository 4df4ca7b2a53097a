//! A cluster of the control plane, without a server: fleet files and commands are decided as a driver does it.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_bench::blocks;
use forewarn_bench::rules_fleet::{self, RulesState};
use forewarn_control::request::{ClusterRequest, CommandBatch};
use forewarn_control::shared::SharedState;
use forewarn_control::{
    Chain, ClusterId, ClusterState, ControlState, CurrentFleet, Decision, Environment, Fleet, HypervisorKind,
    NamedCommand, Record, UnlistedObjects, decide_in_cluster, difference,
};
use forewarn_lifecycle::{Change, Cluster, MachineId, Now, Seed};

const CLUSTER: ClusterId = ClusterId::DEFAULT;

/// Blocks of the smallest fleet: each has machines that are named after it.
const BLOCKS: u32 = 10;
/// The first block of fleet files: no name of theirs is in the fleet.
const FIRST_BLOCK: u32 = 1_000_000;

/// A cluster with a fleet.
pub(crate) struct CostlyFleet {
    state: Arc<ClusterState>,
    shared: Arc<SharedState>,
    audit: Chain,
    /// Blocks of fleet files that were applied.
    blocks: u32,
}

/// A state to which only changes of the rules are applied, without a decision of the control plane: a large fleet is
/// there soon, also under valgrind.
struct Filled(ControlState);

impl RulesState for Filled {
    fn rules(&self) -> &Cluster {
        self.0.cluster(CLUSTER).unwrap().rules()
    }

    fn evolve_rules(&mut self, now: Now, change: Change) {
        self.0.apply(&Record::rules(now, CLUSTER, change));
    }
}

impl CostlyFleet {
    /// A fleet of that many machines.
    pub(crate) fn filled(machines: u32) -> Self {
        let mut filled = Filled(ControlState::new(Seed([5; 16])));
        rules_fleet::build_in(&mut filled, machines / rules_fleet::MACHINES_PER_BLOCK).unwrap();
        let Filled(state) = filled;
        let (shared, state) = (state.shared_arc(), state.cluster_arc(CLUSTER).unwrap());
        Self { state, shared, audit: Chain::default(), blocks: 0 }
    }

    /// Applies a fleet file with a thousand new machines.
    pub(crate) fn add_block(&mut self) {
        let block = FIRST_BLOCK + self.blocks;
        let body = blocks::fleet_of(block..block + 1);
        self.blocks += 1;
        let decision = measured_apply(self, &body);
        self.commit(decision);
    }

    /// Describes a machine, by its name alone.
    pub(crate) fn describe(&mut self, number: u32) {
        let machine = format!("vm-{}-0", number % BLOCKS);
        let text = format!(
            "{{\"command\":\"describe\",\"machine\":\"{machine}\",\"tags\":{{\"number\":\"{number}\"}}}}"
        );
        let command: NamedCommand = serde_json::from_str(&text).unwrap();
        let decision = measured_command(self, command);
        self.commit(decision);
    }

    fn commit(&mut self, decision: Decision<ClusterState>) {
        assert!(!decision.records.is_empty());
        (self.state, self.audit) = (decision.state, decision.audit_end);
    }

    /// Reads a fleet file, compares it with the fleet, and decides its commands.
    fn decide_file(&self, body: &str) -> Decision<ClusterState> {
        let wanted: Fleet = serde_json::from_str(body).unwrap();
        let details = |machine: MachineId| self.state.details().get(&machine);
        let (cluster, site) = (self.state.rules(), self.state.site());
        let current = CurrentFleet { cluster, site, details: &details, now: Now::at_millis(0) };
        let differences = difference(current, &wanted, UnlistedObjects::Keep).unwrap();
        self.decide(differences.into_iter().filter_map(|one| one.command).collect())
    }

    fn decide(&self, commands: Vec<NamedCommand>) -> Decision<ClusterState> {
        let environment = Environment {
            now: Now::at_millis(0),
            audit: self.audit,
            hypervisor: HypervisorKind::Simulated,
            revision: 0,
            jammed: &BTreeSet::new(),
        };
        let request = ClusterRequest::Commands(CommandBatch::from(commands));
        decide_in_cluster(CLUSTER, &self.state, &self.shared, &environment, &request).unwrap()
    }
}

/// Applies a fleet file. The profiler finds it by its name, so it is never inlined.
#[inline(never)]
fn measured_apply(fleet: &CostlyFleet, body: &str) -> Decision<ClusterState> {
    fleet.decide_file(body)
}

/// Decides one command.
#[inline(never)]
fn measured_command(fleet: &CostlyFleet, command: NamedCommand) -> Decision<ClusterState> {
    fleet.decide(vec![command])
}
