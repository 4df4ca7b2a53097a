//! Preview of a rollout, simulated on a copy of the cluster with the real rules.
//!
//! It is simulated twice. Without approvals, every notice runs out: the longest course. With immediate approvals: the
//! shortest. Actions take their usual time, hosts stay healthy, nothing fails, and confirmations are given at once.
//! Other announced or running work continues.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_control::view::describe::{waits, work_word};
use forewarn_control::{CommandError, RolloutEntry, WindowEntry};
use forewarn_lifecycle::simulator::{Completion, Environment, Simulation, Simulator};
use forewarn_lifecycle::{
    Action, Approver, Brake, Cause, Change, Cluster, Command, EventId, HealthGate, HostId, MachineId,
    MaintenanceId, Now, Plan, Refusal, Report, RolloutId, RolloutTerms, SimulatedMachines, Standing, Steady,
    Target, TenantId,
};
use forewarn_types::{Moment, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Preview of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewView {
    /// The work, in words.
    pub work: String,
    /// Number of hosts.
    pub hosts: usize,
    /// SimulatedRollout without approvals.
    pub longest: CourseView,
    /// SimulatedRollout with immediate approvals.
    pub shortest: CourseView,
    /// True if persons carry out the work on hosts: each ends when an operator reports it, not after the simulated time.
    #[serde(default, skip_serializing_if = "is_false")]
    pub manual: bool,
    /// Assumptions of the preview.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A simulated course of the rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CourseView {
    /// Groups, in order.
    pub steps: Vec<StepView>,
    /// Duration from now to the end of the last step.
    pub lasts: Span,
    /// The reason why it does not end; absent if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<String>,
}

/// A group of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Time of the announcement.
    pub announced: Moment,
    /// Time at which the work starts: at the latest, without approvals.
    pub starts: Moment,
    /// Time at which the work completes: every machine has returned.
    pub ends: Moment,
    /// The work on each host itself; absent if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_steps: Vec<HostStepView>,
    /// Effect on each tenant.
    pub tenants: Vec<TenantStepView>,
}

/// The work on one host itself, while its machines are out of the way. It takes the announced length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostStepView {
    /// Name of the host.
    pub host: String,
    /// Time at which its machines are out of the way and the work begins.
    pub begins: Moment,
    /// Time at which the work ends.
    pub ends: Moment,
    /// Time at which the last machine has returned; absent if none returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<Moment>,
}

/// Effect of a step on a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TenantStepView {
    /// Name of the tenant.
    pub tenant: String,
    /// Type of its event, as in a document; null if the tenant is not enrolled and gets no notice.
    pub event: Option<String>,
    /// Update domain in work.
    pub update_domain: u16,
    /// Hours in which work on its hosts may start; absent for any time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowEntry>,
    /// Names of its machines.
    pub machines: Vec<String>,
}

