//! The request to a driver program and its response, as JSON over a pipe.

use forewarn_lifecycle::{Action, Cluster, EvictionPolicy, HostId, Impact};
use serde::{Deserialize, Serialize};

/// The request to carry out an action on a machine. One JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriverRequest {
    /// The name of the action: 32 hexadecimal digits. It is the same for every repetition of the request, and no other
    /// action of any cluster has it, so that a program can remember it forever and response `done` again.
    pub action: String,
    pub verb: Verb,
    /// The tenant of the machine.
    pub tenant: String,
    pub machine: String,
    /// The host on which the machine runs.
    pub host: String,
    /// The target host; absent if the machine stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Length of a pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
    /// The boot count at the decision. A greater one means that the action has been done.
    pub boots: u32,
}

/// An operation on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Pause it for some seconds; memory stays.
    Pause,
    Migrate,
    Reboot,
    /// Stop it, and start it elsewhere with a new ephemeral disk.
    Redeploy,
    /// Reinstall its operating-system image.
    Reimage,
    /// Delete it with all its disks.
    Delete,
    /// Switch it off, and release its allocation on the host.
    Deallocate,
    Stop,
    Start,
}

impl Verb {
    /// The JSON value of `verb`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Migrate => "migrate",
            Self::Reboot => "reboot",
            Self::Redeploy => "redeploy",
            Self::Reimage => "reimage",
            Self::Delete => "delete",
            Self::Deallocate => "deallocate",
            Self::Stop => "stop",
            Self::Start => "start",
        }
    }
}

/// The response of a driver program. One JSON object with a member `result`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum DriverResponse {
    /// The action is done, now or earlier.
    Done,
    /// The action failed, and must not be retried.
    Failed {
        /// The reason, for people.
        #[serde(default)]
        message: String,
    },
    /// The result is unknown: the request is repeated under the same name.
    Unknown {
        /// The reason, for people.
        #[serde(default)]
        message: String,
    },
}

impl DriverRequest {
    /// The request for an action; `None` if the machine is gone.
    #[must_use]
    pub fn of(cluster: &Cluster, action: Action) -> Option<Self> {
        let machine = cluster.machine(action.machine)?;
        let host = |id: HostId| cluster.host(id).map(|host| host.name.to_string());
        let (verb, seconds) = match action.impact {
            Impact::Pause { seconds } => (Verb::Pause, Some(seconds)),
            Impact::Migrate { .. } => (Verb::Migrate, None),
            Impact::Reboot { .. } => (Verb::Reboot, None),
            Impact::Redeploy { .. } => (Verb::Redeploy, None),
            Impact::Reimage => (Verb::Reimage, None),
            Impact::Evict(EvictionPolicy::Delete) | Impact::Delete => (Verb::Delete, None),
            Impact::Evict(EvictionPolicy::Deallocate) | Impact::Deallocate => (Verb::Deallocate, None),
            Impact::Stop => (Verb::Stop, None),
            Impact::Start { .. } => (Verb::Start, None),
        };
        Some(Self {
            action: cluster.action_name(action.maintenance, action.machine).to_string(),
            verb,
            tenant: cluster.tenant(machine.tenant)?.name.to_string(),
            machine: machine.name.to_string(),
            host: host(machine.host)?,
            to: action.impact.destination().and_then(host),
            seconds,
            boots: action.boots,
        })
    }
}
