//! A cluster as the server runs it, in virtual time: decisions of the control plane, and simulated machines.
//!
//! Each command is decided on a copy of the state that readers keep, with records and audit entries. Nothing is stored
//! or published.

use std::collections::{BTreeSet, VecDeque};
use std::error::Error;
use std::num::NonZeroU16;
use std::sync::Arc;

use forewarn_control::request::ClusterRequest;
use forewarn_control::shared::SharedState;
use forewarn_control::{
    Chain, ClusterId, ClusterState, ControlError, Decision, Effect, Environment, HypervisorKind,
    RestoringCluster, StateRow, decide_in_cluster,
};
use forewarn_lifecycle::simulator::{self, Completion};
use forewarn_lifecycle::{
    Action, Approver, Cluster, Command, Event, HostWork, Now, Report, RolloutId, RolloutTerms, Row, Seed,
    SimulatedMachines, Steady, TenantId,
};

use crate::arguments::Starts;
use crate::fleet::MACHINES_PER_HOST;

type Decided = Result<Decision<ClusterState>, ControlError>;

const CLUSTER: ClusterId = ClusterId(0);

/// A cluster of a server in virtual time, with simulated machines.
pub(crate) struct Control {
    state: Arc<ClusterState>,
    shared: Arc<SharedState>,
    now: Now,
    audit: Chain,
    revision: u64,
    outside: Outside,
    pub(crate) counts: Counts,
}

/// Decided commands, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) completions: u64,
    pub(crate) approvals: u64,
    pub(crate) ticks: u64,
}

/// Machines that carry out actions, and tenants that approve.
struct Outside {
    machines: SimulatedMachines,
    /// Tenants that have something new to read.
    readers: VecDeque<TenantId>,
    starts: Starts,
}

impl simulator::Environment for Outside {
    fn take_completion(&mut self, now: Now) -> Option<Completion> {
        let Action { maintenance, target, .. } = self.machines.take_finished(now.steady)?;
        Some(Completion { maintenance, target, report: Report::Done })
    }

    fn next_completion(&self) -> Option<Steady> {
        self.machines.next()
    }

    fn last_heard(&self, _: TenantId, now: Now) -> Option<Steady> {
        Some(now.steady)
    }

    fn take_command(&mut self, cluster: &Cluster, _: Now) -> Option<Command> {
        while let Some(tenant) = self.readers.pop_front() {
            let events = cluster.tenant(tenant).map_or(&[][..], |tenant| tenant.events());
            let events: Vec<_> = events.iter().filter(|event| event.is_unapproved()).map(Event::id).collect();
            if self.starts == Starts::Approved && !events.is_empty() {
                return Some(Command::Approve { tenant, events, by: Approver::Owner });
            }
        }
        None
    }
}

impl Control {
    /// A cluster with the stored state of these rules.
    pub(crate) fn load(now: Now, rows: Vec<Row>, starts: Starts) -> Result<Self, Box<dyn Error>> {
        let mut restoring = RestoringCluster::new(CLUSTER);
        rows.into_iter().try_for_each(|row| restoring.add(StateRow::Rules(row)))?;
        Ok(Self {
            state: Arc::new(restoring.finish()?),
            shared: Arc::new(SharedState::new(Seed([8; 16]))),
            now,
            audit: Chain::default(),
            revision: 0,
            outside: Outside { machines: SimulatedMachines::default(), readers: VecDeque::new(), starts },
            counts: Counts::default(),
        })
    }

    /// Updates every host, in groups of at most that many machines, until the rollout has ended. Returns the number of
    /// groups.
    pub(crate) fn update_every_host(&mut self, group: u32) -> Result<u32, Box<dyn Error>> {
        let hosts = self.state.rules().hosts().map(|(id, _)| id).collect();
        let hosts_at_once = NonZeroU16::new(u16::try_from(group / MACHINES_PER_HOST)?);
        let terms = RolloutTerms { hosts_at_once, ..RolloutTerms::default() };
        let rollout = self.state.rules().next_rollout();
        self.decide(Command::Rollout { work: HostWork::Update.into(), hosts, terms })?;
        loop {
            let rules = self.state.rules();
            if let Some(command) = simulator::due(rules, self.now, &mut self.outside) {
                self.decide(command)?;
            } else if rules.rollout(rollout).is_none() {
                return self.groups_of(rollout);
            } else {
                let wait = simulator::wait(rules, self.now, &self.outside);
                self.now = self.now.plus(wait.ok_or("the rollout does not go on")?);
            }
        }
    }

    fn groups_of(&self, rollout: RolloutId) -> Result<u32, Box<dyn Error>> {
        let ended = self.state.rules().ended_rollout(rollout).ok_or("the rollout is not remembered")?;
        Ok(ended.rollout.groups)
    }

    fn decide(&mut self, command: Command) -> Result<(), ControlError> {
        let decision = if let Command::Complete { maintenance: work, target, report } = command {
            measured_completion(self, &ClusterRequest::Report { work, target, report, reason: None })
        } else if let Command::Approve { .. } = command {
            measured_approval(self, &ClusterRequest::Rules(command))
        } else {
            measured_tick(self, &ClusterRequest::Rules(command))
        }?;
        (self.state, self.audit) = (decision.state, decision.audit_end);
        self.revision += 1;
        for effect in decision.effects {
            if let Effect::Perform(_, action) = effect {
                self.outside.machines.begin(self.state.rules(), action, self.now.steady);
            } else if let Effect::Publish(_, tenant) = effect {
                self.outside.readers.push_back(tenant);
            }
        }
        Ok(())
    }
}

/// Each kind of command has a function of its own, which the profiler finds by its name. They count different things,
/// so that the compiler does not make one function of them.
#[inline(never)]
fn measured_completion(control: &mut Control, request: &ClusterRequest) -> Decided {
    control.counts.completions += 1;
    decide(control, request)
}

#[inline(never)]
fn measured_approval(control: &mut Control, request: &ClusterRequest) -> Decided {
    control.counts.approvals += 1;
    decide(control, request)
}

#[inline(never)]
fn measured_tick(control: &mut Control, request: &ClusterRequest) -> Decided {
    control.counts.ticks += 1;
    decide(control, request)
}

fn decide(control: &Control, request: &ClusterRequest) -> Decided {
    let environment = Environment {
        now: control.now,
        audit: control.audit,
        hypervisor: HypervisorKind::Simulated,
        revision: control.revision,
        jammed: &BTreeSet::new(),
    };
    decide_in_cluster(CLUSTER, &control.state, &control.shared, &environment, request)
}
