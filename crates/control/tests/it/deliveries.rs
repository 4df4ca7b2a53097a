//! The progress of webhooks, which each cluster has for itself.

use forewarn_control::limits::{CLUSTERS_UNDELIVERED_MAX, WEBHOOKS_MAX};
use forewarn_control::request::{Administration, ClusterRequest, RequestContext, SharedRequest};
use forewarn_control::shared::{DeliveryFailure, Filter, Progress, Scope, WebhookFormat};
use forewarn_control::{ClusterId, ControlState, Stream};
use forewarn_lifecycle::{Command, Name, Timestamp};
use forewarn_testkit::shared_state::deliveries;
use forewarn_url::Url;
use proptest::prelude::*;
use serde_json::json;

use crate::streams::{Failed, Streams};

const DEFAULT: ClusterId = ClusterId::DEFAULT;

fn progress(cursor: u64, lost: u64) -> Progress {
    Progress { cursor, lost, failing: None }
}

fn with_webhooks(names: &[&str]) -> Streams {
    let mut streams = Streams::new();
    names.iter().for_each(|name| add_webhook(&mut streams, name, Filter::default()));
    streams
}

fn add_webhook(streams: &mut Streams, name: &str, filter: Filter) {
    let (name, url) = (Name::new(name).unwrap(), Url::parse("https://hooks.example/in").unwrap());
    let format = WebhookFormat::CloudEvents;
    let add = Administration::AddWebhook { name, url, format, filter, authorization: None };
    streams.administer(add).unwrap();
}

/// Reports progress. Returns the number of records that it takes.
fn advance(streams: &mut Streams, id: ClusterId, reports: Vec<(u32, Progress)>) -> usize {
    let before = streams.records.len();
    streams.ask_cluster(id, &ClusterRequest::AdvanceWebhooks(reports)).unwrap();
    streams.records.len() - before
}

/// promise: W2
#[test]
fn each_cluster_has_its_own_progress() {
    let mut streams = with_webhooks(&["ops"]);
    let north = streams.create("north");
    assert_eq!(streams.cluster(DEFAULT).webhook_progress(0), None, "it has had no event");
    advance(&mut streams, DEFAULT, vec![(0, progress(9, 0)), (4, progress(1, 1))]);
    advance(&mut streams, north, vec![(0, progress(2, 1))]);
    assert_eq!(streams.cluster(DEFAULT).webhooks().collect::<Vec<_>>(), [(0, progress(9, 0))]);
    assert_eq!(streams.cluster(north).webhook_progress(0), Some(progress(2, 1)));
    let many = ClusterRequest::AdvanceWebhooks(vec![(0, progress(9, 0)); WEBHOOKS_MAX + 1]);
    assert!(streams.ask_cluster(DEFAULT, &many).is_err());
}

/// Admits a machine that has read its document: a restart is announced.
fn admit(streams: &mut Streams, id: ClusterId) {
    let host = json!({ "command": "admit_host", "name": "h1" });
    let machine = json!({ "command": "admit_vm", "name": "solo", "host": "h1" });
    streams.commands(id, &[host, machine], None).unwrap();
    let tenant = streams.cluster(id).rules().tenant_named("solo").unwrap();
    streams.ask_cluster(id, &ClusterRequest::Rules(Command::Enrol(tenant))).unwrap();
}

fn restart(streams: &mut Streams, id: ClusterId) {
    streams.commands(id, &[json!({ "command": "restart", "machine": "solo" })], None).unwrap();
}

fn cancel(streams: &mut Streams, id: ClusterId) {
    let rules = streams.cluster(id).rules();
    let event = rules.tenants().flat_map(|(_, tenant)| tenant.events()).next().unwrap().id().to_string();
    streams.commands(id, &[json!({ "command": "cancel", "event": event })], None).unwrap();
}

