//! The loop around a cluster: decide and apply the first due command, until nothing is due.
//!
//! ```text
//!   due ──▶ decide ──▶ evolve ──▶ perform ──┐
//!    ▲                                      │
//!    └──────────────────────────────────────┘ until nothing is due; then the clocks go on by `wait`
//! ```
//!
//! A caller that journals its decisions runs the loop itself, around [`due`] and [`wait`]. A simulation uses a
//! [`Simulator`].

use std::time::Duration;

use forewarn_types::{MaintenanceId, Now, Steady, TenantId};

use crate::action::{Action, Report};
use crate::change::{Change, Effect};
use crate::cluster::Cluster;
use crate::command::Command;
use crate::host_step::Target;
use crate::limits::SILENCE_MAX;
use crate::refusal::Refusal;

/// Facts from outside the rules: completed actions, and the last request of each tenant.
pub trait Environment {
    /// Takes the next completed action, if there is one. Each is reported once.
    fn take_completion(&mut self, now: Now) -> Option<Completion>;

    /// The time at which the next action completes, if it is known.
    fn next_completion(&self) -> Option<Steady>;

    /// The time of the last request of a machine of the tenant, if there was one.
    fn last_heard(&self, tenant: TenantId, now: Now) -> Option<Steady>;

    /// A command that a tenant or an operator gives at this moment, before time alone changes anything.
    fn take_command(&mut self, cluster: &Cluster, now: Now) -> Option<Command> {
        let _ = (cluster, now);
        None
    }
}

/// An environment for a [`Simulator`]: it carries out actions and observes every change.
pub trait Simulation: Environment {
    /// Begins an action. It may be requested again while it is in progress, and happens once.
    fn perform(&mut self, cluster: &Cluster, now: Now, action: Action);

    /// Observes a change that is about to be applied: `cluster` does not include it yet.
    fn on_change(&mut self, cluster: &Cluster, now: Now, change: &Change);

    /// Observes all changes of a decision, before the first of them.
    fn on_decision(&mut self, changes: &[Change]) {
        let _ = changes;
    }

    /// Observes an effect of a change that has been applied.
    fn on_effect(&mut self, effect: &Effect) {
        let _ = effect;
    }
}

/// A completed action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The work that the action belongs to.
    pub maintenance: MaintenanceId,
    /// The machine or the host that it was done to.
    pub target: Target,
    /// The result.
    pub report: Report,
}

/// An empty environment: no action completes, and no tenant ever sends a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptyEnvironment;

impl Environment for EmptyEnvironment {
    fn take_completion(&mut self, _: Now) -> Option<Completion> {
        None
    }

    fn next_completion(&self) -> Option<Steady> {
        None
    }

    fn last_heard(&self, _: TenantId, _: Now) -> Option<Steady> {
        None
    }
}

/// The first due command: completed actions come first, then silences, then external commands, then time.
pub fn due(cluster: &Cluster, now: Now, environment: &mut impl Environment) -> Option<Command> {
    if let Some(Completion { maintenance, target, report }) = environment.take_completion(now) {
        return Some(Command::Complete { maintenance, target, report });
    }
    if let Some(tenant) = cluster.silences_due(now).next() {
        let ago = environment.last_heard(tenant, now).map(|heard| now.steady.since(heard));
        let lately = ago.filter(|ago| *ago < SILENCE_MAX);
        return Some(lately.map_or(Command::Silent(tenant), |ago| Command::Heard { tenant, ago }));
    }
    let is_due = || cluster.next_deadline().is_some_and(|deadline| deadline.is_due(now));
    environment.take_command(cluster, now).or_else(|| is_due().then_some(Command::Tick))
}

/// The time until the next deadline, if no clock is stepped; `None` if there is none.
pub fn wait(cluster: &Cluster, now: Now, environment: &impl Environment) -> Option<Duration> {
    let rules = cluster.next_deadline().map(|deadline| deadline.wait(now));
    let actions = environment.next_completion().map(|at| at.since(now.steady));
    rules.into_iter().chain(actions).min()
}

