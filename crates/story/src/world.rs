//! The world of a story: the rules, a virtual clock, machines that pretend, and who has polled.
//!
//! Both clocks of the rules run together here, except where a story steps the wall clock. Everything that is due at an
//! instant is done at that instant, before the clock goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_hypervisor::Pretend;
use forewarn_lifecycle::{
    Change, Cluster, Command, Effect, MachineId, Now, Refusal, Report, Seed, Steady, TenantId, Timestamp,
    limits,
};

/// Every story begins at 2026-01-01T00:00:00Z.
const BEGINNING_MILLIS: i64 = 1_767_225_600_000;

/// The secret of event ids in a story: the same story has the same ids.
const SEED: Seed = Seed(*b"forewarn stories");

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) now: Now,
    beginning: Now,
    journal: Vec<(Now, Change)>,
    heard: BTreeMap<TenantId, Steady>,
    machines: Pretend,
    jammed: BTreeSet<MachineId>,
}

impl World {
    pub(crate) fn new() -> Self {
        let now = Now::at_millis(BEGINNING_MILLIS);
        Self {
            cluster: Cluster::new(SEED),
            now,
            beginning: now,
            journal: Vec::new(),
            heard: BTreeMap::new(),
            machines: Pretend::default(),
            jammed: BTreeSet::new(),
        }
    }

    /// How long the story has lasted.
    pub(crate) fn elapsed(&self) -> Duration {
        self.now.steady.since(self.beginning.steady)
    }

    /// How long after the beginning of the story a point of the wall clock lies.
    pub(crate) fn since_beginning(&self, at: Timestamp) -> Duration {
        at.since(self.beginning.wall)
    }

    /// Asks the rules and does what they say.
    pub(crate) fn submit(&mut self, command: &Command) -> Result<(), Refusal> {
        for change in self.cluster.decide(self.now, command)? {
            let effects = self.cluster.evolve(self.now, &change);
            self.journal.push((self.now, change));
            effects.into_iter().for_each(|effect| self.take_on(effect));
        }
        Ok(())
    }

    fn take_on(&mut self, effect: Effect) {
        match effect {
            Effect::Perform(action) => self.machines.take_on(&self.cluster, action, self.now.steady),
            Effect::Publish(_) | Effect::Unpublish(_) => {}
        }
    }

    /// A machine asks for its events.
    pub(crate) fn poll(&mut self, tenant: TenantId) -> Result<(), Refusal> {
        self.submit(&Command::Enrol(tenant))?;
        self.heard.insert(tenant, self.now.steady);
        Ok(())
    }

    /// The next thing that is done to the machine fails.
    pub(crate) fn jam(&mut self, machine: MachineId) {
        self.jammed.insert(machine);
    }

    /// Does everything that is due now.
    pub(crate) fn settle(&mut self) -> Result<(), Refusal> {
        loop {
            let done = self.machines.take_done(self.now.steady);
            let silent = self.cluster.silences_due(self.now).next();
            if let Some((maintenance, machine)) = done {
                let report = if self.jammed.remove(&machine) { Report::Failed } else { Report::Done };
                self.submit(&Command::Complete { maintenance, machine, report })?;
            } else if let Some(tenant) = silent {
                let ago = self.heard.get(&tenant).map(|heard| self.now.steady.since(*heard));
                match ago.filter(|ago| *ago < limits::SILENCE_MAX) {
                    Some(ago) => self.submit(&Command::Heard { tenant, ago })?,
                    None => self.submit(&Command::Silent(tenant))?,
                }
            } else if self.cluster.next_deadline().is_some_and(|deadline| deadline.is_due(self.now)) {
                self.submit(&Command::Tick)?;
            } else {
                return Ok(());
            }
        }
    }

    /// Lets both clocks run to the next instant at which something is due, or to `end`. Says whether `end` is reached.
    pub(crate) fn run_to_next(&mut self, end: Duration) -> bool {
        let left = end.saturating_sub(self.elapsed());
        let deadline = self.cluster.next_deadline().map(|deadline| deadline.wait(self.now));
        let machine = self.machines.next().map(|at| at.since(self.now.steady));
        let step = deadline.into_iter().chain(machine).chain([left]).min().unwrap_or(left);
        self.now.wall = self.now.wall.plus(step);
        self.now.steady = self.now.steady.plus(step);
        step == left
    }

    /// Sets the wall clock, and only that.
    pub(crate) fn set_wall(&mut self, wall: Timestamp) {
        self.now.wall = wall;
    }

    /// The process dies: only the journal is left, and unfinished work is commanded again. Says whether the state that
    /// comes of it is the one that was lost.
    pub(crate) fn crash(&mut self) -> bool {
        let mut cluster = Cluster::new(SEED);
        for (now, change) in &self.journal {
            cluster.evolve(*now, change);
        }
        let same = cluster == self.cluster;
        self.cluster = cluster;
        // A machine that is being worked on is not worked on twice: the action is known by its key.
        let again: Vec<_> = self.cluster.unfinished().collect();
        again.into_iter().for_each(|action| self.take_on(Effect::Perform(action)));
        same
    }
}
