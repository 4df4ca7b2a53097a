//! Views of hosts, machines, tenants, events and the clock.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::time::Duration;

use forewarn_lifecycle::{
    Cluster, Enrolment, Event, Fence, Health, HostAttention, HostId, HostPhase, MachineId, Maintenance, Now,
    Phase, Power, Shape, StartCause, TenantId, Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::entry::{Eviction, PolicyEntry, notices, spot};
use crate::command::host_work::{is_false, work_text};
use crate::command::lookup::full_name;
use crate::command::machine_details::MachineDetails;
use crate::command::schema;
use crate::command::size::{Memory, cpus_and_memory};
use crate::command::window::WindowEntry;
use crate::view::capacity::{RoomView, room_view};
use crate::view::describe::{approver, cause, progress, start};
use crate::view::failure::FailureView;
use crate::view::host_mode::{MaintenanceModeView, mode_view};
use crate::view::start::{SeesTenant, event_progress};
use forewarn_imds::words::{self, Status};
use forewarn_types::{Moment, Span};

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names describe the fields")]
pub struct HostView {
    pub name: String,
    pub zone: Option<u16>,
    /// `healthy`, `degraded` or `failed`.
    #[schemars(extend("enum" = ["healthy", "degraded", "failed"]))]
    pub health: String,
    /// `tenant/name` of each machine, including those that are being moved here or away.
    pub machines: Vec<String>,
    /// Work on the host that is announced or under way.
    pub work: Option<String>,
    /// The reason why the host needs attention; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<String>,
    /// Separation of a failed host from the disks of its machines: `awaited` or `confirmed`; absent if it needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["awaited", "confirmed", null]))]
    pub fence: Option<String>,
    /// The maintenance mode of the host; absent if it is in normal use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<MaintenanceModeView>,
    /// Machines that return to the host after its maintenance, as `tenant/name`: announced or under way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returning: Vec<String>,
    /// Time at which the step on the host began; absent if there is none in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_since: Option<Moment>,
    /// That step, in the words of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_work: Option<String>,
    /// Capacity, and the part in use; absent if the host has no capacity and no machines with a size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<RoomView>,
    /// True if that step is the work of a person, who has to report its end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub manual: bool,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names describe the fields")]
pub struct MachineView {
    pub name: String,
    pub tenant: String,
    pub host: String,
    pub update_domain: u16,
    pub fault_domain: u16,
    /// `running`, `stopped` or `deallocated`.
    #[schemars(extend("enum" = ["running", "stopped", "deallocated"]))]
    pub power: String,
    /// Number of CPUs; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<NonZeroU16>,
    /// Memory; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Number of starts. Memory is lost when it changes.
    pub boots: u32,
    /// Generation of the ephemeral disk. The disk is lost when it changes.
    pub disk: u32,
    pub spot: Option<Eviction>,
    pub terminate: Option<Span>,
    pub os_image: bool,
    /// Version of its scale set's model; 0 outside scale sets.
    pub model: u32,
    #[schemars(with = "schema::Addresses")]
    pub addresses: Vec<IpAddr>,
    #[schemars(with = "schema::Tags")]
    pub tags: BTreeMap<String, String>,
    /// Visible events that name it.
    pub events: Vec<String>,
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names describe the fields")]
pub struct TenantView {
    pub name: String,
    #[schemars(extend("enum" = ["vm", "cloud service", "availability set", "scale set"]))]
    /// `vm`, `cloud service`, `availability set` or `scale set`.
    pub kind: String,
    pub enrolled: bool,
    /// True if the setting `enrolment` enrols it, with or without polls.
    #[serde(default, skip_serializing_if = "is_false")]
    pub enrolled_by_setting: bool,
    pub incarnation: u64,
    pub policy: PolicyEntry,
    /// Hours in which work on its hosts may start; absent for any time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowEntry>,
    /// Names of its machines.
    pub machines: Vec<String>,
    /// Visible events.
    pub events: Vec<String>,
}

/// An event that is visible to a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names describe the fields")]
pub struct EventView {
    pub id: String,
    pub tenant: String,
    /// Type of the event, as in a document: `Freeze`, `Reboot`, …
    pub kind: String,
    #[schemars(extend("enum" = ["Scheduled", "Started"]))]
    /// Status of the event, as in a document: `Scheduled` or `Started`.
    pub status: String,
    pub resources: Vec<String>,
    pub source: String,
    pub description: String,
    pub duration_seconds: i32,
    /// Null once it has started.
    pub not_before: Option<Moment>,
    pub approved: bool,
    /// The approver, or the cause of the start, in words.
    pub by: Option<String>,
    /// Cause of the event, in words.
    pub cause: String,
    /// Obstacle or progress, in words.
    pub progress: String,
    /// Number of the work behind it. Work on one host may be behind events of several tenants.
    pub work: u64,
}

/// The clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockView {
    /// Time on the clock.
    pub now: Moment,
    #[schemars(extend("enum" = ["real", "accelerated", "virtual"]))]
    /// `real`, `virtual`, or `accelerated`: that of several servers in a test, which cannot be set.
    pub kind: String,
    /// Virtual seconds per second; 0 if frozen.
    pub speed: u32,
    /// Time until the next change that is due; null if nothing is due.
    pub next_in: Option<Span>,
}

/// Description of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerView {
    /// Its version.
    pub version: String,
    #[schemars(extend("enum" = ["dev", "serve", "test"]))]
    /// `dev`, `serve` or `test`.
    pub mode: String,
    /// Address of its metadata endpoint.
    pub metadata: Vec<String>,
    /// True if a caller may choose its machine: `/vm/NAME/metadata/…`.
    pub prefix: bool,
    /// Machine of a caller that does not choose one.
    pub default_machine: Option<String>,
    /// Address of the Azure Resource Manager endpoint: `https://ADDRESS`. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// Driver that carries out actions: `simulated` for machines that exist only on the clock of the server, `program`
    /// for a program that acts on real machines.
    #[serde(default)]
    pub driver: DriverKind,
}

/// Kind of driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum DriverKind {
    /// Simulated machines: nothing outside of the server changes.
    Simulated,
    /// A program acts on real machines. This is the default if absent.
    #[default]
    Program,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Items<T> {
    /// Items, in the order in which they were added.
    pub items: Vec<T>,
    /// Cursor of the next page: `after` of the next request. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Unfinished work, and the results of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unfinished {
    /// Numbers of unfinished work.
    pub work: Vec<u64>,
    /// Numbers of unfinished rollouts.
    pub rollouts: Vec<u64>,
    /// Finished work, as far as it is remembered.
    #[serde(default)]
    pub ended: Vec<EndedView>,
}

/// Finished work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedView {
    /// Number of the work.
    pub work: u64,
    /// Result of the work.
    pub how: Ending,
    /// Machines for which it failed, with the reason: the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureView>,
}

