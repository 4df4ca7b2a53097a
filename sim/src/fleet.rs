//! The clusters before the beginning: hosts, machines, and the decisions that made them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forewarn_control::request::{
    Administration, ClusterRequest, CommandBatch, RequestContext, SharedRequest,
};
use forewarn_control::shared::SharedState;
use forewarn_control::{
    AuditEntry, Chain, ClusterId, ClusterState, Environment, Eviction, Fencing, HostEntry, HypervisorKind,
    NamedCommand, PolicyEntry, Record, VmEntry, decide_in_cluster, decide_shared,
};
use forewarn_lifecycle::{MachineId, Name, Seed};

use crate::host_clock::before_the_beginning;
use crate::random::Random;

/// A machine, and its guest.
#[derive(Clone, Debug)]
pub(crate) struct FleetMachine {
    pub(crate) cluster: ClusterId,
    pub(crate) machine: MachineId,
    pub(crate) name: String,
    pub(crate) is_spot: bool,
}

/// A cluster before the beginning.
#[derive(Clone)]
pub(crate) struct InitialCluster {
    pub(crate) empty: Arc<ClusterState>,
    pub(crate) records: Vec<Record>,
    pub(crate) entries: Vec<Arc<AuditEntry>>,
    pub(crate) state: Arc<ClusterState>,
    pub(crate) audit_end: Chain,
}

pub(crate) struct Fleet {
    pub(crate) shared: Arc<SharedState>,
    pub(crate) clusters: BTreeMap<ClusterId, InitialCluster>,
    pub(crate) machines: Vec<FleetMachine>,
}

const HOSTS: usize = 3;

impl Fleet {
    pub(crate) fn new(random: &mut Random, clusters: u32) -> Self {
        let mut fleet = Self {
            shared: Arc::new(SharedState::new(Seed(seed_of(random)))),
            clusters: BTreeMap::new(),
            machines: Vec::new(),
        };
        let mut end = Chain::default();
        for number in 1..clusters {
            let name = Name::new(&format!("c{number}")).expect("a good name");
            let change = Administration::CreateCluster(name);
            let request = SharedRequest::Administer { change, context: RequestContext::default() };
            let decision = decide_shared(&fleet.shared, &environment(end), &request);
            let decision = decision.expect("a new cluster");
            (fleet.shared, end) = (decision.state, decision.audit_end);
        }
        let ids: Vec<_> = fleet.shared.clusters().map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| fleet.fill(random, id));
        fleet
    }

    fn fill(&mut self, random: &mut Random, id: ClusterId) {
        let count = random.between(2, 5);
        let hosts = (0..HOSTS).map(|host| {
            let name = format!("h{host}");
            NamedCommand::AdmitHost(HostEntry { name, zone: None, cpus: None, memory: None })
        });
        let is_spot: Vec<_> = (0..count).map(|place| place == 0 || random.per_mille(500)).collect();
        let machines = is_spot.iter().enumerate().map(|(place, is_spot)| machine(place, *is_spot));
        let commands: Vec<_> = hosts.chain(machines).collect();
        let empty = Arc::new(self.shared.initial_cluster(id).expect("a new cluster"));
        let request = ClusterRequest::Commands(CommandBatch::from(commands));
        let chain = Chain::default();
        let decision = decide_in_cluster(id, &empty, &self.shared, &environment(chain), &request);
        let decision = decision.expect("a new fleet");
        for (place, is_spot) in is_spot.into_iter().enumerate() {
            let name = format!("vm{place}");
            let tenant = decision.state.rules().tenant_named(&name).expect("it was admitted");
            let machine = decision.state.rules().machine_named(tenant, &name).expect("it was admitted");
            self.machines.push(FleetMachine { cluster: id, machine, name, is_spot });
        }
        let initial = InitialCluster {
            empty,
            records: decision.records,
            entries: decision.audit,
            state: decision.state,
            audit_end: decision.audit_end,
        };
        self.clusters.insert(id, initial);
    }
}

fn machine(place: usize, is_spot: bool) -> NamedCommand {
    NamedCommand::AdmitVm(VmEntry {
        name: format!("vm{place}"),
        host: format!("h{}", place % HOSTS),
        update_domain: 0,
        fault_domain: 0,
        cpus: None,
        memory: None,
        spot: is_spot.then_some(Eviction::Deallocate),
        terminate: None,
        os_image: false,
        policy: PolicyEntry::default(),
        windows: Vec::new(),
        addresses: Vec::new(),
        tags: BTreeMap::new(),
    })
}

fn environment(audit: Chain) -> Environment<'static> {
    static NO_MACHINES: BTreeSet<MachineId> = BTreeSet::new();
    Environment {
        now: before_the_beginning(),
        audit,
        hypervisor: HypervisorKind::Program(Fencing::Off),
        revision: 0,
        jammed: &NO_MACHINES,
    }
}

fn seed_of(random: &mut Random) -> [u8; 16] {
    let (high, low) = (u128::from(random.next()), u128::from(random.next()));
    (high << 64 | low).to_be_bytes()
}
