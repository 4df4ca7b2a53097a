//! Status of deliveries in memory, and the writer that records their progress.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forewarn_control::shared::Progress;
use tokio::sync::Notify;

use crate::control_handle::ControlHandle;

/// Interval between records of progress: after a crash, events of this interval are delivered again.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// Delivery status of one webhook, shared by its delivery and readers.
#[derive(Debug)]
pub(super) struct SharedDeliveryStatus {
    status: Mutex<DeliveryStatus>,
    /// Notified after a successful test: the delivery retries at once.
    pub(super) retry_now: Notify,
}

/// Delivery status of a webhook since the start of the process.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryStatus {
    /// Current progress; the recorded one may be older.
    pub(crate) progress: Progress,
    /// Number of delivered events since the server started.
    pub(crate) delivered: u64,
    /// Last error. None if the last delivery succeeded.
    pub(crate) error: Option<String>,
}

impl SharedDeliveryStatus {
    pub(super) fn new(progress: Progress) -> Self {
        let status = DeliveryStatus { progress, delivered: 0, error: None };
        Self { status: Mutex::new(status), retry_now: Notify::new() }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut DeliveryStatus)) {
        change(&mut lock(&self.status));
    }

    pub(super) fn get(&self) -> DeliveryStatus {
        lock(&self.status).clone()
    }
}

/// Collects the progress of all webhooks and writes it to the journal in batches.
#[derive(Debug, Default)]
pub(super) struct ProgressWriter {
    unwritten: Mutex<BTreeMap<u32, Progress>>,
    news: Notify,
}

impl ProgressWriter {
    /// Queues the progress of a webhook.
    pub(super) fn report(&self, webhook: u32, progress: Progress) {
        lock(&self.unwritten).insert(webhook, progress);
        self.news.notify_one();
    }

    /// Writes queued progress in batches, until the task is aborted.
    pub(super) async fn run(&self, control: &ControlHandle) {
        loop {
            self.news.notified().await;
            tokio::time::sleep(WRITE_INTERVAL).await;
            self.write(control).await;
        }
    }

    /// Writes the queued progress. After a failure it is queued again.
    pub(super) async fn write(&self, control: &ControlHandle) {
        let reports: Vec<_> = std::mem::take(&mut *lock(&self.unwritten)).into_iter().collect();
        if reports.is_empty() || control.advance_webhooks(reports.clone()).await.is_ok() {
            return;
        }
        let mut unwritten = lock(&self.unwritten);
        for (webhook, progress) in reports {
            unwritten.entry(webhook).or_insert(progress);
        }
        self.news.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
