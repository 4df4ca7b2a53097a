//! The backend without a server: the pure rules, a virtual clock, simulated machines, and the last poll of each tenant.
//!
//! Both clocks of the rules run together here, except where a story steps the wall clock. Everything that is due at an
//! instant is done at that instant, before the clock goes on, in the order in which a server does it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_control::{
    CommandError, Fencing, HostView, LookupError, MachineDetails, MachineView, NamedCommand, Resolved,
    RolloutView, TenantView, document_of, find_machine, find_tenant, host_view, machine_view, rollout_view,
    tenant_view,
};
use forewarn_imds::Edition;
use forewarn_lifecycle::simulator::{Completion, Environment, Simulation, Simulator};
use forewarn_lifecycle::{
    Action, Approver, Change, Cluster, Command, EventId, MachineId, Now, Refusal, Seed, SimulatedMachines,
    Steady, TenantId, Timestamp,
};

use crate::backend::{Backend, BackendError, ClockStep};

/// Every story begins at 2026-01-01T00:00:00Z.
const BEGINNING_MILLIS: i64 = 1_767_225_600_000;

/// The secret of event ids in a story: the same story has the same ids.
const SEED: Seed = Seed(*b"forewarn stories");

/// The pure rules as a backend: fifteen minutes of notice take no time.
pub struct RulesBackend {
    simulator: Simulator<SimulatedFleet>,
    beginning: Now,
    fencing: Fencing,
}

/// The environment of the cluster of a story, and its journal.
#[derive(Default)]
struct SimulatedFleet {
    journal: Vec<(Now, Change)>,
    heard: BTreeMap<TenantId, Steady>,
    machines: SimulatedMachines,
    /// Machines whose next action fails.
    jammed: BTreeSet<MachineId>,
}

impl Default for RulesBackend {
    fn default() -> Self {
        let now = Now::at_millis(BEGINNING_MILLIS);
        let simulator = Simulator::new(Cluster::new(SEED), now, SimulatedFleet::default());
        Self { simulator, beginning: now, fencing: Fencing::Off }
    }
}

impl Environment for SimulatedFleet {
    fn take_completion(&mut self, now: Now) -> Option<Completion> {
        self.machines.take_completion(now.steady, &mut self.jammed)
    }

    fn next_completion(&self) -> Option<Steady> {
        self.machines.next()
    }

    fn last_heard(&self, tenant: TenantId, _: Now) -> Option<Steady> {
        self.heard.get(&tenant).copied()
    }
}

impl Simulation for SimulatedFleet {
    fn perform(&mut self, cluster: &Cluster, now: Now, action: Action) {
        self.machines.begin(cluster, action, now.steady);
    }

    fn on_change(&mut self, _: &Cluster, now: Now, change: &Change) {
        self.journal.push((now, change.clone()));
    }
}

impl Backend for RulesBackend {
    fn perform(&mut self, command: &NamedCommand) -> Result<(), BackendError> {
        match command.resolve(self.cluster())? {
            Resolved::Rules(Command::FailHost(host)) if self.fencing == Fencing::Required => {
                self.simulator.submit(&Command::FailUnfencedHost(host))?;
            }
            Resolved::Rules(command) | Resolved::Admit(command, _) | Resolved::Fail(command, _) => {
                self.simulator.submit(&command)?;
            }
            Resolved::Jam(machine) => drop(self.simulator.environment.jammed.insert(machine)),
            // Neither the rules nor a document depend on it.
            Resolved::Describe(..) | Resolved::Site(_) => {}
        }
        // All consequences of a command are decided before any machine is affected, as a server does it.
        while self.simulator.decide_due().map_err(|refusal| clock_refused(&refusal))? {}
        self.settle()
    }

    fn poll(&mut self, machine: &MachineView) -> Result<(), BackendError> {
        self.record_request(machine)?;
        self.settle()
    }

    fn approve(&mut self, machine: &MachineView, events: &[EventId]) -> Result<(), BackendError> {
        let (tenant, machine) = self.record_request(machine)?;
        self.settle()?;
        let by = Approver::Machine(machine);
        self.simulator.submit(&Command::Approve { tenant, events: events.to_vec(), by })?;
        self.settle()
    }

    fn beginning(&self) -> Timestamp {
        self.beginning.wall
    }