/// Result of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// All actions succeeded.
    Done,
    /// Some actions failed.
    Failed,
    /// Withdrawn before it started.
    Withdrawn,
}

/// Differences between two fleets, and their state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetReport {
    /// One item for each difference.
    pub differences: Vec<DifferenceView>,
}

/// One difference between two fleets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DifferenceView {
    /// Description of the difference.
    pub text: String,
    /// State of the difference.
    pub state: DifferenceState,
}

/// State of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceState {
    /// The difference was removed.
    Done,
    /// A dry run: nothing was changed.
    Planned,
    /// Waits: another object must be removed first.
    Later,
    /// Not applied because the request did not include moves of machines.
    Skipped,
    /// Not applied: a scale set has more instances than in the file, and the request keeps them.
    Surplus,
}

/// View of a host.
#[must_use]
pub fn host_view(cluster: &Cluster, id: HostId, failure: Option<&str>) -> Option<HostView> {
    let host = cluster.host(id)?;
    let health = match host.health {
        Health::Healthy => "healthy",
        Health::Degraded => "degraded",
        Health::Failed => "failed",
    };
    let fencing = host.fence.order().and_then(|order| cluster.maintenance(order));
    let work = host.work.and_then(|work| cluster.maintenance(work));
    let waiting = host.rollout.is_some().then(|| "waits for its turn".to_owned());
    Some(HostView {
        name: host.name.to_string(),
        zone: host.zone.map(|zone| zone.0),
        health: health.to_owned(),
        machines: host.machines().iter().map(|machine| full_name(cluster, *machine)).collect(),
        work: fencing
            .or(work)
            .map(|work| format!("{}, {}", cause(cluster, &work.plan.cause), progress(work)))
            .or(waiting),
        attention: match host.attention {
            HostAttention::Needed => Some(failure.unwrap_or("a step on it failed").to_owned()),
            HostAttention::Unneeded => None,
        },
        fence: match host.fence {
            Fence::Unneeded => None,
            Fence::Awaited { .. } => Some("awaited".to_owned()),
            Fence::Confirmed => Some("confirmed".to_owned()),
        },
        maintenance: mode_view(cluster, id),
        returning: cluster
            .returns_to(id)
            .flat_map(|work| work.plan.machines())
            .map(|machine| full_name(cluster, machine))
            .collect(),
        step_since: work.and_then(|work| step_since(work, id)).map(Moment),
        step_work: work.filter(|work| step_since(work, id).is_some()).and_then(|work| work_text(&work.plan)),
        room: room_view(cluster, id),
        manual: false,
    })
}

