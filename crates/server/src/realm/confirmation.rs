//! Confirmed reads: a reader sees everything that was committed before its request, on every server.
//!
//! The numbers of all streams are read from the engine, by one read for all requests that wait; it begins after each of
//! them has arrived. So no reader gets an answer from a server that has lost a cluster and does not know it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::{ClusterId, ClusterState, ControlError, Stream};
use tokio::sync::{mpsc, oneshot};

use crate::broadcasts::Broadcasts;
use crate::clusters::ClusterRegistry;
use crate::snapshot::Snapshot;

/// Requests that wait for a read of the engine.
const WAITING_MAX: usize = 4_096;

/// Longest wait for the copy of this server.
pub(super) const COPY_WAIT: Duration = Duration::from_secs(2);

/// Numbers of the last batches of streams.
pub(crate) type StreamNumbers = BTreeMap<Stream, u64>;

type NumbersReply = oneshot::Sender<Option<Arc<StreamNumbers>>>;

/// Reads of the numbers of all streams, each for all requests that wait.
#[derive(Clone)]
pub(crate) struct Confirmations {
    waiting: mpsc::Sender<NumbersReply>,
}

impl Confirmations {
    /// Starts to read on the current runtime. `read` returns None if the engine does not answer.
    pub(crate) fn start<F>(read: impl Fn() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Option<StreamNumbers>> + Send,
    {
        let (waiting, mut inbox) = mpsc::channel::<NumbersReply>(WAITING_MAX);
        tokio::spawn(async move {
            let mut replies = Vec::new();
            while inbox.recv_many(&mut replies, WAITING_MAX).await > 0 {
                let numbers = read().await.map(Arc::new);
                // The callers may have gone.
                replies.drain(..).for_each(|reply| drop(reply.send(numbers.clone())));
            }
        });
        Self { waiting }
    }

    /// Waits until the published state contains everything that was committed before this call.
    pub(crate) async fn confirm(
        &self,
        broadcasts: &Broadcasts,
        clusters: &ClusterRegistry,
    ) -> Result<(), ControlError> {
        let (reply, numbers) = oneshot::channel();
        self.waiting.send(reply).await.map_err(|_| ControlError::Unavailable)?;
        let numbers = numbers.await.ok().flatten().ok_or(ControlError::Unavailable)?;
        wait_for_copy((broadcasts, Some(clusters)), &numbers, COPY_WAIT).await
    }
}

/// Waits until the published state contains the batches up to these numbers.
pub(super) async fn wait_for_copy(
    (broadcasts, clusters): (&Broadcasts, Option<&ClusterRegistry>),
    numbers: &StreamNumbers,
    time_max: Duration,
) -> Result<(), ControlError> {
    let mut commits = broadcasts.commits.subscribe();
    let copied = async {
        while !contains(&broadcasts.snapshot.load(), numbers, clusters) {
            if commits.changed().await.is_err() {
                return Err(ControlError::Unavailable);
            }
        }
        Ok(())
    };
    tokio::time::timeout(time_max, copied).await.unwrap_or(Err(ControlError::Unavailable))
}

/// The numbers of the published state about a cluster, and of the shared state.
pub(super) fn published_numbers(broadcasts: &Broadcasts, cluster: ClusterId) -> StreamNumbers {
    let snapshot = broadcasts.snapshot.load();
    let number = snapshot.state.cluster(cluster).map(ClusterState::log_number);
    let number = number.map(|number| (Stream::Cluster(cluster), number));
    number.into_iter().chain([(Stream::Shared, snapshot.state.shared().log_number())]).collect()
}

/// Returns true if a snapshot contains the batches up to these numbers, except of clusters that have failed here: their
/// last state is shown, and others do not wait for them.
pub(super) fn contains(
    snapshot: &Snapshot,
    numbers: &StreamNumbers,
    clusters: Option<&ClusterRegistry>,
) -> bool {
    numbers.iter().all(|(stream, number)| {
        match stream {
            Stream::Shared => snapshot.state.shared().log_number() >= *number,
            // The shared state says which clusters there are.
            Stream::Cluster(id) => {
                snapshot.state.cluster(*id).is_none_or(|cluster| cluster.log_number() >= *number)
                    || clusters.is_some_and(|clusters| clusters.has_failed(*id))
            }
        }
    })
}
