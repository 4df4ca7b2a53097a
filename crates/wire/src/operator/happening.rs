//! Changes, told one by one: what `watch` shows.

use forewarn_lifecycle::{
    Brake, Change, Cluster, Health, HostId, MachineId, Maintenance, MaintenanceId, Now, Plan, Report,
    StartCause, TenantId, Withdrawal,
};
use serde::{Deserialize, Serialize};

use super::find::full_name;
use super::rollout::rollout_happening;
use super::view::{approver, cause, start};
use crate::span::Moment;
use crate::words;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happening {
    /// When.
    pub at: Moment,
    /// What kind of thing: `announced`, `approved`, `started`, `withdrawn`, `completed`, `enrolled`, …
    pub kind: String,
    /// All of it, in words.
    pub text: String,
    /// The tenants concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// The events concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
}

/// What a change means, in a cluster to which it has not been applied yet; nothing, if nobody cares to know.
#[must_use]
pub fn happening(cluster: &Cluster, now: Now, change: &Change) -> Option<Happening> {
    let teller = Teller { cluster, at: Moment(now.wall) };
    Some(match change {
        Change::HostAdmitted { name, .. } => teller.plain("admitted", format!("host {name} has joined")),
        Change::HostRemoved(host) => teller.plain("removed", format!("host {} has left", teller.host(*host))),
        Change::HealthChanged { host, health } => {
            teller.plain("health", format!("host {} {}", teller.host(*host), health_words(*health)))
        }
        Change::TenantAdmitted { name, .. } => teller.plain("admitted", format!("tenant {name} has joined")),
        Change::TenantRemoved(tenant) => teller.of_tenant("removed", *tenant, "has left"),
        Change::PolicyChanged { tenant, .. } => teller.of_tenant("changed", *tenant, "has another policy"),
        Change::MachineAdmitted { new, .. } => {
            teller.plain("admitted", format!("machine {} has joined", new.name))
        }
        Change::ModelChanged { scale_set, version, .. } => {
            let set = cluster.scale_set(*scale_set).map(|set| set.name.to_string()).unwrap_or_default();
            teller.plain("changed", format!("scale set {set} has model {version}"))
        }
        Change::RolloutPlanned { .. }
        | Change::RolloutWaits { .. }
        | Change::RolloutPaused { .. }
        | Change::RolloutResumed(_)
        | Change::RolloutChanged { .. }
        | Change::RolloutEnded { .. } => {
            let (kind, text) = rollout_happening(cluster, now, change)?;
            teller.plain(kind, text)
        }
        Change::Planned(plan) => teller.planned(plan),
        Change::Approved { tenant, event, approval } => {
            let text = format!("has approved {event}, by {}", approver(cluster, approval.by));
            let mut happening = teller.of_tenant("approved", *tenant, &text);
            happening.events.push(event.to_string());
            happening
        }
        Change::Started { maintenance, cause, .. } => {
            let how = match cause {
                StartCause::AtOnce => "has started at once".to_owned(),
                StartCause::Approved
                | StartCause::Expired
                | StartCause::Automatic
                | StartCause::Failure
                | StartCause::Forced => format!("has started, by {}", start(*cause)),
            };
            teller.of_work("started", *maintenance, &how)
        }
        Change::Withdrawn { maintenance, why, tenants } => {
            let mut happening = teller.of_work("withdrawn", *maintenance, withdrawal(*why));
            happening.tenants = tenants.iter().map(|tenant| teller.tenant(*tenant)).collect();
            happening
        }
        Change::Completed { maintenance, machine, report } => {
            let how = match report {
                Report::Done => "is done for",
                Report::Failed => "has failed for",
            };
            teller.of_work("completed", *maintenance, &format!("{how} {}", teller.machine(*machine)))
        }
        Change::Enrolled(tenant) => teller.of_tenant("enrolled", *tenant, "is enrolled"),
        Change::Disabled(tenant) => teller.of_tenant("disabled", *tenant, "has been silent and is disabled"),
        Change::BrakeSet(Brake::On) => teller.plain("brake", "the brake is on: nothing starts".to_owned()),
        Change::BrakeSet(Brake::Off) => teller.plain("brake", "the brake is off".to_owned()),
        Change::SettingsChanged(_) => teller.plain("changed", "there are other settings".to_owned()),
        Change::SeedSet(_)
        | Change::ScaleSetAdmitted { .. }
        | Change::ScaleSetPolicyChanged { .. }
        | Change::ScaleSetRemoved(_)
        | Change::ProfileChanged { .. }
        | Change::Waits { .. }
        | Change::Heard { .. } => return None,
    })
}

struct Teller<'a> {
    cluster: &'a Cluster,
    at: Moment,
}

impl Teller<'_> {
    fn plain(&self, kind: &str, text: String) -> Happening {
        Happening { at: self.at, kind: kind.to_owned(), text, tenants: Vec::new(), events: Vec::new() }
    }

    fn of_tenant(&self, kind: &str, tenant: TenantId, text: &str) -> Happening {
        let name = self.tenant(tenant);
        Happening { tenants: vec![name.clone()], ..self.plain(kind, format!("{name} {text}")) }
    }

    fn of_work(&self, kind: &str, id: MaintenanceId, text: &str) -> Happening {
        let Some(Maintenance { plan, .. }) = self.cluster.maintenance(id) else {
            return self.plain(kind, format!("work {id} {text}"));
        };
        let mut happening = self.plain(kind, format!("{} {text}", self.what(plan)));
        self.concerns(plan, &mut happening);
        happening
    }

    fn planned(&self, plan: &Plan) -> Happening {
        let told = plan.parts.iter().any(|part| part.announcement.is_some());
        let (kind, how) = if told { ("announced", "is announced") } else { ("planned", "is planned") };
        let until = if told { format!(", not before {}", Moment(plan.not_before)) } else { String::new() };
        let mut happening = self.plain(kind, format!("{} {how}{until}", self.what(plan)));
        self.concerns(plan, &mut happening);
        happening
    }

    /// What work does to which machines: `Freeze of web_0 (update of h1)`.
    fn what(&self, plan: &Plan) -> String {
        let machines: Vec<_> = plan.machines().map(|machine| self.machine(machine)).collect();
        let (machines, cause) = (machines.join(", "), cause(self.cluster, &plan.cause));
        match plan.parts.iter().find_map(|part| part.announcement.as_ref()) {
            Some(told) => format!("{} of {machines} ({cause})", words::kind(told.kind)),
            None => format!("{cause}, for {machines},"),
        }
    }

    fn concerns(&self, plan: &Plan, happening: &mut Happening) {
        for part in &plan.parts {
            happening.tenants.push(self.tenant(part.tenant));
            happening.events.extend(part.announcement.as_ref().map(|told| told.id.to_string()));
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

fn health_words(health: Health) -> &'static str {
    match health {
        Health::Healthy => "is well",
        Health::Degraded => "is expected to fail",
        Health::Failed => "has failed",
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
