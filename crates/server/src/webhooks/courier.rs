//! The courier of one webhook: follows the trail from where it left off, and tells what it finds, in order.
//!
//! ```text
//!   handshake ──▶ read a page ──▶ tell each event, again and again until it is taken or a day old ──▶ note how far ──▶ wait for news
//! ```
//!
//! What was told is noted afterwards: whoever is killed in between tells it again, under the same id.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::push::{Notice, Push, pushes};
use forewarn_control::shared::{Failing, Handshake, Progress, Webhook};
use forewarn_control::{AuditEntry, Site, Subject};
use forewarn_store::{AuditBatch, AuditQuery};
use tokio::sync::watch;
use tokio::time::Instant;

use super::desk::Desk;
use super::letters::notification;
use super::line::{Line, Trouble, check};
use super::patience::Patience;
use super::{Post, handshake};
use crate::clock::wall;

/// Entries that are read at once.
const PAGE_ENTRIES: usize = 16;

/// How long to wait when the trail cannot be read.
const UNREAD_PAUSE: Duration = Duration::from_secs(1);

/// How often it is looked how far the trail has come although nothing is to be told: what is older than an entry that is
/// swept away must not be taken for something that was missed.
const LOOK_EVERY: Duration = Duration::from_hours(1);

/// Entries that were passed over before that is written down.
const PASSED_MAX: u64 = 1_000;

/// The kinds of entries that may tell of events.
const KINDS: [&str; 4] = ["announced", "started", "withdrawn", "completed"];

pub(super) struct Courier {
    post: Arc<Post>,
    webhook: Webhook,
    desk: Arc<Desk>,
    line: Line,
    progress: Progress,
    /// What was last written down.
    reported: Progress,
    patience: Patience,
    /// Nobody waits any longer for entries up to this.
    stale: u64,
    /// Where the trail ended when it was last read.
    head: u64,
    /// The number of the last entry that tells of events.
    news: watch::Receiver<u64>,
    /// Not before then may it be told, if it has said how often.
    ready_at: Option<Instant>,
    per_minute: Option<u32>,
    /// Events that were given up since the log last told of it.
    given_up: u64,
    /// Something has happened that is to be written down.
    owes: bool,
}

impl Courier {
    pub(super) fn new(
        post: Arc<Post>,
        webhook: Webhook,
        desk: Arc<Desk>,
        news: watch::Receiver<u64>,
    ) -> Self {
        let line = Line::new(&webhook.url, Arc::clone(&post.trust));
        let progress = webhook.progress;
        let patience = match progress.failing {
            Some(Failing { since, head }) => Patience::resumed(Instant::now(), wall().since(since), head),
            None => Patience::default(),
        };
        Self {
            post,
            webhook,
            desk,
            line,
            progress,
            reported: progress,
            patience,
            stale: 0,
            head: progress.cursor,
            news,
            ready_at: None,
            per_minute: None,
            given_up: 0,
            owes: false,
        }
    }

    /// Tells the webhook everything that is for it, until nobody wants that any more.
    pub(super) async fn run(mut self) {
        self.per_minute = self.shake_hands().await;
        loop {
            self.news.mark_unchanged();
            match self.read().await {
                Some((page, sites)) => {
                    let next = page.next;
                    self.tell_all(page, &sites).await;
                    if next.is_none() {
                        self.wait_for_news().await;
                    }
                }
                None => tokio::time::sleep(UNREAD_PAUSE).await,
            }
        }
    }

    /// Asks the webhook again and again whether it wants to be told. Says how often a minute.
    async fn shake_hands(&mut self) -> Option<u32> {
        if let Some(per_minute) = self.agreed() {
            return per_minute;
        }
        let per_minute = loop {
            match handshake(&self.post, &self.webhook, &mut self.line).await {
                Ok(per_minute) => break per_minute,
                Err(trouble) => {
                    let pause = self.failed(&trouble);
                    self.pause(pause).await;
                }
            }
            // Somebody may have tried it out meanwhile.
            if let Some(per_minute) = self.agreed() {
                break per_minute;
            }
        };
        self.stale = self.patience.stale(Instant::now());
        self.is_well();
        per_minute
    }

    /// How often a minute it wants to be told, if it has agreed to be told at all.
    fn agreed(&self) -> Option<Option<u32>> {
        match self.post.engine.shared().find_webhook(self.webhook.number)?.handshake {
            Handshake::Done { per_minute, .. } => Some(per_minute),
            Handshake::Wanted => None,
        }
    }

    /// What comes next, and where the clusters are that it is about.
    async fn read(&mut self) -> Option<(AuditBatch, BTreeMap<ClusterId, Site>)> {
        let kinds = KINDS.iter().map(|kind| Subject::Kind((*kind).to_owned())).collect();
        let (after, limit) = (Some(self.progress.cursor), PAGE_ENTRIES);
        let query = AuditQuery { groups: vec![kinds], after, limit, ..AuditQuery::default() };
        let page = self.post.engine.read_trail(query).await.ok()?;
        self.head = page.head;
        let mut sites = BTreeMap::new();
        for entry in page.entries.iter().filter(|entry| !entry.notices.is_empty()) {
            let cluster = ClusterId(entry.cluster_number);
            sites.entry(cluster).or_insert_with(|| self.post.site(cluster));
        }
        Some((page, sites))
    }

