//! The stage without a server: the pure rules, a virtual clock, machines that pretend, and who has polled.
//!
//! Both clocks of the rules run together here, except where a story steps the wall clock. Everything that is due at an
//! instant is done at that instant, before the clock goes on, in the order in which a server does it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_control::{
    BadCommand, Details, MachineView, NamedCommand, Resolved, RolloutView, TenantView, Unknown, document_of,
    find_machine, find_tenant, machine_view, rollout_view, tenant_view,
};
use forewarn_hypervisor::Pretend;
use forewarn_imds::Edition;
use forewarn_lifecycle::{
    Action, Approver, Change, Cluster, Command, Effect, EventId, MachineId, Now, Refusal, Report, Seed,
    Steady, TenantId, Timestamp, limits,
};

use crate::stage::{ClockStep, Stage, Undone};

/// Every story begins at 2026-01-01T00:00:00Z.
const BEGINNING_MILLIS: i64 = 1_767_225_600_000;

/// The secret of event ids in a story: the same story has the same ids.
const SEED: Seed = Seed(*b"forewarn stories");

/// The pure rules as a stage: fifteen minutes of notice take no time.
pub struct Rules {
    cluster: Cluster,
    now: Now,
    beginning: Now,
    journal: Vec<(Now, Change)>,
    heard: BTreeMap<TenantId, Steady>,
    machines: Pretend,
    /// What has been decided and not been asked of machines yet.
    owed: Vec<Action>,
    jammed: BTreeSet<MachineId>,
}

impl Default for Rules {
    fn default() -> Self {
        let now = Now::at_millis(BEGINNING_MILLIS);
        Self {
            cluster: Cluster::new(SEED),
            now,
            beginning: now,
            journal: Vec::new(),
            heard: BTreeMap::new(),
            machines: Pretend::default(),
            owed: Vec::new(),
            jammed: BTreeSet::new(),
        }
    }
}

impl Stage for Rules {
    fn perform(&mut self, command: &NamedCommand) -> Result<(), Undone> {
        match command.resolve(&self.cluster)? {
            Resolved::Rules(command) | Resolved::Admit(command, _) => self.submit(&command)?,
            Resolved::Jam(machine) => drop(self.jammed.insert(machine)),
            // The rules need not know, and no document shows it.
            Resolved::Describe(..) | Resolved::Site(_) => {}
        }
        // What follows from a command is decided before any machine is touched: it is one answer.
        while self.step()? {}
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
        self.submit(&Command::Approve { tenant, events: events.to_vec(), by })?;
        self.settle()
    }

    fn beginning(&self) -> Timestamp {
        self.beginning.wall
    }

    fn elapsed(&self) -> Duration {
        self.now.steady.since(self.beginning.steady)
    }

    fn run_on(&mut self, end: Duration) -> Result<(), Undone> {
        let left = end.saturating_sub(self.elapsed());
        let deadline = self.cluster.next_deadline().map(|deadline| deadline.wait(self.now));
        let machine = self.machines.next().map(|at| at.since(self.now.steady));
        let step = deadline.into_iter().chain(machine).chain([left]).min().unwrap_or(left);
        self.now.wall = self.now.wall.plus(step);
        self.now.steady = self.now.steady.plus(step);
        self.settle()
    }

    fn tenants(&self) -> Result<Vec<TenantView>, Undone> {
        Ok(self.cluster.tenants().filter_map(|(id, _)| tenant_view(&self.cluster, id)).collect())
    }

    fn machines(&self) -> Result<Vec<MachineView>, Undone> {
        let details = Details::default();
        let machines = self.cluster.machines();
        Ok(machines.filter_map(|(id, _)| machine_view(&self.cluster, id, &details)).collect())
    }

    fn rollouts(&self) -> Result<Vec<RolloutView>, Undone> {
        let over = self.cluster.ended_rollouts().map(|(id, _)| id);
        let mut all: Vec<_> = over.chain(self.cluster.rollouts().map(|(id, _)| id)).collect();
        all.sort_unstable();
        Ok(all.into_iter().filter_map(|id| rollout_view(&self.cluster, self.now, id)).collect())
    }

    fn document(&self, tenant: &str) -> Result<Vec<u8>, Undone> {
        let tenant = self.cluster.tenant(find_tenant(&self.cluster, tenant)?);
        Ok(tenant.map(|tenant| document_of(tenant).render(Edition::newest()).into()).unwrap_or_default())
    }

    fn step_clock(&mut self, step: ClockStep) -> Result<(), Undone> {
        let wall = self.now.wall;
        self.now.wall = match step {
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
        for (now, change) in &self.journal {
            cluster.evolve(*now, change);
        }
        if cluster != self.cluster {
            return Err(Undone::Broken("the journal does not give the state that was lost".to_owned()));
        }
        self.cluster = cluster;
        // A machine that is being worked on is not worked on twice: the action is known by its key.
        self.owed.extend(self.cluster.unfinished());
        self.settle()
    }
}

impl Rules {
    /// Asks the rules, and keeps what is owed.
    fn submit(&mut self, command: &Command) -> Result<(), Refusal> {
        for change in self.cluster.decide(self.now, command)? {
            for effect in self.cluster.evolve(self.now, &change) {
                match effect {
                    Effect::Perform(action) => self.owed.push(action),
                    Effect::Publish(_) | Effect::Unpublish(_) => {}
                }
            }
            self.journal.push((self.now, change));
        }
        Ok(())
    }

    /// The machines begin with what is owed.
    fn hand_over(&mut self) {
        for action in self.owed.drain(..) {
            self.machines.take_on(&self.cluster, action, self.now.steady);
        }
    }

    /// Any request of a machine enrols its tenant and breaks the silence, whatever becomes of it.
    fn hear(&mut self, machine: &MachineView) -> Result<(TenantId, MachineId), Undone> {
        let tenant = find_tenant(&self.cluster, &machine.tenant)?;
        let machine = find_machine(&self.cluster, &format!("{}/{}", machine.tenant, machine.name))?;
        self.submit(&Command::Enrol(tenant))?;
        self.heard.insert(tenant, self.now.steady);
        Ok((tenant, machine))
    }

    /// Does everything that is due now.
    fn settle(&mut self) -> Result<(), Undone> {
        self.hand_over();
        while self.step()? {
            self.hand_over();
        }
        Ok(())
    }

    /// Decides the first thing that is due. Says whether there was one.
    fn step(&mut self) -> Result<bool, Undone> {
        let Some(command) = self.due() else { return Ok(false) };
        let refused = |refusal| Undone::Broken(format!("the clock was refused: {refusal}"));
        self.submit(&command).map_err(refused)?;
        Ok(true)
    }

    /// The first thing that is due.
    fn due(&mut self) -> Option<Command> {
        if let Some((maintenance, machine)) = self.machines.take_done(self.now.steady) {
            let report = if self.jammed.remove(&machine) { Report::Failed } else { Report::Done };
            return Some(Command::Complete { maintenance, machine, report });
        }
        if let Some(tenant) = self.cluster.silences_due(self.now).next() {
            let ago = self.heard.get(&tenant).map(|heard| self.now.steady.since(*heard));
            let lately = ago.filter(|ago| *ago < limits::SILENCE_MAX);
            return Some(lately.map_or(Command::Silent(tenant), |ago| Command::Heard { tenant, ago }));
        }
        self.cluster.next_deadline().filter(|deadline| deadline.is_due(self.now)).map(|_| Command::Tick)
    }
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
