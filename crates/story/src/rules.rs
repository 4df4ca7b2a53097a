//! The stage without a server: the pure rules, a virtual clock, machines that pretend, and who has polled.
//!
//! Both clocks of the rules run together here, except where a story steps the wall clock. Everything that is due at an
//! instant is done at that instant, before the clock goes on, in the order in which a server does it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_control::{
    BadCommand, MachineDetails, MachineView, NamedCommand, Resolved, RolloutView, TenantView, Unknown,
    document_of, find_machine, find_tenant, machine_view, rollout_view, tenant_view,
};
use forewarn_imds::Edition;
use forewarn_lifecycle::player::{Completion, Player, Simulation, Surroundings};
use forewarn_lifecycle::{
    Action, Approver, Change, Cluster, Command, EventId, MachineId, Now, PretendMachines, Refusal, Report,
    Seed, Steady, TenantId, Timestamp,
};

use crate::stage::{ClockStep, Stage, Undone};

/// Every story begins at 2026-01-01T00:00:00Z.
const BEGINNING_MILLIS: i64 = 1_767_225_600_000;

/// The secret of event ids in a story: the same story has the same ids.
const SEED: Seed = Seed(*b"forewarn stories");

/// The pure rules as a stage: fifteen minutes of notice take no time.
pub struct Rules {
    player: Player<SimulatedFleet>,
    beginning: Now,
}

/// The surroundings of the cluster of a story, and its journal.
#[derive(Default)]
struct SimulatedFleet {
    journal: Vec<(Now, Change)>,
    heard: BTreeMap<TenantId, Steady>,
    machines: PretendMachines,
    /// Machines whose next action fails.
    jammed: BTreeSet<MachineId>,
}

impl Default for Rules {
    fn default() -> Self {
        let now = Now::at_millis(BEGINNING_MILLIS);
        Self { player: Player::new(Cluster::new(SEED), now, SimulatedFleet::default()), beginning: now }
    }
}

impl Surroundings for SimulatedFleet {
    fn take_completion(&mut self, now: Now) -> Option<Completion> {
        let (maintenance, machine) = self.machines.take_done(now.steady)?;
        let report = if self.jammed.remove(&machine) { Report::Failed } else { Report::Done };
        Some(Completion { maintenance, machine, report })
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
        self.machines.take_on(cluster, action, now.steady);
    }

    fn on_change(&mut self, _: &Cluster, now: Now, change: &Change) {
        self.journal.push((now, change.clone()));
    }
}

impl Stage for Rules {
    fn perform(&mut self, command: &NamedCommand) -> Result<(), Undone> {
        match command.resolve(self.cluster())? {
            Resolved::Rules(command) | Resolved::Admit(command, _) => self.player.submit(&command)?,
            Resolved::Jam(machine) => drop(self.player.surroundings.jammed.insert(machine)),
            // The rules need not know, and no document shows it.
            Resolved::Describe(..) | Resolved::Site(_) => {}
        }
        // What follows from a command is decided before any machine is touched: it is one answer.
        while self.player.decide_due().map_err(|refusal| clock_refused(&refusal))? {}
        self.settle()
    }

    fn poll(&mut self, machine: &MachineView) -> Result<(), Undone> {
        self.hear(machine)?;
        self.settle()
    }

    fn approve(&mut self, machine: &MachineView, events: &[EventId]) -> Result<(), Undone> {
        let (tenant, machine) = self.hear(machine)?;
        self.settle()?;
        let by = Approver::Machine(machine);
        self.player.submit(&Command::Approve { tenant, events: events.to_vec(), by })?;
        self.settle()
    }

    fn beginning(&self) -> Timestamp {
        self.beginning.wall
    }

    fn elapsed(&self) -> Duration {
        self.player.now.steady.since(self.beginning.steady)
    }

    fn run_on(&mut self, end: Duration) -> Result<(), Undone> {
        let left = end.saturating_sub(self.elapsed());
        let step = self.player.wait().map_or(left, |wait| wait.min(left));
        self.player.pass(step);
        self.settle()
    }

    fn tenants(&self) -> Result<Vec<TenantView>, Undone> {
        Ok(self.cluster().tenants().filter_map(|(id, _)| tenant_view(self.cluster(), id)).collect())
    }

    fn machines(&self) -> Result<Vec<MachineView>, Undone> {
        let details = MachineDetails::default();
        let machines = self.cluster().machines();
        Ok(machines.filter_map(|(id, _)| machine_view(self.cluster(), id, &details)).collect())
    }

    fn rollouts(&self) -> Result<Vec<RolloutView>, Undone> {
        let Player { cluster, now, .. } = &self.player;
        let over = cluster.ended_rollouts().map(|(id, _)| id);
        let mut all: Vec<_> = over.chain(cluster.rollouts().map(|(id, _)| id)).collect();
        all.sort_unstable();
        Ok(all.into_iter().filter_map(|id| rollout_view(cluster, *now, id)).collect())
    }

    fn document(&self, tenant: &str) -> Result<Vec<u8>, Undone> {
        let tenant = self.cluster().tenant(find_tenant(self.cluster(), tenant)?);
        Ok(tenant.map(|tenant| document_of(tenant).render(Edition::newest()).into()).unwrap_or_default())
    }

    fn step_clock(&mut self, step: ClockStep) -> Result<(), Undone> {
        let wall = self.player.now.wall;
        self.player.now.wall = match step {
            ClockStep::Forward(span) => wall.plus(span),
            ClockStep::Back(span) => {
                let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_millis(wall.millis().saturating_sub(span))
            }
        };
        self.settle()
    }

    fn crash(&mut self) -> Result<(), Undone> {
        let mut cluster = Cluster::new(SEED);
        for (now, change) in &self.player.surroundings.journal {
            cluster.evolve(*now, change);
        }
        if cluster != *self.cluster() {
            return Err(Undone::Broken("the journal does not give the state that was lost".to_owned()));
        }
        // A machine that is being worked on is not worked on twice: the action is known by its key.
        let fleet = std::mem::take(&mut self.player.surroundings);
        self.player = Player::new(cluster, self.player.now, fleet);
        self.settle()
    }
}

impl Rules {
    fn cluster(&self) -> &Cluster {
        &self.player.cluster
    }

    /// Any request of a machine enrols its tenant and breaks the silence, whatever becomes of it.
    fn hear(&mut self, machine: &MachineView) -> Result<(TenantId, MachineId), Undone> {
        let tenant = find_tenant(self.cluster(), &machine.tenant)?;
        let machine = find_machine(self.cluster(), &format!("{}/{}", machine.tenant, machine.name))?;
        self.player.submit(&Command::Enrol(tenant))?;
        self.player.surroundings.heard.insert(tenant, self.player.now.steady);
        Ok((tenant, machine))
    }

    /// Does everything that is due now.
    fn settle(&mut self) -> Result<(), Undone> {
        self.player.settle().map_err(|refusal| clock_refused(&refusal))
    }
}

fn clock_refused(refusal: &Refusal) -> Undone {
    Undone::Broken(format!("the clock was refused: {refusal}"))
}

impl From<Refusal> for Undone {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal.to_string())
    }
}

impl From<BadCommand> for Undone {
    fn from(bad: BadCommand) -> Self {
        Self::Mistaken(bad.to_string())
    }
}

impl From<Unknown> for Undone {
    fn from(unknown: Unknown) -> Self {
        Self::Mistaken(unknown.to_string())
    }
}
