//! Deliveries over days, on a paused clock, to a port that refuses connections.

use std::time::Duration;

use forewarn_control::NamedCommand;
use forewarn_control::shared::{Filter, Handshake, Reach};
use forewarn_lifecycle::{Command, EventKind, Name, Seed, Timestamp};

use super::*;
use crate::clock::{Clock, Speed};
use forewarn_control::request::{Administration, RequestContext};

/// A server with one machine, and a confirmed webhook at a port without a listener.
struct WebhookTestServer {
    control: ControlHandle,
    webhooks: Arc<WebhooksShared>,
    supervisor: WebhookSupervisor,
    stop: watch::Sender<bool>,
}

impl WebhookTestServer {
    async fn start(filter: Filter) -> Self {
        let clock = Clock::virtual_at(Timestamp::from_millis(1_767_225_600_000), Speed(0));
        let control = ControlHandle::simulated(Seed([7; 16]), clock);
        let telemetry = Telemetry::new();
        let webhooks = WebhooksShared::new(control.clone(), &WebhookSettings::default(), &telemetry);
        let (stop, stopped) = watch::channel(false);
        let supervisor = WebhookSupervisor::start(Arc::clone(&webhooks), stopped);
        let server = Self { control, webhooks, supervisor, stop };
        server.command(r#"{"command":"admit_host","name":"h1"}"#).await;
        server.command(r#"{"command":"admit_vm","name":"solo","host":"h1"}"#).await;
        let find = |state: &crate::snapshot::State<'_>| state.cluster.tenants().next().map(|(id, _)| id);
        let tenant = server.control.look(find).unwrap().unwrap();
        server.control.submit(Command::Enrol(tenant)).await.unwrap();
        let (name, url) =
            (Name::new("ops").unwrap(), forewarn_url::Url::parse("http://127.0.0.1:9/").unwrap());
        let schema = forewarn_control::shared::Schema::CloudEvents;
        let add = Administration::AddWebhook { name, url, schema, filter, authorization: None };
        server.control.administer(add, RequestContext::default()).await.unwrap();
        server.control.confirm_webhook(0, None).await.unwrap();
        server
    }

    async fn command(&self, json: &str) {
        let command: NamedCommand = serde_json::from_str(json).unwrap();
        self.control.run_commands(vec![command]).await.unwrap();
    }

    async fn restart(&self) {
        self.command(r#"{"command":"restart","machine":"solo"}"#).await;
    }

    async fn cancel_event(&self) {
        let first = |state: &crate::snapshot::State<'_>| {
            let mut events = state.cluster.tenants().flat_map(|(_, tenant)| tenant.events());
            events.next().map(|event| event.id().to_string())
        };
        let event = self.control.look(first).unwrap().unwrap();
        self.command(&format!(r#"{{"command":"cancel","event":"{event}"}}"#)).await;
    }

    fn lost(&self) -> u64 {
        self.webhooks.status(0).unwrap().progress.lost
    }

    async fn recorded(&self) -> Webhook {
        self.control.look(|state| state.shared.find_webhook(0).unwrap().clone()).unwrap()
    }
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
    server.supervisor.stopped().await;
    let recorded = server.control.look(|state| state.shared.find_webhook(0).unwrap().progress).unwrap();
    assert_eq!(recorded.lost, 2, "recorded in the journal");
    assert!(recorded.failing.is_some());
}

#[tokio::test(start_paused = true)]
async fn filtered_entries_advance_the_cursor_and_it_is_recorded_hourly() {
    let kinds = Reach::from_iter([EventKind::Preempt]);
    let server = WebhookTestServer::start(Filter { kinds, ..Filter::default() }).await;
    let added = server.recorded().await.progress.cursor;
    assert!(matches!(server.recorded().await.handshake, Handshake::Done { .. }));
    server.restart().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let status = server.webhooks.status(0).unwrap();
    assert!(status.progress.cursor > added && status.error.is_none(), "{status:?}");
    assert_eq!(server.recorded().await.progress.cursor, added, "not at once");
    hours(2).await;
    assert_eq!(server.recorded().await.progress.cursor, status.progress.cursor);
    assert_eq!(server.lost(), 0);
}
