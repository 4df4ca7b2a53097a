//! Actions on machines and hosts, their impacts and their results.

use std::time::Duration;

use forewarn_types::{Announcement, HostId, MaintenanceId};
use serde::{Deserialize, Serialize};

use crate::fleet::EvictionPolicy;
use crate::host_step::{Aside, HostOperation, Target};

/// An action on one machine or host, and the state in which the machine must still be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Together with the target, the key of the action.
    pub maintenance: MaintenanceId,
    /// The machine or the host.
    pub target: Target,
    /// The impact on the target.
    pub impact: Impact,
    /// The boot count of the machine at the decision. A greater one means that the action has been done. 0 for a host.
    pub boots: u32,
}

/// The impact of an action on a machine or a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Impact {
    /// Paused for that many seconds.
    Pause {
        /// Length of the pause.
        seconds: u32,
    },
    /// Moved live.
    Migrate {
        /// The target host.
        to: HostId,
    },
    /// Restarted: where it is, or on another host if its own has failed.
    Reboot {
        /// The target host; `None` if the machine stays.
        #[serde(deserialize_with = "Option::deserialize")]
        to: Option<HostId>,
    },
    /// Stopped, and started on another host with a new ephemeral disk. It stays on a failed host if no other host can
    /// take it.
    Redeploy {
        /// The target host; `None` if the machine stays.
        #[serde(deserialize_with = "Option::deserialize")]
        to: Option<HostId>,
    },
    /// Operating-system image reinstalled.
    Reimage,
    /// Evicted.
    Evict(EvictionPolicy),
    /// Deleted.
    Delete,
    /// Switched off.
    Stop,
    /// Switched on.
    Start {
        /// The target host; `None` for the current one.
        #[serde(deserialize_with = "Option::deserialize")]
        to: Option<HostId>,
    },
    /// Switched off and taken from its host.
    Deallocate,
    /// It steps aside until it returns.
    StepAside(Aside),
    /// It returns after the step on its host.
    Return(Aside),
    /// The step on a host.
    OnHost(HostOperation),
}

/// The result of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The action succeeded.
    Done,
    /// The action failed and will not be retried; the machine is unchanged.
    Failed,
}

impl Impact {
    /// The target host; `None` if the machine stays.
    #[must_use]
    pub fn destination(self) -> Option<HostId> {
        match self {
            Self::Migrate { to } => Some(to),
            Self::Reboot { to } | Self::Redeploy { to } | Self::Start { to } => to,
            Self::Pause { .. }
            | Self::Reimage
            | Self::Evict(_)
            | Self::Delete
            | Self::Stop
            | Self::Deallocate
            | Self::StepAside(_)
            | Self::Return(_)
            | Self::OnHost(_) => None,
        }
    }

    /// The usual duration: that of an announced Freeze, otherwise the time of a fast machine. Unannounced impacts take
    /// no time.
    #[must_use]
    pub fn usual_duration(self, announcement: Option<&Announcement>) -> Duration {
        let Some(announcement) = announcement else { return Duration::ZERO };
        let seconds = match self {
            Self::Pause { seconds } => u64::from(seconds),
            Self::Migrate { .. } => u64::try_from(announcement.duration_seconds).unwrap_or(0),
            Self::Reboot { .. } | Self::Reimage => 30,
            Self::Redeploy { .. } => 120,
            Self::Evict(_) | Self::Delete => 5,
            Self::Stop
            | Self::Start { .. }
            | Self::Deallocate
            | Self::StepAside(_)
            | Self::Return(_)
            | Self::OnHost(_) => 0,
        };
        Duration::from_secs(seconds)
    }

    /// Returns true if it switches the machine on.
    pub(crate) fn starts(self) -> bool {
        matches!(self, Self::Start { .. })
    }

    /// Returns true if the impact determines whether the machine is on, off or deleted.
    pub(crate) fn changes_power(self) -> bool {
        match self {
            Self::Start { .. } | Self::Stop | Self::Deallocate | Self::Evict(_) | Self::Delete => true,
            Self::Pause { .. }
            | Self::Migrate { .. }
            | Self::Reboot { .. }
            | Self::Redeploy { .. }
            | Self::Reimage
            | Self::StepAside(_)
            | Self::Return(_)
            | Self::OnHost(_) => false,
        }
    }
}
