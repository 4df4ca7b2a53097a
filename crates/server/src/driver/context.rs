//! Everything that the drivers of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forewarn_control::request::{Reply, SharedRequest};
use forewarn_control::{ClosedBy, ControlError};
use forewarn_lifecycle::Seed;
use forewarn_metadata::Directory;
use tokio::sync::{mpsc, oneshot, watch};

use crate::broadcasts::Broadcasts;
use crate::clock::Clock;
use crate::clock_hold::ClockHold;
use crate::gate::Gate;
use crate::hypervisor::Hypervisor;
use crate::initial_state::Readers;
use crate::message::SharedMessage;
use crate::peer_polls::PeerPolls;
use crate::unsettled::UnsettledClusters;

/// Everything that the drivers of a server share.
#[derive(Clone)]
pub(crate) struct DriverContext {
    /// Seed of machine ids.
    pub(crate) identity: Seed,
    pub(crate) clock: Clock,
    pub(crate) hypervisor: Hypervisor,
    pub(crate) directory: Arc<Directory>,
    pub(crate) broadcasts: Broadcasts,
    /// Messages to the driver of the shared stream.
    pub(crate) shared: mpsc::WeakSender<SharedMessage>,
    /// No order of a driver program is repeated once the server stops.
    pub(crate) stop: watch::Sender<bool>,
    /// Keeps a virtual clock from going on while a driver decides.
    pub(crate) clock_gate: Gate,
    readers: Arc<AtomicBool>,
    /// The wall clock of this server differs from those of the other servers of the realm: no event starts.
    pub(crate) clock_hold: ClockHold,
    /// Polls that other servers of the realm have answered.
    pub(crate) peer_polls: Arc<PeerPolls>,
    /// Clusters whose owners may still move times that this server would show.
    pub(crate) unsettled: UnsettledClusters,
}

impl DriverContext {
    pub(crate) fn new(
        identity: Seed,
        (clock, hypervisor): (Clock, Hypervisor),
        broadcasts: Broadcasts,
        shared: mpsc::WeakSender<SharedMessage>,
        readers: Readers,
    ) -> Self {
        Self {
            identity,
            clock_gate: Gate::of(&clock),
            clock,
            hypervisor,
            directory: Arc::default(),
            broadcasts,
            shared,
            stop: watch::Sender::new(false),
            readers: Arc::new(AtomicBool::new(readers == Readers::Present)),
            clock_hold: ClockHold::default(),
            peer_polls: Arc::default(),
            unsettled: UnsettledClusters::default(),
        }
    }

    /// Presence of readers, for a driver that starts now.
    pub(crate) fn readers(&self) -> Readers {
        if self.readers.load(Ordering::Acquire) { Readers::Present } else { Readers::Absent }
    }

    /// VMs can read documents from now on.
    pub(crate) fn readers_are_present(&self) {
        self.readers.store(true, Ordering::Release);
    }

    /// Sends a request to the shared stream, and waits for the reply.
    pub(crate) async fn request_shared(&self, request: SharedRequest) -> Result<Reply, ControlError> {
        let shared = self.shared.upgrade().ok_or(ControlError::Unavailable)?;
        let (reply, result) = oneshot::channel();
        let message = SharedMessage::Request { request: Box::new(request), reply };
        shared.send(message).await.map_err(|_| ControlError::Unavailable)?;
        drop(shared);
        result.await.map_err(|_| ControlError::Unavailable)?
    }

    /// Removes the names of clusters that are closed: their removal was interrupted.
    pub(crate) async fn finish_removals(&self) {
        let snapshot = self.broadcasts.snapshot.load_full();
        for (cluster, state) in snapshot.state.clusters() {
            let Some(ClosedBy { by, once }) = state.closed().cloned() else { continue };
            let undelivered = state.undelivered();
            let removal = SharedRequest::RemoveClosed { cluster, by, once, undelivered };
            if let Err(error) = self.request_shared(removal).await {
                tracing::warn!(cluster = cluster.0, %error, "cannot remove a closed cluster");
            }
        }
    }
}
