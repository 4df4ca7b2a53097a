//! Hosts, machines and scale sets.

use std::num::NonZeroU16;
use std::time::Duration;

use forewarn_types::{
    FLEXIBLE_INSTANCES, FaultDomain, HostId, MachineId, MaintenanceId, Name, Now, OutOfRange, RolloutId,
    ScaleSetId, Steady, TenantId, UpdateDomain, Zone, derived_name,
};
use serde::{Deserialize, Serialize};

use crate::capacity::Size;
use crate::host_mode::MaintenanceMode;
use crate::limits::INSTANCE_NUMBER_MAX;
use crate::percent::Percent;
use crate::policy::Policy;

/// A host that machines run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Unique among the hosts of the cluster.
    pub name: Name,
    /// The zone of the host; `None` if it has none.
    pub zone: Option<Zone>,
    /// Health as reported by an operator.
    pub health: Health,
    /// The rollout that includes this host.
    pub rollout: Option<RolloutId>,
    /// The host work that is announced or in progress here.
    pub work: Option<MaintenanceId>,
    /// Needed after a step on the host that failed.
    pub attention: HostAttention,
    /// Separation of the host from the disks of its machines, after a failure.
    pub fence: Fence,
    /// The details of its maintenance mode; `None` if it is in normal use.
    pub mode: Option<Box<MaintenanceMode>>,
    /// Its machines, ascending, including those that are moving here or away.
    pub(crate) machines: Vec<MachineId>,
}

/// The number of machines of a host, as far as it matters for the choice of a host.
pub(crate) type HostLoad = u16;

/// The health of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Health {
    /// Nothing is known to be wrong.
    Healthy,
    /// It works, and is expected to fail.
    Degraded,
    /// It does not work.
    Failed,
}

/// The attention of an operator to a host. It is apart from the health of the host and announces nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostAttention {
    /// The host is used.
    #[default]
    Unneeded,
    /// The host gets no machines and no work until an operator has examined it.
    Needed,
}

/// The separation of a failed host from the disks of its machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Fence {
    /// Not required.
    #[default]
    Unneeded,
    /// Required, and not confirmed: no machine of the host starts elsewhere.
    Awaited {
        /// The order to fence the host, if it is in progress.
        #[serde(deserialize_with = "Option::deserialize")]
        order: Option<MaintenanceId>,
    },
    /// Confirmed by the driver or by an operator.
    Confirmed,
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Unique within its tenant; listed in `Resources`.
    #[serde(with = "derived_name")]
    pub name: Name,
    /// The tenant whose document it reads.
    pub tenant: TenantId,
    /// The host on which it runs, or ran last.
    pub host: HostId,
    /// Its update domain.
    pub update_domain: UpdateDomain,
    /// Its fault domain.
    pub fault_domain: FaultDomain,
    /// Regular, or spot.
    pub priority: Priority,
    /// Power state.
    pub power: Power,
    /// Number of starts. Memory contents live as long as this number.
    pub boots: u32,
    /// Generation of the ephemeral disk, whose contents live as long as this number.
    pub ephemeral_generation: u32,
    /// The version of the scale set's model that it runs; 0 outside scale sets.
    pub model_version: u32,
    /// Notice of its deletion and of new images.
    pub profile: Profile,
}

/// Protection of a machine against eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Priority {
    /// Never evicted.
    Regular,
    /// May be evicted at any time.
    Spot(EvictionPolicy),
}

/// The effect of eviction on a spot machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EvictionPolicy {
    /// Its disks stay, and it can be started again.
    Deallocate,
    /// The machine and its disks are deleted.
    Delete,
}

/// The power state of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Power {
    /// The machine runs.
    Running,
    /// Off, but still allocated on its host.
    Stopped,
    /// Off and not allocated: work on the host does not concern it. It starts on the same host again if possible.
    Deallocated,
}

/// Notice of a machine's deletion and of new images (`scheduledEventsProfile`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Notice of the Terminate event that a delete announces; `None` if it announces none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub terminate: Option<TerminateNotice>,
    /// Announcement of new operating-system images.
    pub os_image: OsImageNotice,
}

/// Announcement of a new operating-system image (`osImageNotificationProfile`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OsImageNotice {
    /// Not announced: it is installed at once.
    #[default]
    Off,
    /// A Reboot event gives 15 minutes.
    On,
}

/// The notice of a Terminate event: from 5 to 15 minutes, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u16")]
pub struct TerminateNotice(NonZeroU16);

/// Instances made from one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleSet {
    /// Unique among scale sets and tenants.
    pub name: Name,
    /// Grouping of its instances into tenants.
    pub orchestration: Orchestration,
    /// Regular, or spot: the same for all instances.
    pub priority: Priority,
    /// Rollout of model changes to instances.
    pub upgrade: UpgradePolicy,
    /// Counts the changes of the model; 1 at first.
    pub model_version: u32,
    /// The part of the model that the rules know.
    pub model: Profile,
    /// Events that need no approval.
    pub policy: Policy,
    /// The number that the next instance gets in its name.
    pub next_instance: u32,
    /// Its placement groups, each a tenant.
    pub groups: Vec<TenantId>,
    /// Time of the last batch of a rolling upgrade; `None` if no instance waits for the next batch.
    #[serde(deserialize_with = "Option::deserialize")]
    pub rolling: Option<Now>,
}

const _: () = assert!(INSTANCE_NUMBER_MAX < FLEXIBLE_INSTANCES as usize, "every number gives a name");

