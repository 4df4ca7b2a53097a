//! Watches: events, progress, compaction, and members that are lost.

use std::time::Duration;

use forewarn_etcd::{
    EtcdClient, KeyRange, Operation, ProgressOrigin, PutOperation, Transaction, Watch, WatchEnd, WatchEvent,
    WatchItem, WatchQuery,
};
use forewarn_testkit::DEADLINE;
use forewarn_testkit::etcd::EtcdCluster;

use crate::support::{client, events, patient_client, put, repeat, settings, settings_beginning_with, until};

#[tokio::test]
async fn a_watch_sees_the_events_of_a_revision_together() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    check_a_watch(&patient_client(&cluster)).await;
}

pub(crate) async fn check_a_watch(client: &EtcdClient) {
    let mut watch = client.watch(&WatchQuery::new(KeyRange::prefix("w/"))).await.unwrap();
    let begun = watch.created().revision;
    put(client, "x/0", "not seen").await;
    let both = Transaction::new().then(Operation::put("w/1", "1")).then(Operation::put("w/2", "2"));
    let revision = client.transact(&both).await.unwrap().header.revision;
    assert_eq!(revision, begun + 2);
    let seen = events(&mut watch).await;
    let seen: Vec<_> = seen.iter().map(|event| (event.key().clone(), event.mod_revision())).collect();
    assert_eq!(seen, [("w/1".into(), revision), ("w/2".into(), revision)]);
    let revision = client.delete(&KeyRange::key("w/1")).await.unwrap().header.revision;
    let deletion = WatchEvent::Delete { key: "w/1".into(), mod_revision: revision };
    assert_eq!(events(&mut watch).await, [deletion]);
}

#[tokio::test]
async fn a_watch_from_a_revision_sees_the_past() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    put(&client, "k", "0").await;
    let start = put(&client, "k", "1").await;
    put(&client, "k", "2").await;
    let query = WatchQuery::new(KeyRange::key("k")).starting_at(start);
    let mut watch = client.watch(&query).await.unwrap();
    put(&client, "k", "3").await;
    let mut values = Vec::new();
    while values.len() < 3 {
        for event in events(&mut watch).await {
            let WatchEvent::Put(entry) = event else { panic!("{event:?}") };
            values.push(entry.value);
        }
    }
    assert_eq!(values, ["1", "2", "3"]);
}

/// Etcd sends the whole past at once; in pieces, none of which exceeds the limit.
#[tokio::test]
async fn a_large_past_is_seen_within_the_limit_of_an_answer() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let mut narrow = settings(&cluster);
    narrow.limits.answer_bytes = 3 * 1_024 * 1_024;
    let client = client(narrow);
    let first = put(&client, "k", vec![b'0'; 1_000_000]).await;
    for _ in 0..6 {
        let half = || vec![b'1'; 500_000];
        let both = Transaction::new().then(Operation::put("k", half())).then(Operation::put("l", half()));
        client.transact(&both).await.unwrap();
    }
    let mut watch = client.watch(&WatchQuery::new(KeyRange::all()).starting_at(first)).await.unwrap();
    let mut revisions = Vec::new();
    while revisions.len() < 13 {
        let seen: Vec<_> = events(&mut watch).await.iter().map(WatchEvent::mod_revision).collect();
        assert!(!revisions.contains(&seen[0]), "a revision is in two items: {seen:?}");
        revisions.extend(seen);
    }
    let expected = (1..13).map(|number| first + (number + 1) / 2);
    assert_eq!(revisions, std::iter::once(first).chain(expected).collect::<Vec<_>>());
}

#[tokio::test]
async fn progress_is_sent_on_request() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    let mut watch = client.watch(&WatchQuery::new(KeyRange::prefix("w/"))).await.unwrap();
    let revision = put(&client, "other", "1").await;
    watch.request_progress();
    let WatchItem::Progress { revision: seen, origin } = next(&mut watch).await.unwrap() else {
        panic!("no progress")
    };
    assert_eq!((seen, origin), (revision, ProgressOrigin::Requested));
}

/// True from 3.4.25 and 3.5.8 on.
pub(crate) async fn check_the_order_of_progress(client: &EtcdClient) {
    let mut watch = client.watch(&WatchQuery::new(KeyRange::all())).await.unwrap();
    let mut seen = watch.created().revision;
    let writer = client.clone();
    let writes = tokio::spawn(async move {
        for number in 0..300 {
            put(&writer, &format!("k/{number}"), "v").await;
        }
    });
    let (last, mut progress_count) = (seen + 300, 0);
    while seen < last {
        watch.request_progress();
        match next(&mut watch).await.unwrap() {
            WatchItem::Events(events) => seen = events.last().unwrap().mod_revision(),
            WatchItem::Progress { revision, .. } => {
                assert!(revision <= seen, "progress to {revision} before the event of {}", seen + 1);
                progress_count += 1;
            }
        }
    }
    writes.await.unwrap();
    assert!(progress_count > 0);
}

