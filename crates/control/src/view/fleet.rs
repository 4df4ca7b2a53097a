//! What an operator is shown: hosts, machines, tenants, events, the clock.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use forewarn_lifecycle::{
    Cluster, Event, Health, HostId, MachineId, Now, Phase, Power, Shape, StartCause, TenantId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::entry::{Eviction, PolicyEntry, notices, spot};
use crate::command::find::full_name;
use crate::command::resolve::MachineDetails;
use crate::command::schema;
use crate::view::failure::FailureView;
use crate::view::wording::{approver, cause, progress, start};
use forewarn_imds::words::{self, Status};
use forewarn_types::{Moment, Span};

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct HostView {
    pub name: String,
    pub zone: Option<u16>,
    /// `healthy`, `degraded` or `failed`.
    #[schemars(extend("enum" = ["healthy", "degraded", "failed"]))]
    pub health: String,
    /// `tenant/name` of each machine, those on their way here or from here included.
    pub machines: Vec<String>,
    /// What is being done to it, or is announced.
    pub work: Option<String>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct MachineView {
    pub name: String,
    pub tenant: String,
    pub host: String,
    pub update_domain: u16,
    pub fault_domain: u16,
    /// `running`, `stopped` or `deallocated`.
    #[schemars(extend("enum" = ["running", "stopped", "deallocated"]))]
    pub power: String,
    /// How often it has been started: memory lives as long as this number.
    pub boots: u32,
    /// The ephemeral disk lives as long as this number.
    pub disk: u32,
    pub spot: Option<Eviction>,
    pub terminate: Option<Span>,
    pub os_image: bool,
    /// The version of its scale set's model that it runs; 0 outside scale sets.
    pub model: u32,
    #[schemars(with = "schema::Addresses")]
    pub addresses: Vec<IpAddr>,
    #[schemars(with = "schema::Tags")]
    pub tags: BTreeMap<String, String>,
    /// The visible events that name it.
    pub events: Vec<String>,
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TenantView {
    pub name: String,
    #[schemars(extend("enum" = ["vm", "cloud service", "availability set", "scale set"]))]
    /// `vm`, `cloud service`, `availability set` or `scale set`.
    pub kind: String,
    pub enrolled: bool,
    pub incarnation: u64,
    pub policy: PolicyEntry,
    /// The names of its machines.
    pub machines: Vec<String>,
    /// The visible events.
    pub events: Vec<String>,
}

/// An event that a tenant can see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct EventView {
    pub id: String,
    pub tenant: String,
    /// As in a document: `Freeze`, `Reboot`, …
    pub kind: String,
    #[schemars(extend("enum" = ["Scheduled", "Started"]))]
    /// As in a document: `Scheduled` or `Started`.
    pub status: String,
    pub resources: Vec<String>,
    pub source: String,
    pub description: String,
    pub duration_seconds: i32,
    /// Until it has started.
    pub not_before: Option<Moment>,
    pub approved: bool,
    /// Who or what approved it or let it start, in words.
    pub by: Option<String>,
    /// Why there is such an event, in words.
    pub cause: String,
    /// What it waits for, or what is being done, in words.
    pub progress: String,
    /// The number of the work behind it; work on one host may be behind events of several tenants.
    pub work: u64,
}

/// The clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockView {
    /// What it shows.
    pub now: Moment,
    #[schemars(extend("enum" = ["real", "virtual"]))]
    /// `real` or `virtual`.
    pub kind: String,
    /// Seconds a second; 0 is frozen.
    pub speed: u32,
    /// How long it is until time alone changes something.
    pub next_in: Option<Span>,
}

/// A server, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerView {
    /// Its version.
    pub version: String,
    #[schemars(extend("enum" = ["dev", "serve"]))]
    /// `dev` or `serve`.
    pub mode: String,
    /// Where its metadata endpoint is.
    pub metadata: Vec<String>,
    /// Whether a caller may say which machine it is: `/vm/NAME/metadata/…`.
    pub prefix: bool,
    /// Who a caller is that does not say.
    pub default_machine: Option<String>,
    /// Where clients of Azure come in: `https://ADDRESS`. Not there where they cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// The driver that carries out orders: `pretend` for machines that exist only on the clock of the server, `program` for a
    /// program that acts on real machines.
    #[serde(default)]
    pub driver: DriverKind,
}

