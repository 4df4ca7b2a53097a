//! Messages to the tasks of a server, and their replies.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::request::{ClusterRequest, Reply, RequestContext, SharedRequest};
use forewarn_control::shared::SharedState;
use forewarn_control::{ClockChange, ClusterId, ClusterState, ControlError};
use forewarn_lifecycle::{MaintenanceId, Now, Seed, Target, Timestamp};
use forewarn_realm::{Batch, KnownHead, OwnerRecord, ServerName, StreamContent};
use forewarn_store::CopyError;
use forewarn_types::{Moment, Span};
use tokio::sync::oneshot;

use crate::clock::Speed;
use crate::initial_state::StreamStart;
use crate::log_length::{LogLimits, WrittenLog};
use crate::realm_log::NewOwnership;

/// The sender of a reply to a request.
pub(crate) type ReplySender = oneshot::Sender<Result<Reply, ControlError>>;

/// The end of an impact task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImpactEnd {
    /// The result is known.
    Reported,
    /// The result is unknown, and its reason stays visible.
    Suspended,
    /// The server stops, or the action was not to be carried out.
    Abandoned,
}

/// A message to the driver of a cluster.
pub(crate) enum ClusterMessage {
    /// A request, replied to once its result is durable and published.
    Request {
        request: Box<ClusterRequest>,
        reply: ReplySender,
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
        work: MaintenanceId,
        target: Target,
        end: ImpactEnd,
    },
    /// Replied to with true if an action is still to be carried out.
    IsWanted {
        work: MaintenanceId,
        target: Target,
        reply: oneshot::Sender<bool>,
    },
    /// An impact task retries.
    ImpactDelayed {
        work: MaintenanceId,
        target: Target,
        reason: String,
    },
    /// The log of the realm has another batch.
    Logged(Box<Batch>),
    /// The log of the realm has this state instead of its first batches.
    Install(Box<LoggedState<ClusterState>>),
    /// Replied to with the log if this server writes it, and the beginning of a stored state if it is long.
    WrittenLog {
        limits: LogLimits,
        reply: oneshot::Sender<Option<WrittenLog>>,
    },
    /// The owner has published everything up to that batch.
    PublishedByOwner(u64),
    /// Every other server of the realm has published everything up to that batch.
    ShownByOthers(u64),
    /// This server owns the cluster.
    Own {
        ownership: NewOwnership,
        /// True if the driver decides from now on.
        reply: oneshot::Sender<bool>,
    },
    /// Replied to with the place of the copy in the log.
    Position {
        reply: oneshot::Sender<forewarn_realm::StreamPosition>,
    },
    /// Another server owns the cluster.
    Disown,
    /// This server gives the cluster to another one. Replied to with the new owner, or None if it stays or is lost.
    HandOver {
        to: ServerName,
        reply: oneshot::Sender<Option<OwnerRecord>>,
    },
    /// The journal was opened again.
    Reopened {
        start: StreamStart<ClusterState>,
        reply: oneshot::Sender<()>,
    },
    Stop {
        reply: oneshot::Sender<()>,
    },
    /// The state is replaced: the driver ends at once, and everything unfinished is forgotten.
    End {
        reply: oneshot::Sender<()>,
    },
    /// The driver panics.
    #[cfg(test)]
    Panic,
    /// The driver does nothing until the sender is dropped.
    #[cfg(test)]
    Hang(oneshot::Receiver<()>),
    /// The driver no longer knows the end of its audit log.
    #[cfg(test)]
    BreakChain,
}

impl ClusterMessage {
    /// Returns true if an earlier message that still waits is not needed any more.
    pub(crate) fn replaces(&self, earlier: &Self) -> bool {
        matches!(
            (self, earlier),
            (Self::PublishedByOwner(_), Self::PublishedByOwner(_))
                | (Self::ShownByOthers(_), Self::ShownByOthers(_))
                | (Self::Disown, Self::Disown)
        )
    }
}

