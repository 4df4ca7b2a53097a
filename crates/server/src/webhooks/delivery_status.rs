//! Status of deliveries in memory, and the writer that records their progress.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forewarn_control::shared::Progress;
use forewarn_control::{ClusterId, ControlError};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::control_handle::ControlHandle;

/// Interval between records of progress: after a crash, events of this interval are delivered again.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// Delivery status of one webhook in one cluster, shared by its delivery and readers.
#[derive(Debug, Default)]
pub(super) struct SharedDeliveryStatus(Mutex<DeliveryStatus>);

/// Delivery status of a webhook in one cluster since the start of the process.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryStatus {
    /// Current progress; the recorded one may be older.
    pub(crate) progress: Progress,
    /// Number of delivered events since the server started.
    pub(crate) delivered: u64,
    /// Last error. None if the last delivery succeeded.
    pub(crate) error: Option<String>,
}

impl Default for DeliveryStatus {
    fn default() -> Self {
        Self { progress: Progress::from(0), delivered: 0, error: None }
    }
}

impl SharedDeliveryStatus {
    pub(super) fn change(&self, change: impl FnOnce(&mut DeliveryStatus)) {
        change(&mut lock(&self.0));
    }

    pub(super) fn get(&self) -> DeliveryStatus {
        lock(&self.0).clone()
    }
}

/// Collects the progress of all webhooks and writes it to the journal in batches.
#[derive(Debug, Default)]
pub(super) struct ProgressWriter {
    unwritten: Mutex<BTreeMap<ClusterId, BTreeMap<u32, Progress>>>,
    news: Notify,
    has_ended: AtomicBool,
}

impl ProgressWriter {
    /// Queues the progress of a webhook in a cluster.
    pub(super) fn report(&self, cluster: ClusterId, webhook: u32, progress: Progress) {
        lock(&self.unwritten).entry(cluster).or_default().insert(webhook, progress);
        self.news.notify_one();
    }

    /// Forgets queued progress: it is of a state that was replaced.
    pub(super) fn forget(&self) {
        lock(&self.unwritten).clear();
    }

    /// Writes queued progress in batches, until the server stops.
    pub(super) async fn run(&self, control: &ControlHandle, mut stop: watch::Receiver<bool>) {
        while !self.has_ended.load(Ordering::Acquire) {
            tokio::select! {
                () = self.news.notified() => {}
                // An error means that the sender is gone: the server stops.
                _ = stop.wait_for(|stop| *stop) => return,
            }
            tokio::time::sleep(WRITE_INTERVAL).await;
            self.write(control).await;
        }
    }

    /// Ends [`Self::run`] after a write that is under way.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.news.notify_one();
    }

    /// Writes the queued progress, each to its cluster, or to the shared state if the cluster is removed. After a failure it is queued again.
    pub(super) async fn write(&self, control: &ControlHandle) {
        let unwritten = std::mem::take(&mut *lock(&self.unwritten));
        let mut writes = JoinSet::new();
        for (cluster, reports) in unwritten {
            let (control, reports) = (control.of(cluster), reports.into_iter().collect::<Vec<_>>());
            writes.spawn(async move {
                let written = control.advance_webhooks(reports.clone()).await;
                (cluster, reports, written)
            });
        }
        while let Some(Ok((cluster, reports, written))) = writes.join_next().await {
            match written {
                // A cluster that has failed records nothing more.
                Ok(()) | Err(ControlError::ClusterFailed(_)) => {}
                Err(_) => self.queue_again(cluster, reports),
            }
        }
    }

    fn queue_again(&self, cluster: ClusterId, reports: Vec<(u32, Progress)>) {
        let mut unwritten = lock(&self.unwritten);
        let queued = unwritten.entry(cluster).or_default();
        for (webhook, progress) in reports {
            queued.entry(webhook).or_insert(progress);
        }
        self.news.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
