//! Rows and records of older versions, which had one stream: what they lack is derived.

use std::sync::Arc;

use forewarn_control::request::{Administration, ClusterRequest};
use forewarn_control::shared::{self, Change, Filter, Progress, WebhookChange, WebhookFormat};
use forewarn_control::{
    ClusterEntry, ClusterId, ControlState, Entry, Record, RestoringState, Site, StateRow,
};
use forewarn_lifecycle::Name;
use forewarn_url::Url;
use serde_json::json;

use crate::streams::{SEED, Streams, group_id, put_group};

const DEFAULT: ClusterId = ClusterId::DEFAULT;

fn progress(cursor: u64) -> Progress {
    Progress { lost: 2, ..Progress::from(cursor) }
}

/// A row as an older version wrote it. Webhooks had one progress for all clusters.
fn old_row(row: StateRow) -> Option<StateRow> {
    match row {
        StateRow::Shared(shared::Row::Secret(_) | shared::Row::Origin(..) | shared::Row::Claim(_))
        | StateRow::Webhook(..)
        | StateRow::Booted(_)
        | StateRow::Positioned(_)
        | StateRow::Reminded(..)
        | StateRow::Closed(..) => None,
        StateRow::Shared(shared::Row::Webhook(webhook)) => {
            Some(StateRow::Shared(shared::Row::WebhookWithProgress(webhook, progress(7))))
        }
        StateRow::Rules(_)
        | StateRow::Site(_)
        | StateRow::Described(..)
        | StateRow::Failed(..)
        | StateRow::Receipt(_)
        | StateRow::Resource(_)
        | StateRow::Cluster(_)
        | StateRow::Shared(_) => Some(row),
    }
}

fn read_old(state: &ControlState) -> ControlState {
    let mut restoring = RestoringState::default();
    state.clone().into_rows().filter_map(old_row).for_each(|row| restoring.add(row).unwrap());
    restoring.finish().unwrap()
}

fn add_webhook(streams: &mut Streams, name: &str) {
    let (name, url) = (Name::new(name).unwrap(), Url::parse("https://hooks.example/in").unwrap());
    let (format, filter) = (WebhookFormat::CloudEvents, Filter::default());
    let add = Administration::AddWebhook { name, url, format, filter, authorization: None };
    streams.administer(add).unwrap();
}

/// A control plane with two clusters, groups and a webhook.
fn used() -> (Streams, ClusterId) {
    let mut streams = Streams::new();
    let north = streams.create("north");
    streams.change_site(DEFAULT, "prod", "west").unwrap();
    streams
        .write_resources(north, vec![put_group("Shop", "east"), put_group("forewarn-north", "south")])
        .unwrap();
    add_webhook(&mut streams, "ops");
    for id in [DEFAULT, north] {
        let advance = ClusterRequest::AdvanceWebhooks(vec![(0, progress(7))]);
        streams.ask_cluster(id, &advance).unwrap();
    }
    (streams, north)
}

/// The secret of a cluster that is created next.
fn next_seed(state: &ControlState) -> forewarn_lifecycle::Seed {
    let mut streams = Streams::new();
    streams.shared = state.shared_arc();
    let id = streams.create("next");
    streams.shared.initial_cluster(id).unwrap().rules().seed()
}

/// promise: D1
#[test]
fn rows_of_an_older_version_are_completed() {
    let (streams, north) = used();
    let live = streams.aggregate();
    let read = read_old(&live);
    assert_eq!(read.shared().claims().collect::<Vec<_>>(), live.shared().claims().collect::<Vec<_>>());
    assert_eq!(next_seed(&read), SEED.nth(2));
    assert_eq!(next_seed(&read), next_seed(&live));
    for id in [DEFAULT, north] {
        assert_eq!(read.cluster(id), live.cluster(id));
        assert_eq!(read.shared().initial_cluster(id), None, "its stored state is its own");
    }
    // Once written and read again it is the same.
    let mut restoring = RestoringState::default();
    read.clone().into_rows().for_each(|row| restoring.add(row).unwrap());
    assert_eq!(restoring.finish().unwrap(), read);
}

