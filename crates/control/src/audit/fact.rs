//! Changes, told one by one: what `watch` shows, and what the trail keeps.

use std::collections::BTreeSet;

use forewarn_lifecycle::{
    Action, Approver, Brake, Change, Cluster, EventId, Health, Hold, HostId, Machine, MachineId, Maintenance,
    MaintenanceId, Now, Part, Plan, Report, RolloutId, ScaleSetId, StartCause, TenantId, Timestamp,
    UpgradePolicy, Wait, Withdrawal,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::audit::log::{AuditEntry, NewAuditEntry};
use crate::command::find::full_name;
use crate::command::upgrade::UpgradeWord;
use crate::view::deletion::unannounced;
use crate::view::rollout::rollout_happening;
use crate::view::wording::{approver, cause, few, start};
use forewarn_types::Moment;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditFact {
    /// When.
    pub at: Moment,
    /// What kind of thing: `announced`, `approved`, `started`, `withdrawn`, `completed`, `enrolled`, …
    pub kind: String,
    /// All of it, in words.
    pub text: String,
    /// The tenants concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// The machines concerned, as `tenant/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<String>,
    /// The hosts concerned: those that are worked on, and those that machines are on or go to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The events concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// The work that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<u64>,
    /// The rollout that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<u64>,
    /// The reason of a failure, as the driver program gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl AuditFact {
    /// Something that concerns nobody in particular.
    #[must_use]
    pub fn plain(at: Moment, kind: &str, text: String) -> Self {
        let (tenants, machines, hosts, events) = <(Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
        let (kind, work, rollout, reason) = (kind.to_owned(), None, None, None);
        Self { at, kind, text, tenants, machines, hosts, events, work, rollout, reason }
    }

    /// The same with the reason of a failure, which ends its words.
    #[must_use]
    pub fn with_reason(mut self, reason: Option<&str>) -> Self {
        if let Some(reason) = reason {
            self.text.push_str(": ");
            self.text.push_str(reason);
            self.reason = Some(reason.to_owned());
        }
        self
    }

    /// The same as what the trail is told of it: in which cluster, by its number and its name; by whom, and because of which entry.
    #[must_use]
    pub fn into_told(
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
            reason,
        }
    }
}

/// What a change means, in a cluster to which it has not been applied yet; nothing, if nobody cares to know.
#[must_use]
pub fn happening(cluster: &Cluster, now: Now, change: &Change) -> Option<AuditFact> {
    let teller = Teller { cluster, at: Moment(now.wall) };
    Some(match change {
        Change::HostAdmitted { name, .. } => teller.of_host("admitted", name.to_string(), "has joined"),
        Change::HostRemoved(host) => teller.of_host("removed", teller.host(*host), "has left"),
        Change::HealthChanged { host, health } => {
            teller.of_host("health", teller.host(*host), health_words(*health))
        }
        Change::TenantAdmitted { name, .. } => {
            let tenants = vec![name.to_string()];
            AuditFact { tenants, ..teller.plain("admitted", format!("tenant {name} has joined")) }
        }
        Change::TenantRemoved(tenant) => teller.of_tenant("removed", *tenant, "has left"),
        Change::PolicyChanged { tenant, .. } => teller.of_tenant("changed", *tenant, "has another policy"),
        Change::MachineAdmitted { new, .. } => teller.machine_admitted(new),
        Change::ProfileChanged { machine, model_version, .. } => {
            teller.profile_changed(*machine, *model_version)
        }
        Change::MachineForgotten(machine) => {
            let is_left = "is forgotten: it is managed no longer and stays as it is";
            teller.of_machine("forgotten", *machine, None, is_left)
        }
        Change::MachineMoved { machine, to } => {
            let text = format!("runs on {} now: it was moved by other means", teller.host(*to));
            teller.of_machine("moved", *machine, Some(*to), &text)
        }
        Change::ScaleSetAdmitted { new, .. } => {
            teller.plain("admitted", format!("scale set {} has joined", new.name))
        }
        Change::ScaleSetRemoved(set) => teller.of_scale_set("removed", *set, "has left"),
        Change::ScaleSetPolicyChanged { scale_set, .. } => {
            teller.of_scale_set("changed", *scale_set, "has another policy for groups to come")
        }
        Change::ModelChanged { scale_set, version, .. } => {
            teller.of_scale_set("changed", *scale_set, &format!("has model {version}"))
        }
        Change::UpgradePolicyChanged { scale_set, upgrade } => {
            let text = format!("has another way to upgrade instances: {}", UpgradeWord::from(*upgrade));
            teller.of_scale_set("changed", *scale_set, &text)
        }
        Change::BatchUpgraded(scale_set) => teller.batch_upgraded(now, *scale_set)?,
        Change::RollingEnded(scale_set) => {
            teller.of_scale_set("ended", *scale_set, "has upgraded its last batch")
        }
        Change::RolloutPlanned { rollout, .. }
        | Change::RolloutWaits { rollout, .. }
        | Change::RolloutPaused { rollout, .. }
        | Change::RolloutResumed(rollout)
        | Change::RolloutChanged { rollout, .. }
        | Change::RolloutEnded { rollout, .. } => teller.of_rollout(now, change, *rollout)?,
        Change::Planned(plan) => teller.planned(plan),
        Change::Approved { tenant, event, approval } => teller.approved(*tenant, *event, approval.by),
        Change::Waits { maintenance, wait } => teller.of_work("held", *maintenance, hold(*wait)?),
        Change::NoticeExtended { maintenance, not_before, .. } => {
            teller.notice_extended(*maintenance, *not_before)?
        }
        Change::Started { maintenance, cause, actions } => teller.started(*maintenance, *cause, actions),
        Change::Withdrawn { maintenance, why, tenants } => teller.withdrawn(*maintenance, *why, tenants),
        Change::Completed { maintenance, machine, report } => {
            teller.completed(*maintenance, *machine, *report)
        }
        Change::Enrolled(tenant) => teller.of_tenant("enrolled", *tenant, "is enrolled"),
        Change::Disabled(tenant) => teller.of_tenant("disabled", *tenant, "has been silent and is disabled"),
        Change::BrakeSet(Brake::On) => teller.plain("brake", "the brake is on: nothing starts".to_owned()),
        Change::BrakeSet(Brake::Off) => teller.plain("brake", "the brake is off".to_owned()),
        Change::SettingsChanged(_) => teller.plain("changed", "there are other settings".to_owned()),
        Change::SeedSet(_) | Change::Heard { .. } => return None,
    })
}

struct Teller<'a> {
    cluster: &'a Cluster,
    at: Moment,
}

