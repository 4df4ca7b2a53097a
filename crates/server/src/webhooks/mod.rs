//! Webhooks: push notifications of events.
//!
//! The audit log is the source: an entry is durable before any webhook receives it. Each webhook has a delivery task
//! for each cluster, which follows the audit log of the cluster from a cursor in the state of the cluster. The cursor of
//! a removed cluster is in the shared state, until all of its messages are delivered. Deliveries never block a driver or each other; those of one webhook share its handshake and its rate limit. They use system
//! time, also where the server runs on a virtual clock.
//!
//! ```text
//!   audit log of a cluster ──▶ delivery of a webhook ──POST──▶ receiver
//!                                 └── progress ──▶ progress writer ──▶ driver of the cluster, at most once a second
//! ```

mod backoff;
mod counts;
mod delivery;
mod delivery_status;
mod messages;
#[cfg(test)]
mod tests;
mod transport;

use data_encoding::HEXLOWER;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use forewarn_control::ClusterId;
use forewarn_control::push::sample;
use forewarn_control::shared::{Handshake, SharedState, UndeliveredMessages, Webhook};
use forewarn_control::{Site, WebhookState, WebhookTest};
use forewarn_http_client::{HeaderValue, Trust};
use forewarn_lifecycle::Name;
use forewarn_types::Moment;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::control_handle::ControlHandle;
use crate::telemetry::Telemetry;
use counts::WebhookCounts;
use delivery::Delivery;
pub(crate) use delivery_status::DeliveryStatus;
use delivery_status::{ProgressWriter, SharedDeliveryStatus};
use messages::{DeliveryAttempt, check_handshake, end_of_test, handshake_request, notification};
use transport::{DeliveryError, WebhookClient, check};

/// Settings of webhook delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Name by which receivers know this server, in visible ASCII characters.
    pub origin: String,
    /// PEM file with authorities to trust besides those of the system.
    pub authorities: Option<PathBuf>,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self { origin: "forewarn".to_owned(), authorities: None }
    }
}

/// State that all deliveries share.
#[derive(Debug)]
pub(crate) struct WebhooksShared {
    control: ControlHandle,
    origin: HeaderValue,
    trust: Arc<Trust>,
    counts: WebhookCounts,
    progress: ProgressWriter,
    statuses: Mutex<BTreeMap<DeliveryId, Arc<SharedDeliveryStatus>>>,
    receivers: Mutex<BTreeMap<u32, Arc<ReceiverState>>>,
    /// Deliveries that read the audit log at once: operators read it too.
    reads: Semaphore,
}

/// Deliveries that read the audit log at once.
const READS_MAX: usize = 16;

/// A webhook, by number, and the cluster whose events are delivered.
type DeliveryId = (u32, ClusterId);

/// State that the deliveries of one webhook share: they have one receiver.
#[derive(Debug, Default)]
struct ReceiverState {
    /// Held during a handshake.
    handshake: tokio::sync::Mutex<()>,
    /// Earliest time of the next event, if the receiver has a rate limit.
    ready_at: tokio::sync::Mutex<Option<tokio::time::Instant>>,
    /// Number of successful tests: deliveries retry at once.
    tests: watch::Sender<u64>,
}

/// The task that starts and stops deliveries.
#[derive(Debug)]
pub(crate) struct WebhookSupervisor {
    running: JoinHandle<()>,
}

impl WebhooksShared {
    pub(crate) fn new(
        control: ControlHandle,
        settings: &WebhookSettings,
        telemetry: &Telemetry,
    ) -> Arc<Self> {
        let origin = HeaderValue::from_str(&settings.origin).unwrap_or(HeaderValue::from_static("forewarn"));
        let (counts, progress) = (telemetry.register(WebhookCounts::new), ProgressWriter::default());
        let trust = settings.authorities.as_ref().map_or_else(Trust::system, Trust::system_and_file);
        Arc::new(Self {
            control,
            origin,
            trust,
            counts,
            progress,
            statuses: Mutex::default(),
            receivers: Mutex::default(),
            reads: Semaphore::new(READS_MAX),
        })
    }

