//! Messages to the driver: requests to the control plane and to the driver itself, and their replies.

use std::path::PathBuf;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::request::{Reply, Request, RequestContext};
use forewarn_control::{ClockChange, ControlError};
use forewarn_lifecycle::{MachineId, MaintenanceId, Now};
use forewarn_store::CopyError;
use forewarn_types::Span;
use tokio::sync::oneshot;

use crate::clock::Speed;

/// A message to the driver.
pub(crate) enum Message {
    /// A request, replied to once its result is durable and published.
    Request {
        request: Request,
        reply: oneshot::Sender<Result<Reply, ControlError>>,
    },
    /// A change of the virtual clock, replied to once everything on the way is done.
    SetClock {
        command: ClockCommand,
        context: RequestContext,
        reply: oneshot::Sender<Result<Now, ControlError>>,
    },
    /// A copy of the journal.
    Copy {
        to: PathBuf,
        reply: oneshot::Sender<Result<(), CopyError>>,
    },
    /// VMs can read documents from now on.
    DocumentsReadable {
        reply: oneshot::Sender<()>,
    },
    /// Replied to once everything that is due is done.
    Settle {
        reply: oneshot::Sender<()>,
    },
    /// An impact task has ended.
    ImpactOver {
        cluster: ClusterId,
        work: MaintenanceId,
        machine: MachineId,
    },
    /// An impact task retries.
    ImpactDelayed {
        cluster: ClusterId,
        work: MaintenanceId,
        machine: MachineId,
        reason: String,
    },
    Stop {
        reply: oneshot::Sender<()>,
    },
}

/// A change of the virtual clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockCommand {
    /// Sets its speed; 0 freezes it.
    Run(Speed),
    /// Sets it forward, and stops at everything that is due on the way.
    Advance(Duration),
    /// Sets it forward to the next change of a document, if there will be one.
    Next { within: Option<Duration> },
}

impl ClockCommand {
    /// The command as the audit log shows it.
    pub(crate) fn order(self) -> ClockChange {
        match self {
            Self::Run(Speed(0)) => ClockChange::Freeze {},
            Self::Run(Speed(speed)) => ClockChange::Scale { speed },
            Self::Advance(by) => ClockChange::Advance { by: Span(by) },
            Self::Next { within } => ClockChange::Next { within: within.map(Span) },
        }
    }
}

impl Message {
    /// Rejects a message that needs a journal. A message that does not is returned.
    pub(crate) fn reject_without_journal(self) -> Option<Self> {
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

/// Replies to requests. They are sent once everything that is due is done, so that a caller who reads after a reply
/// sees the consequences of the request.
#[derive(Default)]
pub(crate) struct PendingReplies {
    pub(crate) replies: Vec<(oneshot::Sender<Result<Reply, ControlError>>, Reply)>,
    /// Callers that wait until everything before their message is done.
    pub(crate) waiting: Vec<oneshot::Sender<()>>,
}

impl PendingReplies {
    pub(crate) fn extend(&mut self, later: Self) {
        self.replies.extend(later.replies);
        self.waiting.extend(later.waiting);
    }

    pub(crate) fn send(self) {
        // The callers may have gone; what was decided stays.
        self.replies.into_iter().for_each(|(reply, result)| drop(reply.send(Ok(result))));
        self.waiting.into_iter().for_each(|reply| reply.send(()).unwrap_or_default());
    }

    /// Rejects requests that could not be written. Other callers find their channel closed.
    pub(crate) fn reject(self) {
        // The callers may have gone.
        let rejected = self.replies.into_iter();
        rejected.for_each(|(reply, _)| drop(reply.send(Err(ControlError::Unavailable))));
    }
}
