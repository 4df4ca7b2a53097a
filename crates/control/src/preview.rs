//! What a rollout would do: played on a copy of the cluster, with the real rules.
//!
//! Once nobody approves, so that every notice runs out: the longest course. Once everybody approves at once: the shortest.
//! Machines take as long as they usually do, hosts stay well, nothing fails, and whoever has to say that it may go on says
//! so at once. Whatever else is announced or under way goes on beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_lifecycle::{
    Action, Approver, Brake, Cause, Change, Cluster, Command, Effect, EventId, HostId, HostWork, MachineId,
    MaintenanceId, Now, Plan, Refusal, Report, RolloutId, Standing, Steady, TenantId, Terms,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::resolve::BadCommand;
use crate::command::terms::RolloutEntry;
use crate::view::rollout::{waits, work_word};
use forewarn_types::{Moment, Span};

/// What a rollout would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewView {
    /// What is done, in words.
    pub work: String,
    /// Over how many hosts.
    pub hosts: usize,
    /// When nobody approves.
    pub longest: CourseView,
    /// When everybody approves at once.
    pub shortest: CourseView,
    /// What the preview leaves out of account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One course of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CourseView {
    /// Group by group.
    pub steps: Vec<StepView>,
    /// From now to the end of the last step.
    pub lasts: Span,
    /// Why it does not come to an end, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<String>,
}

/// A group of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    /// Which hosts.
    pub hosts: Vec<String>,
    /// When its tenants are told.
    pub announced: Moment,
    /// When the work starts.
    pub starts: Moment,
    /// When it is over.
    pub ends: Moment,
    /// What each tenant sees.
    pub tenants: Vec<TenantStepView>,
}

/// What a tenant sees of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TenantStepView {
    /// Who.
    pub tenant: String,
    /// The kind of its event, as in a document; nothing, if it is not enrolled and so not told.
    pub event: Option<String>,
    /// The update domain that is worked on.
    pub update_domain: u16,
    /// Its machines.
    pub machines: Vec<String>,
}

