//! The rules alone, for tests of a single rule.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "test support"
)]

use std::time::Duration;

use forewarn_lifecycle::simulator::{EmptyEnvironment, due};
use forewarn_lifecycle::*;

pub struct TestRules {
    pub cluster: Cluster,
    pub now: Now,
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn at(host: u32, update_domain: u16) -> Placement {
    Placement {
        host: HostId(host),
        update_domain: UpdateDomain(update_domain),
        fault_domain: FaultDomain(0),
        size: Size::NONE,
    }
}

pub fn admission(text: &str, placement: Placement) -> Command {
    Command::AdmitStandalone {
        name: name(text),
        placement,
        priority: Priority::Regular,
        profile: Profile::default(),
        policy: Policy::default(),
    }
}

impl TestRules {
    pub fn new() -> Self {
        Self { cluster: Cluster::new(Seed([3; 16])), now: Now::at_millis(1_000_000_000_000) }
    }

    pub fn with_hosts(count: u32) -> Self {
        let mut bare = Self::new();
        for number in 0..count {
            bare.submit(Command::AdmitHost {
                name: name(&format!("h{number}")),
                zone: None,
                capacity: Size::NONE,
            })
            .unwrap();
        }
        bare
    }

    /// One host, one enrolled machine.
    pub fn solo() -> (Self, MachineId) {
        let mut bare = Self::with_hosts(1);
        let solo = bare.standalone("solo", at(0, 0));
        bare.submit(Command::Enrol(TenantId(0))).unwrap();
        (bare, solo)
    }

    pub fn ask(&self, command: &Command) -> Result<Vec<Change>, Refusal> {
        self.cluster.decide(self.now, command)
    }

    pub fn apply(&mut self, change: &Change) -> Vec<Effect> {
        self.cluster.evolve(self.now, change)
    }

    pub fn submit(&mut self, command: Command) -> Result<Vec<Change>, Refusal> {
        let changes = self.ask(&command)?;
        changes.iter().for_each(|change| drop(self.apply(change)));
        Ok(changes)
    }

    pub fn standalone(&mut self, text: &str, placement: Placement) -> MachineId {
        self.submit(admission(text, placement)).unwrap();
        self.cluster.machines().last().unwrap().0
    }

    pub fn set(&mut self, text: &str, set: SetShape) -> TenantId {
        self.submit(Command::AdmitTenant { name: name(text), set, policy: Policy::default() }).unwrap();
        self.cluster.tenant_named(text).unwrap()
    }

    pub fn member(
        &mut self,
        tenant: TenantId,
        text: &str,
        placement: Placement,
    ) -> Result<Vec<Change>, Refusal> {
        let (priority, profile) = (Priority::Regular, Profile::default());
        self.submit(Command::AdmitMachine { tenant, name: name(text), placement, priority, profile })
    }

    pub fn scale_set(&mut self, text: &str, orchestration: Orchestration, model: Profile) -> ScaleSetId {
        let (priority, upgrade, policy) = (Priority::Regular, UpgradePolicy::Manual, Policy::default());
        let name = name(text);
        self.submit(Command::AdmitScaleSet {
            name,
            orchestration,
            priority,
            upgrade,
            model,
            policy,
            size: Size::NONE,
        })
        .unwrap();
        self.cluster.scale_set_named(text).unwrap()
    }

    pub fn complete_all(&mut self) {
        loop {
            let first = self.cluster.unfinished().next();
            let Some(Action { maintenance, target, .. }) = first else { break };
            self.submit(Command::Complete { maintenance, target, report: Report::Done }).unwrap();
        }
        self.settle();
    }

    pub fn settle(&mut self) {
        while let Some(command) = due(&self.cluster, self.now, &mut EmptyEnvironment) {
            assert_eq!(command, Command::Tick, "silences are not for this world");
            assert_ne!(self.submit(command), Ok(vec![]), "what is due is done");
        }
    }

    /// Advances the clocks, without stopping on the way.
    pub fn advance(&mut self, span: Duration) {
        self.now = self.now.plus(span);
        self.settle();
    }

    pub fn events(&self, tenant: TenantId) -> &[Event] {
        self.cluster.tenant(tenant).unwrap().events()
    }
}

/// One host with two machines of a scale set, and a second host; enrolled.
pub fn pair() -> (TestRules, [MachineId; 2]) {
    let mut bare = TestRules::with_hosts(2);
    let scale_set = bare.scale_set("web", Orchestration::Uniform, Profile::default());
    for _ in 0..2 {
        bare.submit(Command::AdmitInstance { scale_set, placement: at(0, 0), number: None }).unwrap();
    }
    bare.submit(Command::Enrol(TenantId(0))).unwrap();
    (bare, [MachineId(0), MachineId(1)])
}

/// Approves all events of the first tenant as its owner.
pub fn approve_all(bare: &mut TestRules) -> Vec<Change> {
    let events = bare.events(TenantId(0)).iter().map(Event::id).collect();
    bare.submit(Command::Approve { tenant: TenantId(0), events, by: Approver::Owner }).unwrap()
}

/// The requested actions.
pub fn actions(changes: &[Change]) -> Vec<(MachineId, Impact)> {
    let started = changes.iter().filter_map(|change| {
        let Change::Started { actions, .. } = change else { return None };
        Some(actions)
    });
    started.flatten().filter_map(|action| Some((action.target.machine()?, action.impact))).collect()
}
