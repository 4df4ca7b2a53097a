//! Deliveries over days, on a paused clock, to a port that refuses connections.

use std::time::Duration;

use forewarn_control::NamedCommand;
use forewarn_control::shared::{Filter, Handshake, Progress, Reach, Scope};
use forewarn_lifecycle::{Command, EventKind, Name, Seed, Timestamp};

use super::*;
use crate::clock::{Clock, Speed};
use forewarn_control::request::{Administration, RequestContext};

/// A server with one machine, and a webhook at a port without a listener.
struct WebhookTestServer {
    control: ControlHandle,
    webhooks: Arc<WebhooksShared>,
    supervisor: WebhookSupervisor,
    stop: watch::Sender<bool>,
}

impl WebhookTestServer {
    /// The webhook is confirmed.
    async fn start(filter: Filter) -> Self {
        let server = Self::start_without_webhook().await;
        server.add_webhook(filter).await;
        server.control.confirm_webhook(0, None).await.unwrap();
        server
    }

    async fn start_without_webhook() -> Self {
        let clock = Clock::virtual_at(Timestamp::from_millis(1_767_225_600_000), Speed(0));
        let control = ControlHandle::simulated(Seed([7; 16]), clock);
        let telemetry = Telemetry::new();
        let webhooks = WebhooksShared::new(control.clone(), &WebhookSettings::default(), &telemetry);
        let (stop, stopped) = watch::channel(false);
        let supervisor = WebhookSupervisor::start(Arc::clone(&webhooks), stopped);
        admit_machine(&control).await;
        Self { control, webhooks, supervisor, stop }
    }

    async fn add_webhook(&self, filter: Filter) {
        let (name, url) =
            (Name::new("ops").unwrap(), forewarn_url::Url::parse("http://127.0.0.1:9/").unwrap());
        let format = forewarn_control::shared::WebhookFormat::CloudEvents;
        self.administer(Administration::AddWebhook { name, url, format, filter, authorization: None }).await;
    }

    async fn administer(&self, change: Administration) {
        self.control.administer(change, RequestContext::default()).await.unwrap();
    }

    async fn restart(&self) {
        restart(&self.control).await;
    }

    async fn cancel_event(&self) {
        cancel_event(&self.control).await;
    }

    /// Another cluster with one machine.
    async fn create_cluster(&self) -> ControlHandle {
        self.administer(Administration::CreateCluster(Name::new("west").unwrap())).await;
        let west = self.control.named("west").unwrap();
        admit_machine(&west).await;
        west
    }

