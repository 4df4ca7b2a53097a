//! The loop around a cluster: the first command that is due is decided and applied, until nothing is due.
//!
//! ```text
//!   due ──▶ decide ──▶ evolve ──▶ perform ──┐
//!    ▲                                      │
//!    └──────────────────────────────────────┘ until nothing is due; then the clocks go on by `wait`
//! ```
//!
//! A caller that journals what it decides runs the loop itself, around [`due`] and [`wait`]. A simulation has a [`Player`].

use std::time::Duration;

use forewarn_types::{MachineId, MaintenanceId, Now, Steady, TenantId};

use crate::change::{Change, Effect};
use crate::cluster::Cluster;
use crate::command::{Command, Refusal};
use crate::limits::SILENCE_MAX;
use crate::maintenance::{Action, Report};

/// The facts that the rules cannot know by themselves: the ends of actions, and the last request of each tenant.
pub trait Surroundings {
    /// Takes the next action that has ended, if one has. Each is reported once.
    fn take_completion(&mut self, now: Now) -> Option<Completion>;

    /// The time at which the next action will have ended, as far as that is known.
    fn next_completion(&self) -> Option<Steady>;

    /// The time of the last request of a machine of the tenant, if there was one.
    fn last_heard(&self, tenant: TenantId, now: Now) -> Option<Steady>;

    /// A command that a tenant or an operator gives at this moment, before time alone changes anything.
    fn take_command(&mut self, cluster: &Cluster, now: Now) -> Option<Command> {
        let _ = (cluster, now);
        None
    }
}

/// Surroundings that a [`Player`] drives: they carry out actions, and see every change.
pub trait Simulation: Surroundings {
    /// Begins to carry out an action. It may be asked for again while it is under way, and happens once.
    fn perform(&mut self, cluster: &Cluster, now: Now, action: Action);

    /// A change that was decided and is applied next: the cluster does not show it yet.
    fn on_change(&mut self, cluster: &Cluster, now: Now, change: &Change);
}

/// The end of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The work that the action belongs to.
    pub maintenance: MaintenanceId,
    /// The machine that it was done to.
    pub machine: MachineId,
    /// The result.
    pub report: Report,
}

/// Surroundings without anything: no action ends by itself, and no tenant ever sends a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptySurroundings;

impl Surroundings for EmptySurroundings {
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

/// The command that is due first, if one is: ends of actions come first, then silences, then commands, then time.
pub fn due(cluster: &Cluster, now: Now, surroundings: &mut impl Surroundings) -> Option<Command> {
    if let Some(Completion { maintenance, machine, report }) = surroundings.take_completion(now) {
        return Some(Command::Complete { maintenance, machine, report });
    }
    if let Some(tenant) = cluster.silences_due(now).next() {
        let ago = surroundings.last_heard(tenant, now).map(|heard| now.steady.since(heard));
        let lately = ago.filter(|ago| *ago < SILENCE_MAX);
        return Some(lately.map_or(Command::Silent(tenant), |ago| Command::Heard { tenant, ago }));
    }
    let is_due = || cluster.next_deadline().is_some_and(|deadline| deadline.is_due(now));
    surroundings.take_command(cluster, now).or_else(|| is_due().then_some(Command::Tick))
}

/// The time until something is due by time alone, if no clock is stepped; nothing, if it never is.
pub fn wait(cluster: &Cluster, now: Now, surroundings: &impl Surroundings) -> Option<Duration> {
    let rules = cluster.next_deadline().map(|deadline| deadline.wait(now));
    let actions = surroundings.next_completion().map(|at| at.since(now.steady));
    rules.into_iter().chain(actions).min()
}

/// A cluster in a simulation, with two clocks that stand still unless they are moved.
#[derive(Clone, Debug)]
pub struct Player<S> {
    /// The cluster.
    pub cluster: Cluster,
    /// The clocks.
    pub now: Now,
    /// Machines, tenants and operators.
    pub surroundings: S,
    /// Decided, and not begun yet.
    ordered: Vec<Action>,
}

impl<S: Simulation> Player<S> {
    /// Plays a cluster from that moment on. What is under way there begins with the next [`perform`](Self::perform).
    pub fn new(cluster: Cluster, now: Now, surroundings: S) -> Self {
        let ordered = cluster.unfinished().collect();
        Self { cluster, now, surroundings, ordered }
    }

