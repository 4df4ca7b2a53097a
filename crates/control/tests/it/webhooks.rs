//! The rules of webhooks, case by case.

#![allow(clippy::unwrap_used, reason = "a test world may be blunt")]

use std::collections::BTreeSet;

use forewarn_control::limits::*;
use forewarn_control::shared::*;
use forewarn_control::{ClusterId, Site};
use forewarn_lifecycle::{EventKind, Name, Seed};
use forewarn_testkit::shared_state::JournaledState;
use forewarn_url::Url;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn new(text: &str) -> WebhookDefinition {
    WebhookDefinition {
        name: name(text),
        url: Url::parse("https://hooks.example/in?code=s3cret").unwrap(),
        format: WebhookFormat::CloudEvents,
        filter: Filter::default(),
        authorization: Some(Authorization::new("Bearer s3cret").unwrap()),
        by: "socket".to_owned(),
    }
}

fn add(text: &str) -> Command {
    Command::Webhook(WebhookCommand::Add(Box::new(new(text))))
}

fn chat(text: &str, format: WebhookFormat, key: Option<&str>) -> Command {
    let authorization = key.map(|key| Authorization::new(key).unwrap());
    let definition = WebhookDefinition { format, authorization, ..new(text) };
    Command::Webhook(WebhookCommand::Add(Box::new(definition)))
}

/// promise: W1
#[test]
fn a_chat_needs_no_handshake_and_pagerduty_a_routing_key() {
    let mut world = JournaledState::new();
    for (name, format, per_minute) in [
        ("slack", WebhookFormat::Slack, Some(60)),
        ("teams", WebhookFormat::Teams, Some(240)),
        ("text", WebhookFormat::Text, None),
    ] {
        world.submit(&chat(name, format, None)).unwrap();
        let handshake = world.shared.webhook_named(name).unwrap().handshake;
        assert!(
            matches!(handshake, Handshake::Done { per_minute: rate, .. } if rate == per_minute),
            "{name}"
        );
    }
    for key in [None, Some("0123456789abcdef0123456789abcde"), Some("0123456789abcdef 123456789abcdef")] {
        let why = refused(&mut world, &chat("pager", WebhookFormat::PagerDuty, key));
        assert!(
            why.starts_with("webhook pager needs a routing key of PagerDuty: 32 letters and digits"),
            "{why}"
        );
    }
    let clear = Url::parse("http://hooks.example/s3cret").unwrap();
    for format in [WebhookFormat::Slack, WebhookFormat::Teams] {
        let new = WebhookDefinition { format, url: clear.clone(), authorization: None, ..new("clear") };
        let why = refused(&mut world, &Command::Webhook(WebhookCommand::Add(Box::new(new))));
        assert!(why.starts_with("the secret of a webhook would be sent in the clear: clear"), "{why}");
    }
    let key = Some("0123456789abcdef0123456789ABCDEF");
    world.submit(&chat("pager", WebhookFormat::PagerDuty, key)).unwrap();
    let webhook = world.shared.webhook_named("pager").unwrap();
    assert!(matches!(webhook.handshake, Handshake::Done { .. }));
    assert!(!format!("{webhook:?}").contains("0123456789"));
}

fn refused(world: &mut JournaledState, command: &Command) -> String {
    let before = world.shared.clone();
    let why = world.submit(command).unwrap_err().to_string();
    assert_eq!(world.shared, before);
    why
}

#[test]
fn a_webhook_is_added_confirmed_and_removed() {
    let mut world = JournaledState::new();
    world.submit(&add("ops")).unwrap();
    let webhook = world.shared.webhook_named("ops").unwrap().clone();
    assert_eq!((webhook.number, webhook.created, webhook.by.as_str()), (0, world.now.wall, "socket"));
    assert_eq!(webhook.handshake, Handshake::Wanted);
    assert_eq!(refused(&mut world, &add("ops")), "the name is taken: ops");

    let confirm = Command::Webhook(WebhookCommand::Confirm { webhook: 0, per_minute: Some(60) });
    world.wait(5);
    world.submit(&confirm).unwrap();
    let done = Handshake::Done { at: world.now.wall, per_minute: Some(60) };
    world.wait(5);
    assert_eq!(world.submit(&confirm).unwrap(), [], "once is enough");
    assert_eq!(world.shared.find_webhook(0).unwrap().handshake, done);

    world.submit(&Command::Webhook(WebhookCommand::Remove(name("ops")))).unwrap();
    let gone = refused(&mut world, &Command::Webhook(WebhookCommand::Remove(name("ops"))));
    assert!(gone.starts_with("no such webhook: ops\n  hint: "), "{gone}");
    assert_eq!(world.submit(&confirm).unwrap(), []);
    world.submit(&add("ops")).unwrap();
    assert_eq!(world.shared.webhook_named("ops").map(|webhook| webhook.number), Some(1));
}

