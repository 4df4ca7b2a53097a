//! What may be chosen: per tenant (`Policy`) and per cluster (`Settings`, `Brake`).

use serde::{Deserialize, Serialize};

/// Which events of a tenant approve themselves (`scheduledEventsPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// `userInitiatedReboot`: a restart by the owner goes straight to Started.
    pub user_restart: Approve,
    /// `userInitiatedRedeploy`: a redeploy by the owner goes straight to Started.
    pub user_redeploy: Approve,
    /// `allInstancesDown`: while no machine of the tenant runs, there is no one to ask.
    pub all_instances_down: Approve,
}

/// Whether something needs an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Approve {
    /// It approves itself.
    Automatically,
    /// A machine of the tenant approves, or the notice runs out.
    WhenAsked,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            user_restart: Approve::WhenAsked,
            user_redeploy: Approve::WhenAsked,
            all_instances_down: Approve::Automatically,
        }
    }
}

/// What an operator may choose for a whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What happens to operations on tenants that are not enrolled.
    pub unenrolled: Unenrolled,
    /// How many events by users one tenant may have at once; `None`: as many as fit.
    #[serde(deserialize_with = "Option::deserialize")]
    pub user_operations_max: Option<u16>,
    /// What a failed host does to its machines.
    pub failure: FailureKind,
}

/// What happens to operations on tenants that are not enrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unenrolled {
    /// They run at once: it is enrolment that gives notice.
    RunAtOnce,
    /// They wait for the notice that an enrolled tenant would get, without an event.
    WaitAnyway,
}

/// What a failed host does to its machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// They are restarted on another host; all disks stay.
    Reboot,
    /// They are redeployed; the ephemeral disk is lost.
    Redeploy,
}

impl Default for Settings {
    fn default() -> Self {
        Self { unenrolled: Unenrolled::RunAtOnce, user_operations_max: None, failure: FailureKind::Reboot }
    }
}

/// Holds every start of an event until it is let go: late, never lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Brake {
    /// Events start when they may.
    #[default]
    Off,
    /// Nothing starts but what a failed host forces.
    On,
}