    /// Decides a command and applies it. Its actions begin with the next [`perform`](Self::perform).
    ///
    /// # Errors
    /// When the rules refuse it; nothing has changed then.
    pub fn submit(&mut self, command: &Command) -> Result<(), Refusal> {
        for change in self.cluster.decide(self.now, command)? {
            self.surroundings.on_change(&self.cluster, self.now, &change);
            for effect in self.cluster.evolve(self.now, &change) {
                match effect {
                    Effect::Perform(action) => self.ordered.push(action),
                    Effect::Publish(_) | Effect::Unpublish(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Decides and applies the command that is due first, without beginning its actions. Returns whether there was one.
    ///
    /// # Errors
    /// When the rules refuse it.
    pub fn decide_due(&mut self) -> Result<bool, Refusal> {
        let Some(command) = due(&self.cluster, self.now, &mut self.surroundings) else { return Ok(false) };
        self.submit(&command)?;
        Ok(true)
    }

    /// Begins the actions that have been decided.
    pub fn perform(&mut self) {
        for action in self.ordered.drain(..) {
            self.surroundings.perform(&self.cluster, self.now, action);
        }
    }

    /// Begins the actions that have been decided, then does the first thing that is due. Returns whether there was one.
    ///
    /// # Errors
    /// When the rules refuse what they asked for.
    pub fn step(&mut self) -> Result<bool, Refusal> {
        self.perform();
        self.decide_due()
    }

    /// Does everything that is due at this moment.
    ///
    /// # Errors
    /// When the rules refuse what they asked for.
    pub fn settle(&mut self) -> Result<(), Refusal> {
        while self.step()? {}
        Ok(())
    }

    /// The time until something is due by time alone; nothing, if it never is.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        wait(&self.cluster, self.now, &self.surroundings)
    }

    /// Moves both clocks on.
    pub fn pass(&mut self, span: Duration) {
        self.now = self.now.plus(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Announcement, Enrolment, FaultDomain, HostId, Name, Placement, Policy, PretendMachines, Priority,
        Profile, Seed, UpdateDomain,
    };

    /// Pretend machines, one tenant that may have been heard, and commands that are given at once.
    #[derive(Default)]
    struct Town {
        machines: PretendMachines,
        heard: Option<Steady>,
        commands: Vec<Command>,
        changes: usize,
    }

    impl Surroundings for Town {
        fn take_completion(&mut self, now: Now) -> Option<Completion> {
            let (maintenance, machine) = self.machines.take_done(now.steady)?;
            Some(Completion { maintenance, machine, report: Report::Done })
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

    impl Simulation for Town {
        fn perform(&mut self, cluster: &Cluster, now: Now, action: Action) {
            self.machines.take_on(cluster, action, now.steady);
        }

        fn on_change(&mut self, _: &Cluster, _: Now, _: &Change) {
            self.changes += 1;
        }
    }

    fn solo() -> Player<Town> {
        let now = Now::at_millis(1_000_000_000_000);
        let mut player = Player::new(Cluster::new(Seed([9; 16])), now, Town::default());
        let name = |text: &str| Name::new(text).unwrap();
        player.submit(&Command::AdmitHost { name: name("h"), zone: None }).unwrap();
        let placement =
            Placement { host: HostId(0), update_domain: UpdateDomain(0), fault_domain: FaultDomain(0) };
        let (priority, profile, policy) = (Priority::Regular, Profile::default(), Policy::default());
        let solo = Command::AdmitStandalone { name: name("solo"), placement, priority, profile, policy };
        player.submit(&solo).unwrap();
        player
    }

    fn enrolled() -> Player<Town> {
        let mut player = solo();
        player.submit(&Command::Enrol(TenantId(0))).unwrap();
        player
    }

    fn announcement(player: &Player<Town>) -> &Announcement {
        &player.cluster.tenant(TenantId(0)).unwrap().events()[0].announcement
    }

    #[test]
    fn a_restart_is_announced_waits_runs_and_ends() {
        let mut player = enrolled();
        player.submit(&Command::Restart(MachineId(0))).unwrap();
        let event = announcement(&player).id;
        player.settle().unwrap();
        assert_eq!(player.wait(), Some(Duration::from_mins(15)));
        player.pass(Duration::from_mins(15));
        player.settle().unwrap();
        assert_eq!(player.cluster.unfinished().count(), 1);
        assert!(player.cluster.event(event).is_some());
        let length = player.wait().unwrap();
        assert!(length < Duration::from_mins(15), "{length:?}");
        player.pass(length);
        player.settle().unwrap();
        assert_eq!(player.cluster.unfinished().count(), 0);
        assert!(player.cluster.event(event).is_none());
        assert!(player.surroundings.changes > 4);
    }

    #[test]
    fn actions_begin_only_when_they_are_performed() {
        let mut player = solo();
        player.submit(&Command::Restart(MachineId(0))).unwrap();
        while player.decide_due().unwrap() {}
        assert_eq!((player.cluster.unfinished().count(), player.surroundings.next_completion()), (1, None));
        player.perform();
        assert_eq!(player.surroundings.next_completion(), Some(player.now.steady));
        player.settle().unwrap();
        assert_eq!(player.cluster.unfinished().count(), 0);
    }

    #[test]
    fn a_silence_is_answered_by_what_was_heard() {
        let mut player = enrolled();
        player.surroundings.heard = Some(player.now.steady.plus(Duration::from_hours(1)));
        assert_eq!(player.wait(), Some(SILENCE_MAX));
        player.pass(SILENCE_MAX);
        let ago = SILENCE_MAX.saturating_sub(Duration::from_hours(1));
        let heard = due(&player.cluster, player.now, &mut player.surroundings);
        assert_eq!(heard, Some(Command::Heard { tenant: TenantId(0), ago }));
        let nothing = due(&player.cluster, player.now, &mut EmptySurroundings);
        assert_eq!(nothing, Some(Command::Silent(TenantId(0))));
        player.settle().unwrap();
        assert_eq!(player.wait(), Some(Duration::from_hours(1)));
        player.pass(Duration::from_hours(1));
        player.settle().unwrap();
        assert_eq!(player.cluster.tenant(TenantId(0)).unwrap().enrolment, Enrolment::Disabled);
        assert_eq!(player.wait(), None);
    }

    #[test]
    fn a_command_that_is_given_at_once_comes_before_the_clock() {
        let mut player = enrolled();
        player.submit(&Command::Restart(MachineId(0))).unwrap();
        player.pass(Duration::from_mins(15));
        player.surroundings.commands.push(Command::Delete(MachineId(0)));
        let first = due(&player.cluster, player.now, &mut player.surroundings);
        assert_eq!(first, Some(Command::Delete(MachineId(0))));
        assert_eq!(due(&player.cluster, player.now, &mut player.surroundings), Some(Command::Tick));
    }
}
