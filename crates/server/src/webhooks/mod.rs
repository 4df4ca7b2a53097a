//! Webhooks: push notifications of events.
//!
//! The audit log is the source: an entry is durable before any webhook receives it. Each webhook has a delivery task,
//! which follows the audit log from a cursor in the shared state. Deliveries never block the driver or each other.
//! They use system time, also where the server runs on a virtual clock.
//!
//! ```text
//!   audit log ──▶ delivery of a webhook ──POST──▶ receiver
//!                      └── progress ──▶ progress writer ──▶ driver, at most once a second
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
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use forewarn_control::ClusterId;
use forewarn_control::push::sample;
use forewarn_control::shared::{Handshake, SharedState, Webhook};
use forewarn_control::{Site, WebhookState, WebhookTest};
use forewarn_http_client::{HeaderValue, Trust};
use forewarn_types::Moment;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::control_handle::ControlHandle;
use crate::telemetry::Telemetry;
use counts::WebhookCounts;
use delivery::Delivery;
pub(crate) use delivery_status::DeliveryStatus;
use delivery_status::{ProgressWriter, SharedDeliveryStatus};
use messages::{check_handshake, handshake_request, notification};
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
    statuses: Mutex<BTreeMap<u32, Arc<SharedDeliveryStatus>>>,
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
        Arc::new(Self { control, origin, trust, counts, progress, statuses: Mutex::default() })
    }

    /// Delivery status of a webhook. None if it has no delivery task.
    pub(crate) fn status(&self, webhook: u32) -> Option<DeliveryStatus> {
        Some(self.shared_status(webhook)?.get())
    }

    pub(crate) fn state(&self, webhook: &Webhook) -> WebhookState {
        let failing =
            self.status(webhook.number).map_or(webhook.progress.failing, |status| status.progress.failing);
        match (webhook.handshake, failing) {
            (Handshake::Wanted, _) => WebhookState::Unconfirmed,
            (Handshake::Done { .. }, Some(_)) => WebhookState::Failing,
            (Handshake::Done { .. }, None) => WebhookState::Healthy,
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
        if tested.is_ok()
            && let Some(status) = self.shared_status(webhook.number)
        {
            status.retry_now.notify_one();
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
        check(&client.send(&notification(webhook, &self.origin, &push, 1)).await?)
    }

    /// The site of a cluster, or the default site if the cluster is gone.
    fn site(&self, cluster: ClusterId) -> Site {
        self.control.of(cluster).look(|state| state.site.clone()).unwrap_or_default()
    }

    fn shared_status(&self, webhook: u32) -> Option<Arc<SharedDeliveryStatus>> {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner).get(&webhook).cloned()
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
    let code = random_code().map_err(|_| DeliveryError::Unconfirmed("no random numbers available"))?;
    let site = webhooks.site(ClusterId::DEFAULT);
    let at = Moment(webhooks.control.clock().now().wall);
    let response = client.send(&handshake_request(webhook, &webhooks.origin, &code, (at, &site))).await?;
    check_handshake(webhook.schema, &response, &webhooks.origin, &code)
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
    let news = watch::Sender::new(0);
    let mut deliveries = BTreeMap::new();
    let mut known: Option<Arc<SharedState>> = None;
    let writer = tokio::spawn({
        let webhooks = Arc::clone(&webhooks);
        async move { webhooks.progress.run(&webhooks.control).await }
    });
    loop {
        let shared = webhooks.control.shared();
        if !known.as_ref().is_some_and(|known| Arc::ptr_eq(known, &shared)) {
            start_and_stop_deliveries(&webhooks, &shared, &news, &mut deliveries);
            known = Some(shared);
        }
        tokio::select! {
            entry = entries.recv() => match entry {
                Ok(entry) if entry.notices.is_empty() => {}
                Ok(entry) => drop(news.send_replace(entry.number)),
                // The missed entries are in the audit log.
                Err(RecvError::Lagged(_)) => news.send_modify(|_| {}),
                Err(RecvError::Closed) => break,
            },
            changed = commits.changed() => if changed.is_err() { break },
            // An error means that the sender is gone: the server stops.
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    deliveries.values().for_each(JoinHandle::abort);
    writer.abort();
    webhooks.progress.write(&webhooks.control).await;
}

/// Starts deliveries of new webhooks and aborts those of removed ones.
fn start_and_stop_deliveries(
    webhooks: &Arc<WebhooksShared>,
    shared: &SharedState,
    news: &watch::Sender<u64>,
    deliveries: &mut BTreeMap<u32, JoinHandle<()>>,
) {
    let mut statuses = webhooks.statuses.lock().unwrap_or_else(PoisonError::into_inner);
    deliveries.retain(|number, delivery| {
        let stays = shared.find_webhook(*number).is_some();
        if !stays {
            delivery.abort();
            statuses.remove(number);
        }
        stays
    });
    for webhook in shared.webhooks() {
        deliveries.entry(webhook.number).or_insert_with(|| {
            let status = Arc::new(SharedDeliveryStatus::new(webhook.progress));
            statuses.insert(webhook.number, Arc::clone(&status));
            let delivery = Delivery::new(Arc::clone(webhooks), webhook.clone(), status, news.subscribe());
            tokio::spawn(delivery.run())
        });
    }
}