impl HostView {
    /// The same where persons carry out the steps on hosts.
    #[must_use]
    pub fn worked_on_by_hand(self) -> Self {
        Self { manual: self.step_since.is_some(), ..self }
    }
}

/// Time at which the step on a host began.
fn step_since(work: &Maintenance, host: HostId) -> Option<Timestamp> {
    match work.steps()?.hosts.get(&host)? {
        HostPhase::Step { since } => Some(*since),
        HostPhase::Aside { .. } => None,
    }
}

/// View of a machine.
#[must_use]
pub fn machine_view(cluster: &Cluster, id: MachineId, details: &MachineDetails) -> Option<MachineView> {
    let machine = cluster.machine(id)?;
    let tenant = cluster.tenant(machine.tenant)?;
    let power = match machine.power {
        Power::Running => "running",
        Power::Stopped => "stopped",
        Power::Deallocated => "deallocated",
    };
    let (terminate, os_image) = notices(machine.profile);
    let (cpus, memory) = cpus_and_memory(cluster.size_of(id));
    let events = tenant.events().iter().filter(|event| event.announcement.resources.contains(&machine.name));
    Some(MachineView {
        name: machine.name.to_string(),
        tenant: tenant.name.to_string(),
        host: cluster.host(machine.host).map(|host| host.name.to_string()).unwrap_or_default(),
        update_domain: machine.update_domain.0,
        fault_domain: machine.fault_domain.0,
        power: power.to_owned(),
        cpus,
        memory,
        boots: machine.boots,
        disk: machine.ephemeral_generation,
        spot: spot(machine.priority),
        terminate,
        os_image,
        model: machine.model_version,
        addresses: details.addresses.clone(),
        tags: details.tags.clone(),
        events: events.map(|event| event.id().to_string()).collect(),
    })
}

/// View of a tenant.
#[must_use]
pub fn tenant_view(cluster: &Cluster, id: TenantId) -> Option<TenantView> {
    let tenant = cluster.tenant(id)?;
    let kind = match tenant.shape {
        Shape::StandaloneMachine => "vm",
        Shape::CloudService => "cloud service",
        Shape::AvailabilitySet => "availability set",
        Shape::PlacementGroup(_) => "scale set",
    };
    let machines = tenant.machines().iter().filter_map(|id| cluster.machine(*id));
    Some(TenantView {
        name: tenant.name.to_string(),
        kind: kind.to_owned(),
        enrolled: tenant.is_enrolled(),
        enrolled_by_setting: tenant.enrolment == Enrolment::BySetting,
        incarnation: tenant.incarnation,
        policy: tenant.policy.into(),
        windows: cluster.windows_of_tenant(id).iter().map(WindowEntry::from).collect(),
        machines: machines.map(|machine| machine.name.to_string()).collect(),
        events: tenant.events().iter().map(|event| event.id().to_string()).collect(),
    })
}

/// View of an event.
#[must_use]
pub fn event_view(cluster: &Cluster, tenant: TenantId, event: &Event, sees: SeesTenant<'_>) -> EventView {
    let announcement = &event.announcement;
    let work = cluster.maintenance(event.maintenance);
    let (not_before, approved, by) = match &event.phase {
        Phase::Scheduled { not_before, approval } => {
            let by = approval.as_ref().map(|approval| approver(cluster, approval.by));
            (Some(Moment(*not_before)), approval.is_some(), by)
        }
        Phase::Started { cause, .. } => {
            (None, *cause == StartCause::Approved, Some(start(*cause).to_owned()))
        }
    };
    EventView {
        id: announcement.id.to_string(),
        tenant: cluster.tenant(tenant).map(|tenant| tenant.name.to_string()).unwrap_or_default(),
        kind: announcement.kind.as_str().to_owned(),
        status: Status::of(&event.phase).as_str().to_owned(),
        resources: announcement.resources.iter().map(ToString::to_string).collect(),
        source: announcement.source.as_str().to_owned(),
        description: words::description(announcement.reason).to_owned(),
        duration_seconds: announcement.duration_seconds,
        not_before,
        approved,
        by,
        cause: work.map(|work| cause(cluster, &work.plan.cause)).unwrap_or_default(),
        progress: work.map(|work| event_progress(cluster, work, event, sees)).unwrap_or_default(),
        work: event.maintenance.0,
    }
}

/// View of a clock.
#[must_use]
pub fn clock_view(now: Now, kind: &str, speed: u32, next_in: Option<Duration>) -> ClockView {
    // Rounded up to whole seconds: a clock that is set forward by this value reaches the change.
    let whole =
        |span: Duration| Span(Duration::from_secs(span.as_secs() + u64::from(span.subsec_nanos() > 0)));
    ClockView { now: Moment(now.wall), kind: kind.to_owned(), speed, next_in: next_in.map(whole) }
}
