//! An order to a program, and its answer: what goes over the pipe.

use forewarn_lifecycle::{Action, Cluster, EvictionPolicy, HostId, Impact};
use serde::{Deserialize, Serialize};

/// What is to be done to a machine, in words that a program understands. One JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Order {
    /// The name of the action: 32 hexadecimal digits. It is the same however often the order is given, and that of no other
    /// action of any cluster, so that a program can remember it for ever and answer `done` again.
    pub action: String,
    /// What to do.
    pub verb: Verb,
    /// The tenant of the machine.
    pub tenant: String,
    /// The machine.
    pub machine: String,
    /// The host on which it is.
    pub host: String,
    /// The host to which it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How long it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
    /// The boot that was current when this was decided: a later one means that it has been done.
    pub boots: u32,
}

/// What to do to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Pause it for some seconds; memory stays.
    Pause,
    /// Move it live.
    Migrate,
    /// Restart it.
    Reboot,
    /// Stop it, and start it elsewhere with a new ephemeral disk.
    Redeploy,
    /// Give it its operating-system image anew.
    Reimage,
    /// Take it away, with everything.
    Delete,
    /// Switch it off, and take it from its host.
    Deallocate,
    /// Switch it off.
    Stop,
    /// Switch it on.
    Start,
}

impl Verb {
    /// The word of it in an order.
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

/// What a program answers. One JSON object with a member `result`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum Answer {
    /// It has been done, now or before.
    Done,
    /// It cannot be done, and must not be tried again.
    Failed {
        /// Why, for people.
        #[serde(default)]
        message: String,
    },
    /// Nobody knows: it is ordered again, under the same name.
    Unknown {
        /// Why, for people.
        #[serde(default)]
        message: String,
    },
}

impl Order {
    /// The order for an action; nothing, if the machine is gone.
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
