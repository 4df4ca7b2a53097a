//! Commands by name.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::entry::{
    HostEntry, InstanceEntry, MachineEntry, PolicyEntry, ScaleSetEntry, SetEntry, Site, VmEntry,
};
use crate::command::object::objects;
use crate::command::schema;
use crate::command::terms::{AllWord, RolloutEntry, TermsEntry};
use crate::command::upgrade::UpgradeWord;
use forewarn_types::{Span, list};

/// Something that an operator may ask for. A machine is called by its name where that is unique, else `tenant/name`.
///
/// What needs no fields has braces all the same: without them, keys that mean nothing would be let pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(transform = schema::of_commands)]
#[allow(missing_docs, reason = "the fields are names of what the command is about")]
pub enum NamedCommand {
    /// A host joins.
    AdmitHost(HostEntry),
    /// A host without machines leaves.
    RemoveHost { host: String },
    /// A standalone machine joins.
    AdmitVm(VmEntry),
    /// An availability set joins. Its machines come with commands of their own.
    AdmitAvailabilitySet(SetEntry),
    /// A cloud service joins. Its machines come with commands of their own.
    AdmitCloudService(SetEntry),
    /// A machine joins an availability set or a cloud service.
    AdmitMachine { tenant: String, machine: MachineEntry },
    /// A scale set joins. Its instances come with commands of their own.
    AdmitScaleSet(ScaleSetEntry),
    /// A scale set gets another instance.
    AdmitInstance { scale_set: String, instance: InstanceEntry },
    /// A tenant without machines leaves.
    RemoveTenant { tenant: String },
    /// A scale set without instances leaves.
    RemoveScaleSet { scale_set: String },
    /// Another policy for a tenant, or for the scale set that it is part of.
    ChangePolicy { tenant: String, policy: PolicyEntry },
    /// Another model for a scale set.
    ChangeModel {
        scale_set: String,
        #[serde(default)]
        #[schemars(with = "Option<schema::Notice>")]
        terminate: Option<Span>,
        #[serde(default)]
        os_image: bool,
    },
    /// The model has changed in a part that the rules do not know: an image, a size. Instances get it as any other.
    ReviseModel { scale_set: String },
    /// How a change of the model reaches instances from now on. Those that have an older one are seen to.
    ChangeUpgradePolicy { scale_set: String, upgrade: UpgradeWord },
    /// Another profile for a machine that is not an instance of a scale set.
    ChangeProfile {
        machine: String,
        #[serde(default)]
        #[schemars(with = "Option<schema::Notice>")]
        terminate: Option<Span>,
        #[serde(default)]
        os_image: bool,
    },
    /// An instance gets the latest model of its scale set.
    UpgradeInstance { machine: String },
    /// Stops managing a machine and leaves the machine itself as it is: no event, no order to the driver.
    Forget { machine: String },
    /// Stops managing a host. Machines that are on it refuse this.
    ForgetHost { host: String },
    /// Records that a machine runs on another host, to which it was moved by other means: no event, no order to the driver.
    Move {
        machine: String,
        /// The host it runs on now.
        host: String,
        /// Records the move although planned work names the machine.
        #[serde(default)]
        force: bool,
    },
    /// From where a machine calls, and what its owner has noted of it; what is not said stays.
    Describe {
        machine: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<schema::Addresses>")]
        addresses: Option<Vec<IpAddr>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<schema::Tags>")]
        tags: Option<BTreeMap<String, String>>,
    },
    /// What all machines are told of where they are; what is not said stays.
    ChangeSite(SiteChange),

    /// The owner restarts a machine.
    Restart { machine: String },
    /// The owner moves a machine to another host.
    Redeploy { machine: String },
    /// The owner deletes a machine.
    Delete { machine: String },
    /// A machine gets its operating-system image anew.
    Reimage { machine: String },
    /// The platform wants the place of a spot machine.
    Evict { machine: String },
    /// The owner stops a machine.
    Stop { machine: String },
    /// The owner starts a machine.
    Start { machine: String },
    /// The owner takes a machine from its host.
    Deallocate { machine: String },

