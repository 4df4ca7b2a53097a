//! Effects of a record: work that the driver does once the record is durable.

use forewarn_lifecycle::{Action, MachineId, MaintenanceId, Name, TenantId};

use crate::stream::ClusterId;
use crate::view::{Ending, FailureView};

/// Work that the driver does once a record is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Publish the document of a tenant.
    Publish(ClusterId, TenantId),
    /// Withdraw the document of a tenant, which was removed.
    Unpublish(ClusterId, TenantId),
    /// Carry out an action.
    Perform(ClusterId, Action),
    /// A maintenance was announced: its notice counts from the moment at which VMs can read of it.
    Announced(ClusterId, MaintenanceId),
    /// A machine is new, or its details are.
    MachineChanged(ClusterId, MachineId),
    /// A machine was removed.
    MachineGone(ClusterId, MachineId),
    /// A cluster is new.
    ClusterCreated(ClusterId),
    /// The name or the site of a cluster is new: all of its machines show another.
    ClusterChanged(ClusterId),
    /// A cluster was removed.
    ClusterGone(ClusterId),
    /// A cluster may have claims that it no longer uses, or whose location has changed.
    ClaimsChanged(ClusterId),
    /// A cluster is closed: the shared state is to remove it.
    ClusterClosed(ClusterId),
    /// The next action on a simulated machine fails.
    Jam(ClusterId, MachineId),
    WorkPlanned(PlannedWork),
    /// Work failed for a machine.
    WorkFailed(ClusterId, MaintenanceId),
    /// Work is finished, or was withdrawn.
    WorkFinished(FinishedWork),
}

/// Work that was planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWork {
    pub cluster: ClusterId,
    pub work: MaintenanceId,
    /// Names of the tenants whose machines it is about.
    pub tenants: Vec<Name>,
}

/// Work that is finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedWork {
    pub cluster: ClusterId,
    pub work: MaintenanceId,
    /// Result of its last step.
    pub ending: Ending,
    /// Machines for which it failed, each with the name of its tenant: the first of each tenant.
    pub failures: Vec<(Name, FailureView)>,
}
