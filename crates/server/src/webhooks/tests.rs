//! What takes days: on a clock that is set forward, with a webhook that is not there.

use std::time::Duration;

use forewarn_control::NamedCommand;
use forewarn_control::shared::{Filter, Handshake, Reach};
use forewarn_lifecycle::{Command, EventKind, Name, Seed, Timestamp};

use super::*;
use crate::clock::{Clock, Speed};
use forewarn_control::request::{Administration, RequestContext};

/// A server with one machine, and a webhook at a port where nobody listens, which has agreed once.
struct Town {
    engine: ControlHandle,
    post: Arc<Post>,
    office: Office,
    stop: watch::Sender<bool>,
}

impl Town {
    async fn start(filter: Filter) -> Self {
        let clock = Clock::virtual_at(Timestamp::from_millis(1_767_225_600_000), Speed(0));
        let engine = ControlHandle::pretending(Seed([7; 16]), clock);
        let telemetry = Telemetry::new();
        let post = Post::new(engine.clone(), &WebhookSettings::default(), &telemetry);
        let (stop, stopped) = watch::channel(false);
        let office = Office::open(Arc::clone(&post), stopped);
        let town = Self { engine, post, office, stop };
        town.say(r#"{"command":"admit_host","name":"h1"}"#).await;
        town.say(r#"{"command":"admit_vm","name":"solo","host":"h1"}"#).await;
        let find = |state: &crate::snapshot::State<'_>| state.cluster.tenants().next().map(|(id, _)| id);
        let tenant = town.engine.look(find).unwrap().unwrap();
        town.engine.submit(Command::Enrol(tenant)).await.unwrap();
        let (name, url) =
            (Name::new("ops").unwrap(), forewarn_url::Url::parse("http://127.0.0.1:9/").unwrap());
        let schema = forewarn_control::shared::Schema::CloudEvents;
        let add = Administration::AddWebhook { name, url, schema, filter, authorization: None };
        town.engine.administer(add, RequestContext::default()).await.unwrap();
        town.engine.confirm_webhook(0, None).await.unwrap();
        town
    }

    async fn say(&self, json: &str) {
        let command: NamedCommand = serde_json::from_str(json).unwrap();
        self.engine.order(vec![command]).await.unwrap();
    }

    /// Restarts the machine, or takes that back.
    async fn restart(&self) {
        self.say(r#"{"command":"restart","machine":"solo"}"#).await;
    }

    async fn take_back(&self) {
        let first = |state: &crate::snapshot::State<'_>| {
            let mut events = state.cluster.tenants().flat_map(|(_, tenant)| tenant.events());
            events.next().map(|event| event.id().to_string())
        };
        let event = self.engine.look(first).unwrap().unwrap();
        self.say(&format!(r#"{{"command":"cancel","event":"{event}"}}"#)).await;
    }

    fn lost(&self) -> u64 {
        self.post.standing(0).unwrap().progress.lost
    }

    async fn kept(&self) -> Webhook {
        self.engine.look(|state| state.shared.find_webhook(0).unwrap().clone()).unwrap()
    }
}

async fn hours(count: u64) {
    tokio::time::sleep(Duration::from_hours(count)).await;
}

#[tokio::test(start_paused = true)]
async fn what_nobody_takes_for_a_day_is_given_up_and_the_rest_waits() {
    let town = Town::start(Filter::default()).await;
    town.restart().await;
    hours(12).await;
    assert_eq!(town.post.state(&town.kept().await), WebhookState::Failing);
    town.take_back().await;
    hours(11).await;
    assert_eq!(town.lost(), 0);
    hours(3).await;
    assert_eq!(town.lost(), 1, "the announcement is a day old, and nothing else");
    assert_eq!(town.post.state(&town.kept().await), WebhookState::Failing);
    hours(12).await;
    assert_eq!(town.lost(), 2);
    town.stop.send_replace(true);
    town.office.close().await;
    let kept = town.engine.look(|state| state.shared.find_webhook(0).unwrap().progress).unwrap();
    assert_eq!(kept.lost, 2, "it is written down");
    assert!(kept.failing.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_wanted_is_passed_over_and_that_is_written_down_now_and_then() {
    let kinds = Reach::from_iter([EventKind::Preempt]);
    let town = Town::start(Filter { kinds, ..Filter::default() }).await;
    let added = town.kept().await.progress.cursor;
    assert!(matches!(town.kept().await.handshake, Handshake::Done { .. }));
    town.restart().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let standing = town.post.standing(0).unwrap();
    assert!(standing.progress.cursor > added && standing.problem.is_none(), "{standing:?}");
    assert_eq!(town.kept().await.progress.cursor, added, "not at once");
    hours(2).await;
    assert_eq!(town.kept().await.progress.cursor, standing.progress.cursor);
    assert_eq!(town.lost(), 0);
}