impl Teller<'_> {
    fn plain(&self, kind: &str, text: String) -> AuditFact {
        AuditFact::plain(self.at, kind, text)
    }

    fn of_host(&self, kind: &str, name: String, text: &str) -> AuditFact {
        let happening = self.plain(kind, format!("host {name} {text}"));
        AuditFact { hosts: vec![name], ..happening }
    }

    fn of_tenant(&self, kind: &str, tenant: TenantId, text: &str) -> AuditFact {
        let name = self.tenant(tenant);
        AuditFact { tenants: vec![name.clone()], ..self.plain(kind, format!("{name} {text}")) }
    }

    fn of_scale_set(&self, kind: &str, id: ScaleSetId, text: &str) -> AuditFact {
        let Some(set) = self.cluster.scale_set(id) else {
            return self.plain(kind, format!("scale set {id} {text}"));
        };
        let tenants = set.groups.iter().map(|group| self.tenant(*group)).collect();
        AuditFact { tenants, ..self.plain(kind, format!("scale set {} {text}", set.name)) }
    }

    /// When the next batch comes; without a pause it is there at once, and speaks for itself.
    fn batch_upgraded(&self, now: Now, id: ScaleSetId) -> Option<AuditFact> {
        let UpgradePolicy::Rolling { pause, .. } = self.cluster.scale_set(id)?.upgrade else { return None };
        let until = Moment(now.wall.plus(pause));
        let waits = format!("waits until {until}, then upgrades the next batch");
        (!pause.is_zero()).then(|| self.of_scale_set("waits", id, &waits))
    }

    fn of_rollout(&self, now: Now, change: &Change, rollout: RolloutId) -> Option<AuditFact> {
        let (kind, text, hosts) = rollout_happening(self.cluster, now, change)?;
        let hosts = hosts.iter().map(|host| self.host(*host)).collect();
        Some(AuditFact { rollout: Some(rollout.0), hosts, ..self.plain(kind, text) })
    }

    fn of_work(&self, kind: &str, id: MaintenanceId, text: &str) -> AuditFact {
        match self.cluster.maintenance(id) {
            Some(Maintenance { plan, .. }) => self.of_parts(kind, plan, &all(plan), text),
            None => AuditFact { work: Some(id.0), ..self.plain(kind, format!("work {id} {text}")) },
        }
    }

    /// About some parts of a plan: their tenants, machines and events, and the hosts where that is.
    fn of_parts(&self, kind: &str, plan: &Plan, parts: &[&Part], text: &str) -> AuditFact {
        let mut happening = self.plain(kind, format!("{} {text}", self.what(plan, parts)));
        let mut hosts: BTreeSet<_> = plan.cause.hosts().iter().copied().collect();
        for part in parts {
            happening.tenants.push(self.tenant(part.tenant));
            happening.events.extend(part.announcement.as_ref().map(|told| told.id.to_string()));
            for machine in &part.machines {
                happening.machines.push(full_name(self.cluster, *machine));
                hosts.extend(self.cluster.machine(*machine).map(|machine| machine.host));
            }
        }
        happening.hosts = hosts.into_iter().map(|host| self.host(host)).collect();
        happening.work = Some(plan.id.0);
        happening.rollout = plan.cause.rollout().map(|rollout| rollout.0);
        happening
    }

    fn machine_admitted(&self, new: &Machine) -> AuditFact {
        let (tenant, host) = (self.tenant(new.tenant), self.host(new.host));
        let happening = self.plain("admitted", format!("machine {} has joined", new.name));
        let machines = vec![format!("{tenant}/{}", new.name)];
        AuditFact { tenants: vec![tenant], machines, hosts: vec![host], ..happening }
    }

    /// About one machine, the host that it is on and the host to which it has gone.
    fn of_machine(&self, kind: &str, id: MachineId, to: Option<HostId>, text: &str) -> AuditFact {
        let happening = self.plain(kind, format!("machine {} {text}", self.machine(id)));
        let machine = self.cluster.machine(id);
        let tenants = machine.map(|machine| self.tenant(machine.tenant)).into_iter().collect();
        let hosts = machine.map(|machine| machine.host).into_iter().chain(to);
        let hosts = hosts.map(|host| self.host(host)).collect();
        AuditFact { tenants, machines: vec![full_name(self.cluster, id)], hosts, ..happening }
    }

    fn profile_changed(&self, id: MachineId, version: u32) -> AuditFact {
        let machine = self.cluster.machine(id);
        let what = match machine {
            Some(machine) if machine.model_version != version => format!("has model {version}"),
            Some(_) | None => "has another profile".to_owned(),
        };
        let happening = self.plain("changed", format!("machine {} {what}", self.machine(id)));
        let tenants = machine.map(|machine| self.tenant(machine.tenant)).into_iter().collect();
        AuditFact { tenants, machines: vec![full_name(self.cluster, id)], ..happening }
    }

    fn planned(&self, plan: &Plan) -> AuditFact {
        let told = plan.parts.iter().any(|part| part.announcement.is_some());
        let (kind, how) = if told { ("announced", "is announced") } else { ("planned", "is planned") };
        let until = if told { until(plan.not_before) } else { String::new() };
        let why = unannounced(self.cluster, plan).unwrap_or_default();
        self.of_parts(kind, plan, &all(plan), &format!("{how}{until}{why}"))
    }

    /// Nothing is told of a time that moves before a VM has read it: the entry of the announcement has the moved time.
    fn notice_extended(&self, work: MaintenanceId, not_before: Timestamp) -> Option<AuditFact> {
        let maintenance = self.cluster.maintenance(work)?;
        let text = "waits for a whole notice from now on: VMs may not have been able to read it before";
        (maintenance.plan.not_before == not_before).then(|| self.of_work("held", work, text))
    }

    fn approved(&self, tenant: TenantId, event: EventId, by: Approver) -> AuditFact {
        let text = format!("has approved {event}, by {}", approver(self.cluster, by));
        let mut happening = self.of_tenant("approved", tenant, &text);
        happening.events.push(event.to_string());
        let work =
            self.cluster.event(event).and_then(|(_, event)| self.cluster.maintenance(event.maintenance));
        if let Some(Maintenance { plan, .. }) = work {
            let machines = plan.part(tenant).into_iter().flat_map(|part| &part.machines);
            happening.machines = machines.map(|machine| full_name(self.cluster, *machine)).collect();
            happening.work = Some(plan.id.0);
            happening.rollout = plan.cause.rollout().map(|rollout| rollout.0);
        }
        happening
    }

    fn started(&self, work: MaintenanceId, cause: StartCause, actions: &[Action]) -> AuditFact {
        let how = match cause {
            StartCause::AtOnce => "has started at once".to_owned(),
            StartCause::Approved
            | StartCause::Expired
            | StartCause::Automatic
            | StartCause::Failure
            | StartCause::Forced => format!("has started, by {}", start(cause)),
        };
        let mut happening = self.of_work("started", work, &how);
        let destinations: BTreeSet<_> =
            actions.iter().filter_map(|action| action.impact.destination()).collect();
        for host in destinations.into_iter().map(|host| self.host(host)) {
            if !happening.hosts.contains(&host) {
                happening.hosts.push(host);
            }
        }
        happening
    }

    fn withdrawn(&self, work: MaintenanceId, why: Withdrawal, tenants: &[TenantId]) -> AuditFact {
        let text = withdrawal(why);
        let Some(Maintenance { plan, .. }) = self.cluster.maintenance(work) else {
            return self.of_work("withdrawn", work, text);
        };
        let parts: Vec<_> = plan.parts.iter().filter(|part| tenants.contains(&part.tenant)).collect();
        self.of_parts("withdrawn", plan, &parts, text)
    }

    /// It concerns the one machine, not all that the work is about.
    fn completed(&self, work: MaintenanceId, machine: MachineId, report: Report) -> AuditFact {
        let how = match report {
            Report::Done => "is done for",
            Report::Failed => "has failed for",
        };
        let mut happening = self.of_work("completed", work, &format!("{how} {}", self.machine(machine)));
        happening.machines = vec![full_name(self.cluster, machine)];
        let Some(maintenance) = self.cluster.maintenance(work) else { return happening };
        let part = maintenance.plan.parts.iter().find(|part| part.machines.contains(&machine));
        let told = part.and_then(|part| part.announcement.as_ref());
        happening.tenants = part.map(|part| self.tenant(part.tenant)).into_iter().collect();
        happening.events = told.map(|told| told.id.to_string()).into_iter().collect();
        let action = maintenance.action(machine);
        let places = [
            self.cluster.machine(machine).map(|machine| machine.host),
            action.and_then(|action| action.impact.destination()),
        ];
        let places: BTreeSet<_> = places.into_iter().flatten().collect();
        happening.hosts = places.into_iter().map(|host| self.host(host)).collect();
        happening
    }

    /// What work does to which machines: `Freeze of web_0 (update of h1)`.
    fn what(&self, plan: &Plan, parts: &[&Part]) -> String {
        let machines = parts.iter().flat_map(|part| &part.machines);
        let machines: Vec<_> = machines.map(|machine| self.machine(*machine)).collect();
        let (machines, cause) = (few(&machines), cause(self.cluster, &plan.cause));
        match plan.parts.iter().find_map(|part| part.announcement.as_ref()) {
            Some(told) => format!("{} of {machines} ({cause})", told.kind.as_str()),
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

/// The entry of an announcement whose time has moved, to be sealed again; nothing, for any other entry.
#[must_use]
pub fn moved(entry: &AuditEntry, from: Timestamp, to: Timestamp) -> Option<NewAuditEntry> {
    let text = entry.text.strip_suffix(&until(from)).filter(|_| entry.kind == "announced")?;
    let mut told = NewAuditEntry::from(entry.clone());
    told.text = format!("{text}{}", until(to));
    let times = told.notices.iter_mut().filter_map(|notice| notice.not_before.as_mut());
    times.for_each(|time| *time = Moment(to));
    Some(told)
}

fn health_words(health: Health) -> &'static str {
    match health {
        Health::Healthy => "is well",
        Health::Degraded => "is expected to fail",
        Health::Failed => "has failed",
    }
}

fn all(plan: &Plan) -> Vec<&Part> {
    plan.parts.iter().collect()
}

/// What holds work up, in words; nothing, if it only waits for its time.
fn hold(wait: Wait) -> Option<&'static str> {
    match wait {
        Wait::Held(Hold::Brake) => Some("is held by the brake"),
        Wait::Held(Hold::UpdateDomain) => Some("is held: another update domain is being worked on"),
        Wait::Held(Hold::NoHost) => Some("is held: no other host can take a machine"),
        Wait::Held(Hold::Moving) => Some("is held: a machine is being moved"),
        Wait::Held(Hold::Window { .. }) => Some("is held until the next window of its rollout"),
        Wait::Wall => Some("waits for the wall clock, which was set back"),
        Wait::Notice | Wait::Nothing => None,
    }
}

fn withdrawal(why: Withdrawal) -> &'static str {
    match why {
        Withdrawal::Cancelled => "is cancelled",
        Withdrawal::Superseded => "is withdrawn: a delete or an eviction makes it pointless",
        Withdrawal::Unconcerned => "is withdrawn: none of its machines is concerned any more",
        Withdrawal::HostFailed => "is withdrawn: the host has failed",
        Withdrawal::HostRecovered => "is withdrawn: the host is well again",
        Withdrawal::Postponed => "is withdrawn for now: its rollout is paused",
    }
}