    fn elapsed(&self) -> Duration {
        self.simulator.now.steady.since(self.beginning.steady)
    }

    fn advance(&mut self, end: Duration) -> Result<(), BackendError> {
        let left = end.saturating_sub(self.elapsed());
        let step = self.simulator.wait().map_or(left, |wait| wait.min(left));
        self.simulator.pass(step);
        self.settle()
    }

    fn tenants(&self) -> Result<Vec<TenantView>, BackendError> {
        Ok(self.cluster().tenants().filter_map(|(id, _)| tenant_view(self.cluster(), id)).collect())
    }

    fn machines(&self) -> Result<Vec<MachineView>, BackendError> {
        let details = MachineDetails::default();
        let machines = self.cluster().machines();
        Ok(machines.filter_map(|(id, _)| machine_view(self.cluster(), id, &details)).collect())
    }

    fn hosts(&self) -> Result<Vec<HostView>, BackendError> {
        let cluster = self.cluster();
        Ok(cluster.hosts().filter_map(|(id, _)| host_view(cluster, id, None)).collect())
    }

    fn rollouts(&self) -> Result<Vec<RolloutView>, BackendError> {
        let Simulator { cluster, now, .. } = &self.simulator;
        let over = cluster.ended_rollouts().map(|(id, _)| id);
        let mut all: Vec<_> = over.chain(cluster.rollouts().map(|(id, _)| id)).collect();
        all.sort_unstable();
        Ok(all.into_iter().filter_map(|id| rollout_view(cluster, *now, id)).collect())
    }

    fn document(&self, tenant: &str) -> Result<Vec<u8>, BackendError> {
        let tenant = self.cluster().tenant(find_tenant(self.cluster(), tenant)?);
        Ok(tenant.map(|tenant| document_of(tenant).render(Edition::newest()).into()).unwrap_or_default())
    }

    fn step_clock(&mut self, step: ClockStep) -> Result<(), BackendError> {
        let wall = self.simulator.now.wall;
        self.simulator.now.wall = match step {
            ClockStep::Forward(span) => wall.plus(span),
            ClockStep::Back(span) => {
                let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_millis(wall.millis().saturating_sub(span))
            }
        };
        self.settle()
    }

    fn set_fencing(&mut self, fencing: Fencing) -> Result<(), BackendError> {
        self.fencing = fencing;
        Ok(())
    }

    fn crash(&mut self) -> Result<(), BackendError> {
        let mut cluster = Cluster::new(SEED);
        for (now, change) in &self.simulator.environment.journal {
            cluster.evolve(*now, change);
        }
        if cluster != *self.cluster() {
            return Err(BackendError::Failed("the journal does not restore the lost state".to_owned()));
        }
        // An action in progress is not repeated: it is identified by its key.
        let fleet = std::mem::take(&mut self.simulator.environment);
        self.simulator = Simulator::new(cluster, self.simulator.now, fleet);
        self.settle()
    }
}

impl RulesBackend {
    fn cluster(&self) -> &Cluster {
        &self.simulator.cluster
    }

    /// Records a request of a machine: it enrols its tenant and ends the silence, whatever its result.
    fn record_request(&mut self, machine: &MachineView) -> Result<(TenantId, MachineId), BackendError> {
        let tenant = find_tenant(self.cluster(), &machine.tenant)?;
        let machine = find_machine(self.cluster(), &format!("{}/{}", machine.tenant, machine.name))?;
        self.simulator.submit(&Command::Enrol(tenant))?;
        self.simulator.environment.heard.insert(tenant, self.simulator.now.steady);
        Ok((tenant, machine))
    }

    /// Handles everything that is due now.
    fn settle(&mut self) -> Result<(), BackendError> {
        self.simulator.settle().map_err(|refusal| clock_refused(&refusal))
    }
}

fn clock_refused(refusal: &Refusal) -> BackendError {
    BackendError::Failed(format!("the rules refused a tick: {refusal}"))
}

impl From<Refusal> for BackendError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal.to_string())
    }
}

impl From<CommandError> for BackendError {
    fn from(bad: CommandError) -> Self {
        Self::Invalid(bad.to_string())
    }
}

impl From<LookupError> for BackendError {
    fn from(unknown: LookupError) -> Self {
        Self::Invalid(unknown.to_string())
    }
}