/// promise: W1
#[test]
fn a_webhook_wants_to_be_told_of_something_that_is_there() {
    let mut world = JournaledState::new();
    world
        .submit(&Command::CreateCluster { name: name("north"), seed: Seed([1; 16]), site: Site::default() })
        .unwrap();
    let mut why = |filter| {
        let command =
            Command::Webhook(WebhookCommand::Add(Box::new(WebhookDefinition { filter, ..new("ops") })));
        refused(&mut world, &command)
    };
    let only = |clusters: &[u32], tenants: Option<&[&str]>| Filter {
        scope: Scope {
            clusters: clusters.iter().copied().map(ClusterId).collect(),
            tenants: tenants.map_or(Reach::All, |names| names.iter().map(|tenant| name(tenant)).collect()),
        },
        kinds: Reach::All,
    };
    assert_eq!(why(only(&[0, 4], None)), "no such cluster: number 4");
    assert!(why(only(&[], None)).starts_with("webhook ops has an empty list of clusters\n  hint: "));
    assert!(why(only(&[1], Some(&[]))).starts_with("webhook ops has an empty list of tenants\n"));
    let none = Filter { kinds: Reach::Only(BTreeSet::new()), ..Filter::default() };
    assert!(why(none).starts_with("webhook ops has an empty list of types\n"));
    let many: Vec<_> = (0..=100).collect();
    assert_eq!(why(only(&many, None)), "too many clusters: at most 100");
    let by = Command::Webhook(WebhookCommand::Add(Box::new(WebhookDefinition {
        by: String::new(),
        ..new("ops")
    })));
    assert!(refused(&mut world, &by).starts_with("invalid caller name: "));

    let kinds = [EventKind::Terminate].into_iter().collect();
    let filter = Filter { kinds, ..only(&[1], Some(&["web"])) };
    world
        .submit(&Command::Webhook(WebhookCommand::Add(Box::new(WebhookDefinition {
            filter: filter.clone(),
            ..new("ops")
        }))))
        .unwrap();
    world.submit(&Command::RemoveCluster(ClusterId(1))).unwrap();
    assert_eq!(world.shared.webhook_named("ops").unwrap().filter, filter, "what is left is still told");
}

/// promise: S4, W2
#[test]
fn a_secret_is_not_sent_in_the_clear() {
    let mut world = JournaledState::new();
    let mut add = |url: &str, authorization: Option<Authorization>| {
        let url = Url::parse(url).unwrap();
        let command = Command::Webhook(WebhookCommand::Add(Box::new(WebhookDefinition {
            url,
            authorization,
            ..new("ops")
        })));
        let added = world.submit(&command).map(drop).map_err(|why| why.to_string());
        drop(world.submit(&Command::Webhook(WebhookCommand::Remove(name("ops")))));
        added
    };
    let secret = || Authorization::new("Bearer s3cret").ok();
    let why = add("http://hooks.example/in", secret()).unwrap_err();
    assert!(why.starts_with("the secret of a webhook would be sent in the clear: ops\n  hint: "), "{why}");
    for (url, authorization) in [
        ("http://hooks.example/in", None),
        ("http://127.0.0.1:8000/in", secret()),
        ("https://hooks.example/in", secret()),
    ] {
        assert_eq!(add(url, authorization), Ok(()), "{url}");
    }
}

/// promise: C3
#[test]
fn there_are_not_too_many_webhooks() {
    let mut world = JournaledState::new();
    for number in 0..WEBHOOKS_MAX {
        world.submit(&add(&format!("w{number}"))).unwrap();
    }
    assert_eq!(refused(&mut world, &add("more")), "too many webhooks: at most 100");
    world.submit(&Command::Webhook(WebhookCommand::Remove(name("w7")))).unwrap();
    world.submit(&add("more")).unwrap();
}

/// promise: S4, W2
#[test]
fn a_webhook_shows_its_secrets_to_nobody() {
    let mut world = JournaledState::new();
    world.submit(&add("ops")).unwrap();
    for shown in [format!("{:?}", world.shared), format!("{:?}", world.journal), format!("{:?}", add("ops"))]
    {
        assert!(shown.contains("hooks.example") && !shown.contains("s3cret"), "{shown}");
    }
}
