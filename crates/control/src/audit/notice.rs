//! Notices: the part of an audit entry from which push messages are made. A notice has the content of a message, but
//! not its form.
//!
//! The event, its machines and its tenant may have been removed when a message is made; only the audit entry is left.

use forewarn_lifecycle::{
    Announcement, Change, Cluster, MachineId, Maintenance, MaintenanceId, Part, Plan, ScaleSetId, Shape,
    TenantId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::view::failure::{FAILURES_MAX, FailureView};
use forewarn_imds::words;
use forewarn_types::Moment;

/// The state of an event after a change, for push messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// Id of the event.
    pub event: String,
    /// State of the event.
    pub status: NoticeStatus,
    /// Impact on the machines: `Freeze`, `Reboot`, `Redeploy`, `Preempt`, `Terminate`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Origin of the event: `Platform` or `User`.
    pub source: String,
    /// Description, as in the document.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The expected interruption in seconds: -1 unknown, 0 none.
    pub duration: i32,
    /// The earliest start without approval; only while it is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Moment>,
    /// Tenant of the machines.
    pub tenant: String,
    /// Resource of the machines: type and name, such as `virtualMachineScaleSets/web`, in the resource group of the
    /// cluster; or the full id of a resource, with a leading slash.
    pub resource: String,
    /// Names of the machines, in a stable order.
    pub resources: Vec<String>,
    /// Machines for which the work failed, with the reason: the first of them, once the event has completed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureView>,
}

/// State of an event for webhooks: as in a document, and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum NoticeStatus {
    /// Announced; waits for approval or for its time.
    Scheduled,
    /// Under way.
    Started,
    /// Completed; its work may have failed for some machines.
    Completed,
    /// Withdrawn before it started.
    Canceled,
}

impl NoticeStatus {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "Scheduled",
            Self::Started => "Started",
            Self::Completed => "Completed",
            Self::Canceled => "Canceled",
        }
    }
}

/// Owner of the machines of an event; a standalone machine is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Machine(MachineId),
    /// An availability set or a cloud service.
    Tenant(TenantId),
    ScaleSet(ScaleSetId),
}

/// Context of a change.
#[derive(Clone, Copy)]
pub struct NoticeContext<'a> {
    /// All changes of the same decision: an event that starts when it is announced was never scheduled.
    pub decided: &'a [Change],
    /// The id of the resource of an owner, if a client has written one.
    pub id_of: &'a dyn Fn(Owner) -> Option<String>,
    /// The reason why some work failed for a machine, if it did.
    pub failure_of: &'a dyn Fn(MaintenanceId, MachineId) -> Option<String>,
}

impl NoticeContext<'_> {
    pub const NOTHING: NoticeContext<'static> =
        NoticeContext { decided: &[], id_of: &|_| None, failure_of: &|_, _| None };
}

/// The effects of a change on events, in a cluster to which it has not been applied yet.
#[must_use]
#[allow(clippy::too_many_lines, reason = "one arm for each change")]
pub fn notices(cluster: &Cluster, change: &Change, context: NoticeContext<'_>) -> Vec<Notice> {
    let writer = NoticeWriter { cluster, context };
    match change {
        Change::Planned(plan) if !starts_at_once(plan, context.decided) => {
            writer.of_parts(plan, NoticeStatus::Scheduled, |_| true)
        }
        Change::Started { maintenance, actions, .. } => {
            let Some(Maintenance { plan, .. }) = cluster.maintenance(*maintenance) else { return Vec::new() };
            let mut all = writer.of_parts(plan, NoticeStatus::Started, |_| true);
            // Work with nothing left to do completes when it starts.
            let idle = cluster.parts_without_actions(*maintenance, actions);
            all.extend(writer.of_parts(plan, NoticeStatus::Completed, |part| idle.contains(&part.tenant)));
            all
        }
        Change::Withdrawn { maintenance, tenants, .. } => {
            let Some(Maintenance { plan, .. }) = cluster.maintenance(*maintenance) else { return Vec::new() };
            let parts = tenants.iter().filter_map(|tenant| plan.part(*tenant));
            writer.of_some_parts(plan, NoticeStatus::Canceled, parts)
        }
        Change::Completed { maintenance, target, report } => {
            let Some(known) = cluster.maintenance(*maintenance) else { return Vec::new() };
            let over = cluster.part_ended_by(*maintenance, *target, *report);
            let parts = over.and_then(|tenant| known.plan.part(tenant));
            writer.of_some_parts(&known.plan, NoticeStatus::Completed, parts.into_iter())
        }
        Change::HostAdvanced { maintenance, host, actions } => {
            let Some(known) = cluster.maintenance(*maintenance) else { return Vec::new() };
            let over = cluster.parts_released(*maintenance, *host, actions);
            let parts = over.iter().filter_map(|tenant| known.plan.part(*tenant));
            writer.of_some_parts(&known.plan, NoticeStatus::Completed, parts)
        }
        Change::Planned(_)
        | Change::SeedSet(_)
        | Change::HostAdmitted { .. }
        | Change::HostRemoved(_)
        | Change::HealthChanged { .. }
        | Change::TenantAdmitted { .. }
        | Change::PolicyChanged { .. }
        | Change::WindowsChanged { .. }
        | Change::TenantRemoved(_)
        | Change::ScaleSetAdmitted { .. }
        | Change::ModelChanged { .. }
        | Change::UpgradePolicyChanged { .. }
        | Change::BatchUpgraded(_)
        | Change::RollingEnded(_)
        | Change::ScaleSetPolicyChanged { .. }
        | Change::ScaleSetRemoved(_)
        | Change::MachineAdmitted { .. }
        | Change::ProfileChanged { .. }
        | Change::MachineForgotten(_)
        | Change::CapacityChanged { .. }
        | Change::MachineResized { .. }
        | Change::InstancesResized { .. }
        | Change::MachineMoved { .. }
        | Change::RolloutPlanned { .. }
        | Change::RolloutWaits { .. }
        | Change::RolloutPaused { .. }
        | Change::RolloutResumed(_)
        | Change::RolloutChanged { .. }
        | Change::RolloutEnded { .. }
        | Change::Approved { .. }
        | Change::Waits { .. }
        | Change::NoticeExtended { .. }
        | Change::Suspended { .. }
        | Change::Retried { .. }
        | Change::FenceChanged { .. }
        | Change::AttentionChanged { .. }
        | Change::ModeEntered { .. }
        | Change::ModeExited { .. }
        | Change::Enrolled(_)
        | Change::Heard { .. }
        | Change::Disabled(_)
        | Change::Polled(_)
        | Change::BrakeSet(_)
        | Change::SettingsChanged(_) => Vec::new(),
    }
}

