//! Facts of the audit log: one sentence for each change, as `watch` and the audit log show it.

mod capacity;
mod modes;
mod steps;

use std::collections::BTreeSet;
use std::time::Duration;

use forewarn_lifecycle::{
    Action, Approver, Brake, Change, Cluster, EventId, Fence, Health, Hold, HostAttention, HostId, Machine,
    MachineId, Maintenance, MaintenanceId, Now, Part, Plan, Presence, RolloutId, ScaleSetId, StartCause,
    TenantId, Timestamp, UpgradePolicy, Wait, Window, WindowOwner, Withdrawal,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::audit::log::{AuditEntry, NewAuditEntry};
use crate::audit::start_cause::words_of_start;
use crate::command::lookup::full_name;
use crate::command::upgrade::UpgradeWord;
use crate::command::window::WindowEntry;
use crate::stream::{ClusterId, Stream};
use crate::view::deletion::unannounced;
use crate::view::describe::{approver, cause, join_first};
use crate::view::rollout::describe_rollout_change;
use forewarn_types::Moment;

/// A fact: a change in a sentence, with the objects that it affects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditFact {
    /// Time of the change.
    pub at: Moment,
    /// Kind of the fact: `announced`, `approved`, `started`, `withdrawn`, `completed`, `enrolled`, …
    pub kind: String,
    /// The fact as a sentence.
    pub text: String,
    /// Affected tenants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// Affected machines, as `tenant/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<String>,
    /// Affected hosts: those in maintenance, and the current and future hosts of machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Affected events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Number of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<u64>,
    /// Number of the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<u64>,
    /// The reason of a failure, as the driver program gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl AuditFact {
    /// A fact that affects no object in particular.
    #[must_use]
    pub fn plain(at: Moment, kind: &str, text: String) -> Self {
        let (tenants, machines, hosts, events) = <(Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
        let (kind, work, rollout, reason) = (kind.to_owned(), None, None, None);
        Self { at, kind, text, tenants, machines, hosts, events, work, rollout, reason }
    }

    /// Appends the reason of a failure to the sentence.
    #[must_use]
    pub fn with_reason(mut self, reason: Option<&str>) -> Self {
        if let Some(reason) = reason {
            self.text.push_str(": ");
            self.text.push_str(reason);
            self.reason = Some(reason.to_owned());
        }
        self
    }

    /// Turns the fact into an audit entry: with the cluster, the caller, and the entry of the request that caused it.
    #[must_use]
    pub fn into_entry(
        self,
        (cluster_number, cluster): (u32, &str),
        by: &str,
        because: Option<u64>,
    ) -> NewAuditEntry {
        let Self { at, kind, text, tenants, machines, hosts, events, work, rollout, reason } = self;
        let (cluster, by, command) = (cluster.to_owned(), by.to_owned(), None);
        NewAuditEntry {
            at,
            cluster,
            cluster_number,
            by,
            kind,
            text,
            tenants,
            machines,
            hosts,
            events,
            work,
            rollout,
            because,
            command,
            notices: Vec::new(),
            host_notice: None,
            reason,
            stream: Some(Stream::Cluster(ClusterId(cluster_number))),
        }
    }
}

/// Describes that a host is ready for the work of a person; `waits` is the time since then, for a reminder.
#[must_use]
pub(crate) fn describe_ready(
    cluster: &Cluster,
    now: Now,
    (work, host): (MaintenanceId, HostId),
    waits: Option<Duration>,
) -> AuditFact {
    FactWriter { cluster, at: Moment(now.wall) }.ready(work, host, waits)
}

/// Describes a change, in a cluster to which it has not been applied yet. None if the change is not worth an entry.
#[must_use]
#[allow(clippy::too_many_lines, reason = "one arm for each change")]
pub fn describe_change(cluster: &Cluster, now: Now, change: &Change) -> Option<AuditFact> {
    let writer = FactWriter { cluster, at: Moment(now.wall) };
    Some(match change {
        Change::HostAdmitted { name, .. } => writer.of_host("admitted", name.to_string(), "was added"),
        Change::HostRemoved(host) => writer.of_host("removed", writer.host(*host), "was removed"),
        Change::HealthChanged { host, health } => {
            writer.of_host("health", writer.host(*host), health_words(*health))
        }
        Change::TenantAdmitted { name, .. } => {
            let tenants = vec![name.to_string()];
            AuditFact { tenants, ..writer.plain("admitted", format!("tenant {name} was added")) }
        }
        Change::TenantRemoved(tenant) => writer.of_tenant("removed", *tenant, "was removed"),
        Change::PolicyChanged { tenant, .. } => writer.of_tenant("changed", *tenant, "policy changed"),
        Change::WindowsChanged { owner, windows } => writer.windows_changed(*owner, windows),
        Change::MachineAdmitted { new, .. } => writer.machine_admitted(new),
        Change::ProfileChanged { machine, model_version, .. } => {
            writer.profile_changed(*machine, *model_version)
        }
        Change::MachineForgotten(machine) => {
            let is_left = "is no longer managed; the machine itself is unchanged";
            writer.of_machine("forgotten", *machine, None, is_left)
        }
        Change::MachineMoved { machine, to } => {
            let beyond = writer.words_beyond_capacity(*machine, *to);
            let text = format!("now runs on {}: it was moved outside Forewarn{beyond}", writer.host(*to));
            writer.of_machine("moved", *machine, Some(*to), &text)
        }
        Change::CapacityChanged { host, capacity } => writer.capacity_changed(*host, *capacity)?,
        Change::MachineResized { machine, size } => writer.machine_resized(*machine, *size)?,
        Change::InstancesResized { scale_set, size } => writer.instances_resized(*scale_set, *size)?,
        Change::ScaleSetAdmitted { new, .. } => {
            writer.plain("admitted", format!("scale set {} was added", new.name))
        }
        Change::ScaleSetRemoved(set) => writer.of_scale_set("removed", *set, "was removed"),
        Change::ScaleSetPolicyChanged { scale_set, .. } => {
            writer.of_scale_set("changed", *scale_set, "policy for new placement groups changed")
        }
        Change::ModelChanged { scale_set, version, .. } => {
            writer.of_scale_set("changed", *scale_set, &format!("model changed to version {version}"))
        }
        Change::UpgradePolicyChanged { scale_set, upgrade } => {
            let text = format!("upgrade policy changed: {}", UpgradeWord::from(*upgrade));
            writer.of_scale_set("changed", *scale_set, &text)
        }
        Change::BatchUpgraded(scale_set) => writer.batch_upgraded(now, *scale_set)?,
        Change::RollingEnded(scale_set) => {
            writer.of_scale_set("ended", *scale_set, "completed its rolling upgrade")
        }
        Change::RolloutPlanned { rollout, .. }
        | Change::RolloutWaits { rollout, .. }
        | Change::RolloutPaused { rollout, .. }
        | Change::RolloutResumed(rollout)
        | Change::RolloutChanged { rollout, .. }
        | Change::RolloutEnded { rollout, .. } => writer.of_rollout(now, change, *rollout)?,
        Change::Planned(plan) => writer.planned(plan),
        Change::Approved { tenant, event, approval } => writer.approved(*tenant, *event, approval.by),
        Change::Waits { maintenance, wait } => writer.of_work("held", *maintenance, hold(*wait)?),
        Change::NoticeExtended { maintenance, not_before, .. } => {
            writer.notice_extended(*maintenance, *not_before)?
        }
        Change::Started { maintenance, cause, actions } => writer.started(*maintenance, *cause, actions),
        Change::Withdrawn { maintenance, why, tenants } => writer.withdrawn(*maintenance, *why, tenants),
        Change::Completed { maintenance, target, report } => writer.completed(*maintenance, *target, *report),
        Change::HostAdvanced { maintenance, host, actions } => {
            writer.host_advanced(*maintenance, *host, actions)
        }
        Change::Suspended { maintenance, target } => writer.suspended(*maintenance, *target),
        Change::Retried { maintenance, target } => writer.retried(*maintenance, *target),
        Change::FenceChanged { host, fence } => {
            writer.of_host("fence", writer.host(*host), fence_words(*fence))
        }
        Change::AttentionChanged { host, attention } => {
            let words = match attention {
                HostAttention::Needed => "needs attention",
                HostAttention::Unneeded => "no longer needs attention",
            };
            writer.of_host("attention", writer.host(*host), words)
        }
        Change::ModeEntered { host, work, .. } => writer.mode_entered(*host, work),
        Change::ModeExited { host, staying } => writer.mode_exited(*host, staying),
        Change::Enrolled(tenant) => writer.of_tenant("enrolled", *tenant, "is enrolled"),
        Change::Disabled(tenant) => {
            writer.of_tenant("disabled", *tenant, "is disabled: none of its machines has polled for too long")
        }
        Change::Polled(machine) => writer.polled(*machine),
        Change::BrakeSet(Brake::On) => writer.plain("brake", "the brake is on: nothing starts".to_owned()),
        Change::BrakeSet(Brake::Off) => writer.plain("brake", "the brake is off".to_owned()),
        Change::SettingsChanged(_) => writer.plain("changed", "settings changed".to_owned()),
        Change::SeedSet(_) | Change::Heard { .. } => return None,
    })
}

struct FactWriter<'a> {
    cluster: &'a Cluster,
    at: Moment,
}

