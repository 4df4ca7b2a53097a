//! An event: what a tenant is told, and where it stands.
//!
//! ```text
//!              announce                 approved, or NotBefore passes                done
//!  (nothing) ------------> Scheduled -----------------------------------> Started ---------> (gone)
//!      |                       `---- withdrawn -------------------------------------------------^
//!      `---- failed host, or automatic approval: straight to Started --------^
//! ```

use std::sync::Arc;
use std::time::Duration;

use crate::fleet::TerminateNotice;
use crate::ids::{EventId, MachineId, MaintenanceId};
use crate::names::Name;
use crate::time::Timestamp;

/// What will be done to the machines of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The shortest time from announcement to `not_before`. Terminate: the shortest that a profile may ask for.
    #[must_use]
    pub fn minimum_notice(self) -> Duration {
        match self {
            Self::Freeze | Self::Reboot => Duration::from_mins(15),
            Self::Redeploy => Duration::from_mins(10),
            Self::Preempt => Duration::from_secs(30),
            Self::Terminate => TerminateNotice::MIN.length(),
        }
    }
}

/// Who caused an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSource {
    /// The platform.
    Platform,
    /// The owner of the machine.
    User,
}

/// Why an event happens; a document shows it as `Description`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The host is maintained, restarted, or about to fail.
    HostMaintenance,
    /// The network or another part under the host is maintained.
    InfrastructureMaintenance,
    /// The machine is moved live.
    LiveMigration,
    /// The host has failed.
    HostFailure,
    /// The owner asked for a restart.
    UserRestart,
    /// The owner asked for a move to another host.
    UserRedeploy,
    /// There is nothing to say: Preempt, Terminate, a new operating-system image.
    Unspoken,
}

/// The part of an event that never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The same for the event's whole life.
    pub id: EventId,
    /// What will be done.
    pub kind: EventKind,
    /// Who caused it.
    pub source: EventSource,
    /// Why.
    pub reason: Reason,
    /// The expected interruption: -1 unknown, 0 none. Not the life of the event.
    pub duration_seconds: i32,
    /// The machines it is about, all in one update domain, in an order that stays.
    pub resources: Box<[Name]>,
}

/// Where an event stands while it can be seen at all.
///
/// There is no `Completed`: an event that is over has left the document. `not_before` lives inside `Scheduled`, because
/// it means nothing later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Announced; waits for approval or for `not_before`.
    Scheduled {
        /// The earliest start without approval; a whole second.
        not_before: Timestamp,
        /// The first approval, if there was one.
        approval: Option<Approval>,
    },
    /// Under way.
    Started {
        /// Since when.
        at: Timestamp,
        /// What let it start.
        cause: StartCause,
    },
}

/// Someone of the tenant has said that the event may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Who.
    pub by: Approver,
    /// When.
    pub at: Timestamp,
}

/// Who may approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approver {
    /// A machine of the tenant, through the metadata endpoint.
    Machine(MachineId),
    /// The owner of the tenant, through the management API.
    Owner,
}

/// What let a maintenance start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartCause {
    /// Every tenant that was asked has approved.
    Approved,
    /// The notice has run out.
    Expired,
    /// The tenant's policy approves such events by itself.
    Automatic,
    /// The host has failed: there was nothing to wait for.
    Failure,
    /// An operator did not want to wait.
    Forced,
    /// There was no one to ask: no tenant concerned is enrolled, or the work makes no event.
    AtOnce,
}

/// An event that a tenant can see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What never changes.
    pub announcement: Arc<Announcement>,
    /// The work behind it.
    pub maintenance: MaintenanceId,
    /// Where it stands.
    pub phase: Phase,
}

impl Event {
    /// The id.
    #[must_use]
    pub fn id(&self) -> EventId {
        self.announcement.id
    }

    /// Announced, not started, and nobody has approved.
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
