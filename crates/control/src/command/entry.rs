//! The entries of a fleet: hosts, and tenants with their machines. The same in a fleet file (TOML) and in a command
//! (JSON).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU16;

use forewarn_lifecycle::limits::{FAULT_DOMAINS_MAX, MACHINES_PER_TENANT_MAX};
use forewarn_lifecycle::{
    Approve, EvictionPolicy, Name, Orchestration, OsImageNotice, Policy, Priority, Profile, TerminateNotice,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::object::objects;
use crate::command::schema;
use crate::command::size::Memory;
use crate::command::upgrade::UpgradeWord;
use crate::command::window::WindowEntry;
use forewarn_types::{Span, list};

/// Location, subscription and resource group that machines show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct Site {
    /// The region.
    #[schemars(schema_with = "schema::readable")]
    pub location: String,
    /// The subscription.
    #[schemars(schema_with = "schema::readable")]
    pub subscription: String,
    /// The resource group.
    #[schemars(schema_with = "schema::readable")]
    pub resource_group: String,
}

impl Default for Site {
    fn default() -> Self {
        Self {
            location: "local".to_owned(),
            subscription: "00000000-0000-0000-0000-000000000000".to_owned(),
            resource_group: "forewarn".to_owned(),
        }
    }
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct HostEntry {
    /// Name of the host.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// Zone of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<u16>,
    /// Number of CPUs; no limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<NonZeroU16>,
    /// Memory, such as `256GiB`; no limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
}

/// A standalone machine: a tenant with one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct VmEntry {
    /// Name of the tenant and of its machine.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// Host of the machine.
    #[schemars(with = "schema::Name")]
    pub host: String,
    /// Update domain.
    #[serde(default)]
    pub update_domain: u16,
    /// Fault domain.
    #[serde(default)]
    pub fault_domain: u16,
    /// Number of CPUs that it takes on its host; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<NonZeroU16>,
    /// Memory that it takes on its host, such as `8GiB`; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Eviction policy; absent if it is not a spot machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<Eviction>,
    /// Notice of its deletion: 5 to 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Notice>")]
    pub terminate: Option<Span>,
    /// True if a new operating-system image is announced.
    #[serde(default, skip_serializing_if = "is_false")]
    pub os_image: bool,
    /// Events that are approved automatically.
    #[serde(default, skip_serializing_if = "PolicyEntry::is_default")]
    pub policy: PolicyEntry,
    /// Hours in which planned work on its hosts may start; any time if absent. Only in a fleet file: commands that admit
    /// something have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "list::at_least_one")]
    #[schemars(length(min = 1, max = 16))]
    pub windows: Vec<WindowEntry>,
    /// Source addresses of its requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "schema::Addresses")]
    pub addresses: Vec<IpAddr>,
    /// Tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "schema::Tags")]
    pub tags: BTreeMap<String, String>,
}

/// A cloud service or an availability set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct SetEntry {
    /// Name of the set.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// Events that are approved automatically.
    #[serde(default, skip_serializing_if = "PolicyEntry::is_default")]
    pub policy: PolicyEntry,
    /// Hours in which planned work on its hosts may start; any time if absent. Only in a fleet file: commands that admit
    /// something have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "list::at_least_one")]
    #[schemars(length(min = 1, max = 16))]
    pub windows: Vec<WindowEntry>,
    /// Its machines.
    #[serde(default, rename = "machine", skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineEntry>,
}

/// A machine of a cloud service or of an availability set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct MachineEntry {
    /// Name of the machine.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// Host of the machine.
    #[schemars(with = "schema::Name")]
    pub host: String,
    /// Update domain.
    #[serde(default)]
    pub update_domain: u16,
    /// Fault domain.
    #[serde(default)]
    pub fault_domain: u16,
    /// Number of CPUs that it takes on its host; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<NonZeroU16>,
    /// Memory that it takes on its host, such as `8GiB`; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Eviction policy; absent if it is not a spot machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<Eviction>,
    /// Notice of its deletion: 5 to 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Notice>")]
    pub terminate: Option<Span>,
    /// True if a new operating-system image is announced.
    #[serde(default, skip_serializing_if = "is_false")]
    pub os_image: bool,
    /// Source addresses of its requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "schema::Addresses")]
    pub addresses: Vec<IpAddr>,
    /// Tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "schema::Tags")]
    pub tags: BTreeMap<String, String>,
}

