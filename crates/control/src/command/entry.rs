//! The entries of a fleet: hosts, and tenants with their machines. The same in a fleet file (TOML) and in a command (JSON).

use std::collections::BTreeMap;
use std::net::IpAddr;

use forewarn_lifecycle::{
    Approve, EvictionPolicy, Orchestration, OsImageNotice, Policy, Priority, Profile, TerminateNotice,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::object::objects;
use crate::command::schema;
use crate::command::upgrade::UpgradeWord;
use forewarn_types::Span;

/// What all machines are told of where they are.
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
    /// Its name.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// The zone it stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<u16>,
}

/// A standalone machine: the tenant and its machine in one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct VmEntry {
    /// The name of both.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// Its host.
    #[schemars(with = "schema::Name")]
    pub host: String,
    /// Its update domain.
    #[serde(default)]
    pub update_domain: u16,
    /// Its fault domain.
    #[serde(default)]
    pub fault_domain: u16,
    /// What eviction does to it; without this it is no spot machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<Eviction>,
    /// The notice of its deletion: 5 to 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Notice>")]
    pub terminate: Option<Span>,
    /// Whether a new operating-system image is announced.
    #[serde(default, skip_serializing_if = "is_false")]
    pub os_image: bool,
    /// Which of its events approve themselves.
    #[serde(default, skip_serializing_if = "PolicyEntry::is_default")]
    pub policy: PolicyEntry,
    /// The addresses from which it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "schema::Addresses")]
    pub addresses: Vec<IpAddr>,
    /// Names and values of its owner.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "schema::Tags")]
    pub tags: BTreeMap<String, String>,
}

/// A cloud service or an availability set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct SetEntry {
    /// Its name.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// Which of its events approve themselves.
    #[serde(default, skip_serializing_if = "PolicyEntry::is_default")]
    pub policy: PolicyEntry,
    /// Its machines.
    #[serde(default, rename = "machine", skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineEntry>,
}

/// A machine of a cloud service or of an availability set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct MachineEntry {
    /// Its name.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// Its host.
    #[schemars(with = "schema::Name")]
    pub host: String,
    /// Its update domain.
    #[serde(default)]
    pub update_domain: u16,
    /// Its fault domain.
    #[serde(default)]
    pub fault_domain: u16,
    /// What eviction does to it; without this it is no spot machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<Eviction>,
    /// The notice of its deletion: 5 to 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Notice>")]
    pub terminate: Option<Span>,
    /// Whether a new operating-system image is announced.
    #[serde(default, skip_serializing_if = "is_false")]
    pub os_image: bool,
    /// The addresses from which it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "schema::Addresses")]
    pub addresses: Vec<IpAddr>,
    /// Names and values of its owner.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "schema::Tags")]
    pub tags: BTreeMap<String, String>,
}

/// A scale set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct ScaleSetEntry {
    /// Its name.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// How its instances are grouped into tenants.
    #[serde(default)]
    pub orchestration: OrchestrationWord,
    /// How a change of its model reaches instances.
    #[serde(default)]
    pub upgrade: UpgradeWord,
    /// What eviction does to its instances; without this they are no spot machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<Eviction>,
    /// The notice of the deletion of an instance: 5 to 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Notice>")]
    pub terminate: Option<Span>,
    /// Whether a new operating-system image is announced.
    #[serde(default, skip_serializing_if = "is_false")]
    pub os_image: bool,
    /// Which of its events approve themselves.
    #[serde(default, skip_serializing_if = "PolicyEntry::is_default")]
    pub policy: PolicyEntry,
    /// Its instances.
    #[serde(default, rename = "instance", skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<InstanceEntry>,
}

/// An instance of a scale set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct InstanceEntry {
    /// The number in its name; in a fleet file: its place in the list, if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Its host.
    #[schemars(with = "schema::Name")]
    pub host: String,
    /// Its update domain.
    #[serde(default)]
    pub update_domain: u16,
    /// Its fault domain.
    #[serde(default)]
    pub fault_domain: u16,
    /// The addresses from which it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "schema::Addresses")]
    pub addresses: Vec<IpAddr>,
    /// Names and values of its owner.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "schema::Tags")]
    pub tags: BTreeMap<String, String>,
}

/// Which events approve themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct PolicyEntry {
    /// A restart by the owner.
    pub restart: ApproveWord,
    /// A redeploy by the owner.
    pub redeploy: ApproveWord,
    /// Everything, while no machine of the tenant runs.
    pub all_down: ApproveWord,
}

/// Whether something needs an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApproveWord {
    /// It approves itself.
    Automatic,
    /// A machine of the tenant approves, or the notice runs out.
    Asked,
}

/// What eviction does to a spot machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Eviction {
    /// It is gone.
    Delete,
    /// Its disks stay, and it can be started again.
    Deallocate,
}

/// How the instances of a scale set are grouped into tenants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OrchestrationWord {
    /// Placement groups of at most 100 instances.
    #[default]
    Uniform,
    /// One tenant.
    Flexible,
}

objects! { Site HostEntry VmEntry SetEntry MachineEntry ScaleSetEntry InstanceEntry PolicyEntry }

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(value: &bool) -> bool {
    !value
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

/// The same words on both sides.
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

/// Regular, or spot.
pub(crate) fn priority(spot: Option<Eviction>) -> Priority {
    spot.map_or(Priority::Regular, |eviction| Priority::Spot(eviction.into()))
}

/// What eviction does, if it can happen.
#[must_use]
pub fn spot(priority: Priority) -> Option<Eviction> {
    match priority {
        Priority::Regular => None,
        Priority::Spot(policy) => Some(policy.into()),
    }
}

/// What a machine is told of its deletion and of new images; nothing, if the notice is too short or too long.
pub(crate) fn profile(terminate: Option<Span>, os_image: bool) -> Option<Profile> {
    let terminate = match terminate {
        Some(Span(span)) => Some(TerminateNotice::from_seconds(span.as_secs())?),
        None => None,
    };
    Some(Profile { terminate, os_image: if os_image { OsImageNotice::On } else { OsImageNotice::Off } })
}

/// The notice of a deletion, and whether new images are announced.
#[must_use]
pub fn notices(profile: Profile) -> (Option<Span>, bool) {
    let terminate = profile.terminate.map(|notice| Span(notice.length()));
    (terminate, profile.os_image == OsImageNotice::On)
}
