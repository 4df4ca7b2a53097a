//! Delivery of one webhook: reads the audit log from a cursor and sends events in order.
//!
//! ```text
//!   handshake ──▶ read a page ──▶ send each event, retry until accepted or a day old ──▶ record progress ──▶ wait for news
//! ```
//!
//! Progress is recorded after delivery: after a crash in between, an event is sent again, under the same id.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::push::{Notice, Push, pushes};
use forewarn_control::shared::{DeliveryFailure, Handshake, Progress, Webhook};
use forewarn_control::{AuditEntry, Site, Subject};
use forewarn_store::{AuditBatch, AuditQuery};
use tokio::sync::watch;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::delivery_status::SharedDeliveryStatus;
use super::messages::notification;
use super::transport::{DeliveryError, WebhookClient, check};
use super::{WebhooksShared, handshake};
use crate::clock::wall;

/// Entries that are read at once.
const PAGE_ENTRIES: usize = 16;

/// Pause after the audit log could not be read.
const UNREAD_PAUSE: Duration = Duration::from_secs(1);

/// Interval at which the cursor advances without events: swept entries before it must not count as missed.
const CURSOR_INTERVAL: Duration = Duration::from_hours(1);

/// Skipped entries after which the cursor is recorded.
const PASSED_MAX: u64 = 1_000;

/// Kinds of audit entries that may have notices of events.
const KINDS: [&str; 4] = ["announced", "started", "withdrawn", "completed"];

pub(super) struct Delivery {
    webhooks: Arc<WebhooksShared>,
    webhook: Webhook,
    status: Arc<SharedDeliveryStatus>,
    client: WebhookClient,
    progress: Progress,
    /// Progress that was last recorded.
    reported: Progress,
    backoff: Backoff,
    /// Entries up to this number are given up.
    stale: u64,
    /// End of the audit log at the last read.
    head: u64,
    /// Number of the last entry with notices.
    news: watch::Receiver<u64>,
    /// Earliest time of the next event, if the receiver has a rate limit.
    ready_at: Option<Instant>,
    per_minute: Option<u32>,
    /// Given-up events that are not logged yet.
    given_up: u64,
    /// Progress has to be recorded.
    is_dirty: bool,
}

impl Delivery {
    pub(super) fn new(
        webhooks: Arc<WebhooksShared>,
        webhook: Webhook,
        status: Arc<SharedDeliveryStatus>,
        news: watch::Receiver<u64>,
    ) -> Self {
        let client = WebhookClient::new(&webhook.url, Arc::clone(&webhooks.trust));
        let progress = webhook.progress;
        let backoff = match progress.failing {
            Some(DeliveryFailure { since, head }) => {
                Backoff::resumed(Instant::now(), wall().since(since), head)
            }
            None => Backoff::default(),
        };
        Self {
            webhooks,
            webhook,
            status,
            client,
            progress,
            reported: progress,
            backoff,
            stale: 0,
            head: progress.cursor,
            news,
            ready_at: None,
            per_minute: None,
            given_up: 0,
            is_dirty: false,
        }
    }

    /// Sends events until the task is aborted.
    pub(super) async fn run(mut self) {
        self.per_minute = self.confirm().await;
        loop {
            self.news.mark_unchanged();
            match self.read().await {
                Some((page, sites)) => {
                    let next = page.next;
                    self.send_all(page, &sites).await;
                    if next.is_none() {
                        self.wait_for_news().await;
                    }
                }
                None => tokio::time::sleep(UNREAD_PAUSE).await,
            }
        }
    }

    /// Repeats the handshake until the receiver confirms. Returns its rate limit per minute.
    async fn confirm(&mut self) -> Option<u32> {
        if let Some(per_minute) = self.confirmed_rate() {
            return per_minute;
        }
        let per_minute = loop {
            match handshake(&self.webhooks, &self.webhook, &mut self.client).await {
                Ok(per_minute) => break per_minute,
                Err(error) => {
                    let pause = self.failed(&error);
                    self.pause(pause).await;
                }
            }
            // A test by an operator may have confirmed it.
            if let Some(per_minute) = self.confirmed_rate() {
                break per_minute;
            }
        };
        self.stale = self.backoff.stale(Instant::now());
        self.succeeded();
        per_minute
    }

    /// Rate limit of a confirmed webhook. None if it is unconfirmed.
    fn confirmed_rate(&self) -> Option<Option<u32>> {
        match self.webhooks.control.shared().find_webhook(self.webhook.number)?.handshake {
            Handshake::Done { per_minute, .. } => Some(per_minute),
            Handshake::Wanted => None,
        }
    }

    /// Reads the next page, with the sites of its clusters.
    async fn read(&mut self) -> Option<(AuditBatch, BTreeMap<ClusterId, Site>)> {
        let kinds = KINDS.iter().map(|kind| Subject::Kind((*kind).to_owned())).collect();
        let (after, limit) = (Some(self.progress.cursor), PAGE_ENTRIES);
        let query = AuditQuery { groups: vec![kinds], after, limit, ..AuditQuery::default() };
        let page = self.webhooks.control.read_audit_log(query).await.ok()?;
        self.head = page.head;
        let mut sites = BTreeMap::new();
        for entry in page.entries.iter().filter(|entry| !entry.notices.is_empty()) {
            let cluster = ClusterId(entry.cluster_number);
            sites.entry(cluster).or_insert_with(|| self.webhooks.site(cluster));
        }
        Some((page, sites))
    }