/// Two clusters of an older version can have the same group.
/// promise: D1, Z1
#[test]
fn of_two_clusters_with_the_same_group_one_has_the_claim() {
    let (streams, north) = used();
    let site = Site { resource_group: "PROD".to_owned(), ..Site::default() };
    let record = Record::in_cluster(streams.now, north, ClusterEntry::Site(site));
    let mut state = streams.aggregate();
    state.apply(&record);
    let key = group_id("prod").to_lowercase();
    let owner = |state: &ControlState| state.shared().claim(&key).map(|claim| claim.cluster);
    assert_eq!(owner(&read_old(&state)), Some(DEFAULT), "the lowest number");
    let mut streams = Streams::new();
    streams.create("north");
    streams.write_resources(north, vec![put_group("prod", "east")]).unwrap();
    let site = Site { resource_group: "prod".to_owned(), ..Site::default() };
    let mut state = streams.aggregate();
    state.apply(&Record::in_cluster(streams.now, DEFAULT, ClusterEntry::Site(site)));
    let read = read_old(&state);
    assert_eq!(owner(&read), Some(north), "the cluster that has it as a resource");
    assert_eq!(read.resource(&key).map(|resource| resource.cluster), Some(north));
    // The other keeps its site, and can change the rest of it.
    streams.shared = read.shared_arc();
    streams.clusters.insert(DEFAULT, read.cluster_arc(DEFAULT).unwrap());
    let change = json!({ "command": "change_site", "location": "elsewhere" });
    streams.commands(DEFAULT, &[change], None).unwrap();
    assert_eq!(streams.cluster(DEFAULT).site().location, "elsewhere");
    assert_eq!(streams.claim("prod"), Some((north, "east")));
}

/// Records of an older version change sites and resources without claims.
/// promise: D1
#[test]
fn claims_are_derived_after_records_of_an_older_version() {
    let (streams, north) = used();
    let mut state = read_old(&Streams::new().aggregate());
    for record in &streams.records {
        let is_of_claims =
            matches!(record.entry, Entry::Shared(Change::ClaimsTaken { .. } | Change::ClaimsReleased { .. }));
        if !is_of_claims {
            state.apply(record);
        }
    }
    assert_eq!(state.shared().claim(&group_id("prod").to_lowercase()), None);
    let derived = state.with_derived_claims();
    let live = streams.aggregate();
    assert_eq!(derived.shared().claims().collect::<Vec<_>>(), live.shared().claims().collect::<Vec<_>>());
    assert_eq!(derived.cluster(north), live.cluster(north));
}

/// promise: D1, W2
#[test]
fn progress_of_an_older_version_is_that_of_every_cluster() {
    let (streams, north) = used();
    let mut state = streams.aggregate();
    let mut webhook = streams.shared.find_webhook(0).unwrap().clone();
    (webhook.number, webhook.name) = (1, Name::new("ci").unwrap());
    let mut apply = |change| drop(state.apply(&Record::shared(streams.now, Change::Webhook(change))));
    apply(WebhookChange::AddedWithProgress(Arc::new(webhook), progress(3)));
    apply(WebhookChange::Advanced { webhook: 0, progress: progress(9) });
    apply(WebhookChange::Advanced { webhook: 5, progress: progress(9) });
    for id in [DEFAULT, north] {
        let found: Vec<_> = state.cluster(id).unwrap().webhooks().collect();
        assert_eq!(found, [(0, progress(9)), (1, progress(3))]);
    }
    assert!(state.shared().webhook_named("ci").is_some());
    // A cluster that was created since has had the same progress.
    let (cluster, name) = (ClusterId(2), Name::new("south").unwrap());
    let created = Change::ClusterCreated { cluster, name, seed: SEED, site: Site::default() };
    state.apply(&Record::shared(streams.now, created));
    let completed = state.with_common_progress();
    let found: Vec<_> = completed.cluster(cluster).unwrap().webhooks().collect();
    assert_eq!(found, [(0, progress(9)), (1, progress(3))]);
}
