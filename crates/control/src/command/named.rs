//! Commands by name.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::enrolment::EnrolmentWord;
use crate::command::entry::{
    HostEntry, InstanceEntry, MachineEntry, PolicyEntry, ScaleSetEntry, SetEntry, Site, VmEntry,
};
use crate::command::host_mode::MaintenanceEntry;
use crate::command::host_work::{HostWorkEntry, is_false};
use crate::command::object::objects;
use crate::command::schema;
use crate::command::size::Memory;
use crate::command::terms::{AllWord, RolloutEntry, TermsEntry, WindowSelection};
use crate::command::upgrade::UpgradeWord;
use forewarn_types::{Moment, Span, list};

/// A command of an operator. A machine is identified by its name if that is unique, else by `tenant/name`.
///
/// Variants without fields have braces: without them, unknown keys would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(transform = schema::of_commands)]
#[allow(missing_docs, reason = "the fields are names of what the command is about")]
pub enum NamedCommand {
    /// Adds a host.
    AdmitHost(HostEntry),
    /// Removes a host without machines.
    RemoveHost { host: String },
    /// Adds a standalone machine.
    AdmitVm(VmEntry),
    /// Adds an availability set. Its machines are added with commands of their own.
    AdmitAvailabilitySet(SetEntry),
    /// Adds a cloud service. Its machines are added with commands of their own.
    AdmitCloudService(SetEntry),
    /// Adds a machine to an availability set or a cloud service.
    AdmitMachine { tenant: String, machine: MachineEntry },
    /// Adds a scale set. Its instances are added with commands of their own.
    AdmitScaleSet(ScaleSetEntry),
    /// Adds an instance to a scale set.
    AdmitInstance { scale_set: String, instance: InstanceEntry },
    /// Removes a tenant without machines.
    RemoveTenant { tenant: String },
    /// Removes a scale set without instances.
    RemoveScaleSet { scale_set: String },
    /// Changes the policy of a tenant, or of its scale set.
    ChangePolicy { tenant: String, policy: PolicyEntry },
    /// Changes the windows of a tenant, or of its scale set.
    ChangeWindows { tenant: String, windows: WindowSelection },
    /// Changes the model of a scale set.
    ChangeModel {
        scale_set: String,
        #[serde(default)]
        #[schemars(with = "Option<schema::Notice>")]
        terminate: Option<Span>,
        #[serde(default)]
        os_image: bool,
    },
    /// Records a change of the model in a part that the rules do not know, such as an image or a size. Instances get
    /// it as any other.
    ReviseModel { scale_set: String },
    /// Changes the upgrade policy. It applies to instances that have an older model, too.
    ChangeUpgradePolicy { scale_set: String, upgrade: UpgradeWord },
    /// Changes the profile of a machine that is not an instance of a scale set.
    ChangeProfile {
        machine: String,
        #[serde(default)]
        #[schemars(with = "Option<schema::Notice>")]
        terminate: Option<Span>,
        #[serde(default)]
        os_image: bool,
    },
    /// Upgrades an instance to the latest model of its scale set.
    UpgradeInstance { machine: String },
    /// Stops managing a machine and leaves the machine itself as it is: no event, no call of the driver.
    Forget { machine: String },
    /// Stops managing a host. Refused while machines are on it.
    ForgetHost { host: String },
    /// Records that a machine runs on another host, to which it was moved outside Forewarn: no event, no call of the
    /// driver.
    Move {
        machine: String,
        /// The host of the machine now.
        host: String,
        /// Records the move even if planned work names the machine.
        #[serde(default)]
        force: bool,
    },
    /// Changes the capacity of a host. Absent members are without a limit.
    ChangeCapacity {
        host: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpus: Option<NonZeroU16>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<Memory>,
    },
    /// Changes the size of a machine that is not an instance of a scale set. Absent members count as nothing.
    Resize {
        machine: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpus: Option<NonZeroU16>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<Memory>,
    },
    /// Changes the size of the instances of a scale set, present and future ones. Absent members count as nothing.
    ResizeInstances {
        scale_set: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpus: Option<NonZeroU16>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<Memory>,
    },
    /// Changes the source addresses and the tags of a machine. Absent members keep their value.
    Describe {
        machine: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<schema::Addresses>")]
        addresses: Option<Vec<IpAddr>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<schema::Tags>")]
        tags: Option<BTreeMap<String, String>>,
    },
    /// Changes the location, subscription and resource group that machines show. Absent members keep their value.
    ChangeSite(SiteChange),

    /// Restarts a machine for its owner.
    Restart { machine: String },
    /// Moves a machine to another host for its owner.
    Redeploy { machine: String },
    /// Deletes a machine for its owner.
    Delete { machine: String },
    /// Gives a machine a new operating-system image.
    Reimage { machine: String },
    /// Evicts a spot machine.
    Evict { machine: String },
    /// Stops a machine for its owner.
    Stop { machine: String },
    /// Starts a machine for its owner.
    Start { machine: String },
    /// Deallocates a machine for its owner.
    Deallocate { machine: String },