/// The reason why there is no preview.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreviewError {
    /// The command is invalid.
    #[error(transparent)]
    Bad(#[from] CommandError),
    /// The rules would refuse it.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Maximum number of groups in one course.
const STEPS_MAX: usize = 1_000;

/// Maximum number of decisions in the simulation of one course.
const DECISIONS_MAX: usize = 200_000;

/// Horizon of a preview: 90 days.
const HORIZON: Duration = Duration::from_hours(90 * 24);

/// Previews a rollout that starts now.
///
/// # Errors
/// Fails if the rollout would be refused.
pub fn preview(cluster: &Cluster, now: Now, entry: &RolloutEntry) -> Result<PreviewView, PreviewError> {
    let work = entry.task().map_err(CommandError::from)?;
    let kind = work.kind;
    let hosts = entry.resolve_hosts(cluster).map_err(CommandError::from)?;
    let count = hosts.iter().collect::<BTreeSet<_>>().len();
    let terms = entry.terms.apply(&RolloutTerms::default()).map_err(CommandError::from)?;
    let mut notes = Vec::new();
    if terms.health == HealthGate::Machines {
        notes
            .push("the preview assumes that machines poll as soon as their maintenance has ended".to_owned());
    }
    let command = Command::Rollout { work, hosts, terms };
    if cluster.brake() == Brake::On {
        notes.push("the brake is on: the preview assumes that it is released".to_owned());
    }
    Ok(PreviewView {
        work: work_word(kind).to_owned(),
        hosts: count,
        longest: course(cluster, now, Approvals::None, &command)?,
        shortest: course(cluster, now, Approvals::AtOnce, &command)?,
        manual: false,
        notes,
    })
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl PreviewView {
    /// The same preview where persons carry out the work on hosts.
    #[must_use]
    pub fn by_persons(mut self) -> Self {
        let has_steps = self.longest.steps.iter().any(|step| !step.host_steps.is_empty());
        if has_steps {
            self.manual = true;
            let note = "persons carry out the work on the hosts: it ends when an operator has finished (`forewarn host \
                        done`), and the preview assumes the announced length";
            self.notes.push(note.to_owned());
        }
        self
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Approvals {
    None,
    AtOnce,
}

/// A rollout, simulated on a copy of a cluster.
type Preview = Simulator<SimulatedRollout>;

/// The environment of a simulated rollout, and its steps so far.
struct SimulatedRollout {
    approvals: Approvals,
    machines: SimulatedMachines,
    rollout: Option<RolloutId>,
    steps: BTreeMap<MaintenanceId, StepView>,
    /// Events of the rollout that are not approved yet.
    unapproved: Vec<(TenantId, EventId)>,
}

/// Simulates a rollout to its end, or to the horizon.
fn course(
    cluster: &Cluster,
    beginning: Now,
    approvals: Approvals,
    command: &Command,
) -> Result<CourseView, Refusal> {
    let mut preview = Simulator::new(cluster.clone(), beginning, SimulatedRollout::new(approvals));
    preview.perform();
    preview.submit(&Command::Brake(Brake::Off))?;
    preview.submit(command)?;
    let mut stuck = None;
    for _ in 0..DECISIONS_MAX {
        if is_over(&preview) {
            return Ok(preview.environment.view(beginning, None));
        }
        if preview.environment.steps.len() >= STEPS_MAX {
            stuck = Some(format!("only the first {STEPS_MAX} steps are shown"));
            break;
        }
        if !preview.step()? && !run_on(&mut preview, beginning) {
            stuck = Some(standing(&preview));
            break;
        }
    }
    let stuck = stuck.unwrap_or_else(|| "it takes longer than the horizon of a preview".to_owned());
    Ok(preview.environment.view(beginning, Some(stuck)))
}

fn is_over(preview: &Preview) -> bool {
    preview.environment.rollout.is_none_or(|id| preview.cluster.rollout(id).is_none())
}

/// Advances the clocks to the next time at which something is due. Returns false beyond the horizon.
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
    let known = preview.environment.rollout.and_then(|id| Some((id, preview.cluster.rollout(id)?)));
    let words = known.map(|known| waits(&preview.cluster, preview.now, known, known.1.standing));
    words.unwrap_or_else(|| "it does not continue".to_owned())
}

impl Environment for SimulatedRollout {
    fn take_completion(&mut self, now: Now) -> Option<Completion> {
        let Action { maintenance, target, .. } = self.machines.take_finished(now.steady)?;
        Some(Completion { maintenance, target, report: Report::Done })
    }

    fn next_completion(&self) -> Option<Steady> {
        self.machines.next()
    }

    /// Every tenant keeps polling.
    fn last_heard(&self, _: TenantId, now: Now) -> Option<Steady> {
        Some(now.steady)
    }

    /// Approvals, and the confirmation that the rollout may continue.
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

impl Simulation for SimulatedRollout {
    fn perform(&mut self, cluster: &Cluster, now: Now, action: Action) {
        if let (Target::Host(host), Some(step)) = (action.target, self.steps.get_mut(&action.maintenance))
            && let Some(host) = cluster.host(host)
        {
            let (host, now) = (host.name.to_string(), Moment(now.wall));
            step.host_steps.push(HostStepView { host, begins: now, ends: now, returned: None });
        }
        self.machines.begin(cluster, action, now.steady);
    }

    /// Records the effect of a change on the rollout.
    fn on_change(&mut self, cluster: &Cluster, now: Now, change: &Change) {
        if let Change::RolloutPlanned { rollout, .. } = change {
            self.rollout = Some(*rollout);
        }
        if let Change::Started { maintenance, .. } = change
            && let Some(step) = self.steps.get_mut(maintenance)
        {
            (step.starts, step.ends) = (Moment(now.wall), Moment(now.wall));
        }
        if let Change::Completed { maintenance, .. } | Change::HostAdvanced { maintenance, .. } = change
            && let Some(step) = self.steps.get_mut(maintenance)
        {
            step.ends = Moment(now.wall);
            if let Change::Completed { target, .. } = change {
                completed(step, cluster, now, *target);
            }
        }
        if let Change::Planned(plan) = change
            && let Cause::HostWork { rollout, hosts, .. } = &plan.cause
            && Some(*rollout) == self.rollout
        {
            self.add_step(cluster, now, plan, hosts);
        }
    }
}

/// Records the end of an action in the step of its host.
fn completed(step: &mut StepView, cluster: &Cluster, now: Now, target: Target) {
    let host = match target {
        Target::Host(host) => Some(host),
        Target::Returning(machine) => cluster.machine(machine).map(|machine| machine.host),
        Target::Machine(_) => None,
    };
    let Some(host) = host.and_then(|host| cluster.host(host)) else { return };
    let known = step.host_steps.iter_mut().find(|step| step.host == host.name.as_str());
    if let Some(known) = known {
        match target {
            Target::Host(_) => known.ends = Moment(now.wall),
            Target::Returning(_) | Target::Machine(_) => known.returned = Some(Moment(now.wall)),
        }
    }
}

impl SimulatedRollout {
    fn new(approvals: Approvals) -> Self {
        Self {
            approvals,
            machines: SimulatedMachines::default(),
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

    /// Records a group that was announced.
    fn add_step(&mut self, cluster: &Cluster, now: Now, plan: &Plan, hosts: &[HostId]) {
        let host = |id: &HostId| cluster.host(*id).map(|host| host.name.to_string());
        let machine = |id: &MachineId| cluster.machine(*id).map(|machine| machine.name.to_string());
        let parts = plan.parts.iter().map(|part| TenantStepView {
            tenant: cluster.tenant(part.tenant).map(|tenant| tenant.name.to_string()).unwrap_or_default(),
            event: part.announcement.as_ref().map(|announcement| announcement.kind.as_str().to_owned()),
            update_domain: part.update_domain.0,
            windows: cluster.windows_of_tenant(part.tenant).iter().map(WindowEntry::from).collect(),
            machines: part.machines.iter().filter_map(machine).collect(),
        });
        let now = Moment(now.wall);
        let step = StepView {
            hosts: hosts.iter().filter_map(host).collect(),
            announced: now,
            starts: now,
            ends: now,
            host_steps: Vec::new(),
            tenants: parts.collect(),
        };
        self.steps.insert(plan.id, step);
        let events = plan.parts.iter().filter_map(|part| Some((part.tenant, part.announcement.as_ref()?.id)));
        self.unapproved.extend(events);
    }
}
