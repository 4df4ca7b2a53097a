//! What an operator is shown of scale sets and availability sets: in a list a line of each, and each with its machines.

use std::collections::BTreeSet;

use forewarn_lifecycle::{Cluster, Machine, MachineId, ScaleSet, ScaleSetId, Shape, Tenant, TenantId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::entry::{Eviction, OrchestrationWord, PolicyEntry, notices, spot};
use crate::command::resolve::MachineDetails;
use crate::command::upgrade::UpgradeWord;
use crate::placement::instances::instances;
use crate::view::fleet::machine_view;
use forewarn_types::{Moment, Span};

/// A scale set, without its instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ScaleSetSummary {
    pub name: String,
    /// How many instances it has, those that are being deleted not counted.
    pub capacity: usize,
    /// How many instances are being deleted.
    pub leaving: usize,
    /// How many instances have an older model.
    pub outdated: usize,
    /// When the next batch of a rolling upgrade gets the latest model, if others wait for theirs.
    pub next_batch: Option<Moment>,
    pub orchestration: OrchestrationWord,
    pub upgrade: UpgradeWord,
    /// What eviction does to its instances, if they are spot machines.
    pub spot: Option<Eviction>,
    /// The version of its model.
    pub model: u32,
    /// The notice of the deletion of an instance that has this model.
    pub terminate: Option<Span>,
    /// Whether a new operating-system image is announced to an instance that has this model.
    pub os_image: bool,
    pub policy: PolicyEntry,
    /// Its placement groups, each a tenant.
    pub tenants: Vec<String>,
}

/// A scale set with its instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScaleSetView {
    /// What there is to say of it.
    #[serde(flatten)]
    pub summary: ScaleSetSummary,
    /// By their numbers.
    pub instances: Vec<InstanceView>,
}

/// An instance of a scale set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceView {
    /// Its number.
    pub id: u32,
    /// The version of the model that it has.
    pub model: u32,
    /// Whether that is the latest.
    pub latest: bool,
    /// As of every machine.
    #[serde(flatten)]
    pub member: MemberView,
}

/// A machine of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
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
    /// The notice of its deletion.
    pub terminate: Option<Span>,
    pub os_image: bool,
    /// Whether it is being deleted.
    pub leaving: bool,
    /// The visible events that name it.
    pub events: Vec<String>,
}

/// An availability set, without its machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct AvailabilitySetSummary {
    pub name: String,
    pub enrolled: bool,
    pub policy: PolicyEntry,
    /// How many machines it has.
    pub size: usize,
    /// Over how many update domains they are spread.
    pub update_domains: usize,
    /// Over how many fault domains they are spread.
    pub fault_domains: usize,
    /// The visible events.
    pub events: Vec<String>,
}

/// An availability set with its machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AvailabilitySetView {
    /// What there is to say of it.
    #[serde(flatten)]
    pub summary: AvailabilitySetSummary,
    /// In the order in which they joined.
    pub machines: Vec<MemberView>,
}

/// How a scale set is; `leaving` are the machines that are on their way out.
#[must_use]
pub fn scale_set_summary(
    cluster: &Cluster,
    id: ScaleSetId,
    leaving: &BTreeSet<MachineId>,
) -> Option<ScaleSetSummary> {
    let set = cluster.scale_set(id)?;
    let all = instances(cluster, set);
    let going = all.iter().filter(|(_, id)| leaving.contains(id)).count();
    let outdated = all.iter().filter_map(|(_, id)| cluster.machine(*id));
    let (terminate, os_image) = notices(set.model);
    let tenants = set.groups.iter().filter_map(|group| cluster.tenant(*group));
    Some(ScaleSetSummary {
        name: set.name.to_string(),
        capacity: all.len() - going,
        leaving: going,
        outdated: outdated.filter(|machine| machine.model_version != set.model_version).count(),
        next_batch: set.next_batch().map(|at| Moment(at.wall)),
        orchestration: set.orchestration.into(),
        upgrade: set.upgrade.into(),
        spot: spot(set.priority),
        model: set.model_version,
        terminate,
        os_image,
        policy: set.policy.into(),
        tenants: tenants.map(|tenant| tenant.name.to_string()).collect(),
    })
}

/// How a scale set and its instances are.
#[must_use]
pub fn scale_set_view(
    cluster: &Cluster,
    id: ScaleSetId,
    leaving: &BTreeSet<MachineId>,
) -> Option<ScaleSetView> {
    let summary = scale_set_summary(cluster, id, leaving)?;
    let set = cluster.scale_set(id)?;
    let view = |(number, id)| instance(cluster, set, number, id, leaving);
    Some(ScaleSetView { summary, instances: instances(cluster, set).into_iter().filter_map(view).collect() })
}

fn instance(
    cluster: &Cluster,
    set: &ScaleSet,
    number: u32,
    id: MachineId,
    leaving: &BTreeSet<MachineId>,
) -> Option<InstanceView> {
    let model = cluster.machine(id)?.model_version;
    let member = member(cluster, id, leaving)?;
    Some(InstanceView { id: number, model, latest: model == set.model_version, member })
}

/// How an availability set is.
#[must_use]
pub fn availability_set_summary(cluster: &Cluster, id: TenantId) -> Option<AvailabilitySetSummary> {
    let tenant = availability_set(cluster, id)?;
    let machines = || tenant.machines().iter().filter_map(|id| cluster.machine(*id));
    let count = |domain: fn(&Machine) -> u16| machines().map(domain).collect::<BTreeSet<_>>().len();
    Some(AvailabilitySetSummary {
        name: tenant.name.to_string(),
        enrolled: tenant.is_enrolled(),
        policy: tenant.policy.into(),
        size: tenant.machines().len(),
        update_domains: count(|machine| machine.update_domain.0),
        fault_domains: count(|machine| machine.fault_domain.0),
        events: tenant.events().iter().map(|event| event.id().to_string()).collect(),
    })
}

/// How an availability set and its machines are.
#[must_use]
pub fn availability_set_view(
    cluster: &Cluster,
    id: TenantId,
    leaving: &BTreeSet<MachineId>,
) -> Option<AvailabilitySetView> {
    let summary = availability_set_summary(cluster, id)?;
    let machines = availability_set(cluster, id)?.machines();
    let machines = machines.iter().filter_map(|id| member(cluster, *id, leaving)).collect();
    Some(AvailabilitySetView { summary, machines })
}

fn availability_set(cluster: &Cluster, id: TenantId) -> Option<&Tenant> {
    cluster.tenant(id).filter(|tenant| tenant.shape == Shape::AvailabilitySet)
}

fn member(cluster: &Cluster, id: MachineId, leaving: &BTreeSet<MachineId>) -> Option<MemberView> {
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
        leaving: leaving.contains(&id),
        events: machine.events,
    })
}