/// The clock stands: every entry has the same time.
/// promise: W1, W2
#[test]
fn a_webhook_begins_with_the_first_event_after_it_was_added() {
    let mut streams = with_webhooks(&[]);
    let north = streams.create("north");
    for id in [DEFAULT, north] {
        admit(&mut streams, id);
        restart(&mut streams, id);
    }
    add_webhook(&mut streams, "late", Filter::default());
    let scope = Scope { clusters: [north].into_iter().collect(), ..Scope::default() };
    add_webhook(&mut streams, "north", Filter { scope, ..Filter::default() });
    let end = |streams: &Streams, id| streams.audit[&Stream::Cluster(id)].number;
    let before = end(&streams, DEFAULT);
    assert_eq!(streams.cluster(DEFAULT).webhook_progress(0), None);
    cancel(&mut streams, DEFAULT);
    // The entry of the request comes first, then that of the event: it is delivered, also after a kill.
    let begun = streams.replayed().cluster(DEFAULT).webhooks().collect::<Vec<_>>();
    assert_eq!(begun, [(0, progress(before + 1, 0))], "not the other, which does not want this cluster");
    assert_eq!(end(&streams, DEFAULT), before + 2);
    // A delivery task asks: the cluster has had no event.
    let before = end(&streams, north);
    assert_eq!(advance(&mut streams, north, Vec::new()), 2);
    let begun = streams.cluster(north).webhooks().collect::<Vec<_>>();
    assert_eq!(begun, [(0, progress(before, 0)), (1, progress(before, 0))]);
    cancel(&mut streams, north);
    assert_eq!(streams.cluster(north).webhooks().collect::<Vec<_>>(), begun, "it has begun");
    let new = streams.create("new");
    admit(&mut streams, new);
    restart(&mut streams, new);
    assert!(streams.cluster(new).webhook_progress(0).is_some_and(|begun| begun.cursor < end(&streams, new)));
}

/// promise: W2
#[test]
fn messages_of_a_removed_cluster_are_stored_until_they_are_delivered() {
    let mut streams = with_webhooks(&["ops", "ci"]);
    let north = streams.create("north");
    streams.change_site(north, "prod", "west").unwrap();
    advance(&mut streams, north, vec![(0, progress(3, 0)), (1, progress(4, 1))]);
    // A crash after the first step of the removal.
    streams.commits_left = 1;
    assert_eq!(streams.remove("north", &RequestContext::default()), Err(Failed::Crashed));
    let mut streams = streams.replayed();
    streams.repair();
    let kept = streams.shared.undelivered_of(north).unwrap();
    assert_eq!(kept.progress, [(0, progress(3, 0)), (1, progress(4, 1))]);
    assert_eq!(kept.site.resource_group, "prod");
    let mut ask = |request| {
        streams.ask_shared(&request).unwrap();
        streams.replayed().shared.undelivered_of(north).map(|kept| kept.progress.clone())
    };
    let reports = vec![(0, progress(7, 0)), (1, progress(2, 1)), (9, progress(9, 9))];
    let advance = SharedRequest::AdvanceUndelivered { cluster: north, reports };
    assert_eq!(ask(advance.clone()), Some(vec![(0, progress(7, 0)), (1, progress(4, 1))]));
    let end = |webhook| SharedRequest::EndUndelivered { cluster: north, webhook };
    assert_eq!(ask(end(0)), Some(vec![(1, progress(4, 1))]));
    assert_eq!(ask(advance.clone()), Some(vec![(1, progress(4, 1))]), "a late report");
    assert_eq!(ask(end(1)), None);
    assert_eq!((ask(end(1)), ask(advance)), (None, None));
}

/// promise: W2
#[test]
fn messages_of_removed_clusters_go_with_their_webhook_and_their_audit_log() {
    let mut streams = with_webhooks(&["ops", "ci"]);
    let north = streams.create("north");
    advance(&mut streams, north, vec![(0, progress(3, 0)), (1, progress(4, 1))]);
    streams.remove("north", &RequestContext::default()).unwrap();
    let begun = streams.aggregate().with_new_audit_log();
    assert_eq!(begun.shared().undelivered_of(north), None, "an import has no entries of removed clusters");
    streams.administer(Administration::RemoveWebhook(Name::new("ops").unwrap())).unwrap();
    assert_eq!(streams.shared.undelivered_of(north).unwrap().progress, [(1, progress(4, 1))]);
    streams.administer(Administration::RemoveWebhook(Name::new("ci").unwrap())).unwrap();
    assert_eq!(streams.shared.undelivered().count(), 0);
}

