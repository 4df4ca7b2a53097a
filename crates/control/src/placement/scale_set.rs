//! Commands to a scale set as a whole, and the commands to instances that they expand to.
//!
//! The rules know single instances: they admit one, delete one, upgrade one. Operators say "ten instances". A
//! [`ScaleSetCommand`] is expanded for the current state of the cluster; the caller must make sure that the state is
//! still the same, and that all commands are carried out or none.
//!
//! ```text
//! ScaleSetCommand ──commands(&Cluster)──▶ NamedCommand, NamedCommand, …    none: nothing to change
//! ```
//!
//! Instances that are being deleted count as gone. When a scale set shrinks, the newest instances of the fullest zone
//! and fault domain go first; the model of each instance decides if its deletion is announced.

use forewarn_lifecycle::limits::FAULT_DOMAINS_MAX;
use forewarn_lifecycle::{Cluster, MachineId, Name, Orchestration, ScaleSet};
use std::collections::BTreeMap;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::command::entry::{ApproveWord, Eviction, OrchestrationWord, PolicyEntry, ScaleSetEntry, notices};
use crate::command::lookup::{LookupError, find_scale_set, nothing};
use crate::command::named::NamedCommand;
use crate::command::object::objects;
use crate::command::schema;
use crate::command::size::{Memory, size};
use crate::command::terms::AllWord;
use crate::command::upgrade::UpgradeWord;
use crate::placement::bounds::Bounds;
use crate::placement::grow::grow;
use crate::placement::instances::{INSTANCES_MAX, instances, staying};
use crate::placement::scale_set_error::ScaleSetError;
use crate::placement::shrink::{ScaleIn, pick_for_scale_in};
use forewarn_types::{Span, instance_digits, list};

/// A new scale set with its instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewScaleSet {
    /// Its name.
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
    /// The notice of the deletion of an instance: 5 to 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Notice>")]
    pub terminate: Option<Span>,
    /// True if a new operating-system image is announced.
    #[serde(default)]
    pub os_image: bool,
    /// Events that are approved automatically.
    #[serde(default)]
    pub policy: PolicyEntry,
    /// Number of instances.
    #[serde(default)]
    #[schemars(range(max = INSTANCES_MAX))]
    pub instances: u16,
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
    /// Fault domains over which the instances are spread; 3 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = FAULT_DOMAINS_MAX))]
    pub fault_domains: Option<u16>,
}

/// The number of instances of a scale set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Number of instances, without those that are being deleted.
    #[schemars(range(max = INSTANCES_MAX))]
    pub capacity: u16,
    /// Hosts for new instances; any host if absent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "list::at_least_one_or_absent"
    )]
    #[schemars(with = "Option<schema::AtLeastOne<schema::Name>>")]
    pub hosts: Option<Vec<String>>,
    /// Zones over which new instances are spread; any zone if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "list::at_least_one")]
    #[schemars(length(min = 1))]
    pub zones: Vec<u16>,
    /// Fault domains over which new instances are spread; if absent, as many as there are, but at least 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = FAULT_DOMAINS_MAX))]
    pub fault_domains: Option<u16>,
}

/// Changes to a scale set. Absent members keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleSetChange {
    /// The notice of the deletion of an instance, 5 to 15 minutes; `null`: none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schemars(with = "Option<schema::Notice>")]
    pub terminate: Option<Option<Span>>,
    /// True if a new operating-system image is announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_image: Option<bool>,
    /// Policy for upgrades of instances to a new model, including this change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<UpgradeWord>,
    /// Events that are approved automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyChange>,
}

/// Changes to the events that are approved automatically. Absent members keep their value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct PolicyChange {
    /// A restart by the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<ApproveWord>,
    /// A redeploy by the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redeploy: Option<ApproveWord>,
    /// Every event, while no machine of the tenant runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_down: Option<ApproveWord>,
}

objects! { PolicyChange }

/// Instances to upgrade to the latest model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// Numbers or names of instances, or `"all"` that have an older model.
    pub instances: InstanceSelection,
}

/// Instances of a scale set: a list of numbers or names, or `"all"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "instances are a list of at least one number or name, or \"all\"")]
pub enum InstanceSelection {
    /// The instances with these numbers or names.
    Named(
        #[serde(deserialize_with = "list::at_least_one")]
        #[schemars(with = "schema::AtLeastOne<schema::MachineName>")]
        Vec<String>,
    ),
    /// Every instance.
    Every(AllWord),
}

/// Instances to delete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteInstances {
    /// Numbers or names of instances.
    #[serde(deserialize_with = "list::at_least_one")]
    #[schemars(with = "schema::AtLeastOne<schema::MachineName>")]
    pub instances: Vec<String>,
}

