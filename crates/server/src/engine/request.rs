//! What the driver is asked.

use std::path::PathBuf;

use forewarn_control::shared::{ClusterId, WebhookCommand};
use forewarn_control::{NamedCommand, Outcome};
use forewarn_lifecycle::{Command, MachineId, MaintenanceId, Now, Report};
use forewarn_store::CopyError;
use tokio::sync::oneshot;

use super::arrangement::{Arrange, Arranged};
use super::{Administration, ClockCommand, Decided, Order, Problem, RefusedCommand, State, Terms};

pub(crate) type Look = Box<dyn FnOnce(Option<State<'_>>) + Send>;

pub(crate) enum Request {
    Submit {
        cluster: ClusterId,
        command: Command,
        reply: oneshot::Sender<Result<Decided, Problem>>,
    },
    Order {
        cluster: ClusterId,
        order: Order,
        reply: oneshot::Sender<Result<Outcome, Problem>>,
    },
    Arrange {
        cluster: ClusterId,
        terms: Terms,
        arrange: Arrange,
        reply: oneshot::Sender<Result<Option<Arranged>, Problem>>,
    },
    Rehearse {
        cluster: ClusterId,
        commands: Vec<NamedCommand>,
        reply: oneshot::Sender<Result<Option<RefusedCommand>, Problem>>,
    },
    Administer {
        command: Administration,
        terms: Terms,
        reply: oneshot::Sender<Result<Outcome, Problem>>,
    },
    /// Something about webhooks that nobody has asked for.
    Report {
        command: WebhookCommand,
        reply: oneshot::Sender<Result<(), Problem>>,
    },
    Look {
        cluster: ClusterId,
        look: Look,
    },
    /// VMs can read documents from now on.
    Readable {
        reply: oneshot::Sender<()>,
    },
    Drive {
        command: ClockCommand,
        terms: Terms,
        reply: oneshot::Sender<Result<Now, Problem>>,
    },
    Copy {
        to: PathBuf,
        reply: oneshot::Sender<Result<(), CopyError>>,
    },
    /// Some work is completed for a machine, by the answer of a driver program.
    Complete {
        cluster: ClusterId,
        completion: Completion,
        reply: oneshot::Sender<Result<Decided, Problem>>,
    },
    /// A program has ended with what was ordered.
    ErrandOver {
        cluster: ClusterId,
        maintenance: MaintenanceId,
        machine: MachineId,
    },
    /// A program has to be ordered again, and this is why.
    Trouble {
        cluster: ClusterId,
        maintenance: MaintenanceId,
        machine: MachineId,
        trouble: String,
    },
    Stop {
        reply: oneshot::Sender<()>,
    },
}

/// The end of some work for a machine.
#[derive(Clone, Debug)]
pub(crate) struct Completion {
    pub(crate) maintenance: MaintenanceId,
    pub(crate) machine: MachineId,
    pub(crate) report: Report,
    /// The reason of a failure: bounded, and harmless to show.
    pub(crate) reason: Option<String>,
}

impl Request {
    /// Whether it makes no sense while nothing can be written.
    pub(crate) fn needs_journal(&self) -> bool {
        match self {
            Self::Submit { .. }
            | Self::Complete { .. }
            | Self::Order { .. }
            | Self::Arrange { .. }
            | Self::Rehearse { .. }
            | Self::Administer { .. }
            | Self::Report { .. }
            | Self::Look { .. }
            | Self::Drive { .. }
            | Self::Copy { .. } => true,
            Self::ErrandOver { .. } | Self::Trouble { .. } | Self::Stop { .. } | Self::Readable { .. } => {
                false
            }
        }
    }

    /// Nothing can be written now. Whoever asked may have gone.
    pub(crate) fn refuse(self) {
        match self {
            Self::Submit { reply, .. } | Self::Complete { reply, .. } => {
                drop(reply.send(Err(Problem::Unavailable)));
            }
            Self::Order { reply, .. } | Self::Administer { reply, .. } => {
                drop(reply.send(Err(Problem::Unavailable)));
            }
            Self::Arrange { reply, .. } => drop(reply.send(Err(Problem::Unavailable))),
            Self::Rehearse { reply, .. } => drop(reply.send(Err(Problem::Unavailable))),
            Self::Report { reply, .. } => drop(reply.send(Err(Problem::Unavailable))),
            Self::Drive { reply, .. } => drop(reply.send(Err(Problem::Unavailable))),
            Self::Copy { reply, .. } => drop(reply.send(Err(CopyError::Closed))),
            // Whoever waits for the answer finds that there will be none.
            Self::Look { .. }
            | Self::Stop { .. }
            | Self::ErrandOver { .. }
            | Self::Trouble { .. }
            | Self::Readable { .. } => {}
        }
    }
}
