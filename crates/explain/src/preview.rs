//! What a rollout would do: played on a copy of the cluster, with the real rules.
//!
//! Once nobody approves, so that every notice runs out: the longest course. Once everybody approves at once: the shortest.
//! Machines take as long as they usually do, hosts stay well, nothing fails, and whoever has to say that it may go on says
//! so at once. Whatever else is announced or under way goes on beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_control::view::wording::{waits, work_word};
use forewarn_control::{BadCommand, RolloutEntry};
use forewarn_lifecycle::player::{Completion, Player, Simulation, Surroundings};
use forewarn_lifecycle::{
    Action, Approver, Brake, Cause, Change, Cluster, Command, EventId, HostId, HostWork, MachineId,
    MaintenanceId, Now, Plan, PretendMachines, Refusal, Report, RolloutId, RolloutTerms, Standing, Steady,
    TenantId,
};
use forewarn_types::{Moment, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    let terms = entry.terms.apply(&RolloutTerms::default()).map_err(BadCommand::from)?;
    let command = Command::Rollout { work, hosts, terms };
    let mut notes = Vec::new();
    if cluster.brake() == Brake::On {
        notes.push("the brake is on: this is how it goes once it is let go".to_owned());
    }
    Ok(PreviewView {
        work: work_word(work).to_owned(),
        hosts: count,
        longest: course(cluster, now, Approvals::None, &command)?,
        shortest: course(cluster, now, Approvals::AtOnce, &command)?,
        notes,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Approvals {
    None,
    AtOnce,
}

/// A rollout, simulated on a copy of a cluster.
type Preview = Player<Course>;

/// The surroundings of a simulated rollout, and what is known of its course.
struct Course {
    approvals: Approvals,
    machines: PretendMachines,
    rollout: Option<RolloutId>,
    steps: BTreeMap<MaintenanceId, StepView>,
    /// Events of the rollout that nobody has approved yet.
    unapproved: Vec<(TenantId, EventId)>,
}

/// Simulates a rollout to its end, or as far as a preview looks ahead.
fn course(
    cluster: &Cluster,
    beginning: Now,
    approvals: Approvals,
    command: &Command,
) -> Result<CourseView, Refusal> {
    let mut preview = Player::new(cluster.clone(), beginning, Course::new(approvals));
    preview.perform();
    preview.submit(&Command::Brake(Brake::Off))?;
    preview.submit(command)?;
    let mut stuck = None;
    for _ in 0..DECISIONS_MAX {
        if is_over(&preview) {
            return Ok(preview.surroundings.view(beginning, None));
        }
        if preview.surroundings.steps.len() >= STEPS_MAX {
            stuck = Some(format!("only the first {STEPS_MAX} steps are shown"));
            break;
        }
        if !preview.step()? && !run_on(&mut preview, beginning) {
            stuck = Some(standing(&preview));
            break;
        }
    }
    let stuck = stuck.unwrap_or_else(|| "it takes longer than a preview looks ahead".to_owned());
    Ok(preview.surroundings.view(beginning, Some(stuck)))
}

fn is_over(preview: &Preview) -> bool {
    preview.surroundings.rollout.is_none_or(|id| preview.cluster.rollout(id).is_none())
}

/// Lets the clocks run to the next moment at which something is due. Returns whether a preview looks that far ahead.
fn run_on(preview: &mut Preview, beginning: Now) -> bool {
    let elapsed = preview.now.steady.since(beginning.steady);
    let step = preview.wait().filter(|step| elapsed.saturating_add(*step) <= HORIZON);
    if let Some(step) = step {
        preview.pass(step);
    }
    step.is_some()
}

/// The reason why the rollout waits, in words.
fn standing(preview: &Preview) -> String {
    let known = preview.surroundings.rollout.and_then(|id| preview.cluster.rollout(id));
    let words = known.map(|known| waits(&preview.cluster, preview.now, known, known.standing));
    words.unwrap_or_else(|| "it does not go on".to_owned())
}

impl Surroundings for Course {
    fn take_completion(&mut self, now: Now) -> Option<Completion> {
        let (maintenance, machine) = self.machines.take_done(now.steady)?;
        Some(Completion { maintenance, machine, report: Report::Done })
    }

    fn next_completion(&self) -> Option<Steady> {
        self.machines.next()
    }

    /// Every tenant goes on asking.
    fn last_heard(&self, _: TenantId, now: Now) -> Option<Steady> {
        Some(now.steady)
    }

    /// Approvals, and the confirmation that the rollout may go on.
    fn take_command(&mut self, cluster: &Cluster, _: Now) -> Option<Command> {
        while let Some((tenant, event)) = self.unapproved.pop() {
            if self.approvals == Approvals::AtOnce && cluster.event(event).is_some() {
                return Some(Command::Approve { tenant, events: vec![event], by: Approver::Owner });
            }
        }
        let id = self.rollout?;
        let standing = cluster.rollout(id)?.standing;
        (standing == Standing::Unconfirmed).then_some(Command::ResumeRollout(id))
    }
}

impl Simulation for Course {
    fn perform(&mut self, cluster: &Cluster, now: Now, action: Action) {
        self.machines.take_on(cluster, action, now.steady);
    }

    /// Notes what a change means for the rollout.
    fn on_change(&mut self, cluster: &Cluster, now: Now, change: &Change) {
        if let Change::RolloutPlanned { rollout, .. } = change {
            self.rollout = Some(*rollout);
        }
        if let Change::Started { maintenance, .. } = change
            && let Some(step) = self.steps.get_mut(maintenance)
        {
            (step.starts, step.ends) = (Moment(now.wall), Moment(now.wall));
        }
        if let Change::Completed { maintenance, .. } = change
            && let Some(step) = self.steps.get_mut(maintenance)
        {
            step.ends = Moment(now.wall);
        }
        if let Change::Planned(plan) = change
            && let Cause::HostWork { rollout, hosts, .. } = &plan.cause
            && Some(*rollout) == self.rollout
        {
            self.add_step(cluster, now, plan, hosts);
        }
    }
}

impl Course {
    fn new(approvals: Approvals) -> Self {
        Self {
            approvals,
            machines: PretendMachines::default(),
            rollout: None,
            steps: BTreeMap::new(),
            unapproved: Vec::new(),
        }
    }

    fn view(self, beginning: Now, stuck: Option<String>) -> CourseView {
        let steps: Vec<_> = self.steps.into_values().collect();
        let last = steps.iter().map(|step| step.ends.0).max().unwrap_or(beginning.wall);
        CourseView { steps, lasts: Span(last.since(beginning.wall)), stuck }
    }

    /// A group was announced.
    fn add_step(&mut self, cluster: &Cluster, now: Now, plan: &Plan, hosts: &[HostId]) {
        let host = |id: &HostId| cluster.host(*id).map(|host| host.name.to_string());
        let machine = |id: &MachineId| cluster.machine(*id).map(|machine| machine.name.to_string());
        let parts = plan.parts.iter().map(|part| TenantStepView {
            tenant: cluster.tenant(part.tenant).map(|tenant| tenant.name.to_string()).unwrap_or_default(),
            event: part.announcement.as_ref().map(|told| told.kind.as_str().to_owned()),
            update_domain: part.update_domain.0,
            machines: part.machines.iter().filter_map(machine).collect(),
        });
        let now = Moment(now.wall);
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