/// The kind of driver that a server has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum DriverKind {
    /// Machines pretend: nothing outside of the server changes.
    Pretend,
    /// A program acts on real machines. A server that does not say which driver it has counts as one of these.
    #[default]
    Program,
}

/// Things of a kind, as many as are shown at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Items<T> {
    /// In the order in which they joined.
    pub items: Vec<T>,
    /// Where to go on: `after` of the request for what follows. Not there when nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What of some work is not over, and how the rest ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unfinished {
    /// Numbers of work.
    pub work: Vec<u64>,
    /// Numbers of rollouts.
    pub rollouts: Vec<u64>,
    /// Work that has ended, as far as that is remembered.
    #[serde(default)]
    pub ended: Vec<EndedView>,
}

/// Work that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedView {
    /// Its number.
    pub work: u64,
    /// How it ended.
    pub how: Ending,
    /// The machines for which it has failed, and why: the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureView>,
}

/// How work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// All of it was done.
    Done,
    /// Some of it could not be done.
    Failed,
    /// It was taken back before it started.
    Withdrawn,
}

/// How two fleets differ, and what has been done about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetReport {
    /// One for each thing.
    pub differences: Vec<DifferenceView>,
}

/// One thing in which two fleets differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DifferenceView {
    /// In words.
    pub text: String,
    /// What has been done about it.
    pub state: DifferenceState,
}

/// What has been done about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceState {
    /// It is gone.
    Done,
    /// Nothing: it was only asked for.
    Planned,
    /// Nothing yet: something else has to go first.
    Later,
    /// Nothing, because applying it was not asked for: a move of a machine.
    Skipped,
}

/// How a host is.
#[must_use]
pub fn host_view(cluster: &Cluster, id: HostId) -> Option<HostView> {
    let host = cluster.host(id)?;
    let health = match host.health {
        Health::Healthy => "healthy",
        Health::Degraded => "degraded",
        Health::Failed => "failed",
    };
    let work = host.work.and_then(|work| cluster.maintenance(work));
    let waiting = host.rollout.is_some().then(|| "waits for its turn".to_owned());
    Some(HostView {
        name: host.name.to_string(),
        zone: host.zone.map(|zone| zone.0),
        health: health.to_owned(),
        machines: host.machines().iter().map(|machine| full_name(cluster, *machine)).collect(),
        work: work
            .map(|work| format!("{}, {}", cause(cluster, &work.plan.cause), progress(work)))
            .or(waiting),
    })
}

/// How a machine is.
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
    let events = tenant.events().iter().filter(|event| event.announcement.resources.contains(&machine.name));
    Some(MachineView {
        name: machine.name.to_string(),
        tenant: tenant.name.to_string(),
        host: cluster.host(machine.host).map(|host| host.name.to_string()).unwrap_or_default(),
        update_domain: machine.update_domain.0,
        fault_domain: machine.fault_domain.0,
        power: power.to_owned(),
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

/// How a tenant is.
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
        incarnation: tenant.incarnation,
        policy: tenant.policy.into(),
        machines: machines.map(|machine| machine.name.to_string()).collect(),
        events: tenant.events().iter().map(|event| event.id().to_string()).collect(),
    })
}

/// How an event stands.
#[must_use]
pub fn event_view(cluster: &Cluster, tenant: TenantId, event: &Event) -> EventView {
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
        progress: work.map(progress).unwrap_or_default(),
        work: event.maintenance.0,
    }
}

/// What a clock shows.
#[must_use]
pub fn clock_view(now: Now, kind: &str, speed: u32, next_in: Option<Duration>) -> ClockView {
    // In whole seconds, and not less: who sets the clock forward by that much gets there.
    let whole =
        |span: Duration| Span(Duration::from_secs(span.as_secs() + u64::from(span.subsec_nanos() > 0)));
    ClockView { now: Moment(now.wall), kind: kind.to_owned(), speed, next_in: next_in.map(whole) }
}
