//! A few connections to one server, each with at most one message in flight.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::connection::{OutgoingMessage, PeerConnection, SendFailure, WholeAnswer};
use crate::error::PeerError;
use crate::identity::PeerIdentity;
use crate::limits::PeerLimits;
use crate::peer::Peer;

/// Connections to one server.
#[derive(Debug)]
pub(crate) struct ConnectionPool {
    peer: Peer,
    identity: Arc<PeerIdentity>,
    limits: PeerLimits,
    permits: Semaphore,
    idle: Mutex<Vec<PeerConnection>>,
}

impl ConnectionPool {
    pub(crate) fn new(peer: Peer, identity: Arc<PeerIdentity>, limits: PeerLimits) -> Self {
        let permits = Semaphore::new(limits.in_flight);
        Self { peer, identity, limits, permits, idle: Mutex::default() }
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    pub(crate) fn limits(&self) -> &PeerLimits {
        &self.limits
    }

    /// Opens a connection that does not count as one of the pool.
    pub(crate) async fn open(&self) -> Result<PeerConnection, PeerError> {
        PeerConnection::open(&self.peer, &self.identity, &self.limits).await
    }

    /// Sends a message on a free connection, or on a new one, and reads its answer.
    pub(crate) async fn exchange(
        &self,
        message: &OutgoingMessage,
        bytes_max: usize,
    ) -> Result<WholeAnswer, SendFailure> {
        let permit = timeout(self.limits.queue, self.permits.acquire()).await;
        // A semaphore that is closed has no permits either; this one never is.
        let Ok(Ok(_permit)) = permit else { return Err(SendFailure::NotSent(PeerError::Busy)) };
        if let Some(mut free) = self.take() {
            match free.exchange(message, bytes_max, self.limits.answer).await {
                // The other server has closed it meanwhile.
                Err(SendFailure::NotSent(_)) => {}
                answered @ (Ok(_) | Err(SendFailure::Unknown(_))) => return self.keep(free, answered),
            }
        }
        let mut new = self.open().await.map_err(SendFailure::NotSent)?;
        let answered = new.exchange(message, bytes_max, self.limits.answer).await;
        self.keep(new, answered)
    }

    /// Closes all connections that are not in use.
    pub(crate) fn disconnect(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn take(&self) -> Option<PeerConnection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| connection.is_usable(self.limits.idle));
        idle.pop()
    }

    /// Keeps a connection with a complete answer for the next message.
    fn keep(
        &self,
        connection: PeerConnection,
        answered: Result<WholeAnswer, SendFailure>,
    ) -> Result<WholeAnswer, SendFailure> {
        if answered.is_ok() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        answered
    }
}