#[test]
fn messages_of_too_many_removed_clusters_are_not_stored() {
    let mut streams = with_webhooks(&["ops"]);
    for number in 0..CLUSTERS_UNDELIVERED_MAX + 2 {
        let cluster = streams.create("north");
        advance(&mut streams, cluster, Vec::new());
        assert_eq!(streams.shared.is_undelivered_full(), number >= CLUSTERS_UNDELIVERED_MAX);
        streams.remove("north", &RequestContext::default()).unwrap();
        let is_stored = streams.shared.undelivered_of(cluster).is_some();
        assert_eq!(is_stored, number < CLUSTERS_UNDELIVERED_MAX);
    }
}

/// promise: W2
#[test]
fn progress_does_not_go_back() {
    let mut streams = with_webhooks(&["ops"]);
    let mut advance = |progress| advance(&mut streams, DEFAULT, vec![(0, progress)]);
    assert_eq!(advance(progress(7, 0)), 1);
    assert_eq!(advance(progress(7, 0)), 0, "it is so already");
    assert_eq!(advance(progress(6, 1)), 0);
    assert_eq!(advance(progress(9, 2)), 1);
    assert_eq!(advance(progress(10, 1)), 0);
    let failing = Some(DeliveryFailure { since: Timestamp::from_millis(5), head: 12 });
    assert_eq!(advance(Progress { failing, ..progress(9, 2) }), 1);
    assert_eq!(advance(Progress { failing, ..progress(9, 2) }), 0);
    assert_eq!(advance(progress(9, 2)), 1, "it is well again");
}

/// promise: W2
#[test]
fn progress_of_a_removed_webhook_is_forgotten() {
    let mut streams = with_webhooks(&["ops", "ci"]);
    advance(&mut streams, DEFAULT, vec![(0, progress(3, 0)), (1, progress(4, 0))]);
    streams.administer(Administration::RemoveWebhook(Name::new("ops").unwrap())).unwrap();
    assert_eq!(advance(&mut streams, DEFAULT, vec![(0, progress(5, 0))]), 1);
    assert_eq!(streams.cluster(DEFAULT).webhooks().collect::<Vec<_>>(), [(1, progress(4, 0))]);
    assert_eq!(advance(&mut streams, DEFAULT, Vec::new()), 0);
}

/// promise: W2
#[test]
fn a_log_that_begins_anew_is_delivered_from_its_beginning() {
    let mut streams = with_webhooks(&["ops"]);
    let failing = Some(DeliveryFailure { since: Timestamp::from_millis(5), head: 12 });
    advance(&mut streams, DEFAULT, vec![(0, Progress { failing, ..progress(9, 2) })]);
    let begun: ControlState = streams.aggregate().with_new_audit_log();
    assert_eq!(begun.cluster(DEFAULT).unwrap().webhook_progress(0), Some(progress(0, 2)));
}

proptest! {
    /// Whatever is reported, and in whatever order: nothing is delivered again, and no loss is forgotten.
    /// promise: W2
    #[test]
    fn progress_never_goes_back(reports in prop::collection::vec(deliveries(), 0..20)) {
        let mut streams = with_webhooks(&["a", "b", "c"]);
        for report in reports {
            let before: Vec<_> = streams.cluster(DEFAULT).webhooks().collect();
            advance(&mut streams, DEFAULT, report.clone());
            for (webhook, former) in before {
                let after = streams.cluster(DEFAULT).webhook_progress(webhook).unwrap();
                prop_assert!(after.cursor >= former.cursor && after.lost >= former.lost);
            }
            for (webhook, _) in streams.cluster(DEFAULT).webhooks() {
                prop_assert!(streams.shared.find_webhook(webhook).is_some());
            }
        }
    }
}
