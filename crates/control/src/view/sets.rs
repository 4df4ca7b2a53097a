//! Views of scale sets, availability sets and cloud services: a summary for lists, and a view with their machines.

use std::collections::BTreeSet;

use std::num::NonZeroU16;

use forewarn_lifecycle::{Cluster, Machine, MachineId, ScaleSet, ScaleSetId, Shape, TenantId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::entry::{Eviction, OrchestrationWord, PolicyEntry, notices, spot};
use crate::command::machine_details::MachineDetails;
use crate::command::size::{Memory, cpus_and_memory};
use crate::command::upgrade::UpgradeWord;
use crate::placement::instances::instances;
use crate::view::fleet::machine_view;
use forewarn_types::{Moment, Span};

/// A scale set, without its instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names describe the fields")]
pub struct ScaleSetSummary {
    pub name: String,
    /// Number of instances, without those that are being deleted.
    pub capacity: usize,
    /// Number of instances that are being deleted.
    pub leaving: usize,
    /// Number of instances that have an older model.
    pub outdated: usize,
    /// Time at which the next batch of a rolling upgrade gets the latest model. Null if no batch is left.
    pub next_batch: Option<Moment>,
    pub orchestration: OrchestrationWord,
    pub upgrade: UpgradeWord,
    /// Number of CPUs of an instance; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<NonZeroU16>,
    /// Memory of an instance; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Eviction policy of its instances; null if they are not spot machines.
    pub spot: Option<Eviction>,
    /// Version of its model.
    pub model: u32,
    /// Notice of the deletion of an instance that has this model.
    pub terminate: Option<Span>,
    /// True if a new operating-system image is announced to an instance that has this model.
    pub os_image: bool,
    pub policy: PolicyEntry,
    /// Its placement groups, each a tenant.
    pub tenants: Vec<String>,
}

/// A scale set with its instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScaleSetView {
    /// The summary.
    #[serde(flatten)]
    pub summary: ScaleSetSummary,
    /// Instances, by number.
    pub instances: Vec<InstanceView>,
}

/// An instance of a scale set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceView {
    /// Number of the instance.
    pub id: u32,
    /// Version of the model of the instance.
    pub model: u32,
    /// True if that is the latest version.
    pub latest: bool,
    /// The machine of the instance.
    #[serde(flatten)]
    pub member: MemberView,
}

/// A machine of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names describe the fields")]
pub struct MemberView {
    pub name: String,
    pub tenant: String,
    pub host: String,
    pub update_domain: u16,
    pub fault_domain: u16,
    #[schemars(extend("enum" = ["running", "stopped", "deallocated"]))]
    /// `running`, `stopped` or `deallocated`.
    pub power: String,
    pub spot: Option<Eviction>,
    /// Notice of its deletion.
    pub terminate: Option<Span>,
    pub os_image: bool,
    /// True while it is being deleted.
    pub leaving: bool,
    /// Visible events that name it.
    pub events: Vec<String>,
}

/// An availability set or a cloud service, without its machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names describe the fields")]
pub struct MachineSetSummary {
    pub name: String,
    pub enrolled: bool,
    pub policy: PolicyEntry,
    /// Number of machines.
    pub size: usize,
    /// Number of update domains that have machines.
    pub update_domains: usize,
    /// Number of fault domains that have machines.
    pub fault_domains: usize,
    /// Visible events.
    pub events: Vec<String>,
}

/// An availability set or a cloud service with its machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineSetView {
    /// The summary.
    #[serde(flatten)]
    pub summary: MachineSetSummary,
    /// Machines, in the order in which they were added.
    pub machines: Vec<MemberView>,
}

/// Summary of a scale set.
#[must_use]
pub fn scale_set_summary(cluster: &Cluster, id: ScaleSetId) -> Option<ScaleSetSummary> {
    let set = cluster.scale_set(id)?;
    let all = instances(cluster, set);
    let going = all.iter().filter(|(_, id)| cluster.is_leaving(*id)).count();
    let outdated = all.iter().filter_map(|(_, id)| cluster.machine(*id));
    let (terminate, os_image) = notices(set.model);
    let (cpus, memory) = cpus_and_memory(cluster.instance_size(id));
    let tenants = set.groups.iter().filter_map(|group| cluster.tenant(*group));
    Some(ScaleSetSummary {
        name: set.name.to_string(),
        capacity: all.len() - going,
        leaving: going,
        outdated: outdated.filter(|machine| machine.model_version != set.model_version).count(),
        next_batch: set.next_batch().map(|at| Moment(at.wall)),
        orchestration: set.orchestration.into(),
        upgrade: set.upgrade.into(),
        cpus,
        memory,
        spot: spot(set.priority),
        model: set.model_version,
        terminate,
        os_image,
        policy: set.policy.into(),
        tenants: tenants.map(|tenant| tenant.name.to_string()).collect(),
    })
}

/// View of a scale set with its instances.
#[must_use]
pub fn scale_set_view(cluster: &Cluster, id: ScaleSetId) -> Option<ScaleSetView> {
    let summary = scale_set_summary(cluster, id)?;
    let set = cluster.scale_set(id)?;
    let view = |(number, id)| instance(cluster, set, number, id);
    Some(ScaleSetView { summary, instances: instances(cluster, set).into_iter().filter_map(view).collect() })
}

fn instance(cluster: &Cluster, set: &ScaleSet, number: u32, id: MachineId) -> Option<InstanceView> {
    let model = cluster.machine(id)?.model_version;
    let member = member(cluster, id)?;
    Some(InstanceView { id: number, model, latest: model == set.model_version, member })
}

/// Summary of a tenant of this shape: an availability set or a cloud service. None if it has another shape.
#[must_use]
pub fn machine_set_summary(cluster: &Cluster, id: TenantId, shape: Shape) -> Option<MachineSetSummary> {
    let tenant = cluster.tenant(id).filter(|tenant| tenant.shape == shape)?;
    let machines = || tenant.machines().iter().filter_map(|id| cluster.machine(*id));
    let count = |domain: fn(&Machine) -> u16| machines().map(domain).collect::<BTreeSet<_>>().len();
    Some(MachineSetSummary {
        name: tenant.name.to_string(),
        enrolled: tenant.is_enrolled(),
        policy: tenant.policy.into(),
        size: tenant.machines().len(),
        update_domains: count(|machine| machine.update_domain.0),
        fault_domains: count(|machine| machine.fault_domain.0),
        events: tenant.events().iter().map(|event| event.id().to_string()).collect(),
    })
}

/// View of a tenant of this shape with its machines. None if it has another shape.
#[must_use]
pub fn machine_set_view(cluster: &Cluster, id: TenantId, shape: Shape) -> Option<MachineSetView> {
    let summary = machine_set_summary(cluster, id, shape)?;
    let machines = cluster.tenant(id)?.machines();
    let machines = machines.iter().filter_map(|id| member(cluster, *id)).collect();
    Some(MachineSetView { summary, machines })
}

fn member(cluster: &Cluster, id: MachineId) -> Option<MemberView> {
    let machine = machine_view(cluster, id, &MachineDetails::default())?;
    Some(MemberView {
        name: machine.name,
        tenant: machine.tenant,
        host: machine.host,
        update_domain: machine.update_domain,
        fault_domain: machine.fault_domain,
        power: machine.power,
        spot: machine.spot,
        terminate: machine.terminate,
        os_image: machine.os_image,
        leaving: cluster.is_leaving(id),
        events: machine.events,
    })
}
