//! The backend without a server: the pure rules, a virtual clock, simulated machines, and the last poll of each tenant.
//!
//! Both clocks of the rules run together here, except where a story steps the wall clock. Everything that is due at an
//! instant is done at that instant, before the clock goes on, in the order in which a server does it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_control::{
    AuditEntry, CommandError, Fencing, HostView, LookupError, MachineDetails, MachineView, NamedCommand,
    Resolved, RolloutView, TenantView, document_of, find_machine, find_tenant, full_name, host_view,
    machine_view, rollout_view, tenant_view,
};
use forewarn_imds::Edition;
use forewarn_lifecycle::simulator::{Completion, Environment, Simulation, Simulator};
use forewarn_lifecycle::{
    Action, Approver, Change, Cluster, Command, Effect, EventId, MachineId, Now, Refusal, Seed,
    SimulatedMachines, Steady, TenantId, Timestamp,
};

use crate::BEGINNING;
use crate::backend::{Backend, BackendError, ClockStep, TenantChanges};
use crate::rules_audit::AuditRecorder;

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
    audit: AuditRecorder,
    /// Names of the tenants.
    names: BTreeMap<TenantId, String>,
    /// Tenants whose documents may have changed since the last look.
    changed: BTreeSet<TenantId>,
    /// Names of tenants that have left since then, in the order in which they joined.
    gone: BTreeMap<TenantId, String>,
}

impl Default for RulesBackend {
    fn default() -> Self {
        let now = Now::at_millis(BEGINNING.millis());
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

    fn on_change(&mut self, cluster: &Cluster, now: Now, change: &Change) {
        self.audit.on_change(cluster, now, change);
        if let Change::TenantAdmitted { tenant, name, .. } = change {
            self.changed.insert(*tenant);
            self.names.insert(*tenant, name.to_string());
        }
        self.journal.push((now, change.clone()));
    }

    fn on_decision(&mut self, changes: &[Change]) {
        self.audit.on_decision(changes);
    }

    fn on_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Publish(tenant) => drop(self.changed.insert(*tenant)),
            Effect::Unpublish(tenant) => {
                self.changed.remove(tenant);
                self.gone.extend(self.names.remove(tenant).map(|name| (*tenant, name)));
            }
            Effect::Perform(_) => {}
        }
    }
}

impl Backend for RulesBackend {
    fn perform(&mut self, command: &NamedCommand) -> Result<(), BackendError> {
        let resolved = command.resolve(self.cluster())?;
        let Simulator { cluster, now, environment, .. } = &mut self.simulator;
        let mark = environment.audit.mark();
        environment.audit.request(cluster, *now, command);
        if let Err(refusal) = self.submit(resolved) {
            self.simulator.environment.audit.return_to(mark);
            self.simulator.environment.audit.by_itself();
            return Err(refusal.into());
        }
        // All consequences of a command are decided before any machine is affected, as a server does it.
        let decided = self.decide_all_due();
        self.simulator.environment.audit.by_itself();
        decided?;
        self.settle()
    }

    fn poll(&mut self, machine: &MachineView) -> Result<(), BackendError> {
        self.record_request(machine)?;
        self.settle()
    }

    fn approve(&mut self, machine: &MachineView, events: &[EventId]) -> Result<(), BackendError> {
        let (tenant, machine) = self.record_request(machine)?;
        self.settle()?;
        let name = full_name(self.cluster(), machine);
        self.simulator.environment.audit.by_machine(name);
        let by = Approver::Machine(machine);
        let approved = self.simulator.submit(&Command::Approve { tenant, events: events.to_vec(), by });
        self.simulator.environment.audit.by_itself();
        approved?;
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

    fn find_tenant(&self, name: &str) -> Result<Result<TenantView, LookupError>, BackendError> {
        let cluster = self.cluster();
        match find_tenant(cluster, name) {
            Ok(id) => tenant_view(cluster, id).map(Ok).ok_or_else(vanished),
            Err(unknown) => Ok(Err(unknown)),
        }
    }

    fn find_machine(&self, name: &str) -> Result<Result<MachineView, LookupError>, BackendError> {
        let (cluster, details) = (self.cluster(), MachineDetails::default());
        match find_machine(cluster, name) {
            Ok(id) => machine_view(cluster, id, &details).map(Ok).ok_or_else(vanished),
            Err(unknown) => Ok(Err(unknown)),
        }
    }

    fn take_changes(&mut self) -> Result<TenantChanges, BackendError> {
        let Simulator { cluster, environment, .. } = &mut self.simulator;
        let changed = std::mem::take(&mut environment.changed);
        let changed = changed.into_iter().filter_map(|id| tenant_view(cluster, id)).collect();
        let gone = std::mem::take(&mut environment.gone).into_values();
        let gone = gone.filter(|name| cluster.tenant_named(name).is_none()).collect();
        Ok(TenantChanges::Some { changed, gone })
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

    fn audit(&self, after: u64) -> Result<Vec<AuditEntry>, BackendError> {
        Ok(self.simulator.environment.audit.after(after).to_vec())
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
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.simulator.cluster
    }

    fn submit(&mut self, resolved: Resolved) -> Result<(), Refusal> {
        match resolved {
            Resolved::Rules(Command::FailHost(host)) if self.fencing == Fencing::Required => {
                self.simulator.submit(&Command::FailUnfencedHost(host))
            }
            Resolved::Rules(command) | Resolved::Admit(command, _) => self.simulator.submit(&command),
            Resolved::Fail(command, reason) => {
                self.simulator.environment.audit.because_of(&reason);
                self.simulator.submit(&command)
            }
            Resolved::Jam(machine) => {
                self.simulator.environment.jammed.insert(machine);
                Ok(())
            }
            // Neither the rules nor a document depend on it.
            Resolved::Describe(..) | Resolved::Site(_) => Ok(()),
        }
    }

    fn decide_all_due(&mut self) -> Result<(), BackendError> {
        while self.simulator.decide_due().map_err(|refusal| clock_refused(&refusal))? {}
        Ok(())
    }

    /// Records a request of a machine: it enrols its tenant, ends the silence, and is the return of a machine
    /// that a rollout awaits, whatever its result.
    fn record_request(&mut self, machine: &MachineView) -> Result<(TenantId, MachineId), BackendError> {
        let tenant = find_tenant(self.cluster(), &machine.tenant)?;
        let machine = find_machine(self.cluster(), &format!("{}/{}", machine.tenant, machine.name))?;
        self.simulator.submit(&Command::Enrol(tenant))?;
        self.simulator.submit(&Command::Polled(machine))?;
        self.simulator.environment.heard.insert(tenant, self.simulator.now.steady);
        Ok((tenant, machine))
    }

    /// Handles everything that is due now.
    fn settle(&mut self) -> Result<(), BackendError> {
        self.simulator.settle().map_err(|refusal| clock_refused(&refusal))
    }
}

fn vanished() -> BackendError {
    BackendError::Failed("an object has no view".to_owned())
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