/// A command to a scale set as a whole. Its JSON form is stored in the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ScaleSetCommand {
    CreateScaleSet(NewScaleSet),
    Scale {
        scale_set: String,
        #[serde(flatten)]
        to: Scale,
    },
    ChangeScaleSet {
        scale_set: String,
        #[serde(flatten)]
        change: ScaleSetChange,
    },
    UpgradeInstances {
        scale_set: String,
        #[serde(flatten)]
        upgrade: Upgrade,
    },
    DeleteInstances {
        scale_set: String,
        #[serde(flatten)]
        which: DeleteInstances,
    },
}

impl ScaleSetCommand {
    /// Name of the scale set.
    #[must_use]
    pub fn scale_set(&self) -> &str {
        match self {
            Self::CreateScaleSet(new) => &new.name,
            Self::Scale { scale_set, .. }
            | Self::ChangeScaleSet { scale_set, .. }
            | Self::UpgradeInstances { scale_set, .. }
            | Self::DeleteInstances { scale_set, .. } => scale_set,
        }
    }

    /// Names of hosts in the command.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        match self {
            Self::CreateScaleSet(NewScaleSet { hosts, .. }) | Self::Scale { to: Scale { hosts, .. }, .. } => {
                hosts.as_deref().unwrap_or_default()
            }
            Self::ChangeScaleSet { .. } | Self::UpgradeInstances { .. } | Self::DeleteInstances { .. } => &[],
        }
    }

    /// Expands to commands in the current state of the cluster; none if nothing has to change.
    ///
    /// # Errors
    /// Fails if a name is not found, or the hosts have no room for all instances.
    pub fn commands(&self, cluster: &Cluster) -> Result<Vec<NamedCommand>, ScaleSetError> {
        let set = |name: &str| {
            let id = find_scale_set(cluster, name)?;
            cluster.scale_set(id).ok_or_else(|| nothing("scale set", name, std::iter::empty()))
        };
        match self {
            Self::CreateScaleSet(new) => create(cluster, new),
            Self::Scale { scale_set, to } => scale(cluster, set(scale_set)?, to, &ScaleIn::default()),
            Self::ChangeScaleSet { scale_set, change } => Ok(change.commands(set(scale_set)?)),
            Self::UpgradeInstances { scale_set, upgrade } => self::upgrade(cluster, set(scale_set)?, upgrade),
            Self::DeleteInstances { scale_set, which } => delete(cluster, set(scale_set)?, &which.instances),
        }
    }
}

fn create(cluster: &Cluster, new: &NewScaleSet) -> Result<Vec<NamedCommand>, ScaleSetError> {
    let bare = ScaleSetEntry {
        windows: Vec::new(),
        name: new.name.clone(),
        orchestration: new.orchestration,
        upgrade: new.upgrade,
        cpus: new.cpus,
        memory: new.memory,
        spot: new.spot,
        terminate: new.terminate,
        os_image: new.os_image,
        policy: new.policy,
        count: None,
        placement: None,
        instances: Vec::new(),
    };
    let kind = (Orchestration::from(new.orchestration), None);
    let mut commands = vec![NamedCommand::AdmitScaleSet(bare)];
    check_capacity(new.instances)?;
    let bounds = Bounds::new(cluster, new.hosts.as_deref(), &new.zones, new.fault_domains)?;
    let bounds = Bounds { size: size(new.cpus, new.memory), ..bounds };
    commands.extend(grow(cluster, &new.name, kind, new.instances.into(), &bounds)?);
    Ok(commands)
}

/// The commands that give a scale set that many instances; `how` chooses the instances that are removed.
///
/// # Errors
/// Fails if a name is not found, the hosts have no room for all new instances, or too many instances are protected.
pub fn scale(
    cluster: &Cluster,
    set: &ScaleSet,
    to: &Scale,
    how: &ScaleIn,
) -> Result<Vec<NamedCommand>, ScaleSetError> {
    check_capacity(to.capacity)?;
    let bounds = Bounds::new(cluster, to.hosts.as_deref(), &to.zones, to.fault_domains)?;
    let staying = staying(cluster, set);
    let capacity = usize::from(to.capacity);
    if staying >= capacity {
        let going = pick_for_scale_in(cluster, set, staying - capacity, how)?;
        let all: BTreeMap<_, _> = instances(cluster, set).into_iter().collect();
        let going = going.iter().filter_map(|number| all.get(number));
        return Ok(going.map(|id| delete_one(cluster, set, *id)).collect());
    }
    let kind = (set.orchestration, Some(set));
    grow(cluster, set.name.as_str(), kind, capacity - staying, &bounds)
}

