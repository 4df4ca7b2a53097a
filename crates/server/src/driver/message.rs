//! Messages to the driver: requests of the control plane, and requests about the driver itself.

use std::path::PathBuf;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::ControlError;
use forewarn_control::request::{Reply, Request, RequestContext};
use forewarn_lifecycle::{MachineId, MaintenanceId, Now};
use forewarn_store::CopyError;
use tokio::sync::oneshot;

use crate::clock::Speed;

/// A message to the driver.
pub(crate) enum Message {
    /// A request, answered once its result is durable and published.
    Request { request: Request, reply: oneshot::Sender<Result<Reply, ControlError>> },
    /// A change of the virtual clock, answered once everything on the way is done.
    SetClock {
        command: ClockCommand,
        context: RequestContext,
        reply: oneshot::Sender<Result<Now, ControlError>>,
    },
    /// A copy of the journal.
    Copy { to: PathBuf, reply: oneshot::Sender<Result<(), CopyError>> },
    /// VMs can read documents from now on.
    DocumentsReadable { reply: oneshot::Sender<()> },
    /// Answered once everything that is due now is done.
    Settle { reply: oneshot::Sender<()> },
    /// An impact task has ended.
    ImpactOver { cluster: ClusterId, work: MaintenanceId, machine: MachineId },
    /// An impact task has to repeat its order.
    ImpactDelayed { cluster: ClusterId, work: MaintenanceId, machine: MachineId, reason: String },
    /// The server stops.
    Stop { reply: oneshot::Sender<()> },
}

/// A change of the virtual clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockCommand {
    /// Sets its speed; 0 freezes it.
    Run(Speed),
    /// Sets it forward, and stops at everything that is due on the way.
    Advance(Duration),
    /// Sets it forward to the next change of a document, if there will be one.
    Next {
        /// The farthest that it may go.
        within: Option<Duration>,
    },
}

impl Message {
    /// Rejects a message that needs a journal. A message that does not is returned.
    pub(super) fn reject_without_journal(self) -> Option<Self> {
        // Callers may have gone.
        match self {
            Self::Request { reply, .. } => drop(reply.send(Err(ControlError::Unavailable))),
            Self::SetClock { reply, .. } => drop(reply.send(Err(ControlError::Unavailable))),
            Self::Copy { reply, .. } => drop(reply.send(Err(CopyError::Closed))),
            Self::DocumentsReadable { .. }
            | Self::Settle { .. }
            | Self::ImpactOver { .. }
            | Self::ImpactDelayed { .. }
            | Self::Stop { .. } => return Some(self),
        }
        None
    }
}