    /// Hosts are updated, their machines paused; group by group.
    UpdateHosts {
        #[serde(deserialize_with = "list::at_least_one")]
        hosts: Vec<String>,
    },
    /// The network of hosts is updated.
    UpdateNetwork {
        #[serde(deserialize_with = "list::at_least_one")]
        hosts: Vec<String>,
    },
    /// The machines of hosts are moved live.
    MigrateHosts {
        #[serde(deserialize_with = "list::at_least_one")]
        hosts: Vec<String>,
    },
    /// Hosts are restarted, and their machines with them.
    RebootHosts {
        #[serde(deserialize_with = "list::at_least_one")]
        hosts: Vec<String>,
    },
    /// Work on hosts, group by group, on terms.
    StartRollout(RolloutEntry),
    /// Nothing more of a rollout is announced until it is resumed; what is announced stays, or is taken back.
    PauseRollout {
        rollout: u64,
        #[serde(default)]
        take_back: bool,
    },
    /// A rollout goes on: after a pause, after failures, or past a gate.
    ResumeRollout { rollout: u64 },
    /// Other terms, and hosts that come or go; what is not said stays.
    ChangeRollout {
        rollout: u64,
        #[serde(default)]
        terms: TermsEntry,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        add: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remove: Vec<String>,
    },
    /// No further host of a rollout.
    CancelRollout { rollout: u64 },
    /// A host is expected to fail: in seven days, if not said.
    DegradeHost {
        host: String,
        #[serde(default)]
        fails_in: Option<Span>,
    },
    /// A host has failed.
    FailHost { host: String },
    /// A host is well again.
    RecoverHost { host: String },

    /// Approves events of a tenant, as its owner: by id, or `"all"` that it sees.
    Approve { tenant: String, events: EventSelection },
    /// The operator takes back what has not started.
    Cancel { event: String },
    /// The operator does not want to wait.
    ForceStart { event: String },
    /// Every start is held.
    BrakeOn {},
    /// Starts are let go.
    BrakeOff {},
    /// Other settings; what is not said stays.
    ChangeSettings(SettingsChange),
    /// The next thing that is done to a pretend machine fails.
    Jam { machine: String },
}

/// Events of a tenant: a list of ids, or `"all"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "events are a list of at least one id, or \"all\"")]
pub enum EventSelection {
    /// The events with these ids.
    Ids(
        #[serde(deserialize_with = "list::at_least_one")]
        #[schemars(with = "schema::AtLeastOne<schema::EventId>")]
        Vec<String>,
    ),
    /// Every event that the tenant sees.
    Every(AllWord),
}

/// Where machines are; what is not said stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct SiteChange {
    /// The region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::readable_if_said")]
    pub location: Option<String>,
    /// The subscription.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::readable_if_said")]
    pub subscription: Option<String>,
    /// The resource group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::readable_if_said")]
    pub resource_group: Option<String>,
}

objects! { SiteChange }

impl SiteChange {
    /// A site, changed so.
    #[must_use]
    pub fn apply(&self, site: &Site) -> Site {
        let or = |new: &Option<String>, old: &String| new.clone().unwrap_or_else(|| old.clone());
        Site {
            location: or(&self.location, &site.location),
            subscription: or(&self.subscription, &site.subscription),
            resource_group: or(&self.resource_group, &site.resource_group),
        }
    }
}

impl From<Site> for SiteChange {
    fn from(Site { location, subscription, resource_group }: Site) -> Self {
        Self {
            location: Some(location),
            subscription: Some(subscription),
            resource_group: Some(resource_group),
        }
    }
}

/// Settings to change; what is not said stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsChange {
    /// What happens to operations on tenants that are not enrolled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unenrolled: Option<UnenrolledWord>,
    /// How many events by users one tenant may have at once; 0: as many as fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_operations_max: Option<u16>,
    /// What a failed host does to its machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureWord>,
}

/// What happens to operations on tenants that are not enrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnenrolledWord {
    /// They run at once.
    Runs,
    /// They wait for the notice that an enrolled tenant would get.
    Waits,
}

/// What a failed host does to its machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailureWord {
    /// They are restarted elsewhere.
    Reboot,
    /// They are redeployed.
    Redeploy,
}

/// The fastest that a virtual clock runs: a year in half a minute.
pub const SPEED_MAX: u32 = 1_000_000;

/// What an operator does to a virtual clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "clock", rename_all = "snake_case", deny_unknown_fields)]
pub enum ClockOrder {
    /// It stands still.
    Freeze {},
    /// It runs that many times as fast as a real one.
    Scale {
        /// Seconds a second.
        #[schemars(range(max = SPEED_MAX))]
        speed: u32,
    },
    /// It is set forward; what is due on the way happens at its own moment.
    Advance {
        /// How far.
        by: Span,
    },
    /// It is set forward to the next moment at which a document changes.
    Next {
        /// But no farther than this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<Span>,
    },
}
