//! What is known of a webhook at the moment, for whoever looks; and what has to be written down of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forewarn_control::shared::Progress;
use tokio::sync::Notify;

use crate::control_handle::ControlHandle;

/// How often what was told is written down: should the server be killed, so much is told again.
const WRITTEN_EVERY: Duration = Duration::from_secs(1);

/// What is known of one webhook, as long as the process lives.
#[derive(Debug)]
pub(super) struct Desk {
    standing: Mutex<Standing>,
    /// Somebody has seen it answer: it is worth a try.
    pub(super) nudge: Notify,
}

/// How it is with a webhook.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// How far it has been told; what is written down may be a little older.
    pub(crate) progress: Progress,
    /// How many events it was told of since the server started.
    pub(crate) delivered: u64,
    /// The last problem with it, while there is one.
    pub(crate) problem: Option<String>,
}

impl Desk {
    pub(super) fn new(progress: Progress) -> Self {
        let standing = Standing { progress, delivered: 0, problem: None };
        Self { standing: Mutex::new(standing), nudge: Notify::new() }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut lock(&self.standing));
    }

    pub(super) fn look(&self) -> Standing {
        lock(&self.standing).clone()
    }
}

/// How far webhooks have been told, on its way to the journal: a little later, and of all of them together.
#[derive(Debug, Default)]
pub(super) struct Register {
    unwritten: Mutex<BTreeMap<u32, Progress>>,
    news: Notify,
}

impl Register {
    /// A webhook has been told that far.
    pub(super) fn report(&self, webhook: u32, progress: Progress) {
        lock(&self.unwritten).insert(webhook, progress);
        self.news.notify_one();
    }

    /// Writes down what is reported, for ever.
    pub(super) async fn keep(&self, engine: &ControlHandle) {
        loop {
            self.news.notified().await;
            tokio::time::sleep(WRITTEN_EVERY).await;
            self.write(engine).await;
        }
    }

    /// Writes down what has been reported. What cannot be written now is tried again with the rest.
    pub(super) async fn write(&self, engine: &ControlHandle) {
        let reports: Vec<_> = std::mem::take(&mut *lock(&self.unwritten)).into_iter().collect();
        if reports.is_empty() || engine.advance_webhooks(reports.clone()).await.is_ok() {
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