/// Why there is no preview.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPreview {
    /// The command names something that is not there.
    #[error(transparent)]
    Bad(#[from] BadCommand),
    /// The rules would refuse it.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Groups that a preview shows of one course.
const STEPS_MAX: usize = 1_000;

/// Decisions that a preview makes for one course.
const DECISIONS_MAX: usize = 200_000;

/// How far a preview looks ahead: 90 days.
const HORIZON: Duration = Duration::from_hours(90 * 24);

/// What a rollout would do if it were started now.
///
/// # Errors
/// When it would be refused.
pub fn preview(cluster: &Cluster, now: Now, entry: &RolloutEntry) -> Result<PreviewView, NoPreview> {
    let work = HostWork::from(entry.work);
    let hosts = entry.hosts.resolve(cluster).map_err(BadCommand::from)?;
    let count = hosts.iter().collect::<BTreeSet<_>>().len();
    let terms = entry.terms.apply(&Terms::default()).map_err(BadCommand::from)?;
    let command = Command::Rollout { work, hosts, terms };
    let mut notes = Vec::new();
    if cluster.brake() == Brake::On {
        notes.push("the brake is on: this is how it goes once it is let go".to_owned());
    }
    Ok(PreviewView {
        work: work_word(work).to_owned(),
        hosts: count,
        longest: Play::new(cluster, now, Approvals::None).course(&command)?,
        shortest: Play::new(cluster, now, Approvals::AtOnce).course(&command)?,
        notes,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Approvals {
    None,
    AtOnce,
}

/// A cluster that is only played with.
struct Play {
    cluster: Cluster,
    now: Now,
    beginning: Now,
    approvals: Approvals,
    busy: BTreeSet<(Steady, MaintenanceId, MachineId)>,
    rollout: Option<RolloutId>,
    steps: BTreeMap<MaintenanceId, StepView>,
    /// Events of the rollout that nobody has approved yet.
    unapproved: Vec<(TenantId, EventId)>,
}

impl Play {
    fn new(cluster: &Cluster, now: Now, approvals: Approvals) -> Self {
        let mut play = Self {
            cluster: cluster.clone(),
            now,
            beginning: now,
            approvals,
            busy: BTreeSet::new(),
            rollout: None,
            steps: BTreeMap::new(),
            unapproved: Vec::new(),
        };
        let unfinished: Vec<_> = play.cluster.unfinished().collect();
        unfinished.into_iter().for_each(|action| play.take_on(action));
        play
    }

    fn course(mut self, command: &Command) -> Result<CourseView, Refusal> {
        self.submit(&Command::Brake(Brake::Off))?;
        self.submit(command)?;
        let mut stuck = None;
        for _ in 0..DECISIONS_MAX {
            if self.is_over() {
                return Ok(self.told(None));
            }
            if self.steps.len() >= STEPS_MAX {
                stuck = Some(format!("only the first {STEPS_MAX} steps are shown"));
                break;
            }
            let Some(command) = self.next_command() else {
                if self.run_on() {
                    continue;
                }
                stuck = Some(self.standing());
                break;
            };
            self.submit(&command)?;
        }
        let stuck = stuck.unwrap_or_else(|| "it takes longer than a preview looks ahead".to_owned());
        Ok(self.told(Some(stuck)))
    }

    fn is_over(&self) -> bool {
        self.rollout.is_none_or(|id| self.cluster.rollout(id).is_none())
    }

    fn told(self, stuck: Option<String>) -> CourseView {
        let steps: Vec<_> = self.steps.into_values().collect();
        let last = steps.iter().map(|step| step.ends.0).max().unwrap_or(self.beginning.wall);
        CourseView { steps, lasts: Span(last.since(self.beginning.wall)), stuck }
    }

    /// What the rollout waits for.
    fn standing(&self) -> String {
        let known = self.rollout.and_then(|id| self.cluster.rollout(id));
        let words = known.map(|known| waits(&self.cluster, self.now, known, known.standing));
        words.unwrap_or_else(|| "it does not go on".to_owned())
    }

    /// What is to be done at this moment.
    fn next_command(&mut self) -> Option<Command> {
        if let Some(&(at, maintenance, machine)) = self.busy.first()
            && at <= self.now.steady
        {
            self.busy.pop_first();
            return Some(Command::Complete { maintenance, machine, report: Report::Done });
        }
        if let Some(tenant) = self.cluster.silences_due(self.now).next() {
            return Some(Command::Heard { tenant, ago: Duration::ZERO });
        }
        while let Some((tenant, event)) = self.unapproved.pop() {
            if self.approvals == Approvals::AtOnce && self.cluster.event(event).is_some() {
                return Some(Command::Approve { tenant, events: vec![event], by: Approver::Owner });
            }
        }
        let rollout = self.rollout.and_then(|id| self.cluster.rollout(id));
        if let (Some(id), Some(Standing::Unconfirmed)) = (self.rollout, rollout.map(|known| known.standing)) {
            return Some(Command::ResumeRollout(id));
        }
        self.cluster.next_deadline().filter(|deadline| deadline.is_due(self.now)).map(|_| Command::Tick)
    }

    /// Lets the clocks run to the next moment at which something is to be done. Says whether there is one.
    fn run_on(&mut self) -> bool {
        let deadline = self.cluster.next_deadline().map(|deadline| deadline.wait(self.now));
        let machine = self.busy.first().map(|(at, ..)| at.since(self.now.steady));
        let Some(step) = deadline.into_iter().chain(machine).min() else { return false };
        let elapsed = self.now.steady.since(self.beginning.steady);
        if elapsed.saturating_add(step) > HORIZON {
            return false;
        }
        self.now = Now { wall: self.now.wall.plus(step), steady: self.now.steady.plus(step) };
        true
    }

    fn submit(&mut self, command: &Command) -> Result<(), Refusal> {
        for change in self.cluster.decide(self.now, command)? {
            self.note(&change);
            for effect in self.cluster.evolve(self.now, &change) {
                match effect {
                    Effect::Perform(action) => self.take_on(action),
                    Effect::Publish(_) | Effect::Unpublish(_) => {}
                }
            }
        }
        Ok(())
    }

    fn take_on(&mut self, action: Action) {
        let tenant = self.cluster.machine(action.machine).map(|machine| machine.tenant);
        let work = self.cluster.maintenance(action.maintenance);
        let part = work.zip(tenant).and_then(|(work, tenant)| work.plan.part(tenant));
        let length = action.impact.usual_length(part.and_then(|part| part.announcement.as_deref()));
        self.busy.insert((self.now.steady.plus(length), action.maintenance, action.machine));
    }

    /// Writes down what a change means for the rollout; it has not been applied.
    fn note(&mut self, change: &Change) {
        if let Change::RolloutPlanned { rollout, .. } = change {
            self.rollout = Some(*rollout);
        }
        if let Change::Started { maintenance, .. } = change
            && let Some(step) = self.steps.get_mut(maintenance)
        {
            (step.starts, step.ends) = (Moment(self.now.wall), Moment(self.now.wall));
        }
        if let Change::Completed { maintenance, .. } = change
            && let Some(step) = self.steps.get_mut(maintenance)
        {
            step.ends = Moment(self.now.wall);
        }
        if let Change::Planned(plan) = change
            && let Cause::HostWork { rollout, hosts, .. } = &plan.cause
            && Some(*rollout) == self.rollout
        {
            self.announced(plan, hosts);
        }
    }

    fn announced(&mut self, plan: &Plan, hosts: &[HostId]) {
        let cluster = &self.cluster;
        let host = |id: &HostId| cluster.host(*id).map(|host| host.name.to_string());
        let machine = |id: &MachineId| cluster.machine(*id).map(|machine| machine.name.to_string());
        let parts = plan.parts.iter().map(|part| TenantStepView {
            tenant: cluster.tenant(part.tenant).map(|tenant| tenant.name.to_string()).unwrap_or_default(),
            event: part.announcement.as_ref().map(|told| told.kind.as_str().to_owned()),
            update_domain: part.update_domain.0,
            machines: part.machines.iter().filter_map(machine).collect(),
        });
        let now = Moment(self.now.wall);
        let step = StepView {
            hosts: hosts.iter().filter_map(host).collect(),
            announced: now,
            starts: now,
            ends: now,
            tenants: parts.collect(),
        };
        self.steps.insert(plan.id, step);
        let events = plan.parts.iter().filter_map(|part| Some((part.tenant, part.announcement.as_ref()?.id)));
        self.unapproved.extend(events);
    }
}
