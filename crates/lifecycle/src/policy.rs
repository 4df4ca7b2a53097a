//! Choices of a tenant (`Policy`) and of the operator of a cluster (`Settings`, `Brake`).

use serde::{Deserialize, Serialize};

/// Events of a tenant that need no approval (`scheduledEventsPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// `userInitiatedReboot`: a restart by the owner goes straight to Started.
    pub user_restart: Approve,
    /// `userInitiatedRedeploy`: a redeploy by the owner goes straight to Started.
    pub user_redeploy: Approve,
    /// `allInstancesDown`: events start without approval while no machine of the tenant runs.
    pub all_instances_down: Approve,
}

/// The approval that an event needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Approve {
    /// None: the event starts without approval.
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

/// Settings of a whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Treatment of operations on tenants that are not enrolled.
    pub unenrolled: Unenrolled,
    /// Limit of simultaneous user events of one tenant; `None` for no limit of its own.
    #[serde(deserialize_with = "Option::deserialize")]
    pub user_operations_max: Option<u16>,
    /// Effect of a failed host on its machines.
    pub failure: FailureKind,
    /// The time at which tenants are enrolled.
    #[serde(default, skip_serializing_if = "EnrolmentRule::is_default")]
    pub enrolment: EnrolmentRule,
}

/// The time at which tenants are enrolled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnrolmentRule {
    /// With the first request of a machine, until none has sent one for a day.
    #[default]
    OnFirstPoll,
    /// From the beginning, without an end.
    Always,
}

impl EnrolmentRule {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Treatment of operations on tenants that are not enrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unenrolled {
    /// They run at once: only enrolled tenants get notice.
    RunAtOnce,
    /// They wait for the notice that an enrolled tenant would get, without an event.
    WaitAnyway,
}

/// Effect of a failed host on its machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// They are restarted on another host; all disks stay.
    Reboot,
    /// They are redeployed; the ephemeral disk is lost.
    Redeploy,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            unenrolled: Unenrolled::RunAtOnce,
            user_operations_max: None,
            failure: FailureKind::Reboot,
            enrolment: EnrolmentRule::OnFirstPoll,
        }
    }
}

/// Holds every start of an event until it is released: late, never lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Brake {
    /// Events start when they may.
    #[default]
    Off,
    /// Nothing starts but what a failed host forces.
    On,
}