    /// Updates hosts while their machines are paused, group by group.
    UpdateHosts(HostWorkEntry),
    /// Updates the network of hosts while their machines are paused.
    UpdateNetwork(HostWorkEntry),
    /// Moves the machines of hosts live. Only with `work`, the hosts themselves are then updated.
    MigrateHosts(HostWorkEntry),
    /// Restarts hosts while their machines are stopped.
    RebootHosts(HostWorkEntry),
    /// Starts a rollout: work on hosts, group by group, on terms.
    StartRollout(RolloutEntry),
    /// Pauses a rollout: it announces nothing until it is resumed. Announced work stays, or is withdrawn.
    PauseRollout {
        rollout: u64,
        #[serde(default)]
        take_back: bool,
    },
    /// Resumes a rollout after a pause, after failures, or at a gate.
    ResumeRollout { rollout: u64 },
    /// Changes the terms of a rollout, and adds or removes hosts. Absent members keep their value.
    ChangeRollout {
        rollout: u64,
        #[serde(default)]
        terms: TermsEntry,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        add: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remove: Vec<String>,
    },
    /// Cancels a rollout: no further host is started.
    CancelRollout { rollout: u64 },
    /// Marks a host as expected to fail: in seven days if absent.
    DegradeHost {
        host: String,
        #[serde(default)]
        fails_in: Option<Span>,
    },
    /// Marks a host as failed. Where a driver program acts on real machines, they start elsewhere once the host is fenced.
    FailHost {
        host: String,
        /// True if its machines can no longer write to their disks: they start elsewhere at once. Confirms the fence of
        /// a host that has failed already.
        #[serde(default, skip_serializing_if = "is_false")]
        fenced: bool,
    },
    /// Marks a host as healthy.
    RecoverHost { host: String },

    /// Ends the step on a host: its machines return.
    CompleteHost {
        host: String,
        /// The reason, if the step failed: the host needs attention then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<schema::WorkText>")]
        failed: Option<String>,
    },
    /// Requests the step on a host again.
    RetryHost { host: String },
    /// Counts the step on a host as failed: its machines return, and the host needs attention.
    GiveUpHost { host: String },
    /// Lets a host that needed attention have machines and work again.
    ClearHost { host: String },
    /// Closes a host to machines and has its machines leave; then the empty host may have a step. The host stays in
    /// maintenance mode until it exits.
    EnterMaintenance(MaintenanceEntry),
    /// Opens a host in maintenance mode to machines again. Announced work of the mode is withdrawn.
    ExitMaintenance {
        host: String,
        /// True if the machines that left return in the way in which they left.
        #[serde(default, rename = "return", skip_serializing_if = "is_false")]
        return_guests: bool,
    },

    /// Approves events of a tenant as its owner: by id, or `"all"` visible ones.
    Approve { tenant: String, events: EventSelection },
    /// Cancels an event that has not started.
    Cancel { event: String },
    /// Starts an event without waiting.
    ForceStart { event: String },
    /// Requests the unfinished actions of the work behind an event again.
    Retry { event: String },
    /// Counts the unfinished actions of the work behind an event as failed.
    GiveUp { event: String },
    /// Holds every start.
    BrakeOn {},
    /// Releases the brake.
    BrakeOff {},
    /// Changes settings. Absent members keep their value.
    ChangeSettings(SettingsChange),
    /// Makes the next action on a simulated machine fail.
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
    /// Every visible event of the tenant.
    Every(AllWord),
}

/// Changes to a site. Absent members keep their value.
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
    /// Applies the changes to a site.
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

/// Changes to settings. Absent members keep their value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsChange {
    /// Treatment of operations on tenants that are not enrolled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unenrolled: Option<UnenrolledWord>,
    /// Maximum number of events by users that one tenant may have at once; 0 for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_operations_max: Option<u16>,
    /// Effect of a failed host on its machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureWord>,
    /// The time at which tenants are enrolled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolment: Option<EnrolmentWord>,
}

/// Treatment of operations on tenants that are not enrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnenrolledWord {
    /// Operations run at once.
    Runs,
    /// Operations wait for the notice that an enrolled tenant would get.
    Waits,
}

/// Effect of a failed host on its machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailureWord {
    /// Machines are restarted on another host.
    Reboot,
    /// Machines are redeployed.
    Redeploy,
}

/// Maximum speed of a virtual clock: a year in half a minute.
pub const SPEED_MAX: u32 = 1_000_000;

/// A command to the virtual clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "clock", rename_all = "snake_case", deny_unknown_fields)]
pub enum ClockChange {
    /// Stops the clock.
    Freeze {},
    /// Runs the clock at a multiple of real time.
    Scale {
        /// Virtual seconds per second.
        #[schemars(range(max = SPEED_MAX))]
        speed: u32,
    },
    /// Sets the clock forward. Everything that is due in between happens at its own time.
    Advance {
        /// Length of the step.
        by: Span,
    },
    /// Sets the clock forward to a time. Everything that is due until then happens at its own time.
    Until {
        /// The time, which must be in the future.
        at: Moment,
    },
    /// Sets the clock forward to the next time at which a document changes.
    Next {
        /// Maximum length of the step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<Span>,
    },
}