    async fn tell_all(&mut self, page: AuditBatch, sites: &BTreeMap<ClusterId, Site>) {
        if page.swept > self.progress.cursor {
            let webhook = self.webhook.name.as_str();
            tracing::warn!(webhook, entry = page.swept, "a webhook has missed what is not kept any more");
            self.lose(1);
            self.pass(page.swept);
        }
        for entry in &page.entries {
            let site = sites.get(&ClusterId(entry.cluster_number)).cloned().unwrap_or_default();
            let told = pushes(entry, &site).into_iter().filter(|push| self.is_wanted(entry, &push.notice));
            for push in told.collect::<Vec<_>>() {
                self.tell(entry.number, &push).await;
            }
            self.pass(entry.number);
        }
        self.pass(page.next.unwrap_or(page.head));
        self.tell_of_loss();
    }

    /// Whether the webhook wants to be told of that. A placement group is known by the name of its scale set, too.
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

    /// Tells of one event until it is taken, or nobody waits for it any longer.
    async fn tell(&mut self, entry: u64, push: &Push) {
        for tries in 1.. {
            if entry <= self.stale {
                self.given_up += 1;
                return self.lose(1);
            }
            self.tell_of_loss();
            self.keep_rate().await;
            let letter = notification(&self.webhook, &self.post.origin, push, tries);
            match self.line.send(&letter).await.and_then(|answer| check(&answer)) {
                Ok(()) => {
                    self.post.counts.delivered.inc();
                    self.desk.change(|standing| standing.delivered += 1);
                    self.owes = true;
                    return self.is_well();
                }
                Err(trouble) => {
                    self.post.counts.refused.inc();
                    let pause = self.failed(&trouble);
                    if entry > self.stale {
                        self.pause(pause).await;
                    }
                }
            }
        }
    }

    /// It has not taken something. Says how long to wait.
    fn failed(&mut self, trouble: &Trouble) -> Duration {
        let (webhook, problem, now) = (self.webhook.name.as_str(), trouble.to_string(), Instant::now());
        let head = self.head.max(*self.news.borrow());
        if !self.patience.is_failing() {
            tracing::warn!(webhook, problem, "a webhook cannot be told; it is tried again and again");
            self.progress.failing = Some(Failing { since: wall(), head });
            self.report();
        } else {
            tracing::debug!(webhook, problem, "a webhook still cannot be told");
        }
        let pause = self.patience.failed(now, head, trouble.failure(), chance());
        self.stale = self.stale.max(self.patience.stale(now));
        self.desk.change(|standing| standing.problem = Some(problem));
        pause
    }

    /// It has taken something.
    fn is_well(&mut self) {
        if self.patience.is_failing() {
            tracing::info!(webhook = self.webhook.name.as_str(), "a webhook can be told again");
            self.patience.succeeded();
            self.progress.failing = None;
            self.desk.change(|standing| standing.problem = None);
            self.report();
        }
    }

    /// It is not told of some events, for good.
    fn lose(&mut self, events: u64) {
        self.post.counts.lost.inc_by(events);
        self.progress.lost += events;
        self.owes = true;
    }

    fn tell_of_loss(&mut self) {
        let events = std::mem::take(&mut self.given_up);
        if events > 0 {
            let webhook = self.webhook.name.as_str();
            tracing::warn!(webhook, events, "a webhook was not told of events: it took nothing for a day");
        }
    }

    /// It has been told of everything up to that entry. That is written down soon if something was told, and else now and then.
    fn pass(&mut self, entry: u64) {
        self.progress.cursor = self.progress.cursor.max(entry);
        self.desk.change(|standing| standing.progress = self.progress);
        if self.owes || self.progress.cursor - self.reported.cursor >= PASSED_MAX {
            self.report();
        }
    }

    fn report(&mut self) {
        self.owes = false;
        self.reported = self.progress;
        self.desk.change(|standing| standing.progress = self.progress);
        self.post.register.report(self.webhook.number, self.progress);
    }

    async fn wait_for_news(&mut self) {
        self.line.hang_up();
        // It is an error if nobody tells any more; then this ends, too.
        self.owes = tokio::time::timeout(LOOK_EVERY, self.news.changed()).await.is_err();
    }

    /// Not more often than it wants.
    async fn keep_rate(&mut self) {
        let Some(per_minute) = self.per_minute else { return };
        if let Some(ready_at) = self.ready_at {
            tokio::time::sleep_until(ready_at).await;
        }
        self.ready_at = Some(Instant::now() + Duration::from_mins(1) / per_minute.max(1));
    }

    /// Waits, unless somebody has seen it answer.
    async fn pause(&mut self, pause: Duration) {
        self.line.hang_up();
        drop(tokio::time::timeout(pause, self.desk.nudge.notified()).await);
    }
}

/// Any number.
fn chance() -> u32 {
    u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or(0)
}
