//! Delivery of the events of one cluster to one webhook: reads the audit log of the cluster from a cursor and sends
//! events in order.
//!
//! ```text
//!   handshake ──▶ read a page ──▶ send each event, retry until accepted or a day old ──▶ record progress ──▶ wait for news
//! ```
//!
//! Progress is recorded after delivery: after a crash in between, an event is sent again, under the same id.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::push::{Notice, Push, PushContent, pushes};
use forewarn_control::shared::{DeliveryFailure, Handshake, Progress, Webhook};
use forewarn_control::{ControlError, Site, Stream, Subject};
use forewarn_store::{AuditBatch, AuditQuery, LoggedEntry};
use forewarn_types::Moment;
use tokio::sync::watch;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::delivery_status::SharedDeliveryStatus;
use super::messages::{DeliveryAttempt, notification};
use super::transport::{DeliveryError, WebhookClient, check};
use super::{ReceiverState, WebhooksShared, handshake};
use crate::clock::wall;
use crate::control_handle::ControlHandle;

/// Entries that are read at once.
const PAGE_ENTRIES: usize = 16;

/// Pause after the audit log could not be read.
const UNREAD_PAUSE: Duration = Duration::from_secs(1);

/// Interval at which the cursor advances without events: swept entries before it must not count as missed.
const CURSOR_INTERVAL: Duration = Duration::from_hours(1);

/// Skipped entries after which the cursor is recorded.
const PASSED_MAX: u64 = 1_000;

/// Kinds of audit entries that may have notices of events and hosts.
const KINDS: [&str; 6] = ["announced", "started", "withdrawn", "completed", "ready", "reminder"];

/// Confirmation of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confirmation {
    Wanted,
    Confirmed,
    /// The webhook was removed.
    Gone,
}

pub(super) struct Delivery {
    webhooks: Arc<WebhooksShared>,
    webhook: Webhook,
    cluster: ClusterId,
    status: Arc<SharedDeliveryStatus>,
    receiver: Arc<ReceiverState>,
    /// Successful tests of the webhook.
    tests: watch::Receiver<u64>,
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
    per_minute: Option<u32>,
    /// Given-up events that are not logged yet.
    given_up: u64,
    /// Progress has to be recorded.
    is_dirty: bool,
}

impl Delivery {
    /// Finds the cursor, and sends events until the task is aborted, or all events of a removed cluster are delivered.
    pub(super) async fn begin(
        webhooks: Arc<WebhooksShared>,
        webhook: Webhook,
        cluster: ClusterId,
        status: Arc<SharedDeliveryStatus>,
        news: watch::Receiver<u64>,
    ) {
        let progress = loop {
            match first_progress(&webhooks.control, webhook.number, cluster).await {
                Ok(Some(progress)) => break progress,
                Ok(None) => return,
                Err(_) => tokio::time::sleep(UNREAD_PAUSE).await,
            }
        };
        status.change(|status| status.progress = progress);
        Self::new(webhooks, webhook, cluster, status, progress, news).run().await;
    }

    fn new(
        webhooks: Arc<WebhooksShared>,
        webhook: Webhook,
        cluster: ClusterId,
        status: Arc<SharedDeliveryStatus>,
        progress: Progress,
        news: watch::Receiver<u64>,
    ) -> Self {
        let client = WebhookClient::new(&webhook.url, Arc::clone(&webhooks.trust));
        let receiver = webhooks.receiver(webhook.number);
        let tests = receiver.tests.subscribe();
        let backoff = match progress.failing {
            Some(DeliveryFailure { since, head }) => {
                Backoff::resumed(Instant::now(), wall().since(since), head)
            }
            None => Backoff::default(),
        };
        Self {
            webhooks,
            webhook,
            cluster,
            status,
            receiver,
            tests,
            client,
            progress,
            reported: progress,
            backoff,
            stale: 0,
            head: progress.cursor,
            news,
            per_minute: None,
            given_up: 0,
            is_dirty: true,
        }
    }

    /// Sends events until the task is aborted, or the cluster is removed and all of its events are delivered.
    async fn run(mut self) {
        if !self.confirm().await {
            return;
        }
        loop {
            // If the cluster was removed before the read, its last entry is read.
            let is_removed = self.is_cluster_removed();
            self.news.mark_unchanged();
            match self.read().await {
                Some((page, site)) => {
                    // Entries that cannot be read yet follow.
                    let is_behind = page.head < page.end;
                    let is_last = page.next.is_none();
                    self.send_all(page, &site).await;
                    match (is_last, is_removed) {
                        (true, true) if is_behind => tokio::time::sleep(UNREAD_PAUSE).await,
                        (true, true) => return self.end().await,
                        (true, false) => self.wait_for_news().await,
                        (false, _) => {}
                    }
                }
                None => tokio::time::sleep(UNREAD_PAUSE).await,
            }
        }
    }

