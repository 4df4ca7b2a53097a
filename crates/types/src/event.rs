//! An event: its announcement to a tenant, and its phase.
//!
//! ```text
//!              announce                 approved, or NotBefore passes                done
//!  (nothing) ------------> Scheduled -----------------------------------> Started ---------> (gone)
//!      |                       `---- withdrawn -------------------------------------------------^
//!      `---- failed host, or automatic approval: straight to Started --------^
//! ```

use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{EventId, MachineId, MaintenanceId};
use crate::names::Name;
use crate::time::Timestamp;

/// The kind of an event: the effect on its machines. A word such as `Reboot` in JSON and TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EventKind {
    /// Paused for some seconds, or moved live; memory stays.
    Freeze,
    /// Restarted; memory is lost, disks stay.
    Reboot,
    /// Moved to another host; memory and the ephemeral disk are lost.
    Redeploy,
    /// A spot machine is evicted.
    Preempt,
    /// A machine is deleted.
    Terminate,
}

impl EventKind {
    pub const ALL: [Self; 5] = [Self::Freeze, Self::Reboot, Self::Redeploy, Self::Preempt, Self::Terminate];

    /// The word in documents, settings and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Freeze => "Freeze",
            Self::Reboot => "Reboot",
            Self::Redeploy => "Redeploy",
            Self::Preempt => "Preempt",
            Self::Terminate => "Terminate",
        }
    }
}

impl FromStr for EventKind {
    type Err = NotAnEventKind;

    fn from_str(text: &str) -> Result<Self, NotAnEventKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(NotAnEventKind)
    }
}

/// A text that is not an event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an event type")]
pub struct NotAnEventKind;

/// The cause of an event. A word in JSON and TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum EventSource {
    Platform,
    /// The owner of the machine.
    User,
}

impl EventSource {
    pub const ALL: [Self; 2] = [Self::Platform, Self::User];

    /// The word in documents, settings and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Platform => "Platform",
            Self::User => "User",
        }
    }
}

/// The reason of an event; a document shows it as `Description`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The host is maintained, restarted, or about to fail.
    HostMaintenance,
    /// The network or another part under the host is maintained.
    InfrastructureMaintenance,
    /// The machine is moved live.
    LiveMigration,
    /// The host has failed.
    HostFailure,
    /// The owner requested a restart.
    UserRestart,
    /// The owner requested a move to another host.
    UserRedeploy,
    /// No reason is given: Preempt, Terminate, a new operating-system image.
    Unspoken,
}

/// The part of an event that never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Announcement {
    /// The same for the event's whole life.
    pub id: EventId,
    /// The effect on the machines.
    pub kind: EventKind,
    /// The platform or the owner.
    pub source: EventSource,
    pub reason: Reason,
    /// The expected interruption: -1 unknown, 0 none. Not the life of the event.
    pub duration_seconds: i32,
    /// The affected machines, all in one update domain, in a stable order.
    #[serde(with = "crate::names::derived_names")]
    pub resources: Box<[Name]>,
}

/// The phase of an event while a document shows it.
///
/// There is no `Completed`: an ended event has left the document. `not_before` is part of `Scheduled`, because it has
/// no meaning later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Announced; waits for approval or for `not_before`.
    Scheduled {
        /// The earliest start without approval; a whole second.
        not_before: Timestamp,
        /// The first approval, if there was one.
        approval: Option<Approval>,
    },
    Started {
        /// Time of the start.
        at: Timestamp,
        /// The cause of the start.
        cause: StartCause,
    },
}

/// The tenant's consent to the start of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The party that approved.
    pub by: Approver,
    /// The time of approval.
    pub at: Timestamp,
}

/// A party that may approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Approver {
    /// A machine of the tenant, through the metadata endpoint.
    Machine(MachineId),
    /// The owner of the tenant, through the management API.
    Owner,
}

/// The cause of the start of a maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartCause {
    /// Every notified tenant has approved.
    Approved,
    /// The notice has run out.
    Expired,
    /// The tenant's policy approves such events by itself.
    Automatic,
    /// The host has failed, so there was no notice.
    Failure,
    /// An operator forced the start.
    Forced,
    /// No approval was needed: no concerned tenant is enrolled, or the work makes no event.
    AtOnce,
}

/// An event that a tenant can see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The part that never changes.
    pub announcement: Arc<Announcement>,
    /// The work behind it.
    pub maintenance: MaintenanceId,
    pub phase: Phase,
}

impl Event {
    #[must_use]
    pub fn id(&self) -> EventId {
        self.announcement.id
    }

    /// Announced, not started and not approved.
    #[must_use]
    pub fn is_unapproved(&self) -> bool {
        matches!(self.phase, Phase::Scheduled { approval: None, .. })
    }

    /// Announced, not started, and approved.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        matches!(self.phase, Phase::Scheduled { approval: Some(_), .. })
    }

    /// Announced and not started.
    #[must_use]
    pub fn is_scheduled(&self) -> bool {
        matches!(self.phase, Phase::Scheduled { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_words_of_a_document() {
        for kind in EventKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert_eq!(serde_json::from_value::<EventKind>(kind.as_str().into()).unwrap(), kind);
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert_eq!("freeze".parse::<EventKind>(), Err(NotAnEventKind));
        for source in EventSource::ALL {
            assert_eq!(serde_json::from_value::<EventSource>(source.as_str().into()).unwrap(), source);
        }
    }
}