    /// Empties that cluster and removes it.
    async fn remove_cluster(&self, west: &ControlHandle) {
        command(west, r#"{"command":"delete","machine":"solo"}"#).await;
        command(west, r#"{"command":"remove_host","host":"h1"}"#).await;
        self.administer(Administration::RemoveCluster(Name::new("west").unwrap())).await;
    }

    /// Removed clusters with undelivered messages.
    fn undelivered(&self) -> usize {
        self.control.shared().undelivered().count()
    }

    fn lost(&self) -> u64 {
        self.status().progress.lost
    }

    fn status(&self) -> DeliveryStatus {
        self.webhooks.statuses(0).into_iter().map(|(_, status)| status).next().unwrap()
    }

    /// The progress that the cluster has recorded.
    fn progress(&self) -> Option<Progress> {
        self.control.look(|state| state.durable.webhook_progress(0)).unwrap()
    }

    async fn recorded(&self) -> Webhook {
        self.control.look(|state| state.shared.find_webhook(0).unwrap().clone()).unwrap()
    }
}

async fn command(control: &ControlHandle, json: &str) {
    let command: NamedCommand = serde_json::from_str(json).unwrap();
    control.run_commands(vec![command]).await.unwrap();
}

async fn admit_machine(control: &ControlHandle) {
    command(control, r#"{"command":"admit_host","name":"h1"}"#).await;
    command(control, r#"{"command":"admit_vm","name":"solo","host":"h1"}"#).await;
    let find = |state: &crate::snapshot::State<'_>| state.cluster.tenants().next().map(|(id, _)| id);
    let tenant = control.look(find).unwrap().unwrap();
    control.submit(Command::Enrol(tenant)).await.unwrap();
}

async fn restart(control: &ControlHandle) {
    command(control, r#"{"command":"restart","machine":"solo"}"#).await;
}

async fn cancel_event(control: &ControlHandle) {
    let first = |state: &crate::snapshot::State<'_>| {
        let mut events = state.cluster.tenants().flat_map(|(_, tenant)| tenant.events());
        events.next().map(|event| event.id().to_string())
    };
    let event = control.look(first).unwrap().unwrap();
    command(control, &format!(r#"{{"command":"cancel","event":"{event}"}}"#)).await;
}

async fn hours(count: u64) {
    tokio::time::sleep(Duration::from_hours(count)).await;
}

/// promise: W2
#[tokio::test(start_paused = true)]
async fn events_are_given_up_after_a_day_and_later_ones_wait() {
    let server = WebhookTestServer::start(Filter::default()).await;
    server.restart().await;
    hours(12).await;
    assert_eq!(server.webhooks.state(&server.recorded().await), WebhookState::Failing);
    server.cancel_event().await;
    hours(11).await;
    assert_eq!(server.lost(), 0);
    hours(3).await;
    assert_eq!(server.lost(), 1, "only the announcement is a day old");
    assert_eq!(server.webhooks.state(&server.recorded().await), WebhookState::Failing);
    hours(12).await;
    assert_eq!(server.lost(), 2);
    server.stop.send_replace(true);
    let control = server.control.clone();
    server.supervisor.stopped().await;
    let recorded = control.look(|state| state.durable.webhook_progress(0)).unwrap().unwrap();
    assert_eq!(recorded.lost, 2, "recorded in the journal");
    assert!(recorded.failing.is_some());
}

#[tokio::test(start_paused = true)]
async fn filtered_entries_advance_the_cursor_and_it_is_recorded_hourly() {
    let kinds = Reach::from_iter([EventKind::Preempt]);
    let server = WebhookTestServer::start(Filter { kinds, ..Filter::default() }).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let added = server.progress().unwrap().cursor;
    assert!(matches!(server.recorded().await.handshake, Handshake::Done { .. }));
    server.restart().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let status = server.status();
    assert!(status.progress.cursor > added && status.error.is_none(), "{status:?}");
    assert_eq!(server.progress().unwrap().cursor, added, "not at once");
    hours(2).await;
    assert_eq!(server.progress().unwrap().cursor, status.progress.cursor);
    assert_eq!(server.lost(), 0);
}

/// promise: W2
#[tokio::test(start_paused = true)]
async fn events_of_a_removed_cluster_are_tried_for_a_day() {
    let server = WebhookTestServer::start(Filter::default()).await;
    let west = server.create_cluster().await;
    restart(&west).await;
    cancel_event(&west).await;
    server.remove_cluster(&west).await;
    hours(12).await;
    assert_eq!((server.undelivered(), server.webhooks.counts.lost.get()), (1, 0));
    assert_eq!(server.webhooks.state(&server.recorded().await), WebhookState::Failing);
    hours(14).await;
    assert_eq!((server.undelivered(), server.webhooks.counts.lost.get()), (0, 2));
    assert_eq!(server.webhooks.statuses(0).len(), 1, "the delivery has ended");
    assert_eq!(server.webhooks.state(&server.recorded().await), WebhookState::Healthy);
}

/// promise: W2
#[tokio::test(start_paused = true)]
async fn a_removed_webhook_gets_no_event_of_a_removed_cluster() {
    let server = WebhookTestServer::start(Filter::default()).await;
    let west = server.create_cluster().await;
    restart(&west).await;
    cancel_event(&west).await;
    server.remove_cluster(&west).await;
    hours(1).await;
    let tries = server.webhooks.counts.refused.get();
    assert!(tries > 0);
    server.administer(Administration::RemoveWebhook(Name::new("ops").unwrap())).await;
    hours(1).await;
    let tries = server.webhooks.counts.refused.get();
    hours(12).await;
    assert_eq!((server.webhooks.counts.refused.get(), server.undelivered()), (tries, 0));
    assert_eq!(server.webhooks.statuses(0).len(), 0);
}

/// promise: W2
#[tokio::test(start_paused = true)]
async fn an_unconfirmed_webhook_is_not_asked_for_ever_about_a_removed_cluster() {
    let server = WebhookTestServer::start_without_webhook().await;
    let west = server.create_cluster().await;
    let scope = Scope { clusters: [ClusterId(1)].into_iter().collect(), ..Scope::default() };
    server.add_webhook(Filter { scope, ..Filter::default() }).await;
    restart(&west).await;
    cancel_event(&west).await;
    hours(1).await;
    server.remove_cluster(&west).await;
    hours(12).await;
    assert_eq!((server.undelivered(), server.webhooks.counts.lost.get()), (1, 0));
    hours(15).await;
    let tries = server.webhooks.counts.handshakes_failed.get();
    assert_eq!((server.undelivered(), server.webhooks.counts.lost.get()), (0, 2));
    hours(12).await;
    assert_eq!(server.webhooks.counts.handshakes_failed.get(), tries);
    assert_eq!(server.webhooks.counts.refused.get(), 0, "nothing is sent before the receiver has confirmed");
}

/// promise: W2
#[tokio::test(start_paused = true)]
async fn a_delivery_ends_when_its_webhook_is_gone() {
    let server = WebhookTestServer::start_without_webhook().await;
    server.add_webhook(Filter::default()).await;
    let (webhook, status) = (server.recorded().await, Arc::default());
    let (_news, news) = watch::channel(0);
    let (webhooks, cluster) = (Arc::clone(&server.webhooks), ClusterId::DEFAULT);
    let delivery = tokio::spawn(Delivery::begin(webhooks, webhook, cluster, status, news));
    hours(1).await;
    assert!(!delivery.is_finished());
    server.administer(Administration::RemoveWebhook(Name::new("ops").unwrap())).await;
    hours(1).await;
    assert!(delivery.is_finished(), "nobody has aborted it");
}

/// The supervisor may learn of a removal before it learns of the last entry.
/// promise: W2
#[tokio::test(start_paused = true)]
async fn the_last_entries_of_a_removed_cluster_are_read_without_a_wake() {
    let server = WebhookTestServer::start(Filter::default()).await;
    server.stop.send_replace(true);
    let west = server.create_cluster().await;
    let mut deliveries = Deliveries::default();
    let shared = server.control.shared();
    deliveries.follow(&server.webhooks, &shared, &server.control.owned_clusters(&shared));
    hours(1).await;
    restart(&west).await;
    cancel_event(&west).await;
    server.remove_cluster(&west).await;
    let shared = server.control.shared();
    deliveries.follow(&server.webhooks, &shared, &server.control.owned_clusters(&shared));
    assert_eq!(server.webhooks.counts.refused.get(), 0);
    hours(26).await;
    assert_eq!((server.undelivered(), server.webhooks.counts.lost.get()), (0, 2));
}

/// The clock stands: all entries have the same time. The audit log, which is busy or closed, is not read.
/// promise: W1
#[tokio::test(start_paused = true)]
async fn a_new_webhook_begins_after_earlier_events_without_a_read_of_the_audit_log() {
    let server = WebhookTestServer::start_without_webhook().await;
    let open = server.control.close_audit_log();
    server.restart().await;
    server.add_webhook(Filter::default()).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let begun = server.progress().unwrap();
    server.cancel_event().await;
    server.control.confirm_webhook(0, None).await.unwrap();
    server.control.open_audit_log(open);
    hours(26).await;
    assert_eq!(server.lost(), 1, "the cancellation");
    assert!(server.progress().unwrap().cursor > begun.cursor);
}
