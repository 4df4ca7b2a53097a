//! Hosts, machines and scale sets: what there is.

use std::num::NonZeroU16;
use std::time::Duration;

use forewarn_types::{
    FaultDomain, HostId, MachineId, MaintenanceId, Name, Now, OutOfRange, RolloutId, ScaleSetId, Steady,
    TenantId, UpdateDomain, Zone, derived_name,
};
use serde::{Deserialize, Serialize};

use crate::percent::Percent;
use crate::policy::Policy;

/// A host that machines run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Unique among the hosts of the cluster.
    pub name: Name,
    /// The zone it stands in.
    pub zone: Option<Zone>,
    /// How it is.
    pub health: Health,
    /// The rollout that will work, or works, on it.
    pub rollout: Option<RolloutId>,
    /// The host work that is announced or under way here.
    pub work: Option<MaintenanceId>,
    /// Its machines, ascending; those that are on their way here or from here included.
    pub(crate) machines: Vec<MachineId>,
}

/// How a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Health {
    /// Nothing is known to be wrong.
    Healthy,
    /// It works, and is expected to fail.
    Degraded,
    /// It does not work.
    Failed,
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Unique within its tenant; what `Resources` shows.
    #[serde(with = "derived_name")]
    pub name: Name,
    /// The tenant whose document it reads.
    pub tenant: TenantId,
    /// Where it runs, or last ran.
    pub host: HostId,
    /// Its update domain.
    pub update_domain: UpdateDomain,
    /// Its fault domain.
    pub fault_domain: FaultDomain,
    /// Regular, or spot.
    pub priority: Priority,
    /// Whether it runs.
    pub power: Power,
    /// How often it has been started: memory lives as long as this number.
    pub boots: u32,
    /// The ephemeral disk lives as long as this number.
    pub ephemeral_generation: u32,
    /// The version of the scale set's model that it runs; 0 outside scale sets.
    pub model_version: u32,
    /// What it is told of its own deletion and of new images.
    pub profile: Profile,
}

/// How firmly a machine holds its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Priority {
    /// It stays.
    Regular,
    /// It may be evicted at any time.
    Spot(EvictionPolicy),
}

/// What eviction does to a spot machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EvictionPolicy {
    /// Its disks stay, and it can be started again.
    Deallocate,
    /// It is gone.
    Delete,
}

/// Whether a machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Power {
    /// It runs.
    Running,
    /// It is off, but keeps its place on the host.
    Stopped,
    /// It is off and does not use its host: work there does not concern it. It comes back where it was, if it can.
    Deallocated,
}

/// What a machine is told of its own deletion and of new images (`scheduledEventsProfile`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Delete announces a Terminate event with this notice.
    #[serde(deserialize_with = "Option::deserialize")]
    pub terminate: Option<TerminateNotice>,
    /// A new operating-system image announces a Reboot event.
    pub os_image: OsImageNotice,
}

/// Whether a new operating-system image is announced (`osImageNotificationProfile`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OsImageNotice {
    /// It happens at once.
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
    /// How its instances are grouped into tenants.
    pub orchestration: Orchestration,
    /// Regular, or spot: the same for all instances.
    pub priority: Priority,
    /// How a change of the model reaches instances.
    pub upgrade: UpgradePolicy,
    /// Counts the changes of the model; 1 at first.
    pub model_version: u32,
    /// The part of the model that the rules know.
    pub model: Profile,
    /// Which events approve themselves.
    pub policy: Policy,
    /// The number that the next instance gets in its name.
    pub next_instance: u32,
    /// Its placement groups, each a tenant.
    pub groups: Vec<TenantId>,
    /// When the last batch of a rolling upgrade got its model, while others wait for the next batch.
    #[serde(deserialize_with = "Option::deserialize")]
    pub rolling: Option<Now>,
}

/// How instances are grouped into tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Orchestration {
    /// Placement groups of at most 100 instances, each a tenant.
    Uniform,
    /// One tenant.
    Flexible,
}

/// How a change of the model reaches the instances of a scale set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum UpgradePolicy {
    /// When an instance is upgraded.
    Manual,
    /// At once.
    Automatic,
    /// Batch by batch.
    Rolling {
        /// How many instances are in a batch: that share of all of them, rounded up.
        batch: Percent,
        /// How long it rests between two batches.
        pause: Duration,
    },
}

/// What a machine is to those who manage it; it follows from the tenant it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// A virtual machine, on its own or in an availability set.
    VirtualMachine,
    /// An instance of this scale set.
    ScaleSetInstance(ScaleSetId),
    /// A role instance of a cloud service.
    RoleInstance,
}

/// Where a new machine goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// The host.
    pub host: HostId,
    /// The update domain: one per tenant and host.
    pub update_domain: UpdateDomain,
    /// The fault domain.
    pub fault_domain: FaultDomain,
}

impl Host {
    /// Its machines, ascending; those that are on their way here or from here included.
    #[must_use]
    pub fn machines(&self) -> &[MachineId] {
        &self.machines
    }

    pub(crate) fn add(&mut self, machine: MachineId) {
        if let Err(place) = self.machines.binary_search(&machine) {
            self.machines.insert(place, machine);
        }
    }

    pub(crate) fn remove(&mut self, machine: MachineId) {
        if let Ok(place) = self.machines.binary_search(&machine) {
            self.machines.remove(place);
        }
    }
}

impl ScaleSet {
    /// When the next batch of a rolling upgrade gets its model, if one is under way.
    #[must_use]
    pub fn next_batch(&self) -> Option<Now> {
        match (self.upgrade, self.rolling) {
            (UpgradePolicy::Rolling { pause, .. }, Some(last)) => Some(last.plus(pause)),
            (UpgradePolicy::Rolling { .. } | UpgradePolicy::Manual | UpgradePolicy::Automatic, _) => None,
        }
    }

    /// The same on the clock by which it is waited for.
    pub(crate) fn looked_at(&self) -> Option<Steady> {
        self.next_batch().map(|at| at.steady)
    }
}

impl TerminateNotice {
    /// The shortest: five minutes. Also what a profile without a length means.
    pub const MIN: Self = Self(NonZeroU16::new(300).expect("not zero"));
    /// The longest: fifteen minutes.
    pub const MAX: Self = Self(NonZeroU16::new(900).expect("not zero"));

    /// A notice of that many seconds, if it is one: 300 to 900.
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

    /// Its length.
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
    fn a_machine_keeps_its_size_at_a_million() {
        assert!(size_of::<Machine>() <= 56, "{}", size_of::<Machine>());
    }
}