/// A state of a stream that the log of a realm has.
pub(crate) struct LoggedState<S> {
    pub(crate) state: Arc<S>,
    pub(crate) position: forewarn_realm::StreamPosition,
    /// The clocks of the head.
    pub(crate) clock: Now,
}

/// A message to the driver of the shared stream.
pub(crate) enum SharedMessage {
    /// A request, replied to once its result is durable and published.
    Request {
        request: Box<SharedRequest>,
        reply: ReplySender,
    },
    /// The log of the realm has another batch.
    Logged(Box<Batch>),
    /// The log of the realm no longer has the batches that this server lacks: everything that it has instead.
    Read(Box<StreamContent>),
    /// Replied to with the log, and the beginning of a stored state if it is long and ends with this head.
    WrittenLog {
        head: KnownHead,
        limits: LogLimits,
        reply: oneshot::Sender<Option<WrittenLog>>,
    },
    /// Replied to with the place of the copy in the log.
    Position {
        reply: oneshot::Sender<forewarn_realm::StreamPosition>,
    },
    /// Records that the clocks show this time.
    RecordClock {
        now: Now,
        reply: oneshot::Sender<Result<(), ControlError>>,
    },
    /// The journal was opened again.
    Reopened {
        start: StreamStart<SharedState>,
        /// The clusters of the journal.
        clusters: Vec<(ClusterId, StreamStart<ClusterState>)>,
        /// The clusters that have started now.
        reply: oneshot::Sender<BTreeSet<ClusterId>>,
    },
    /// The whole state is replaced, and the drivers of clusters have ended.
    Replaced {
        start: StreamStart<SharedState>,
        /// The clusters of the new state.
        clusters: Vec<(ClusterId, StreamStart<ClusterState>)>,
        /// Seed of machine ids.
        identity: Seed,
        reply: oneshot::Sender<()>,
    },
    /// A copy of the journal.
    Copy {
        to: PathBuf,
        reply: oneshot::Sender<Result<(), CopyError>>,
    },
    /// Replied to at once.
    Ping {
        reply: oneshot::Sender<()>,
    },
    Stop {
        reply: oneshot::Sender<()>,
    },
}

/// A message to the driver of the clock.
pub(crate) enum ClockMessage {
    /// A change of the virtual clock, replied to once everything on the way is done.
    Set {
        command: ClockCommand,
        context: Box<RequestContext>,
        reply: oneshot::Sender<Result<Now, ControlError>>,
    },
    /// The clock is left alone until `release` is dropped.
    Hold {
        held: oneshot::Sender<()>,
        release: oneshot::Receiver<()>,
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
    /// Sets it forward to a time, and stops at everything that is due on the way.
    Until(Timestamp),
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
            Self::Until(at) => ClockChange::Until { at: Moment(at) },
            Self::Next { within } => ClockChange::Next { within: within.map(Span) },
        }
    }
}

/// Replies to requests. They are sent once everything that is due is done, so that a caller who reads after a reply
/// sees the consequences of the request.
#[derive(Default)]
pub(crate) struct PendingReplies {
    pub(crate) replies: Vec<(ReplySender, Result<Reply, ControlError>)>,
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
        self.replies.into_iter().for_each(|(reply, result)| drop(reply.send(result)));
        self.waiting.into_iter().for_each(|reply| reply.send(()).unwrap_or_default());
    }

    /// Rejects requests that could not be written. Other callers find their channel closed.
    pub(crate) fn reject(self, error: &ControlError) {
        // The callers may have gone.
        let rejected = self.replies.into_iter();
        rejected.for_each(|(reply, _)| drop(reply.send(Err(error.clone()))));
    }
}

impl<S> StreamStart<S> {
    /// The state, for a reader that keeps it.
    pub(crate) fn state(&self) -> Arc<S> {
        Arc::clone(&self.state)
    }
}