/// Checks the number of instances of one scale set.
pub(crate) fn check_capacity(capacity: u16) -> Result<(), ScaleSetError> {
    if capacity > INSTANCES_MAX { Err(ScaleSetError::TooMany(capacity)) } else { Ok(()) }
}

impl ScaleSetChange {
    fn commands(&self, set: &ScaleSet) -> Vec<NamedCommand> {
        let name = set.name.to_string();
        let mut commands = Vec::new();
        // First: a new model reaches instances by the new policy.
        if let Some(upgrade) = self.upgrade.filter(|upgrade| *upgrade != UpgradeWord::from(set.upgrade)) {
            commands.push(NamedCommand::ChangeUpgradePolicy { scale_set: name.clone(), upgrade });
        }
        let was = notices(set.model);
        let is = (self.terminate.unwrap_or(was.0), self.os_image.unwrap_or(was.1));
        if is != was {
            let (terminate, os_image) = is;
            commands.push(NamedCommand::ChangeModel { scale_set: name.clone(), terminate, os_image });
        }
        let was = PolicyEntry::from(set.policy);
        let is = self.policy.unwrap_or_default().apply(was);
        if is != was {
            commands.push(NamedCommand::ChangePolicy { tenant: name, policy: is });
        }
        commands
    }
}

impl PolicyChange {
    /// Applies the change to a policy.
    #[must_use]
    pub fn apply(self, policy: PolicyEntry) -> PolicyEntry {
        PolicyEntry {
            restart: self.restart.unwrap_or(policy.restart),
            redeploy: self.redeploy.unwrap_or(policy.redeploy),
            all_down: self.all_down.unwrap_or(policy.all_down),
        }
    }
}

fn upgrade(cluster: &Cluster, set: &ScaleSet, upgrade: &Upgrade) -> Result<Vec<NamedCommand>, ScaleSetError> {
    let all = instances(cluster, set);
    let chosen = match &upgrade.instances {
        InstanceSelection::Named(names) => chosen(cluster, set, &all, names)?,
        InstanceSelection::Every(AllWord::All) => all,
    };
    let is_older =
        |id: MachineId| cluster.machine(id).is_some_and(|machine| machine.model_version != set.model_version);
    let older = chosen.into_iter().filter(|(_, id)| is_older(*id));
    Ok(older.map(|(_, id)| NamedCommand::UpgradeInstance { machine: full(cluster, set, id) }).collect())
}

fn delete(cluster: &Cluster, set: &ScaleSet, names: &[String]) -> Result<Vec<NamedCommand>, ScaleSetError> {
    let chosen = chosen(cluster, set, &instances(cluster, set), names)?;
    let staying = chosen.into_iter().filter(|(_, id)| !cluster.is_leaving(*id));
    Ok(staying.map(|(_, id)| delete_one(cluster, set, id)).collect())
}

fn delete_one(cluster: &Cluster, set: &ScaleSet, id: MachineId) -> NamedCommand {
    NamedCommand::Delete { machine: full(cluster, set, id) }
}

/// Name of an instance, independent of its placement group.
fn full(cluster: &Cluster, set: &ScaleSet, id: MachineId) -> String {
    format!("{}/{}", set.name, name_of(cluster, id))
}

fn name_of(cluster: &Cluster, id: MachineId) -> String {
    cluster.machine(id).map(|machine| machine.name.to_string()).unwrap_or_default()
}

/// The instances with these numbers or names, each once, in this order.
fn chosen(
    cluster: &Cluster,
    set: &ScaleSet,
    all: &[(u32, MachineId)],
    names: &[String],
) -> Result<Vec<(u32, MachineId)>, LookupError> {
    let mut chosen = Vec::new();
    for name in names {
        let found = number(set, name).and_then(|number| all.iter().find(|(one, _)| *one == number));
        let known = || all.iter().map(|(_, id)| name_of(cluster, *id)).collect::<Vec<_>>();
        let one = found
            .ok_or_else(|| nothing("instance of this scale set", name, known().iter().map(String::as_str)))?;
        if !chosen.contains(one) {
            chosen.push(*one);
        }
    }
    Ok(chosen)
}

/// The number of an instance: as such, or in its name.
fn number(set: &ScaleSet, name: &str) -> Option<u32> {
    let bare = match name.split_once('/') {
        // Only placement groups have a colon in their names.
        Some((tenant, bare)) if tenant.split(':').next() == Some(set.name.as_str()) => bare,
        Some(_) => return None,
        None => name,
    };
    let in_name = || Name::restored(bare).ok()?.instance_number(&set.name);
    instance_digits(bare).or_else(in_name)
}

/// Reads a value that is present, `null` too.
#[expect(clippy::option_option, reason = "absent and null differ")]
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Span>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