fn starts_at_once(plan: &Plan, decided: &[Change]) -> bool {
    decided
        .iter()
        .any(|change| matches!(change, Change::Started { maintenance, .. } if *maintenance == plan.id))
}

/// The part of a plan that names a machine. A machine that other work has deleted is found by search.
pub(crate) fn part_of_machine<'a>(cluster: &Cluster, plan: &'a Plan, machine: MachineId) -> Option<&'a Part> {
    match cluster.machine(machine) {
        Some(known) => plan.part(known.tenant),
        None => plan.parts.iter().find(|part| part.machines.contains(&machine)),
    }
}

struct NoticeWriter<'a> {
    cluster: &'a Cluster,
    context: NoticeContext<'a>,
}

impl NoticeWriter<'_> {
    fn of_parts(&self, plan: &Plan, status: NoticeStatus, is_meant: impl Fn(&Part) -> bool) -> Vec<Notice> {
        self.of_some_parts(plan, status, plan.parts.iter().filter(|part| is_meant(part)))
    }

    fn of_some_parts<'p>(
        &self,
        plan: &Plan,
        status: NoticeStatus,
        parts: impl Iterator<Item = &'p Part>,
    ) -> Vec<Notice> {
        let announced = parts.filter_map(|part| Some((part, part.announcement.as_ref()?)));
        announced.map(|(part, announcement)| self.notice(plan, part, announcement, status)).collect()
    }

    fn notice(&self, plan: &Plan, part: &Part, announcement: &Announcement, status: NoticeStatus) -> Notice {
        let (tenant, resource) = self.owner(part);
        Notice {
            event: announcement.id.to_string(),
            status,
            kind: announcement.kind.as_str().to_owned(),
            source: announcement.source.as_str().to_owned(),
            description: words::description(announcement.reason).to_owned(),
            duration: announcement.duration_seconds,
            not_before: (status == NoticeStatus::Scheduled).then_some(Moment(plan.not_before)),
            tenant,
            resource,
            resources: announcement.resources.iter().map(ToString::to_string).collect(),
            failures: match status {
                NoticeStatus::Completed => self.failures(plan, part),
                NoticeStatus::Scheduled | NoticeStatus::Started | NoticeStatus::Canceled => Vec::new(),
            },
        }
    }

    fn failures(&self, plan: &Plan, part: &Part) -> Vec<FailureView> {
        let failures = part.machines.iter().filter_map(|id| {
            let reason = (self.context.failure_of)(plan.id, *id)?;
            let machine = self.cluster.machine(*id).map(|machine| machine.name.to_string());
            Some(FailureView { machine: machine.unwrap_or_else(|| id.to_string()), reason })
        });
        failures.take(FAILURES_MAX).collect()
    }

    /// The tenant of a part, and the resource of its machines. A standalone machine has the name of its tenant.
    fn owner(&self, part: &Part) -> (String, String) {
        let Some(tenant) = self.cluster.tenant(part.tenant) else {
            return (part.tenant.to_string(), String::new());
        };
        let of_tenant = |kind| (Some(Owner::Tenant(part.tenant)), kind, &tenant.name);
        let (owner, kind, name) = match tenant.shape {
            Shape::StandaloneMachine => {
                let machine = part.machines.first().copied().map(Owner::Machine);
                (machine, "virtualMachines", &tenant.name)
            }
            Shape::AvailabilitySet => of_tenant("availabilitySets"),
            Shape::CloudService => of_tenant("cloudServices"),
            Shape::PlacementGroup(set) => {
                let name = self.cluster.scale_set(set).map_or(&tenant.name, |set| &set.name);
                (Some(Owner::ScaleSet(set)), "virtualMachineScaleSets", name)
            }
        };
        let known = owner.and_then(|owner| (self.context.id_of)(owner));
        (tenant.name.to_string(), known.unwrap_or_else(|| format!("{kind}/{name}")))
    }
}