impl FactWriter<'_> {
    fn plain(&self, kind: &str, text: String) -> AuditFact {
        AuditFact::plain(self.at, kind, text)
    }

    fn of_host(&self, kind: &str, name: String, text: &str) -> AuditFact {
        let fact = self.plain(kind, format!("host {name} {text}"));
        AuditFact { hosts: vec![name], ..fact }
    }

    fn of_tenant(&self, kind: &str, tenant: TenantId, text: &str) -> AuditFact {
        let name = self.tenant(tenant);
        AuditFact { tenants: vec![name.clone()], ..self.plain(kind, format!("{name} {text}")) }
    }

    fn windows_changed(&self, owner: WindowOwner, windows: &[Window]) -> AuditFact {
        let shown: Vec<_> = windows.iter().map(|window| WindowEntry::from(window).to_string()).collect();
        let text = match shown.as_slice() {
            [] => "windows removed".to_owned(),
            some => format!("windows changed: {}", some.join("; ")),
        };
        match owner {
            WindowOwner::Tenant(tenant) => self.of_tenant("changed", tenant, &text),
            WindowOwner::ScaleSet(set) => self.of_scale_set("changed", set, &text),
        }
    }

    fn of_scale_set(&self, kind: &str, id: ScaleSetId, text: &str) -> AuditFact {
        let Some(set) = self.cluster.scale_set(id) else {
            return self.plain(kind, format!("scale set {id} {text}"));
        };
        let tenants = set.groups.iter().map(|group| self.tenant(*group)).collect();
        AuditFact { tenants, ..self.plain(kind, format!("scale set {} {text}", set.name)) }
    }

    /// The time of the next batch. None without a pause: the batch follows at once and has its own entry.
    fn batch_upgraded(&self, now: Now, id: ScaleSetId) -> Option<AuditFact> {
        let UpgradePolicy::Rolling { pause, .. } = self.cluster.scale_set(id)?.upgrade else { return None };
        let until = Moment(now.wall.plus(pause));
        let waits = format!("waits until {until}, then upgrades the next batch");
        (!pause.is_zero()).then(|| self.of_scale_set("waits", id, &waits))
    }

    fn of_rollout(&self, now: Now, change: &Change, rollout: RolloutId) -> Option<AuditFact> {
        let (kind, text, hosts) = describe_rollout_change(self.cluster, now, change)?;
        let hosts = hosts.iter().map(|host| self.host(*host)).collect();
        Some(AuditFact { rollout: Some(rollout.0), hosts, ..self.plain(kind, text) })
    }

    fn of_work(&self, kind: &str, id: MaintenanceId, text: &str) -> AuditFact {
        match self.cluster.maintenance(id) {
            Some(Maintenance { plan, .. }) => self.of_parts(kind, plan, &all(plan), text),
            None => AuditFact { work: Some(id.0), ..self.plain(kind, format!("work {id} {text}")) },
        }
    }

    /// A fact about a plan. It affects no object yet.
    fn of_plan(&self, kind: &str, plan: &Plan, text: String) -> AuditFact {
        let (work, rollout) = (Some(plan.id.0), plan.cause.rollout().map(|rollout| rollout.0));
        AuditFact { work, rollout, ..self.plain(kind, text) }
    }

    /// A fact about some parts of a plan: their tenants, machines and events, and the hosts of the work.
    fn of_parts(&self, kind: &str, plan: &Plan, parts: &[&Part], text: &str) -> AuditFact {
        let mut fact = self.of_plan(kind, plan, format!("{} {text}", self.what(plan, parts)));
        let mut hosts: BTreeSet<_> = plan.cause.hosts().iter().copied().collect();
        for part in parts {
            fact.tenants.push(self.tenant(part.tenant));
            fact.events.extend(part.announcement.as_ref().map(|announcement| announcement.id.to_string()));
            for machine in &part.machines {
                fact.machines.push(full_name(self.cluster, *machine));
                hosts.extend(self.cluster.machine(*machine).map(|machine| machine.host));
            }
        }
        fact.hosts = hosts.into_iter().map(|host| self.host(host)).collect();
        fact
    }

    fn machine_admitted(&self, new: &Machine) -> AuditFact {
        let (tenant, host) = (self.tenant(new.tenant), self.host(new.host));
        let fact = self.plain("admitted", format!("machine {} was added", new.name));
        let machines = vec![format!("{tenant}/{}", new.name)];
        AuditFact { tenants: vec![tenant], machines, hosts: vec![host], ..fact }
    }

    /// A fact about one machine, its host, and its new host.
    fn of_machine(&self, kind: &str, id: MachineId, to: Option<HostId>, text: &str) -> AuditFact {
        let fact = self.plain(kind, format!("machine {} {text}", self.machine(id)));
        let machine = self.cluster.machine(id);
        let tenants = machine.map(|machine| self.tenant(machine.tenant)).into_iter().collect();
        let hosts = machine.map(|machine| machine.host).into_iter().chain(to);
        let hosts = hosts.map(|host| self.host(host)).collect();
        AuditFact { tenants, machines: vec![full_name(self.cluster, id)], hosts, ..fact }
    }

    /// A poll that a rollout has waited for.
    fn polled(&self, id: MachineId) -> AuditFact {
        let mut rollouts = self.cluster.presences_of(id);
        let away = rollouts.find(|(_, presence)| matches!(presence, Presence::Away { .. }));
        match away.or_else(|| self.cluster.presences_of(id).next()) {
            Some((rollout, Presence::Away { since })) => {
                let text =
                    format!("has returned: it has polled again since its impact ended at {}", Moment(since));
                AuditFact { rollout: Some(rollout.0), ..self.of_machine("polled", id, None, &text) }
            }
            Some((rollout, Presence::Unseen | Presence::Polling)) => {
                let text = "has polled since its maintenance was announced: its return will be awaited";
                AuditFact { rollout: Some(rollout.0), ..self.of_machine("polled", id, None, text) }
            }
            None => self.of_machine("polled", id, None, "has polled"),
        }
    }

    fn profile_changed(&self, id: MachineId, version: u32) -> AuditFact {
        let machine = self.cluster.machine(id);
        let what = match machine {
            Some(machine) if machine.model_version != version => format!("was upgraded to model {version}"),
            Some(_) | None => "profile changed".to_owned(),
        };
        let fact = self.plain("changed", format!("machine {} {what}", self.machine(id)));
        let tenants = machine.map(|machine| self.tenant(machine.tenant)).into_iter().collect();
        AuditFact { tenants, machines: vec![full_name(self.cluster, id)], ..fact }
    }

    fn planned(&self, plan: &Plan) -> AuditFact {
        let is_announced = plan.is_announced();
        let (kind, how) =
            if is_announced { ("announced", "is announced") } else { ("planned", "is planned") };
        let until = if is_announced { until(plan.not_before) } else { String::new() };
        let why = unannounced(self.cluster, plan).unwrap_or_default();
        self.of_parts(kind, plan, &all(plan), &format!("{how}{until}{why}"))
    }

    /// No entry for a time that moves before a VM has read it: the entry of the announcement has the new time.
    fn notice_extended(&self, work: MaintenanceId, not_before: Timestamp) -> Option<AuditFact> {
        let maintenance = self.cluster.maintenance(work)?;
        let text = "gets its full notice from now on: VMs may not have been able to read it before";
        (maintenance.plan.not_before == not_before).then(|| self.of_work("held", work, text))
    }

    fn approved(&self, tenant: TenantId, event: EventId, by: Approver) -> AuditFact {
        let text = format!("has approved {event}, by {}", approver(self.cluster, by));
        let mut fact = self.of_tenant("approved", tenant, &text);
        fact.events.push(event.to_string());
        let work =
            self.cluster.event(event).and_then(|(_, event)| self.cluster.maintenance(event.maintenance));
        if let Some(Maintenance { plan, .. }) = work {
            let machines = plan.part(tenant).into_iter().flat_map(|part| &part.machines);
            fact.machines = machines.map(|machine| full_name(self.cluster, *machine)).collect();
            fact.work = Some(plan.id.0);
            fact.rollout = plan.cause.rollout().map(|rollout| rollout.0);
        }
        fact
    }

    fn started(&self, work: MaintenanceId, cause: StartCause, actions: &[Action]) -> AuditFact {
        let mut fact = self.of_work("started", work, &words_of_start(cause));
        let destinations: BTreeSet<_> =
            actions.iter().filter_map(|action| action.impact.destination()).collect();
        let listed: BTreeSet<_> = fact.hosts.iter().cloned().collect();
        let destinations = destinations.into_iter().map(|host| self.host(host));
        fact.hosts.extend(destinations.filter(|host| !listed.contains(host)));
        fact
    }

    fn withdrawn(&self, work: MaintenanceId, why: Withdrawal, tenants: &[TenantId]) -> AuditFact {
        let text = withdrawal(why);
        let Some(Maintenance { plan, .. }) = self.cluster.maintenance(work) else {
            return self.of_work("withdrawn", work, text);
        };
        let tenants: BTreeSet<_> = tenants.iter().collect();
        let parts: Vec<_> = plan.parts.iter().filter(|part| tenants.contains(&part.tenant)).collect();
        self.of_parts("withdrawn", plan, &parts, text)
    }

    /// The impact and the machines of work: `Freeze of web_0 (update of h1)`.
    fn what(&self, plan: &Plan, parts: &[&Part]) -> String {
        let count = parts.iter().map(|part| part.machines.len()).sum();
        self.what_about(plan, parts.iter().copied(), count)
    }

    /// The same for all parts that have not ended.
    fn what_is_left(&self, plan: &Plan) -> String {
        self.what_about(plan, plan.parts.iter(), plan.parts.machine_count())
    }

    fn what_about<'p>(&self, plan: &Plan, parts: impl Iterator<Item = &'p Part>, count: usize) -> String {
        let machines = parts.flat_map(|part| &part.machines).map(|machine| self.machine(*machine));
        let (machines, cause) = (join_first(machines, count), cause(self.cluster, &plan.cause));
        match plan.cause.event_kind().filter(|_| plan.is_announced()) {
            Some(kind) => format!("{} of {machines} ({cause})", kind.as_str()),
            None => format!("{cause}, for {machines},"),
        }
    }

    fn host(&self, id: HostId) -> String {
        self.cluster.host(id).map_or_else(|| id.to_string(), |host| host.name.to_string())
    }

    fn tenant(&self, id: TenantId) -> String {
        self.cluster.tenant(id).map_or_else(|| id.to_string(), |tenant| tenant.name.to_string())
    }

    fn machine(&self, id: MachineId) -> String {
        self.cluster
            .machine(id)
            .map_or_else(|| full_name(self.cluster, id), |machine| machine.name.to_string())
    }
}