    /// Delivery status of a webhook in each cluster in which it has a delivery task.
    pub(crate) fn statuses(&self, webhook: u32) -> Vec<(ClusterId, DeliveryStatus)> {
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let first = (webhook, ClusterId(0));
        let own = statuses.range(first..=(webhook, ClusterId(u32::MAX)));
        own.map(|((_, cluster), status)| (*cluster, status.get())).collect()
    }

    /// The delivery state of a webhook.
    pub(crate) fn state(&self, webhook: &Webhook) -> WebhookState {
        let is_failing =
            self.statuses(webhook.number).iter().any(|(_, status)| status.progress.failing.is_some());
        match webhook.handshake {
            Handshake::Wanted => WebhookState::Unconfirmed,
            Handshake::Done { .. } if is_failing => WebhookState::Failing,
            Handshake::Done { .. } => WebhookState::Healthy,
        }
    }

    /// Updates the gauges of webhooks by state.
    pub(crate) fn count(&self) {
        let shared = self.control.shared();
        let states = [
            ("unconfirmed", WebhookState::Unconfirmed),
            ("healthy", WebhookState::Healthy),
            ("failing", WebhookState::Failing),
        ];
        let count =
            |state: WebhookState| shared.webhooks().filter(|webhook| self.state(webhook) == state).count();
        let counted = states.map(|(word, state)| (word, i64::try_from(count(state)).unwrap_or(i64::MAX)));
        self.counts.set_states(counted.into_iter());
    }

    /// Sends a test event, after a handshake if the webhook is unconfirmed. On success its delivery retries at once.
    pub(crate) async fn test(&self, webhook: &Webhook) -> WebhookTest {
        let begin = Instant::now();
        let mut client = WebhookClient::new(&webhook.url, Arc::clone(&self.trust));
        let tested = self.send_test(webhook, &mut client).await;
        if tested.is_ok() {
            self.receiver(webhook.number).tests.send_modify(|tests| *tests += 1);
        }
        let millis = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let problem = tested.err().map(|error| error.to_string());
        WebhookTest { delivered: problem.is_none(), error: problem, millis }
    }

    async fn send_test(&self, webhook: &Webhook, client: &mut WebhookClient) -> Result<(), DeliveryError> {
        if webhook.handshake == Handshake::Wanted {
            handshake(self, webhook, client).await?;
        }
        let at = Moment(self.control.clock().now().wall);
        let site = self.site(ClusterId::DEFAULT);
        let push = sample(webhook.name.as_str(), &random_code().unwrap_or_default(), at, &site);
        let attempt = DeliveryAttempt { origin: &self.origin, tries: 1, now: at };
        check(&client.send(&notification(webhook, attempt, std::slice::from_ref(&push))).await?)?;
        match end_of_test(webhook, &push) {
            Some(end) => check(&client.send(&end).await?),
            None => Ok(()),
        }
    }

    /// The site of a cluster, or the last site of a removed one.
    fn site(&self, cluster: ClusterId) -> Site {
        let last = || Some(self.control.shared().undelivered_of(cluster)?.site.clone());
        self.control.of(cluster).look(|state| state.site.clone()).ok().or_else(last).unwrap_or_default()
    }

    /// Counts a delivery that ends with its cluster, because too many removed clusters have undelivered messages.
    fn count_cut_off(&self, (webhook, cluster): DeliveryId, shared: &SharedState) {
        let Some(webhook) = shared.find_webhook(webhook) else { return };
        self.counts.lost.inc();
        let (webhook, cluster) = (webhook.name.as_str(), cluster.0);
        tracing::warn!(webhook, cluster, "too many removed clusters have undelivered events; events lost");
    }

    /// Forgets all deliveries and receivers.
    fn forget(&self) {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.receivers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.progress.forget();
    }

    fn receiver(&self, webhook: u32) -> Arc<ReceiverState> {
        let mut receivers = self.receivers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(receivers.entry(webhook).or_default())
    }
}

