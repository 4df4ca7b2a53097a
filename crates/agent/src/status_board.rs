//! The published state of the agent: readiness, the report to peers, and the full status; and requests for retries.

use std::sync::Arc;

use forewarn_agent_core::{PeerStatus, Task};
use forewarn_types::EventId;
use tokio::sync::{mpsc, oneshot, watch};

use crate::status::Status;

/// A snapshot of the agent's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublishedStatus {
    /// True if the endpoint has responded, the machine name is known, and the state is stored.
    pub(crate) ready: bool,
    /// True if this machine should get no new work.
    pub(crate) drained: bool,
    /// The report to peers.
    pub(crate) peer_status: PeerStatus,
    /// The full status. It is serialised on request.
    pub(crate) status: Arc<Status>,
}

/// A request to run failed hooks again.
#[derive(Debug)]
pub(crate) struct RetryRequest {
    /// The event; `None` for all events.
    pub(crate) event: Option<EventId>,
    /// Receives the hooks that run again.
    pub(crate) retried: oneshot::Sender<Vec<Task>>,
}

/// The connection of the HTTP listener to the agent.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    pub(crate) published: watch::Receiver<Arc<PublishedStatus>>,
    pub(crate) retries: mpsc::Sender<RetryRequest>,
}

impl Board {
    /// Has the agent run failed hooks again; `None` if it is stopping.
    pub(crate) async fn retry(&self, event: Option<EventId>) -> Option<Vec<Task>> {
        let (retried, tasks) = oneshot::channel();
        self.retries.send(RetryRequest { event, retried }).await.ok()?;
        tasks.await.ok()
    }
}