/// A scale set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct ScaleSetEntry {
    /// Name of the scale set.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// Grouping of its instances into tenants.
    #[serde(default)]
    pub orchestration: OrchestrationWord,
    /// Policy for upgrades of instances to a new model.
    #[serde(default)]
    pub upgrade: UpgradeWord,
    /// Number of CPUs that each instance takes on its host; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<NonZeroU16>,
    /// Memory that each instance takes on its host, such as `8GiB`; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Eviction policy of its instances; absent if they are not spot machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<Eviction>,
    /// Notice of the deletion of an instance: 5 to 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Notice>")]
    pub terminate: Option<Span>,
    /// True if a new operating-system image is announced.
    #[serde(default, skip_serializing_if = "is_false")]
    pub os_image: bool,
    /// Events that are approved automatically.
    #[serde(default, skip_serializing_if = "PolicyEntry::is_default")]
    pub policy: PolicyEntry,
    /// Hours in which planned work on its hosts may start; any time if absent. Only in a fleet file: commands that admit
    /// something have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "list::at_least_one")]
    #[schemars(length(min = 1, max = 16))]
    pub windows: Vec<WindowEntry>,
    /// Number of instances that the server places; only in a fleet file, instead of a list of instances.
    #[serde(default, rename = "instances", skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = MACHINES_PER_TENANT_MAX))]
    pub count: Option<u16>,
    /// Constraints on the instances that the server places; any host if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementEntry>,
    /// Its instances.
    #[serde(default, rename = "instance", skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<InstanceEntry>,
}

/// Constraints on instances that the server places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct PlacementEntry {
    /// Hosts for the instances; any host if absent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "list::at_least_one_or_absent"
    )]
    #[schemars(with = "Option<schema::AtLeastOne<schema::Name>>")]
    pub hosts: Option<Vec<String>>,
    /// Zones over which the instances are spread; any zone if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "list::at_least_one")]
    #[schemars(length(min = 1))]
    pub zones: Vec<u16>,
    /// Fault domains over which the instances are spread; if absent, as many as there are, but at least 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = FAULT_DOMAINS_MAX))]
    pub fault_domains: Option<u16>,
}

/// An instance of a scale set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct InstanceEntry {
    /// Number in the name of the instance; in a fleet file, the index in the list if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Host of the instance.
    #[schemars(with = "schema::Name")]
    pub host: String,
    /// Update domain.
    #[serde(default)]
    pub update_domain: u16,
    /// Fault domain.
    #[serde(default)]
    pub fault_domain: u16,
    /// Source addresses of its requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "schema::Addresses")]
    pub addresses: Vec<IpAddr>,
    /// Tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "schema::Tags")]
    pub tags: BTreeMap<String, String>,
}

/// Events that are approved automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct PolicyEntry {
    /// A restart by the owner.
    pub restart: ApproveWord,
    /// A redeploy by the owner.
    pub redeploy: ApproveWord,
    /// Every event, while no machine of the tenant runs.
    pub all_down: ApproveWord,
}

/// Approval of a kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApproveWord {
    /// The event is approved automatically.
    Automatic,
    /// A machine of the tenant approves, or the notice ends.
    Asked,
}

/// Eviction policy of a spot machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Eviction {
    /// The machine is deleted.
    Delete,
    /// The machine is deallocated: its disks stay, and it can be started again.
    Deallocate,
}

/// Grouping of the instances of a scale set into tenants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OrchestrationWord {
    /// Placement groups of at most 100 instances.
    #[default]
    Uniform,
    /// One tenant.
    Flexible,
}