/// The end of the text of an announcement.
fn until(not_before: Timestamp) -> String {
    format!(", not before {}", Moment(not_before))
}

/// The audit entry of an announcement whose time has moved, to be sealed again. None for any other entry.
#[must_use]
pub fn moved(entry: &AuditEntry, from: Timestamp, to: Timestamp) -> Option<NewAuditEntry> {
    let text = entry.text.strip_suffix(&until(from)).filter(|_| entry.kind == "announced")?;
    let mut new = NewAuditEntry::from(entry.clone());
    new.text = format!("{text}{}", until(to));
    let times = new.notices.iter_mut().filter_map(|notice| notice.not_before.as_mut());
    times.for_each(|time| *time = Moment(to));
    Some(new)
}

fn health_words(health: Health) -> &'static str {
    match health {
        Health::Healthy => "is healthy",
        Health::Degraded => "is expected to fail",
        Health::Failed => "has failed",
    }
}

fn all(plan: &Plan) -> Vec<&Part> {
    plan.parts.iter().collect()
}

fn fence_words(fence: Fence) -> &'static str {
    match fence {
        Fence::Unneeded => "needs no fence any more",
        Fence::Awaited { order: Some(_) } => "is to be fenced: none of its machines starts elsewhere before",
        Fence::Awaited { order: None } => "is not fenced: its machines wait for an operator",
        Fence::Confirmed => "is fenced: its machines can no longer write to their disks",
    }
}