/// Confirms the subscription of a webhook and records it. Returns the rate limit per minute.
async fn handshake(
    webhooks: &WebhooksShared,
    webhook: &Webhook,
    client: &mut WebhookClient,
) -> Result<Option<u32>, DeliveryError> {
    let confirmed = exchange(webhooks, webhook, client).await;
    let counter =
        if confirmed.is_ok() { &webhooks.counts.handshakes_done } else { &webhooks.counts.handshakes_failed };
    counter.inc();
    let per_minute = confirmed?;
    if webhooks.control.confirm_webhook(webhook.number, per_minute).await.is_err() {
        return Err(DeliveryError::Unconfirmed("the journal cannot be written"));
    }
    tracing::info!(webhook = webhook.name.as_str(), "webhook confirmed");
    Ok(per_minute)
}

async fn exchange(
    webhooks: &WebhooksShared,
    webhook: &Webhook,
    client: &mut WebhookClient,
) -> Result<Option<u32>, DeliveryError> {
    // A receiver without a handshake was never asked for one.
    let Some(method) = webhook.format.handshake() else { return Ok(webhook.format.per_minute_max()) };
    let code = random_code().map_err(|_| DeliveryError::Unconfirmed("no random numbers available"))?;
    let site = webhooks.site(ClusterId::DEFAULT);
    let at = Moment(webhooks.control.clock().now().wall);
    let request = handshake_request((webhook, method), &webhooks.origin, &code, (at, &site));
    check_handshake(method, &client.send(&request).await?, &webhooks.origin, &code)
}

/// An unguessable code.
fn random_code() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(HEXLOWER.encode(&bytes))
}

impl WebhookSupervisor {
    /// Starts a delivery for every webhook, until `stop` is set.
    pub(crate) fn start(webhooks: Arc<WebhooksShared>, stop: watch::Receiver<bool>) -> Self {
        Self { running: tokio::spawn(run(webhooks, stop)) }
    }

    /// Waits until all deliveries have ended and their progress is recorded.
    pub(crate) async fn stopped(self) {
        if let Err(error) = self.running.await {
            tracing::error!(%error, "webhook supervisor panicked");
        }
    }
}