    /// Returns true if the cluster is removed: no entry follows.
    fn is_cluster_removed(&self) -> bool {
        self.news.has_changed().is_err()
    }

    /// Records that all events of the cluster, which is removed, are delivered or given up.
    async fn end(self) {
        let control = self.webhooks.control.of(self.cluster);
        while control.end_undelivered(self.webhook.number).await.is_err() {
            tokio::time::sleep(UNREAD_PAUSE).await;
        }
    }

    /// Repeats the handshake until the receiver confirms, or all events of a removed cluster are a day old. Returns
    /// false if the webhook is gone.
    async fn confirm(&mut self) -> bool {
        if self.take_rate() == Confirmation::Confirmed {
            return true;
        }
        let receiver = Arc::clone(&self.receiver);
        loop {
            let shaking = receiver.handshake.lock().await;
            // Another delivery, or a test by an operator, may have confirmed it.
            match self.take_rate() {
                Confirmation::Gone => return false,
                Confirmation::Confirmed => break,
                Confirmation::Wanted => {}
            }
            if let Err(error) = handshake(&self.webhooks, &self.webhook, &mut self.client).await {
                let pause = self.failed(&error);
                if self.is_cluster_removed() && self.read().await.is_some() && self.head <= self.stale {
                    return true;
                }
                self.pause(pause).await;
            }
            // The other deliveries of the webhook have waited for this one.
            drop(shaking);
        }
        self.stale = self.backoff.stale(Instant::now());
        self.succeeded();
        true
    }

    /// Looks for the confirmation of the webhook, and takes the rate limit from it.
    fn take_rate(&mut self) -> Confirmation {
        match self.webhooks.control.shared().find_webhook(self.webhook.number).map(|it| it.handshake) {
            None => Confirmation::Gone,
            Some(Handshake::Wanted) => Confirmation::Wanted,
            Some(Handshake::Done { per_minute, .. }) => {
                self.per_minute = per_minute;
                Confirmation::Confirmed
            }
        }
    }

    /// Reads the next page, with the site of the cluster.
    async fn read(&mut self) -> Option<(AuditBatch, Site)> {
        let kinds = KINDS.iter().map(|kind| Subject::Kind((*kind).to_owned())).collect();
        let query = AuditQuery {
            groups: vec![kinds],
            stream: Some(Stream::Cluster(self.cluster)),
            after: Some(self.progress.cursor),
            limit: PAGE_ENTRIES,
            ..AuditQuery::default()
        };
        let reading = self.webhooks.reads.acquire().await;
        let page = self.webhooks.control.read_audit_log(query).await.ok()?;
        drop(reading);
        self.head = page.head;
        Some((page, self.webhooks.site(self.cluster)))
    }

    async fn send_all(&mut self, page: AuditBatch, site: &Site) {
        if page.swept > self.progress.cursor {
            let webhook = self.webhook.name.as_str();
            tracing::warn!(
                webhook,
                cluster = self.cluster.0,
                entry = page.swept,
                "webhook missed entries that the audit log no longer has"
            );
            self.lose(1);
            self.pass(page.swept);
        }
        for LoggedEntry { entry, .. } in &page.entries {
            let wanted = pushes(entry, site).into_iter().filter(|push| self.is_wanted(&push.content));
            let wanted: Vec<_> = wanted.collect();
            for pushes in wanted.chunks(self.webhook.format.events_per_message_max()) {
                self.deliver(entry.number, pushes).await;
            }
            self.pass(entry.number);
        }
        self.pass(page.next.unwrap_or(page.head));
        self.log_given_up();
    }

    /// Returns true if the filter selects a message. One about a host is of no tenant and no type of event.
    fn is_wanted(&self, content: &PushContent) -> bool {
        let filter = &self.webhook.filter;
        match content {
            PushContent::Event(notice) => self.is_event_wanted(notice),
            PushContent::Test { .. } => true,
            PushContent::Host(_) => filter.kinds.is_all() && filter.scope.tenants.is_all(),
        }
    }

    /// A placement group also matches the name of its scale set.
    fn is_event_wanted(&self, notice: &Notice) -> bool {
        let filter = &self.webhook.filter;
        let set = notice.tenant.split(':').next().unwrap_or_default();
        let tenants = &filter.scope.tenants;
        let is_of_kind =
            filter.kinds.is_all() || filter.kinds.named().any(|kind| kind.as_str() == notice.kind);
        (tenants.includes(notice.tenant.as_str()) || tenants.includes(set)) && is_of_kind
    }