objects! { Site HostEntry VmEntry SetEntry MachineEntry ScaleSetEntry PlacementEntry InstanceEntry PolicyEntry }

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl VmEntry {
    /// A standalone machine with these properties.
    #[must_use]
    pub fn of(machine: MachineEntry, policy: PolicyEntry) -> Self {
        Self {
            windows: Vec::new(),
            name: machine.name,
            host: machine.host,
            update_domain: machine.update_domain,
            fault_domain: machine.fault_domain,
            cpus: machine.cpus,
            memory: machine.memory,
            spot: machine.spot,
            terminate: machine.terminate,
            os_image: machine.os_image,
            policy,
            addresses: machine.addresses,
            tags: machine.tags,
        }
    }
}

impl ScaleSetEntry {
    /// The name of a new instance with a number.
    pub(crate) fn instance_name(&self, number: u32) -> String {
        let Ok(name) = Name::new(&self.name) else { return format!("{}_{number}", self.name) };
        match self.orchestration {
            OrchestrationWord::Uniform => name.of_instance(number).to_string(),
            OrchestrationWord::Flexible => name.of_flexible_instance(number).to_string(),
        }
    }

    /// The scale set alone: instances are admitted one by one.
    pub(crate) fn without_instances(&self) -> Self {
        Self {
            windows: Vec::new(),
            name: self.name.clone(),
            orchestration: self.orchestration,
            upgrade: self.upgrade,
            cpus: self.cpus,
            memory: self.memory,
            spot: self.spot,
            terminate: self.terminate,
            os_image: self.os_image,
            policy: self.policy,
            count: None,
            placement: None,
            instances: Vec::new(),
        }
    }
}

impl Default for PolicyEntry {
    fn default() -> Self {
        Policy::default().into()
    }
}

impl PolicyEntry {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl From<Policy> for PolicyEntry {
    fn from(policy: Policy) -> Self {
        Self {
            restart: policy.user_restart.into(),
            redeploy: policy.user_redeploy.into(),
            all_down: policy.all_instances_down.into(),
        }
    }
}

impl From<PolicyEntry> for Policy {
    fn from(entry: PolicyEntry) -> Self {
        Self {
            user_restart: entry.restart.into(),
            user_redeploy: entry.redeploy.into(),
            all_instances_down: entry.all_down.into(),
        }
    }
}

/// Conversions between types with the same variants.
macro_rules! words {
    ($($word:ident = $meaning:ident { $($left:ident = $right:ident),+ })+) => {
        $(impl From<$word> for $meaning {
            fn from(word: $word) -> Self {
                match word { $($word::$left => Self::$right),+ }
            }
        }

        impl From<$meaning> for $word {
            fn from(meaning: $meaning) -> Self {
                match meaning { $($meaning::$right => Self::$left),+ }
            }
        })+
    };
}

words! {
    ApproveWord = Approve { Automatic = Automatically, Asked = WhenAsked }
    Eviction = EvictionPolicy { Delete = Delete, Deallocate = Deallocate }
    OrchestrationWord = Orchestration { Uniform = Uniform, Flexible = Flexible }
}

/// Priority of a machine: regular or spot.
pub(crate) fn priority(spot: Option<Eviction>) -> Priority {
    spot.map_or(Priority::Regular, |eviction| Priority::Spot(eviction.into()))
}

/// Eviction policy of a priority; None if regular.
#[must_use]
pub fn spot(priority: Priority) -> Option<Eviction> {
    match priority {
        Priority::Regular => None,
        Priority::Spot(policy) => Some(policy.into()),
    }
}

/// Profile of a machine: notice of deletion and of new images. None if the notice is out of range.
pub(crate) fn profile(terminate: Option<Span>, os_image: bool) -> Option<Profile> {
    let terminate = match terminate {
        Some(Span(span)) => Some(TerminateNotice::from_seconds(span.as_secs())?),
        None => None,
    };
    Some(Profile { terminate, os_image: if os_image { OsImageNotice::On } else { OsImageNotice::Off } })
}

/// Notice of deletion, and the flag for new images.
#[must_use]
pub fn notices(profile: Profile) -> (Option<Span>, bool) {
    let terminate = profile.terminate.map(|notice| Span(notice.length()));
    (terminate, profile.os_image == OsImageNotice::On)
}