    async fn send_all(&mut self, page: AuditBatch, sites: &BTreeMap<ClusterId, Site>) {
        if page.swept > self.progress.cursor {
            let webhook = self.webhook.name.as_str();
            tracing::warn!(
                webhook,
                entry = page.swept,
                "webhook missed entries that the audit log no longer has"
            );
            self.lose(1);
            self.pass(page.swept);
        }
        for entry in &page.entries {
            let site = sites.get(&ClusterId(entry.cluster_number)).cloned().unwrap_or_default();
            let wanted = pushes(entry, &site).into_iter().filter(|push| self.is_wanted(entry, &push.notice));
            for push in wanted.collect::<Vec<_>>() {
                self.deliver(entry.number, &push).await;
            }
            self.pass(entry.number);
        }
        self.pass(page.next.unwrap_or(page.head));
        self.log_given_up();
    }

    /// Returns true if the filter selects a notice. A placement group also matches the name of its scale set.
    fn is_wanted(&self, entry: &AuditEntry, notice: &Notice) -> bool {
        let filter = &self.webhook.filter;
        let set = notice.tenant.split(':').next().unwrap_or_default();
        let tenants = &filter.scope.tenants;
        let is_of_kind =
            filter.kinds.is_all() || filter.kinds.named().any(|kind| kind.as_str() == notice.kind);
        filter.scope.clusters.includes(&ClusterId(entry.cluster_number))
            && (tenants.includes(notice.tenant.as_str()) || tenants.includes(set))
            && is_of_kind
    }

    /// Sends one event until the receiver accepts it, or it is given up.
    async fn deliver(&mut self, entry: u64, push: &Push) {
        for tries in 1.. {
            if entry <= self.stale {
                self.given_up += 1;
                return self.lose(1);
            }
            self.log_given_up();
            self.keep_rate().await;
            let message = notification(&self.webhook, &self.webhooks.origin, push, tries);
            match self.client.send(&message).await.and_then(|response| check(&response)) {
                Ok(()) => {
                    self.webhooks.counts.delivered.inc();
                    self.status.change(|status| status.delivered += 1);
                    self.is_dirty = true;
                    return self.succeeded();
                }
                Err(error) => {
                    self.webhooks.counts.refused.inc();
                    let pause = self.failed(&error);
                    if entry > self.stale {
                        self.pause(pause).await;
                    }
                }
            }
        }
    }

    /// Records a failure. Returns the pause before the next attempt.
    fn failed(&mut self, error: &DeliveryError) -> Duration {
        let (webhook, text, now) = (self.webhook.name.as_str(), error.to_string(), Instant::now());
        let head = self.head.max(*self.news.borrow());
        if !self.backoff.is_failing() {
            tracing::warn!(webhook, error = text, "webhook delivery failed; retrying");
            self.progress.failing = Some(DeliveryFailure { since: wall(), head });
            self.report();
        } else {
            tracing::debug!(webhook, error = text, "webhook delivery failed again");
        }
        let pause = self.backoff.failed(now, head, error.failure(), chance());
        self.stale = self.stale.max(self.backoff.stale(now));
        self.status.change(|status| status.error = Some(text));
        pause
    }

    fn succeeded(&mut self) {
        if self.backoff.is_failing() {
            tracing::info!(webhook = self.webhook.name.as_str(), "webhook delivery recovered");
            self.backoff.succeeded();
            self.progress.failing = None;
            self.status.change(|status| status.error = None);
            self.report();
        }
    }

    /// Counts events that are never delivered.
    fn lose(&mut self, events: u64) {
        self.webhooks.counts.lost.inc_by(events);
        self.progress.lost += events;
        self.is_dirty = true;
    }

    fn log_given_up(&mut self) {
        let events = std::mem::take(&mut self.given_up);
        if events > 0 {
            let webhook = self.webhook.name.as_str();
            tracing::warn!(webhook, events, "webhook accepted nothing for a day; events given up");
        }
    }

    /// Advances the cursor. It is recorded if events were handled, or after many skipped entries.
    fn pass(&mut self, entry: u64) {
        self.progress.cursor = self.progress.cursor.max(entry);
        self.status.change(|status| status.progress = self.progress);
        if self.is_dirty || self.progress.cursor - self.reported.cursor >= PASSED_MAX {
            self.report();
        }
    }

    fn report(&mut self) {
        self.is_dirty = false;
        self.reported = self.progress;
        self.status.change(|status| status.progress = self.progress);
        self.webhooks.progress.report(self.webhook.number, self.progress);
    }

    async fn wait_for_news(&mut self) {
        self.client.close();
        // Only a timeout is an error here. When the channel closes, the supervisor aborts this task.
        self.is_dirty = tokio::time::timeout(CURSOR_INTERVAL, self.news.changed()).await.is_err();
    }

    /// Waits for the rate limit.
    async fn keep_rate(&mut self) {
        let Some(per_minute) = self.per_minute else { return };
        if let Some(ready_at) = self.ready_at {
            tokio::time::sleep_until(ready_at).await;
        }
        self.ready_at = Some(Instant::now() + Duration::from_mins(1) / per_minute.max(1));
    }

    /// Waits, or until a test succeeds.
    async fn pause(&mut self, pause: Duration) {
        self.client.close();
        drop(tokio::time::timeout(pause, self.status.retry_now.notified()).await);
    }
}

fn chance() -> u32 {
    u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or(0)
}