/// The obstacle of work, in words. None if it only waits for its time.
fn hold(wait: Wait) -> Option<&'static str> {
    match wait {
        Wait::Held(Hold::Brake) => Some("is held by the brake"),
        Wait::Held(Hold::UpdateDomain) => Some("is held: another update domain is being worked on"),
        Wait::Held(Hold::NoHost) => Some("is held: no other host can take a machine"),
        Wait::Held(Hold::Moving) => Some("is held: a machine is being moved"),
        Wait::Held(Hold::Window { .. }) => Some("is held until the next window"),
        Wait::Held(Hold::Fencing) => {
            Some("is held: its failed host is not fenced, and its machines may still run")
        }
        Wait::Wall => Some("waits for the wall clock, which was set back"),
        Wait::Notice | Wait::Nothing | Wait::Offered { .. } => None,
    }
}

fn withdrawal(why: Withdrawal) -> &'static str {
    match why {
        Withdrawal::Cancelled => "is cancelled",
        Withdrawal::Superseded => "is withdrawn: a delete or an eviction replaces it",
        Withdrawal::Unconcerned => "is withdrawn: none of its machines is affected any more",
        Withdrawal::HostFailed => "is withdrawn: the host has failed",
        Withdrawal::HostRecovered => "is withdrawn: the host is healthy again",
        Withdrawal::Postponed => "is withdrawn for now: its rollout is paused",
        Withdrawal::NoReturn => "is withdrawn: the host cannot take its machines back",
    }
}