async fn run(webhooks: Arc<WebhooksShared>, mut stop: watch::Receiver<bool>) {
    let (mut entries, mut commits) = (webhooks.control.entries(), webhooks.control.commits());
    let mut owners = webhooks.control.ownership();
    let (replaced, mut replacements) = watch::channel(0_u64);
    webhooks.control.on_replaced(move || replaced.send_modify(|count| *count += 1));
    let mut deliveries = Deliveries::default();
    let mut known: Option<(Arc<SharedState>, BTreeSet<ClusterId>)> = None;
    let writer = tokio::spawn({
        let (webhooks, stop) = (Arc::clone(&webhooks), stop.clone());
        async move { webhooks.progress.run(&webhooks.control, stop).await }
    });
    loop {
        if replacements.has_changed().unwrap_or(false) {
            // The same numbers may be those of other webhooks and clusters.
            replacements.mark_unchanged();
            std::mem::take(&mut deliveries).abort();
            webhooks.forget();
            known = None;
        }
        let shared = webhooks.control.shared();
        let owned = webhooks.control.owned_clusters(&shared);
        if !known.as_ref().is_some_and(|(known, former)| Arc::ptr_eq(known, &shared) && *former == owned) {
            deliveries.follow(&webhooks, &shared, &owned);
            known = Some((shared, owned));
        }
        tokio::select! {
            entry = entries.recv() => match entry {
                Ok(logged) if !logged.entry.has_notices() => {}
                Ok(logged) => deliveries.wake(ClusterId(logged.entry.cluster_number), logged.entry.number),
                // The missed entries are in the audit log.
                Err(RecvError::Lagged(_)) => deliveries.wake_all(),
                Err(RecvError::Closed) => break,
            },
            changed = commits.changed() => if changed.is_err() { break },
            // This server may have become the owner of a cluster, or may no longer be.
            () = owners.changed() => {}
            _ = replacements.changed() => replacements.mark_changed(),
            // An error means that the sender is gone: the server stops.
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    deliveries.abort();
    webhooks.progress.end();
    if let Err(error) = writer.await {
        tracing::error!(%error, "progress writer of webhooks panicked");
    }
    webhooks.progress.write(&webhooks.control).await;
}

/// Delivery tasks, and the senders that wake them.
#[derive(Default)]
struct Deliveries {
    tasks: BTreeMap<DeliveryId, JoinHandle<()>>,
    /// Number of the last entry with notices, of each cluster. A removed cluster has none: its deliveries end after the
    /// last entry.
    news: BTreeMap<ClusterId, watch::Sender<u64>>,
}

impl Deliveries {
    /// Starts deliveries of new webhooks and clusters that this server owns, and aborts those of removed webhooks, of
    /// clusters of other servers, and of removed clusters whose messages are delivered.
    fn follow(&mut self, webhooks: &Arc<WebhooksShared>, shared: &SharedState, owned: &BTreeSet<ClusterId>) {
        let is_own = |(_, cluster): &DeliveryId| match shared.cluster_name(*cluster) {
            Some(_) => owned.contains(cluster),
            // Messages of removed clusters are delivered by one server.
            None => owned.contains(&ClusterId::DEFAULT),
        };
        let wanted: BTreeSet<_> = wanted_deliveries(shared).filter(is_own).collect();
        let mut statuses = webhooks.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, delivery) in self.tasks.extract_if(.., |id, _| !wanted.contains(id)) {
            statuses.remove(&id);
            if !delivery.is_finished() && shared.is_undelivered_full() {
                webhooks.count_cut_off(id, shared);
            }
            delivery.abort();
        }
        self.news.retain(|cluster, _| shared.cluster_name(*cluster).is_some());
        let mut receivers = webhooks.receivers.lock().unwrap_or_else(PoisonError::into_inner);
        receivers.retain(|webhook, _| shared.find_webhook(*webhook).is_some());
        drop(receivers);
        for id in wanted {
            let (Entry::Vacant(vacant), Some(webhook)) = (self.tasks.entry(id), shared.find_webhook(id.0))
            else {
                continue;
            };
            let news = match shared.cluster_name(id.1) {
                Some(_) => self.news.entry(id.1).or_insert_with(|| watch::Sender::new(0)).subscribe(),
                None => watch::Sender::new(0).subscribe(),
            };
            let status = Arc::new(SharedDeliveryStatus::default());
            statuses.insert(id, Arc::clone(&status));
            let delivering = Delivery::begin(Arc::clone(webhooks), webhook.clone(), id.1, status, news);
            vacant.insert(tokio::spawn(delivering));
        }
    }

    fn wake(&self, cluster: ClusterId, entry: u64) {
        if let Some(news) = self.news.get(&cluster) {
            news.send_replace(entry);
        }
    }

    fn wake_all(&self) {
        self.news.values().for_each(|news| news.send_modify(|_| {}));
    }

    fn abort(&self) {
        self.tasks.values().for_each(JoinHandle::abort);
    }
}

/// Deliveries to every webhook: of each cluster in its scope, and of removed clusters with undelivered messages.
fn wanted_deliveries(shared: &SharedState) -> impl Iterator<Item = DeliveryId> {
    let of_cluster = |(cluster, _): (ClusterId, &Name)| {
        let includes = move |webhook: &&Webhook| webhook.filter.scope.clusters.includes(&cluster);
        shared.webhooks().filter(includes).map(move |webhook| (webhook.number, cluster))
    };
    let of_removed = |(cluster, messages): (ClusterId, &UndeliveredMessages)| {
        messages.progress.iter().map(|(webhook, _)| (*webhook, cluster)).collect::<Vec<_>>()
    };
    shared.clusters().flat_map(of_cluster).chain(shared.undelivered().flat_map(of_removed))
}