    /// Sends events of one entry in one message until the receiver accepts it, or they are given up.
    async fn deliver(&mut self, entry: u64, pushes: &[Push]) {
        let events = u64::try_from(pushes.len()).unwrap_or(u64::MAX);
        for tries in 1.. {
            if entry <= self.stale {
                self.given_up += events;
                return self.lose(events);
            }
            self.log_given_up();
            self.keep_rate().await;
            let now = Moment(self.webhooks.control.clock().now().wall);
            let attempt = DeliveryAttempt { origin: &self.webhooks.origin, tries, now };
            let message = notification(&self.webhook, attempt, pushes);
            let answer = self.client.send(&message).await;
            self.restart_pause().await;
            match answer.and_then(|response| check(&response)) {
                Ok(()) => {
                    if self.is_duplicated() {
                        // The receiver has accepted the message: the second answer does not matter.
                        drop(self.client.send(&message).await);
                    }
                    self.webhooks.counts.delivered.inc_by(events);
                    self.status.change(|status| status.delivered += events);
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

    /// Returns true if a fault is injected: the message is sent twice.
    fn is_duplicated(&self) -> bool {
        let faults = self.webhooks.control.directory().faults();
        faults.is_some_and(|faults| faults.take_duplicate(self.webhook.number))
    }

    /// Records a failure. Returns the pause before the next attempt.
    fn failed(&mut self, error: &DeliveryError) -> Duration {
        let (webhook, cluster) = (self.webhook.name.as_str(), self.cluster.0);
        let (text, now) = (error.to_string(), Instant::now());
        let head = self.head.max(*self.news.borrow());
        if !self.backoff.is_failing() {
            tracing::warn!(webhook, cluster, error = text, "webhook delivery failed; retrying");
            self.progress.failing = Some(DeliveryFailure { since: wall(), head });
            self.report();
        } else {
            tracing::debug!(webhook, cluster, error = text, "webhook delivery failed again");
        }
        let pause = self.backoff.failed(now, head, error.failure(), chance());
        self.stale = self.stale.max(self.backoff.stale(now));
        self.status.change(|status| status.error = Some(text));
        pause
    }

    fn succeeded(&mut self) {
        if self.backoff.is_failing() {
            let (webhook, cluster) = (self.webhook.name.as_str(), self.cluster.0);
            tracing::info!(webhook, cluster, "webhook delivery recovered");
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
            let (webhook, cluster) = (self.webhook.name.as_str(), self.cluster.0);
            tracing::warn!(webhook, cluster, events, "webhook accepted nothing for a day; events given up");
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
        self.webhooks.progress.report(self.cluster, self.webhook.number, self.progress);
    }

    /// Waits for an entry with notices, or until the cluster is removed.
    async fn wait_for_news(&mut self) {
        self.client.close();
        let news = tokio::time::timeout(CURSOR_INTERVAL, self.news.changed()).await;
        self.is_dirty = news.is_err();
    }

    /// Waits for the rate limit, which the deliveries of a webhook share.
    async fn keep_rate(&mut self) {
        let Some(interval) = self.interval() else { return };
        let mut ready_at = self.receiver.ready_at.lock().await;
        if let Some(ready_at) = *ready_at {
            tokio::time::sleep_until(ready_at).await;
        }
        *ready_at = Some(Instant::now() + interval);
    }

    /// Counts the pause from the answer: a message that was under way for long must not meet the next one.
    async fn restart_pause(&mut self) {
        let Some(interval) = self.interval() else { return };
        let mut ready_at = self.receiver.ready_at.lock().await;
        *ready_at = (*ready_at).max(Some(Instant::now() + interval));
    }

    /// Least time between two messages. The servers of a realm share the rate: each of them may own clusters.
    fn interval(&self) -> Option<Duration> {
        let servers = u32::try_from(self.webhooks.control.server_count()).unwrap_or(u32::MAX);
        Some((Duration::from_mins(1) / self.per_minute?.max(1)).saturating_mul(servers))
    }

    /// Waits, or until a test succeeds.
    async fn pause(&mut self, pause: Duration) {
        self.client.close();
        // An error means that the webhook is gone.
        drop(tokio::time::timeout(pause, self.tests.changed()).await);
    }
}

/// The progress that the cluster has recorded, or the shared state if the cluster is removed. A cluster that has
/// recorded none does so now. None if the webhook is gone, or had no event of a cluster that is.
async fn first_progress(
    control: &ControlHandle,
    webhook: u32,
    cluster: ClusterId,
) -> Result<Option<Progress>, ControlError> {
    let control = control.of(cluster);
    let recorded = || match control.look(|state| state.durable.webhook_progress(webhook)) {
        Ok(progress) => progress,
        Err(_) => control.shared().undelivered_of(cluster)?.progress_of(webhook),
    };
    if let Some(progress) = recorded() {
        return Ok(Some(progress));
    }
    control.advance_webhooks(Vec::new()).await?;
    Ok(recorded())
}

fn chance() -> u32 {
    u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or(0)
}