impl ScaleSet {
    /// The name of the instance with a number: `web_5`, or `web_c0ffee12` in a flexible scale set. Instances of older
    /// versions are named `web_5` in flexible scale sets, too, and keep their names.
    #[must_use]
    pub fn instance_name(&self, number: u32) -> Name {
        match self.orchestration {
            Orchestration::Uniform => self.name.of_instance(number),
            Orchestration::Flexible => self.name.of_flexible_instance(number),
        }
    }
}

/// Grouping of instances into tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Orchestration {
    /// Placement groups of at most 100 instances, each a tenant.
    Uniform,
    /// One tenant.
    Flexible,
}

/// Rollout of model changes to the instances of a scale set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum UpgradePolicy {
    /// On an explicit upgrade of each instance.
    Manual,
    /// At once.
    Automatic,
    /// Batch by batch.
    Rolling {
        /// Share of all instances in one batch, rounded up.
        batch: Percent,
        /// Pause between two batches.
        pause: Duration,
    },
}

/// The resource type of a machine; it follows from the shape of its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// A virtual machine, on its own or in an availability set.
    VirtualMachine,
    /// An instance of this scale set.
    ScaleSetInstance(ScaleSetId),
    /// A role instance of a cloud service.
    RoleInstance,
}

/// The placement of a new machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// The host.
    pub host: HostId,
    /// The update domain: one per tenant and host.
    pub update_domain: UpdateDomain,
    /// The fault domain.
    pub fault_domain: FaultDomain,
    /// CPUs and memory. An instance of a scale set has those of its set.
    pub size: Size,
}

impl Host {
    /// Its machines, ascending, including those that are moving here or away.
    #[must_use]
    pub fn machines(&self) -> &[MachineId] {
        &self.machines
    }

    /// The number of its machines: the limit on them fits.
    pub(crate) fn load(&self) -> HostLoad {
        HostLoad::try_from(self.machines.len()).unwrap_or(HostLoad::MAX)
    }

    pub(crate) fn add(&mut self, machine: MachineId) {
        if let Err(index) = self.machines.binary_search(&machine) {
            self.machines.insert(index, machine);
        }
    }

    pub(crate) fn remove(&mut self, machine: MachineId) {
        if let Ok(index) = self.machines.binary_search(&machine) {
            self.machines.remove(index);
        }
    }
}

impl Fence {
    /// Returns true if it is required and not confirmed.
    #[must_use]
    pub fn is_awaited(self) -> bool {
        match self {
            Self::Awaited { .. } => true,
            Self::Unneeded | Self::Confirmed => false,
        }
    }

    /// The order to fence the host, if it is in progress.
    #[must_use]
    pub fn order(self) -> Option<MaintenanceId> {
        match self {
            Self::Awaited { order } => order,
            Self::Unneeded | Self::Confirmed => None,
        }
    }
}

impl ScaleSet {
    /// Time of the next batch of a rolling upgrade; `None` if none is in progress.
    #[must_use]
    pub fn next_batch(&self) -> Option<Now> {
        match (self.upgrade, self.rolling) {
            (UpgradePolicy::Rolling { pause, .. }, Some(last)) => Some(last.plus(pause)),
            (UpgradePolicy::Rolling { .. } | UpgradePolicy::Manual | UpgradePolicy::Automatic, _) => None,
        }
    }

    /// The same on the steady clock, on which batches are scheduled.
    pub(crate) fn recheck_time(&self) -> Option<Steady> {
        self.next_batch().map(|at| at.steady)
    }
}

impl TerminateNotice {
    /// The shortest notice: five minutes. Also the default of a profile without a length.
    pub const MIN: Self = Self(NonZeroU16::new(300).expect("not zero"));
    /// The longest notice: fifteen minutes.
    pub const MAX: Self = Self(NonZeroU16::new(900).expect("not zero"));

    /// A notice of 300 to 900 seconds; `None` for any other length.
    ///
    /// ```
    /// use forewarn_lifecycle::TerminateNotice;
    /// assert!(TerminateNotice::from_seconds(300).is_some());
    /// assert!(TerminateNotice::from_seconds(901).is_none());
    /// ```
    #[must_use]
    pub fn from_seconds(seconds: u64) -> Option<Self> {
        let notice = Self(NonZeroU16::new(u16::try_from(seconds).ok()?)?);
        (Self::MIN..=Self::MAX).contains(&notice).then_some(notice)
    }

    /// The notice as a duration.
    #[must_use]
    pub fn length(self) -> Duration {
        Duration::from_secs(self.0.get().into())
    }
}

impl TryFrom<u16> for TerminateNotice {
    type Error = OutOfRange;

    fn try_from(seconds: u16) -> Result<Self, OutOfRange> {
        Self::from_seconds(seconds.into()).ok_or(OutOfRange("a terminate notice has 300 to 900 seconds"))
    }
}

impl Default for TerminateNotice {
    fn default() -> Self {
        Self::MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// promise: T4
    #[test]
    fn a_terminate_notice_is_five_to_fifteen_minutes() {
        for seconds in [0, 299, 901, 70_000] {
            assert_eq!(TerminateNotice::from_seconds(seconds), None, "{seconds}");
        }
        for seconds in [300, 450, 900] {
            assert_eq!(TerminateNotice::from_seconds(seconds).unwrap().length().as_secs(), seconds);
        }
        assert_eq!(TerminateNotice::default().length().as_secs(), 300);
        assert_eq!(TerminateNotice::try_from(300), Ok(TerminateNotice::MIN));
        assert!(TerminateNotice::try_from(299).is_err());
    }

    #[test]
    fn a_machine_fits_into_56_bytes() {
        assert!(size_of::<Machine>() <= 56, "{}", size_of::<Machine>());
    }
}