/// A cluster in a simulation, with two clocks that stand still unless they are moved.
#[derive(Clone, Debug)]
pub struct Simulator<S> {
    /// The cluster.
    pub cluster: Cluster,
    /// The clocks.
    pub now: Now,
    /// Simulated machines, tenants and operators.
    pub environment: S,
    /// Actions that were decided and have not begun.
    ordered: Vec<Action>,
}

impl<S: Simulation> Simulator<S> {
    /// Simulates a cluster from that moment on. Unfinished actions begin with the next [`perform`](Self::perform).
    pub fn new(cluster: Cluster, now: Now, environment: S) -> Self {
        let ordered = cluster.unfinished().collect();
        Self { cluster, now, environment, ordered }
    }

    /// Decides a command and applies it. Its actions begin with the next [`perform`](Self::perform).
    ///
    /// # Errors
    /// The refusal of the rules; the state is unchanged.
    pub fn submit(&mut self, command: &Command) -> Result<(), Refusal> {
        let changes = self.cluster.decide(self.now, command)?;
        self.environment.on_decision(&changes);
        for change in changes {
            self.environment.on_change(&self.cluster, self.now, &change);
            for effect in self.cluster.evolve(self.now, &change) {
                self.environment.on_effect(&effect);
                match effect {
                    Effect::Perform(action) => self.ordered.push(action),
                    Effect::Publish(_) | Effect::Unpublish(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Decides and applies the first due command, without beginning its actions. Returns whether there was one.
    ///
    /// # Errors
    /// The refusal of the rules.
    pub fn decide_due(&mut self) -> Result<bool, Refusal> {
        let Some(command) = due(&self.cluster, self.now, &mut self.environment) else { return Ok(false) };
        self.submit(&command)?;
        Ok(true)
    }

    /// Begins the actions that have been decided.
    pub fn perform(&mut self) {
        for action in self.ordered.drain(..) {
            self.environment.perform(&self.cluster, self.now, action);
        }
    }

    /// Begins the decided actions, then handles the first due command. Returns whether there was one.
    ///
    /// # Errors
    /// The refusal of a command that the rules themselves made due.
    pub fn step(&mut self) -> Result<bool, Refusal> {
        self.perform();
        self.decide_due()
    }

    /// Handles everything that is due now.
    ///
    /// # Errors
    /// The refusal of a command that the rules themselves made due.
    pub fn settle(&mut self) -> Result<(), Refusal> {
        while self.step()? {}
        Ok(())
    }

    /// The time until the next deadline, if no clock is stepped; `None` if there is none.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        wait(&self.cluster, self.now, &self.environment)
    }

    /// Advances both clocks.
    pub fn pass(&mut self, span: Duration) {
        self.now = self.now.plus(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::Size;
    use crate::{
        Announcement, Enrolment, FaultDomain, HostId, MachineId, Name, Placement, Policy, Priority, Profile,
        Seed, SimulatedMachines, UpdateDomain,
    };

    /// Simulated machines, one tenant with an optional request time, and external commands.
    #[derive(Default)]
    struct TestEnvironment {
        machines: SimulatedMachines,
        heard: Option<Steady>,
        commands: Vec<Command>,
        changes: usize,
    }

    impl Environment for TestEnvironment {
        fn take_completion(&mut self, now: Now) -> Option<Completion> {
            let Action { maintenance, target, .. } = self.machines.take_finished(now.steady)?;
            Some(Completion { maintenance, target, report: Report::Done })
        }

        fn next_completion(&self) -> Option<Steady> {
            self.machines.next()
        }

        fn last_heard(&self, _: TenantId, _: Now) -> Option<Steady> {
            self.heard
        }

        fn take_command(&mut self, _: &Cluster, _: Now) -> Option<Command> {
            self.commands.pop()
        }
    }

    impl Simulation for TestEnvironment {
        fn perform(&mut self, cluster: &Cluster, now: Now, action: Action) {
            self.machines.begin(cluster, action, now.steady);
        }

        fn on_change(&mut self, _: &Cluster, _: Now, _: &Change) {
            self.changes += 1;
        }
    }

    fn solo() -> Simulator<TestEnvironment> {
        let now = Now::at_millis(1_000_000_000_000);
        let mut simulator = Simulator::new(Cluster::new(Seed([9; 16])), now, TestEnvironment::default());
        let name = |text: &str| Name::new(text).unwrap();
        simulator.submit(&Command::AdmitHost { name: name("h"), zone: None, capacity: Size::NONE }).unwrap();
        let placement = Placement {
            host: HostId(0),
            update_domain: UpdateDomain(0),
            fault_domain: FaultDomain(0),
            size: Size::NONE,
        };
        let (priority, profile, policy) = (Priority::Regular, Profile::default(), Policy::default());
        let solo = Command::AdmitStandalone { name: name("solo"), placement, priority, profile, policy };
        simulator.submit(&solo).unwrap();
        simulator
    }

    fn enrolled() -> Simulator<TestEnvironment> {
        let mut simulator = solo();
        simulator.submit(&Command::Enrol(TenantId(0))).unwrap();
        simulator
    }

    fn announcement(simulator: &Simulator<TestEnvironment>) -> &Announcement {
        &simulator.cluster.tenant(TenantId(0)).unwrap().events()[0].announcement
    }

    #[test]
    fn a_restart_is_announced_waits_runs_and_ends() {
        let mut simulator = enrolled();
        simulator.submit(&Command::Restart(MachineId(0))).unwrap();
        let event = announcement(&simulator).id;
        simulator.settle().unwrap();
        assert_eq!(simulator.wait(), Some(Duration::from_mins(15)));
        simulator.pass(Duration::from_mins(15));
        simulator.settle().unwrap();
        assert_eq!(simulator.cluster.unfinished().count(), 1);
        assert!(simulator.cluster.event(event).is_some());
        let length = simulator.wait().unwrap();
        assert!(length < Duration::from_mins(15), "{length:?}");
        simulator.pass(length);
        simulator.settle().unwrap();
        assert_eq!(simulator.cluster.unfinished().count(), 0);
        assert!(simulator.cluster.event(event).is_none());
        assert!(simulator.environment.changes > 4);
    }

    #[test]
    fn actions_begin_only_when_they_are_performed() {
        let mut simulator = solo();
        simulator.submit(&Command::Restart(MachineId(0))).unwrap();
        while simulator.decide_due().unwrap() {}
        assert_eq!(
            (simulator.cluster.unfinished().count(), simulator.environment.next_completion()),
            (1, None)
        );
        simulator.perform();
        assert_eq!(simulator.environment.next_completion(), Some(simulator.now.steady));
        simulator.settle().unwrap();
        assert_eq!(simulator.cluster.unfinished().count(), 0);
    }

    #[test]
    fn a_silence_check_uses_the_last_request() {
        let mut simulator = enrolled();
        simulator.environment.heard = Some(simulator.now.steady.plus(Duration::from_hours(1)));
        assert_eq!(simulator.wait(), Some(SILENCE_MAX));
        simulator.pass(SILENCE_MAX);
        let ago = SILENCE_MAX.saturating_sub(Duration::from_hours(1));
        let heard = due(&simulator.cluster, simulator.now, &mut simulator.environment);
        assert_eq!(heard, Some(Command::Heard { tenant: TenantId(0), ago }));
        let nothing = due(&simulator.cluster, simulator.now, &mut EmptyEnvironment);
        assert_eq!(nothing, Some(Command::Silent(TenantId(0))));
        simulator.settle().unwrap();
        assert_eq!(simulator.wait(), Some(Duration::from_hours(1)));
        simulator.pass(Duration::from_hours(1));
        simulator.settle().unwrap();
        assert_eq!(simulator.cluster.tenant(TenantId(0)).unwrap().enrolment, Enrolment::Disabled);
        assert_eq!(simulator.wait(), None);
    }

    #[test]
    fn an_external_command_comes_before_the_clock() {
        let mut simulator = enrolled();
        simulator.submit(&Command::Restart(MachineId(0))).unwrap();
        simulator.pass(Duration::from_mins(15));
        simulator.environment.commands.push(Command::Delete(MachineId(0)));
        let first = due(&simulator.cluster, simulator.now, &mut simulator.environment);
        assert_eq!(first, Some(Command::Delete(MachineId(0))));
        assert_eq!(due(&simulator.cluster, simulator.now, &mut simulator.environment), Some(Command::Tick));
    }
}