#[tokio::test]
async fn progress_is_sent_after_some_time_without_events() {
    let options = ["--experimental-watch-progress-notify-interval", "100ms"];
    let Some(cluster) = EtcdCluster::start_with(1, &options) else { return };
    let client = patient_client(&cluster);
    let mut watch = client.watch(&WatchQuery::new(KeyRange::prefix("w/"))).await.unwrap();
    let revision = put(&client, "other", "1").await;
    let seen = until("a progress message", async || match next(&mut watch).await.unwrap() {
        WatchItem::Progress { revision: seen, origin } if seen >= revision => Some((seen, origin)),
        WatchItem::Progress { .. } => None,
        WatchItem::Events(events) => panic!("{events:?}"),
    });
    assert_eq!(seen.await, (revision, ProgressOrigin::Periodic));
}

#[tokio::test]
async fn a_watch_from_a_compacted_revision_ends() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    check_compaction(&patient_client(&cluster)).await;
}

pub(crate) async fn check_compaction(client: &EtcdClient) {
    let first = put(client, "k", "1").await;
    let second = put(client, "k", "2").await;
    let mut seeing = client.watch(&WatchQuery::new(KeyRange::key("k")).starting_at(first)).await.unwrap();
    assert_eq!(events(&mut seeing).await[0].mod_revision(), first);
    client.compact(second).await.unwrap();
    let mut late = client.watch(&WatchQuery::new(KeyRange::key("k")).starting_at(first)).await.unwrap();
    let end = WatchEnd::Compacted { revision: second };
    assert_eq!(next(&mut late).await, Err(end.clone()));
    assert_eq!(next(&mut late).await, Err(end), "an end is final");
    // A watch that has seen the past goes on.
    let third = put(client, "k", "3").await;
    until("the newest event", async || {
        events(&mut seeing).await.iter().any(|event| event.mod_revision() == third).then_some(())
    })
    .await;
    let mut timely = client.watch(&WatchQuery::new(KeyRange::key("k")).starting_at(second)).await.unwrap();
    assert_eq!(events(&mut timely).await[0].mod_revision(), second);
}

#[tokio::test]
async fn a_watch_ends_when_its_member_is_stopped() {
    let Some(mut cluster) = EtcdCluster::start(3) else { return };
    let follower = (cluster.leader() + 1) % 3;
    let client = EtcdClient::new(settings_beginning_with(&cluster, follower)).unwrap();
    let mut watch = watch_at_first_endpoint(&client).await;
    cluster.stop(follower);
    let Err(WatchEnd::Lost(error)) = next(&mut watch).await else { panic!("the watch goes on") };
    assert!(error.to_string().contains("no longer answers"), "{error}");
    assert_eq!(client.current_endpoint(), 1, "the next watch is on another member");
    repeat(async || client.put(&PutOperation::new("w/1", "1")).await).await;
}

#[tokio::test]
async fn a_watch_ends_when_its_member_is_killed() {
    let Some(mut cluster) = EtcdCluster::start(3) else { return };
    let client = EtcdClient::new(settings(&cluster)).unwrap();
    let mut watch = watch_at_first_endpoint(&client).await;
    cluster.kill(0);
    assert!(matches!(next(&mut watch).await, Err(WatchEnd::Lost(_))));
    assert_eq!(client.current_endpoint(), 1);
}

#[tokio::test]
async fn a_watch_ends_when_its_member_has_lost_the_others() {
    let Some(mut cluster) = EtcdCluster::start(3) else { return };
    let client = patient_client(&cluster);
    let mut watch = watch_at_first_endpoint(&client).await;
    cluster.stop(1);
    cluster.stop(2);
    let Err(WatchEnd::Lost(error)) = next(&mut watch).await else { panic!("the watch goes on") };
    assert!(error.to_string().contains("no leader"), "{error}");
}

/// By default etcd closes connections with more than one HTTP/2 ping in 5 seconds.
#[tokio::test]
async fn a_connection_that_is_examined_often_stays_open() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let mut often = settings(&cluster);
    often.limits.examination_interval = Duration::from_millis(5);
    let client = client(often);
    let mut watch = client.watch(&WatchQuery::new(KeyRange::all())).await.unwrap();
    let examinations = || cluster.count(0, "grpc_server_handled_total", "grpc_method=\"Status\"");
    until("many examinations", async || (examinations() >= 100).then_some(())).await;
    let revision = put(&client, "k", "1").await;
    assert_eq!(events(&mut watch).await[0].mod_revision(), revision);
}

/// A watch on the first endpoint of a client whose calls may time out on a busy machine.
async fn watch_at_first_endpoint(client: &EtcdClient) -> Watch {
    until("a watch on the first endpoint", async || {
        let is_first = client.current_endpoint() == 0;
        let watch = client.watch(&WatchQuery::new(KeyRange::prefix("w/"))).await.ok();
        if !is_first {
            // The next call is made on the next endpoint.
            drop(client.within(Duration::ZERO).put(&PutOperation::new("k", "v")).await);
        }
        watch.filter(|_| is_first)
    })
    .await
}

async fn next(watch: &mut Watch) -> Result<WatchItem, WatchEnd> {
    tokio::time::timeout(DEADLINE, watch.next()).await.expect("an item in time")
}
